import io
import re
from pathlib import Path

import pytest

from tensorstore_py.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
RIGHT = '{"driver": "zarr3", "kvstore": "memory://a/"}'
LEVEL = '{"driver": "zarr3", "metadata": {"codecs": [{"name": "gzip", "configuration": %s}]}}'
SYNTAX = "Expecting property name enclosed in double quotes"
FILES: dict[str, tuple[str, str | None]] = {
    "right.json": (RIGHT, None),
    "noted.json": ('{"$schema": "x", "driver": "zarr3", "kvstore": "memory://"}', None),
    "store.json": ('{"driver": "file", "path": "/a"}', None),
    "context.json": ('{"cache_pool#a": {"total_bytes_limit": 5}, "file_io_sync": false}', None),
    "url.json": ('"memory://a/|zarr3:"', None),
    "member.json": (
        '{"driver": "zarr3", "kvstor": "memory://"}',
        ':kvstor: no such member (did you mean "kvstore"?)',
    ),
    "deep.json": (
        LEVEL % '{"level": 12}',
        ":metadata.codecs[0].configuration.level: expected an integer from 0 to 9, but found 12",
    ),
    "text.json": ('{"a": 1,\n ,}', f": not valid JSON: {SYNTAX} at line 2, column 2"),
    "twice.json": (
        '{"driver": "zarr", "driver": "zarr3"}',
        ":driver: this member is given twice; remove one",
    ),
    "pool.json": (
        '{"cache_pool": {"total_bytes_limi": 5}}',
        ':cache_pool.total_bytes_limi: no such member (did you mean "total_bytes_limit"?)',
    ),
    "badstore.json": (
        '{"driver": "file", "pat": "/a"}',
        ':pat: no such member (did you mean "path"?)',
    ),
    "empty.json": ("", ": not valid JSON: Expecting value at line 1, column 1"),
    "number.json": ("5", ": expected an object or a URL, but found 5"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, (text, _) in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("folder")
def test_one_line_for_what_is_wrong(capsys, name):
    expected = FILES[name][1]
    assert main(["validate", name]) == (0 if expected is None else 1)
    assert capsys.readouterr().out == ("" if expected is None else f"{name}{expected}\n")


def test_patterns_and_missing_files(folder, capsys):
    assert main(["validate", "**/*.json", "none.json", str(folder / "r*.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    wrong = sorted(name for name, (_, problem) in FILES.items() if problem)
    assert [line.partition(":")[0] for line in lines] == [*wrong, "none.json"]
    assert lines[-1] == "none.json: none.json does not exist; a spec file is expected"


def test_standard_input(monkeypatch, capsys):
    class Input:
        buffer = io.BytesIO(b'{"driver": "zarr4"}')

    monkeypatch.setattr("sys.stdin", Input)
    assert main(["validate", "-"]) == 1
    assert re.match(r'-:driver: no driver is named "zarr4"', capsys.readouterr().out)


def test_the_environment_only_where_asked_for(folder, capsys, monkeypatch):
    text = '{"driver": "zarr3", "kvstore": {"driver": "file", "path": "/a/${VOLUME}"}}'
    (folder / "env.json").write_text(text, "utf-8")
    monkeypatch.delenv("VOLUME", raising=False)
    assert main(["validate", "env.json"]) == 0
    assert main(["validate", "--env", "env.json"]) == 1
    assert "env.json:kvstore.path: the environment variable VOLUME" in capsys.readouterr().out
    monkeypatch.setenv("VOLUME", "7")
    assert main(["validate", "--env", "env.json"]) == 0


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("kvstore", "store.json", 0),
        ("kvstore", "right.json", 1),
        ("context", "context.json", 0),
        ("context", "right.json", 1),
        ("spec", "right.json", 0),
        ("spec", "store.json", 0),  # whatever array is in it
        ("spec", "context.json", 1),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_kind_may_be_said(kind, name, code):
    assert main(["validate", "--kind", kind, name]) == code


def test_the_hook_runs_this_command():
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    assert "entry: tspy validate" in hook
    assert 'tspy = "tensorstore_py.cli.main:main"' in (ROOT / "pyproject.toml").read_text("utf-8")
