import pytest

from tensorstore_py._display.info import Info, columns, human_size, rows, times
from tests.display.pages import Page


def test_a_table_is_text_html_and_a_mapping():
    info = Info([("Type", "Array"), ("Data", "<f8")])

    assert repr(info) == "Type : Array\nData : <f8"
    assert info["Data"] == "<f8"
    assert Page(info._repr_html_()).text.split() == ["Info", "Type", "Array", "Data", "<f8"]
    assert repr(Info([])) == ""


def test_rows_and_columns():
    assert rows([]) is None
    assert Page(columns(["", "Array"], [["Shape", "<1>"]])).text.split() == [
        "Array", "Shape", "<1>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1024.0 KiB"),
        (400_000_000, "381.5 MiB"),
        (2**60, "1.0 EiB"),
        (2**90, "1.2e+27 B"),
    ],
)
def test_sizes_are_for_people(size, expected):
    assert human_size(size) == expected


def test_extents():
    assert times([1000, None, 1]) == "1,000 × ∞ × 1"
