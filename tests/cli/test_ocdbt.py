"""What the command line says of OCDBT databases, and with which exit codes."""

import json

import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def db(tmp_path):
    store = ts.KvStore.open(f"file://{tmp_path}/db/|ocdbt:").result()
    store["a/x"] = b"1" * 300
    store["a/y"] = b"2" * 5000
    store["b"] = b"3"
    return tmp_path / "db"


def said(capsys, *arguments, code=0):
    assert main(["ocdbt", *map(str, arguments)]) == code
    return capsys.readouterr().out


def told(capsys, *arguments, code=0):
    return json.loads(said(capsys, *arguments, "--json", code=code))


def test_versions(db, capsys):
    said(capsys, "name", db, "first", "--version", "v2")

    lines = said(capsys, "versions", db).splitlines()

    assert lines[0].split() == ["version", "committed", "keys", "values", "nodes", "names"]
    assert [line.split()[0] for line in lines[1:]] == ["v4", "v3", "v2", "v1"]
    assert lines[3].endswith("  first")
    few = told(capsys, "versions", db, "--oldest-first", "-n", 2, "--first", "v2")
    assert [each["generation"] for each in few] == [2, 3]
    assert few[0]["names"] == ["first"]
    assert told(capsys, "versions", db, "--until", few[0]["time"])[0]["generation"] == 2


def test_ls(db, capsys):
    lines = said(capsys, "ls", db).splitlines()

    assert [line.split() for line in lines] == [
        ["5.2", "KiB", "2", "keys", "a/"],
        ["1", "B", "b"],
        ["5.2", "KiB", "3", "keys", "in", "all"],
    ]
    assert told(capsys, "ls", db, "a/", "-r", "--version", "2") == [
        {"name": "a/x", "keys": 1, "bytes": 300}
    ]
    assert said(capsys, "ls", db, "nothing").split() == ["0", "B", "0", "keys", "in", "all"]


def test_check_ends_with_1_if_there_are_problems(db, capsys):
    assert " is ok\n" in said(capsys, "check", db, "--all", "--values")
    assert told(capsys, "check", db)["ok"] is True
    for file in (db / "d").iterdir():
        file.write_bytes(b"")

    assert "newest version that is whole: v1" in said(capsys, "check", db, code=1)
    assert told(capsys, "check", db, code=1)["problems"][0]["lost"] == 3


def test_diff_ends_with_1_if_something_differs(db, capsys):
    assert "1 key added, 0 removed, 0 changed" in said(
        capsys, "diff", db, "v4", "--version", "3", code=1
    )
    assert told(capsys, "diff", db, "v4")["differs"] is False
    copy = ts.KvStore.open(f"file://{db.parent}/copy/|ocdbt:").result()
    copy["b"] = b"3"
    found = told(capsys, "diff", db.parent / "copy", db, code=1)
    assert [each["key"] for each in found["keys"]] == ["a/x", "a/y"]


def test_compact_and_repair(db, capsys):
    assert "1 of 4 kept" in said(capsys, "compact", db, "--keep-last", 1, "--dry-run")
    assert told(capsys, "versions", db)[-1]["generation"] == 1
    report = told(capsys, "compact", db, "--keep-last", 1, "--grace", "0")
    assert (report["versions"], report["waiting_files"]) == (1, 0)
    assert "nothing to repair" in said(capsys, "repair", db)
    with pytest.raises(SystemExit):
        main(["ocdbt", "compact", str(db), "--grace", "soon"])
    assert "or 1d" in capsys.readouterr().err


def test_names_and_dumps(db, capsys):
    assert said(capsys, "name", db) == "no version has a name\n"
    assert told(capsys, "name", db, "x") == {"x": 4}
    assert said(capsys, "name", db).split() == ["v4", "x"]
    assert told(capsys, "name", db, "x", "--delete") == {}
    manifest = told(capsys, "dump", db)
    root = manifest["versions"][-1]["root"]["location"]
    entries = told(capsys, "dump", db, root)["entries"]
    assert [each["key"] for each in entries] == ["a/x", "a/y", "b"]


def test_errors_are_one_line_and_exit_code_1(tmp_path, capsys):
    for arguments in (["versions"], ["check"], ["repair"], ["dump"], ["compact"]):
        assert main(["ocdbt", arguments[0], str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "manifest.ocdbt" in error


def test_stores_are_also_named_by_json(db, capsys):
    spec = json.dumps({"driver": "ocdbt", "base": db.as_uri() + "/"})
    assert [each["generation"] for each in told(capsys, "versions", spec)] == [4, 3, 2, 1]
    with pytest.raises(SystemExit):
        main(["ocdbt", "versions", "{"])
    assert "this is no JSON" in capsys.readouterr().err


def test_numbers_that_are_none_are_refused_with_the_arguments(db, capsys):
    for arguments in (
        ["versions", db, "-n", "-1"],
        ["compact", db, "--grace", "nan"],
        ["compact", db, "--grace", "inf"],
    ):
        with pytest.raises(SystemExit):
            main(["ocdbt", *map(str, arguments)])
        assert "expected a" in capsys.readouterr().err


def test_what_is_no_database_prints_an_error_and_nothing_else(tmp_path, capsys):
    for command in ("versions", "name"):
        assert main(["ocdbt", command, str(tmp_path)]) == 1
        out, error = capsys.readouterr()
        assert out == ""
        assert "name the directory of an OCDBT database" in error


def test_a_name_that_no_version_has_is_not_deleted(db, capsys):
    assert main(["ocdbt", "name", str(db), "x", "--delete"]) == 1
    assert 'no version has the name "x"' in capsys.readouterr().err


def test_keys_beside_arrays_are_told_of_as_well(db, capsys):
    spec = {"driver": "zarr3", "kvstore": f"file://{db}/|ocdbt:array/"}
    ts.open(spec, create=True, dtype="int8", shape=[4]).result()
    text = said(capsys, "diff", db, "v1", code=1)
    assert "added array /array" in text
    assert "3 keys of no array or group" in text
