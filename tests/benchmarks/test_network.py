import pytest

from benchmarks import objects, objects_gcs, over_http
from benchmarks.network import (
    BEGIN,
    END,
    IN_FLIGHT_BEGIN,
    PAGE,
    in_flight_rows,
    latency_rows,
    put_into,
    rows,
)
from benchmarks.requests_by_rounds import IN_FLIGHT, Result


def test_a_row_tells_how_we_stand_to_another():
    found = {
        ("read", "tensorstore_py"): [Result(1.0, 0.2, 1000), Result(2.0, 0.2, 1000)],
        ("read", "other"): [Result(2.0, 0.4, 1000), Result(2.0, 0.1, 1000)],
    }

    assert rows("s3", found) == [
        "| s3 | read | 750 | 0.200 | other | 500 | 0.250 | **1.50** | 1.25 |"
    ]


def test_latency_is_compared_with_the_ideal():
    found = {
        ("read", "tensorstore_py"): [Result(9.0, 9.0, 2000)],
        ("read", "minimum"): [Result(1.25, 0.1, 2000)],
        ("array", "tensorstore_py"): [Result(1.5, 0.2, 2000)],
    }

    assert latency_rows("http", found) == [
        "| http | minimum | 1.250 | 1.00 | 0.050 |",
        "| http | tensorstore_py | 1.500 | 1.20 | 0.100 |",
    ]


def test_a_row_of_requests_in_flight_has_the_range_of_its_rounds():
    found = {
        ("GET 64 KiB, 1", "tensorstore_py"): [
            Result(1.0, 0.2, 1000), Result(2.0, 0.2, 1000), Result(2.0, 0.2, 1000),
        ],
        ("GET 64 KiB, 1", "tensorstore"): [Result(1.0, 0.1, 1000)] * 3,
    }  # fmt: skip

    assert in_flight_rows("s3", found) == [
        "| s3 | GET 64 KiB, 1 | 500 | 1,000 | 0.200 | 0.100 | **0.50** (0.50 to 1.00) | 2.00 |"
    ]


@pytest.mark.parametrize("contest", [over_http.contest, objects.contest, objects_gcs.contest])
def test_every_number_of_requests_in_flight_is_measured(contest):
    gets = tuple(name for name in IN_FLIGHT if "GET" in name)
    asked = gets if contest is over_http.contest else tuple(IN_FLIGHT)

    found = contest(("tensorstore_py",), asked).measure(rounds=1, count=20)

    assert [workload for workload, _ in found] == list(asked)


@pytest.mark.parametrize("begin", [BEGIN, IN_FLIGHT_BEGIN])
def test_the_page_has_a_place_for_the_tables(begin):
    page = PAGE.read_text("utf-8")

    filled = put_into(page, "| a |", begin)

    assert f"{begin}\n| a |\n{END}" in filled
    assert filled.partition(begin)[0] == page.partition(begin)[0]
    assert (
        filled.partition(begin)[2].partition(END)[2] == page.partition(begin)[2].partition(END)[2]
    )
