"""What a terminal gets beside text: colours, tables that fit, a bar."""

import io
import re
import sys

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main

LONG = "a name that is longer than most of the names that there are"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A terminal that shows every character of Unicode."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def shown(monkeypatch):
    """What a command writes to a terminal."""

    def run(*arguments, code=0):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal := Terminal())
            assert main([*map(str, arguments)]) == code
        return terminal.getvalue()

    return run


@pytest.fixture
def run_zarr(tmp_path):
    group = ts.Group.open(tmp_path / "run.zarr", create=True, attributes={"n": 1}).result()
    for name in ("image", LONG):
        array = group.create_array(name, dtype="int64", shape=[4, 6]).result()
        array[...] = np.arange(24).reshape(4, 6) + 123456
    (tmp_path / "run.zarr/image/c/0/0").write_bytes(b"")
    return tmp_path / "run.zarr"


def test_it_is_the_text_that_is_piped_in_colours(run_zarr, shown, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for command in ("ls", "tree", "info", "du"):
        text = shown(command, run_zarr)
        assert ESCAPE.search(text)
        assert main([command, str(run_zarr)]) == 0
        lines = [line.rstrip() for line in ESCAPE.sub("", text).splitlines()]
        assert lines == capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(name, value, run_zarr, shown, monkeypatch):
    monkeypatch.setenv(name, value)
    for command, code in (("ls", 0), ("tree", 0), ("info", 0), ("verify", 1)):
        assert "\x1b" not in shown(command, run_zarr, code=code)


def test_numbers_are_whole_however_narrow_it_is(run_zarr, shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    text = ESCAPE.sub("", shown("stats", run_zarr, "--quantiles", code=1))
    assert {"123456", "123479", "123468"} <= set(text.split())


def test_long_names_go_on_in_a_second_line(run_zarr, shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = ESCAPE.sub("", shown("ls", run_zarr)).splitlines()
    assert max(map(len, lines)) <= 60
    assert len(lines) == 4


def test_damage_is_red_and_what_is_whole_is_green(run_zarr, shown):
    assert "\x1b[31m1 problem\x1b[0m" in shown("verify", run_zarr, code=1)
    (run_zarr / "image/c/0/0").unlink()
    assert "\x1b[32mnothing is damaged\x1b[0m" in shown("verify", run_zarr)


def test_names_that_would_control_it_are_shown(tmp_path, shown):
    group = ts.Group.open(tmp_path / "g", create=True, attributes={"a\x1b[2J": "b\x1b[2J"}).result()
    group.create_array("x\x1b[2J[red]", dtype="int8", shape=[1]).result()
    for command in ("ls", "tree", "info", "du", "stats"):
        text = shown(command, tmp_path / "g")
        assert "\x1b[2J" not in text
        assert "x\\x1b[2J[red]" in ESCAPE.sub("", text)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_bar_takes_one_line(columns, run_zarr, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main(["stats", str(run_zarr / LONG), "--progress"]) == 0
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).split("\r")[-1].strip("\n")
    assert last.startswith("stats ")
    assert "100% of 192" in last
    assert len(last) <= columns
    assert "100%" not in capsys.readouterr().out
