import json
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def root(tmp_path):
    group = ts.Group.open(tmp_path / "g", create=True, attributes={"title": "Run 7"}).result()
    group.create_array(
        "a/image",
        dtype="uint16",
        domain=ts.IndexDomain(shape=[64, 32], labels=["y", "x"]),
        dimension_units=["4nm", None],
        chunk_layout=ts.ChunkLayout(write_chunk_shape=[32, 32], read_chunk_shape=[16, 16]),
        codec="gzip",
        attributes={"steps": [1, 2]},
    ).result()
    return tmp_path / "g"


def told(capsys, *arguments):
    assert main(["info", "--json", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_array(root, capsys):
    found = told(capsys, root / "a/image")

    assert found.pop("codec")["codecs"]
    attributes = found.pop("attributes")
    assert attributes["steps"] == [1, 2]
    assert found == {
        "kind": "array",
        "driver": "zarr3",
        "place": (root / "a/image").as_uri() + "/",
        "dtype": "uint16",
        "shape": [64, 32],
        "labels": ["y", "x"],
        "dimension_units": ["4 nm", None],
        "chunks": [16, 16],
        "shards": [32, 32],
        "fill_value": 0,
        "elements": 2048,
        "bytes": 4096,
    }


def test_an_array_for_people(root, capsys):
    assert main(["info", str(root / "a/image")]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["shape:", "[64, 32]"] in lines
    assert ["driver:", "zarr3"] in lines
    assert ["steps:", "[1, 2]"] in lines


def test_a_group(root, capsys):
    assert main(["info", str(root)]) == 0
    text = capsys.readouterr().out
    assert "kind:         group" in text
    assert "image (64, 32) uint16" in text
    assert "title: Run 7" in text
    assert told(capsys, root)["attributes"] == {"title": "Run 7"}


def test_a_store(tmp_path, capsys):
    for number in range(30):
        (tmp_path / f"{number:02}").write_bytes(b"")
    found = told(capsys, tmp_path)
    assert (found["kind"], found["keys"], len(found["first_keys"])) == ("store", 30, 20)
    assert found["first_keys"][0] == "00"


@pytest.mark.parametrize("driver", ["zarr", "n5"])
def test_other_formats(driver, tmp_path, capsys):
    spec = {"driver": driver, "kvstore": tmp_path}
    options: dict[str, Any] = {} if driver == "n5" else {"fill_value": np.nan}
    ts.open(spec, create=True, dtype="float32", shape=[4], **options).result()

    found = told(capsys, tmp_path)

    assert (found["driver"], found["shape"], found["bytes"]) == (driver, [4], 16)
    assert found.get("fill_value") in (None, "nan")


def test_spec_files_json_and_urls(root, tmp_path, capsys):
    image = root / "a/image"
    (tmp_path / "spec.json").write_text(json.dumps({"driver": "zarr3", "kvstore": image.as_uri()}))
    for place in (tmp_path / "spec.json", image.as_uri(), f"{image.as_uri()}|zarr3:"):
        assert told(capsys, place)["shape"] == [64, 32]
    assert told(capsys, '{"driver": "array", "array": [1, 2], "dtype": "int8"}')["shape"] == [2]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("nowhere", "does not exist"),
        ("empty", "no array found"),
        ("image.tif", "not valid JSON"),
        ("fil:///x", 'did you mean "file"'),
    ],
)
def test_what_is_not_there_is_said(place, problem, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "image.tif").write_bytes(b"II*")

    assert main(["info", place if ":" in place else str(tmp_path / place)]) == 1

    assert problem in capsys.readouterr().err


def test_another_format_than_the_one_named_is_said(root, capsys):
    assert main(["info", (root / "a/image").as_uri() + "|zarr2:"]) == 1
    assert 'zarr.json is there: name the driver "zarr3"' in capsys.readouterr().err
