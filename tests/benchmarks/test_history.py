"""The history of the benchmark: a line is ratios, and a run adds one."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import history, local

SAVED: dict[str, Any] = {
    "about": "128³ uint16",
    "rows": [
        {
            "layout": "v2",
            "workload": "open",
            # the second round was ten times slower, for all
            "seconds": {"tensorstore_py": [1.0, 10.0, 1.0], "tensorstore": [2.0, 20.0, 2.0]},
        }
    ],
}


def test_a_run_adds_one_line_of_ratios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(arguments: list[str]) -> int:
        Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(SAVED), "utf-8")
        return 0

    monkeypatch.setattr(local, "main", measured)
    file = tmp_path / "history.jsonl"

    assert history.main(["--file", str(file)]) == 0
    assert history.main(["--file", str(file)]) == 0

    first, second = history.read(file)
    assert first == second
    assert first["ratios"] == {"v2, open": {"tensorstore": 2.0}}
    assert history.main(["--file", str(file), "--show"]) == 0
    assert capsys.readouterr().out.split("\n")[-2].split()[-2:] == ["2.00", "2.00"]


def test_a_run_that_failed_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "main", lambda _: 1)

    assert history.main(["--file", str(tmp_path / "history.jsonl")]) == 1
    assert not (tmp_path / "history.jsonl").exists()


def test_what_is_measured_is_there() -> None:
    chosen = local.options(list(history.MEASURED))
    pairs = {(layout.name, workload.name) for layout, workload in local.selected(chosen)}

    assert len(pairs) == 11
    assert chosen.peers == list(history.PEERS)


def test_the_history_that_is_kept_can_be_read() -> None:
    lines = history.read(history.FILE)

    assert lines
    assert [line["date"] for line in lines] == sorted(line["date"] for line in lines)
    for line in lines:
        assert line["ratios"]
        assert line["versions"]["tensorstore-py"]
        assert all(ratio > 0 for taken in line["ratios"].values() for ratio in taken.values())
