import tomllib
from pathlib import Path

import pytest

from benchmarks import environment
from benchmarks.local import FEWER, allowed, main, on_disk, options, selected, working_directory
from benchmarks.results import Row, Run, joined, merged, report, table


def test_a_ratio_is_taken_round_by_round() -> None:
    # the machine was ten times slower in the second round, for both
    row = Row("v", "w", {"us": [1.0, 10.0, 1.0], "peer": [2.0, 20.0, 3.0]})

    assert row.ratio("peer", "us") == 2.0
    assert row.ratio("absent", "us") is None


def test_the_report_counts_where_a_peer_is_ahead() -> None:
    rows = [
        Row("v", "fast", {"us": [1.0], "peer": [4.0], "bare": [0.5]}),
        Row("v", "slow", {"us": [2.0], "peer": [1.0]}),
    ]

    text = report(rows, "us", ["peer"], markdown=True)

    assert "| v | fast | 1.00 s | 4.00 | 2.00 |" in text
    assert "| v | slow | 2.00 s | 0.50 | – |" in text
    assert "peer: geometric mean 1.41 over 2 rows, ahead of us in 1" in text


def test_data_and_metadata_have_means_of_their_own() -> None:
    rows = [
        Row("v", "full read", {"us": [1.0], "peer": [4.0]}),
        Row("v", "open by URL", {"us": [4.0], "peer": [1.0]}),
    ]

    text = report(rows, "us", ["peer"], markdown=False)

    means = "geometric mean 1.00 over 2 rows, 4.00 of data, 0.25 of metadata, ahead of us in 1"
    assert f"peer: {means}" in text


def test_a_plain_table_is_aligned() -> None:
    text = table(["a", "b", "c"], [["x", "long", "1"]], markdown=False)

    assert text == "a  b     c\nx  long  1"


def test_quick_changes_defaults_only() -> None:
    assert options([]).edge == 512
    assert options(["--quick"]).edge == 128
    assert options(["--quick", "--edge", "64"]).edge == 64


def test_filters_leave_what_matches() -> None:
    chosen = options(["--layouts", "gzip 64³$", "--workloads", "^one-plane"])

    assert [(layout.name, workload.name) for layout, workload in selected(chosen)] == [
        ("v3 gzip 64³", "one-plane slice")
    ]


def test_a_run_ends_with_a_table_and_no_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "rows.json"
    arguments = ["--edge", "32", "--rounds", "1", "--only-libs", "tensorstore"]
    arguments += ["--layouts", "v3 zstd 64³$", "--workloads", "full read$"]

    status = main([*arguments, "--dir", str(tmp_path), "--json", str(saved)])

    out, err = capfd.readouterr()
    assert status == 0, err
    assert "v3 zstd 64³  full read" in out
    assert "tensorstore: Python 3." in out
    assert saved.exists()
    assert list(tmp_path.iterdir()) == [saved]


def test_a_failing_worker_is_reported_with_its_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--edge", "32", "--ours", "no_such_library", "--only-libs"]

    status = main([*arguments, "tensorstore", "--dir", str(tmp_path), "--layouts", "zstd"])

    assert status == 1
    assert "ModuleNotFoundError" in capfd.readouterr().err


def test_the_folder_to_write_to_is_made_if_need_be(tmp_path):
    with working_directory(tmp_path / "deep" / "down") as place:
        assert place.parent == tmp_path / "deep" / "down"
    assert not place.exists()


def test_rows_far_behind_the_first_peer_are_listed_with_the_worst_first() -> None:
    rows = [
        Row("v", "slow", {"us": [2.0], "peer": [1.0]}),
        Row("v", "slowest", {"us": [4.0], "peer": [1.0]}, {"other": "it has no such thing"}),
        Row("v", "nearly", {"us": [1.0], "peer": [0.9]}),
    ]

    lines = report(rows, "us", ["peer", "other"], markdown=False).splitlines()

    place = lines.index("below 0.8 beside peer:")
    assert lines[place + 1 : place + 4] == ["0.25  v, slowest", "0.50  v, slow", ""]
    assert "other: it has no such thing (1 rows)" in lines


