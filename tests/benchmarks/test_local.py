from pathlib import Path

import pytest

from benchmarks.local import Row, main, options, report, selected, table, working_directory


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


def test_a_plain_table_is_aligned() -> None:
    text = table(["a", "b", "c"], [["x", "long", "1"]], markdown=False)

    assert text == "a  b     c\nx  long  1"


def test_quick_changes_defaults_only() -> None:
    assert options([]).edge == 512
    assert options(["--quick"]).edge == 128
    assert options(["--quick", "--edge", "64"]).edge == 64


def test_filters_leave_what_matches() -> None:
    chosen = options(["--layouts", "gzip", "--workloads", "^open$"])

    assert [(layout.name, workload.name) for layout, workload in selected(chosen)] == [
        ("v3 gzip 64³", "open")
    ]


def test_a_run_ends_with_a_table_and_no_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "rows.json"
    arguments = ["--edge", "32", "--rounds", "1", "--only-libs", "tensorstore"]
    arguments += ["--layouts", "zstd", "--workloads", "full read$"]

    status = main([*arguments, "--dir", str(tmp_path), "--json", str(saved)])

    out, err = capfd.readouterr()
    assert status == 0, err
    assert "v3 zstd 64³  full read" in out
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
