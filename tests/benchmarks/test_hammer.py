import pytest

from benchmarks.hammer import LAYOUTS, Result, hammer, main


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_write_is_lost(tmp_path, layout) -> None:
    # More processes, on arrays of one chunk and of one shard: tests/api/test_races.py
    result = hammer(tmp_path, layout, writes=96, processes=2)
    assert (result.writes, result.lost) == (96, 0)


def test_a_line_for_each_layout(capsys, monkeypatch) -> None:
    lost = {"plain": 0, "shard": 2}

    def pretend(_place, layout, writes, _processes):
        return Result(layout, writes, 2.0, lost[layout])

    monkeypatch.setattr("benchmarks.hammer.hammer", pretend)
    assert main(["--layout", "plain", "--writes", "1000"]) == 0
    assert capsys.readouterr().out.split() == ["plain", "1000", "500", "writes/s", "0", "lost"]
    assert main(["--layout", "plain", "--layout", "shard"]) == 1
