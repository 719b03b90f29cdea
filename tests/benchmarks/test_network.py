from benchmarks.network import BEGIN, END, PAGE, latency_rows, put_into, rows
from benchmarks.requests_by_rounds import Result


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


def test_the_page_has_a_place_for_the_tables():
    page = PAGE.read_text("utf-8")

    filled = put_into(page, "| a |")

    assert f"{BEGIN}\n| a |\n{END}" in filled
    assert filled.partition(BEGIN)[0] == page.partition(BEGIN)[0]
    assert filled.partition(END)[2] == page.partition(END)[2]
