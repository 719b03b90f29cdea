import json

import pytest

from benchmarks import consistency
from benchmarks.consistency import Cell, main, options, table
from benchmarks.losses import WORKLOADS, Outcome


def test_nothing_is_lost_and_the_table_says_so(capsys):
    programs = "answers,forks"
    status = main(["--only", programs, "--libs", "tensorstore_py", "--rounds", "1", "--markdown"])

    out = capsys.readouterr().out
    assert status == 0, out
    assert out.splitlines()[0].startswith("Python 3.")
    assert out.splitlines()[2:] == [
        "|  | tensorstore_py |",
        "|---|---|",
        "| a bad answer, then a retry | 0 |",
        "| readers forked while the library reads | 0 |",
    ]


def test_a_peer_runs_the_same_program(capsys):
    pytest.importorskip("tensorstore")
    main(["--only", "threads", "--libs", "tensorstore_py,tensorstore", "--rounds", "1"])

    out = capsys.readouterr().out
    assert out.splitlines()[2].split() == ["tensorstore_py", "tensorstore"]
    assert out.splitlines()[3].split() == ["unaligned", "regions", "by", "threads", "0", "0"]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(0, 100), "0"),
        (Outcome(25, 100), "25.0 %"),
        (Outcome(1, 10_000), "< 0.1 %"),
        (Outcome(100, 100, hangs=1, crashes=2), "100.0 %, 1 hang, 2 crashes"),
        (Outcome(hangs=2), "2 hangs"),
        (Outcome(0, 100, errors=1), "1 error"),
    ],
)
def test_what_a_cell_says(outcome, said):
    assert str(Cell(outcome)) == said
    assert Cell(outcome).clean == (said == "0")


def test_rounds_are_added_up_and_ours_decides_the_status(monkeypatch, capsys):
    answers = iter([Outcome(0, 10), Outcome(1, 10), Outcome(5, 10), Outcome(4, 10)])
    monkeypatch.setattr(consistency, "run", lambda *_, **__: Cell(next(answers)))
    monkeypatch.setattr(consistency, "installed", lambda names: names)
    monkeypatch.setattr(consistency, "versions", lambda _: "versions")

    chosen = ["--only", "kills", "--libs", "tensorstore_py,zarr", "--rounds", "2"]

    assert main(chosen) == 1
    assert (
        capsys.readouterr().out.splitlines()[-1] == "kill -9 in mid-write  5.0 %           45.0 %"
    )


def test_what_a_library_lacks_is_no_zero():
    cell = Cell(Outcome(), "no such thing")
    assert str(cell) == "n/a"
    assert not cell.clean


def test_a_program_or_library_that_there_is_not_is_refused(capsys):
    for arguments in (["--only", "magic"], ["--libs", "magic"]):
        with pytest.raises(SystemExit):
            options(arguments)
        assert "'magic'; there are " in capsys.readouterr().err
    assert options([]).only == list(WORKLOADS)


def test_a_plain_table_is_aligned():
    assert table([["", "a"], ["long", "1"]], markdown=False) == "      a\nlong  1"
    assert json.dumps(table([["", "a"], ["b", "1"]], markdown=True)) == (
        '"|  | a |\\n|---|---|\\n| b | 1 |"'
    )
