"""What holds for many commands: their examples run, `--json` is JSON, and mistakes are told."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs/command_line.md"
#: Those that look, check, copy arrays, and run jobs; others have tests of their own.
NAMES = [
    "ls", "tree", "info", "head", "cat", "attrs", "du",
    "stats", "hist", "digest", "diff", "verify",
    "copy", "rechunk", "migrate",
    "validate", "schema", "plan", "run", "status",
]  # fmt: skip
READERS = ["ls", "tree", "info", "head", "cat", "attrs", "du", "stats", "hist", "digest", "verify"]


def examples_of(text):
    """The examples in a help: arguments without the program, and what is behind `&&` and `>`."""
    block = text.partition("\nexamples:\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in block.splitlines()]
    assert all(line.startswith("tspy ") for line in lines), lines
    return [shlex.split(re.split(r" (?:&&|>) ", line)[0])[1:] for line in lines]


def help_of(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert not ended.value.code
    return capsys.readouterr().out


def made(place, shape, **options):
    """An array of numbers, where examples look for one."""
    array = ts.open(place, create=True, dtype="uint16", shape=shape, **options).result()
    array[...] = np.arange(np.prod(shape), dtype="uint16").reshape(shape)


@pytest.fixture
def prepared(moto_s3, tmp_path, monkeypatch, request):
    """A directory, and the bucket `bucket`, with all that examples name."""
    monkeypatch.chdir(tmp_path)
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_s3.endpoint)
    monkeypatch.setenv("COLUMNS", "100")
    if "bucket" not in _made:
        moto_s3.make_bucket("bucket")
        _made.add("bucket")
    for key in moto_s3.keys("bucket"):
        moto_s3.delete("bucket", key)
    domain = ts.IndexDomain(shape=[2, 256, 64], labels=["t", "y", "x"])
    layout = ts.ChunkLayout(chunk_shape=[1, 64, 64])
    image = {"driver": "zarr3", "kvstore": Path("image.zarr")}
    made(image, domain.shape, domain=domain, chunk_layout=layout)
    for name in ("a.zarr", "new.zarr", "table.zarr"):
        made({"driver": "zarr3", "kvstore": Path(name)}, (12, 3))
    made({"driver": "n5", "kvstore": Path("b.n5")}, (12, 3))
    made(f"{Path('scans.zip').absolute().as_uri()}|zip:x/|zarr3:", (2, 2))
    old = ts.Group.open(Path("old.zarr"), create=True, zarr_format=2).result()
    old.create_array("t", dtype="float64", shape=[3]).result()[...] = 1
    for where in (Path("run.zarr"), "s3://bucket/run.zarr/"):
        run = ts.Group.open(where, create=True, attributes={"title": "Run 7"}).result()
        run.create_array("raw/image", dtype="int8", shape=[4, 4]).result()[...] = 1
    made("s3://bucket/image.zarr/|zarr3:", (4, 4))
    if request.node.callspec.params["name"] != "migrate":
        made("s3://bucket/new.zarr/|zarr3:", (4, 4))
    header = b'{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
    Path("model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"12")
    Path("spec.json").write_text('{"driver": "zarr3", "kvstore": "s3://bucket/public/a/"}')
    step = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr"}
    job = {"tensorstore_py_job": 1, "steps": [step], "manifest": "job.manifest.json"}
    Path("jobs").mkdir()
    for name in ("job.json", "jobs/one.json"):
        Path(name).write_text(json.dumps(job))
    step["dest"] = "c.zarr"
    Path("planned.json").write_text(json.dumps({"tensorstore_py_job": 1, "steps": [step]}))
    return tmp_path


_made: set[str] = set()


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_its_help_do_what_they_say(name, capfd):
    found = examples_of(help_of(name, capfd))
    assert found
    if name in ("run", "status"):
        assert main(["plan", "planned.json", "-o", "s3://bucket/plan.json"]) == 0
    for example in found:
        code = main(example)
        out, err = capfd.readouterr()
        differs = example[0] == "diff" and code == 1
        is_open = example[0] == "status" and code == 3
        assert code == 0 or differs or is_open, (example, err)
        assert "Traceback" not in err
        assert out or {"-o", "--set", "--delete", "--output", "validate"} & {*example}, example


#: What each command prints as JSON for an array and for a group.
JSON = {
    name: [[name, "image.zarr"], [name, "run.zarr"]]
    for name in ("ls", "tree", "info", "du", "stats", "digest", "verify", "attrs")
} | {
    "head": [["head", "image.zarr"]],
    "cat": [["cat", "table.zarr"]],
    "hist": [["hist", "table.zarr"]],
    "diff": [["diff", "a.zarr", "b.n5"], ["diff", "a.zarr[0]", "a.zarr[1]"]],
    "copy": [["copy", "run.zarr", "copy.zarr"]],
    "rechunk": [["rechunk", "image.zarr", "columns.zarr", "--chunks", "2,8,8"]],
    "migrate": [["migrate", "old.zarr"]],
    "validate": [["validate", "spec.json"], ["validate", "run.zarr"]],
    "run": [["run", "job.json"]],
    "status": [["status", "plan.json"]],
}


def documented():
    """The members that the page names for each command."""
    found: dict[str, set[str]] = {}
    for row in re.findall(r"^\| (`.*?`) \| (.*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE):
        for name in re.findall(r"`([a-z]+)`", row[0]):
            found.setdefault(name, set()).update(re.findall(r"`([a-z_]+)`", row[1]))
    return found


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("name", JSON)
def test_json_is_json_of_the_members_that_the_page_names(name, capfd):
    known = documented()[name]
    if name == "status":
        assert main(["plan", "planned.json", "-o", "plan.json"]) == 0
        capfd.readouterr()
    for arguments in JSON[name]:
        code = main([*arguments, "--json"])
        out, err = capfd.readouterr()
        assert (code in (0, 1) or name == "status", err) == (True, "")
        found = json.loads(out)
        if name != "attrs":
            assert set(members(found)) <= known
            assert set(members(found))


def members(found):
    """The names of members of an object or of the objects in a list."""
    for each in found if isinstance(found, list) else [found]:
        yield from each


@pytest.mark.parametrize("name", NAMES)
def test_unknown_options_are_refused_by_name(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "x", "y", "--chunks", "1", "--frobnicate"])
    assert ended.value.code == 2
    assert "usage: tspy" in capsys.readouterr().err


@pytest.mark.parametrize("name", READERS)
def test_what_is_not_there_is_an_error_in_one_line(name, tmp_path, capsys):
    assert main([name, str(tmp_path / "nowhere.zarr")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "nowhere.zarr" in err


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("name", ["cat", "head", "info", "stats", "hist", "verify", "digest", "ls"])
def test_dimensions_and_positions_that_are_not_there_are_told(name, capsys):
    for selection, problem in (("[z=1]", "z"), ("[t=7]", "7"), ("[0, 0, 0, 0]", "4")):
        assert main([name, f"image.zarr{selection}"]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert selection in err
        assert problem in err


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("name", ["info", "cat", "verify", "copy"])
def test_a_format_that_is_not_the_one_that_is_there_is_told(name, capsys):
    where = f"{Path('image.zarr').absolute().as_uri()}/|zarr2:"
    assert main([name, where, *(["new2.zarr"] if name == "copy" else [])]) == 1
    assert ("no array or group is at" if name == "copy" else "zarr3") in capsys.readouterr().err
    assert not Path("new2.zarr").exists()


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("name", ["stats", "verify", "digest", "du", "hist", "copy", "diff"])
def test_progress_is_told_if_asked_for_and_never_to_standard_output(name, capfd):
    arguments = {"copy": ["image.zarr", "new3.zarr"], "diff": ["a.zarr", "b.n5"]}
    assert main([name, *arguments.get(name, ["image.zarr"]), "--progress"]) == 0
    out, err = capfd.readouterr()
    assert "100%" in err
    assert "100%" not in out
    arguments["copy"] = ["image.zarr", "new4.zarr"]
    assert main([name, *arguments.get(name, ["image.zarr"])]) == 0
    assert capfd.readouterr().err == ""
