"""The table of one thread and two runs, and has all its rows."""

from benchmarks.threads import CODECS, main


def test_the_table_has_all_rows(tmp_path, capsys):
    assert main(["--edge", "64", "--rounds", "1", "--dir", str(tmp_path)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if ", full " in line]
    assert [row.split("|")[1].strip() for row in rows] == [
        f"{name}, full {what}" for name in CODECS for what in ("write", "read")
    ]
    assert all(float(row.split("|")[-2]) > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
