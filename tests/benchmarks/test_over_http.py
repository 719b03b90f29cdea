from benchmarks.over_http import LIBRARIES, WORKLOADS, contest
from benchmarks.requests_by_rounds import Result, table


def test_a_result_is_counted_by_the_request() -> None:
    result = Result(seconds=2.0, cpu_seconds=0.5, requests=1000)

    assert (result.rate, result.cpu_ms) == (500.0, 0.5)


def test_a_ratio_is_ours_over_the_peers() -> None:
    found = {
        ("read", "tensorstore_py"): [Result(1.0, 0.1, 100), Result(2.0, 0.1, 100)],
        ("read", "tensorstore"): [Result(0.5, 0.1, 100), Result(1.0, 0.1, 100)],
    }

    _, ours, theirs = table(found, "tensorstore_py", ideal_s=1.0)

    assert ours.split()[:5] == ["read", "tensorstore_py", "75", "1.000", "1.00"]
    assert theirs.split()[4] == "0.50"
    assert theirs.endswith("0.750 s, 0.75 of the ideal")


def test_every_library_reads_all_of_it() -> None:
    found = contest().measure(rounds=1, count=5)

    assert {workload for workload, _ in found} == set(WORKLOADS)
    assert {library for _, library in found} == set(LIBRARIES)
    assert all(result.requests == 5 for results in found.values() for result in results)