def test_a_peer_that_was_timed_less_often_is_marked() -> None:
    row = Row("v", "w", {"us": [1.0, 1.0, 1.0], "slow": [5.0, 5.0]})

    text = report([row], "us", ["slow"], markdown=True)

    assert "| ~5.00 |" in text


def test_several_runs_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for number in (1, 2, 3):
        seconds = {"us": [1.0], "peer": [1.0 * number], "bare": [0.5]}
        if number == 2:
            seconds["slow"] = [4.0]
        peers = ["peer", "slow"] if number == 2 else ["peer"]
        files.append(tmp_path / f"{number}.json")
        Run("on a machine", "us", peers, [Row("v", "w", seconds)]).save(files[-1])

    assert main(["--merge", *map(str, files)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "on a machine"
    assert "| layout | workload | us | peer ÷, 3 runs | slow ÷ | ÷ bare |" in lines
    assert "| v | w | 1.00 s | 1.00 / 2.00 / 3.00 | 4.00 | 2.00 |" in lines
    assert "run 3: peer: geometric mean 3.00 over 1 rows, ahead of us in 0" in lines
    assert not any(line.startswith("run 3, below") for line in lines)
    assert Run.load(files[1]).rows[0].seconds["slow"] == [4.0]
    assert merged([Run.load(files[0])]).count("÷, 1 runs") == 1


def test_ours_may_have_an_interpreter_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--edge", "32", "--rounds", "1", "--only-libs", "tensorstore"]
    arguments += ["--layouts", "v3 raw 64³$", "--workloads", "full read$"]

    status = main([*arguments, "--dir", str(tmp_path), "--ours-python", str(tmp_path / "none")])

    assert status == 1
    assert str(tmp_path / "none") in capfd.readouterr().err


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="Linux keeps files in memory there")
def test_files_in_memory_are_not_on_a_disk(tmp_path: Path) -> None:
    assert not on_disk(Path("/dev/shm"))
    assert not on_disk(tmp_path / "not there")


def test_an_older_checkout_is_measured_by_this_benchmark(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "before"
    (other / "benchmarks").mkdir(parents=True)
    (other / "benchmarks" / "worker.py").write_text("raise ImportError('the old benchmark')")
    (other / "tensorstore_py").mkdir()
    (other / "tensorstore_py" / "__init__.py").write_text("raise ImportError('the old package')")
    arguments = ["--edge", "32", "--rounds", "1", "--only-libs", "--baseline", str(other)]
    arguments += ["--layouts", "v3 raw 64³$", "--workloads", "full read$"]

    status = main([*arguments, "--dir", str(tmp_path / "files")])

    assert status == 1
    assert "the old package" in capfd.readouterr().err


def test_an_environment_has_what_an_install_brings_and_extras_if_asked_for() -> None:
    extras = tomllib.loads((environment.ROOT / "pyproject.toml").read_text("utf-8"))
    extras = extras["project"]["optional-dependencies"]

    assert environment.requirement() == str(environment.ROOT)
    assert environment.requirement(["fast", "codecs"]) == f"{environment.ROOT}[fast,codecs]"
    assert {"fast", "codecs"} <= set(extras)


def test_parts_of_a_run_are_joined_and_repetitions_are_not() -> None:
    def run(*names: str, peers: tuple[str, ...] = ("peer",)) -> Run:
        return Run("about", "us", list(peers), [Row("v", name) for name in names])

    runs = joined([run("a"), run("b", "c"), run("a"), run("b"), run("d", peers=("other",))])

    assert [[row.workload for row in each.rows] for each in runs] == [
        ["a", "b", "c"],
        ["a", "b"],
        ["d"],
    ]


def test_what_takes_long_is_timed_less_often() -> None:
    assert [allowed(5, seconds, FEWER) for seconds in (0.1, 1.5, 60.0)] == [5, 2, 1]
    assert allowed(1, 1.5, FEWER) == 1
