"""The benchmark of OCDBT databases: every row runs in both libraries, and the tables are whole."""

import pytest

from benchmarks import ocdbt


@pytest.mark.parametrize("row", ocdbt.ROWS, ids=lambda row: row.__name__)
def test_each_row_measures_the_same_in_both_libraries(row, tmp_path):
    found = ocdbt.measure(row, 1, 0.001, tmp_path)
    assert found
    assert all(len(each.ours) == len(each.theirs) == 1 for each in found.values())
    assert not list(tmp_path.iterdir()), "databases are removed"


def test_a_speed_is_the_median_of_ratios():
    assert ocdbt.Measured([1.0, 2.0, 4.0], [2.0, 1.0, 4.0]).speed == 1.0


def test_rows_are_chosen_by_name_and_printed_as_a_table(capsys, tmp_path):
    arguments = ["--rows", "one_by_one", "--scale", "0.001", "--rounds", "1"]
    ocdbt.run(ocdbt.ROWS, ocdbt.BULK, [*arguments, "--place", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.count("|") == 6 for line in lines)
