from pathlib import Path

import pytest

from benchmarks.scaling import grid_shape, main


@pytest.mark.parametrize("count", [100, 1000, 10**4, 10**5])
def test_a_grid_has_about_as_many_cells_as_asked(count: int) -> None:
    low, middle, high = grid_shape(count)

    assert 0.8 * count <= low * middle * high <= count


def test_both_tables_are_printed_and_nothing_is_left(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.scaling.ROUNDS", 1)

    assert main(["--quick", "--largest", "100", "--dir", str(tmp_path)]) == 0

    printed = capfd.readouterr().out
    assert "| 100 |" in printed
    assert "| bare |" in printed
    assert list(tmp_path.iterdir()) == []
