"""The benchmark of reading OCDBT databases runs, and checks what it reads."""

import pytest

from benchmarks import ocdbt_reads

TINY = ocdbt_reads.Sizes(
    keys=300, reads=20, arrays=4, restored=1, array_bytes=8 * 2**20, rounds=1
)  # fmt: skip


@pytest.mark.parametrize(("only", "lines"), [("keys", 3), ("opening", 3), ("zstd", 1)])
def test_runs(monkeypatch, capsys, only, lines):
    monkeypatch.setattr(ocdbt_reads, "QUICK", TINY)

    assert ocdbt_reads.main(["--quick", "--only", only]) == 0

    head, rule, *rows = [line for line in capsys.readouterr().out.splitlines() if line[:1] == "|"]
    assert len(rows) == lines
    assert {line.count("|") for line in (head, rule, *rows)} == {7}
