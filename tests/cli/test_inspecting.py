"""What the command line says of arrays, jobs and schemas."""

import argparse
import io
import json
import pathlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorstore_py
import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tensorstore_py.cli.places import codec, extents, lasting_place, place, tried


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


class TestInfo:
    def test_an_array(self, root, capsys):
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
            "chunk_count": 8,
            "shard_count": 2,
        }

    def test_an_array_for_people(self, root, capsys):
        assert main(["info", str(root / "a/image")]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert ["y", "64", "32", "16", "4", "nm"] in lines
        assert ["count", "2", "8"] in lines
        assert ["driver:", "zarr3"] in lines
        assert ["steps:", "[1,", "2]"] in lines

    def test_a_group(self, root, capsys):
        assert main(["info", str(root)]) == 0
        text = capsys.readouterr().out
        assert "kind:         group" in text
        assert "image  64 x 32 uint16" in text
        assert "title: Run 7" in text
        assert told(capsys, root)["attributes"] == {"title": "Run 7"}

    def test_a_store(self, tmp_path, capsys):
        for number in range(30):
            (tmp_path / f"{number:02}").write_bytes(b"")
        found = told(capsys, tmp_path)
        assert (found["kind"], found["keys"], len(found["first_keys"])) == ("store", 30, 20)
        assert found["first_keys"][0] == "00"

    def test_an_image_of_several_levels(self, tmp_path, capsys):
        pixels = np.zeros((600, 800), "uint16")
        where = tmp_path / "cells.zarr"
        ts.pyramid(pixels, where, axes="yx", levels=2, pixel_size=0.5, units="um").result()
        found = told(capsys, where)["image"]
        assert (found["version"], [each["name"] for each in found["axes"]]) == ("0.5", ["y", "x"])
        assert [each["shape"] for each in found["levels"]] == [[600, 800], [300, 400]]
        assert [each["scale"] for each in found["levels"]] == [[0.5, 0.5], [1, 1]]
        assert main(["info", str(where)]) == 0
        text = capsys.readouterr().out
        assert re.search(r"1 +300 x 400 +uint16 .* 1 x 1 ", text)
        assert "multiscales" not in text

    def test_a_checkpoint_and_what_is_in_it(self, tmp_path, capsys):
        tree = {"w": np.ones((4, 3), "float32"), "b": np.zeros(4, "float32")}
        ts.orbax.save(tree, tmp_path / "ckpt").result()
        found = told(capsys, tmp_path / "ckpt")
        assert (found["kind"], found["format"], found["elements_bytes"]) == (
            "checkpoint",
            "Orbax",
            64,
        )
        assert {each["name"]: each["shape"] for each in found["arrays"]} == {"w": [4, 3], "b": [4]}
        assert main(["info", str(tmp_path / "ckpt")]) == 0
        assert re.search(r"w +array +4 x 3 +float32", capsys.readouterr().out)

    def test_a_database_and_its_versions(self, tmp_path, capsys):
        store = ts.KvStore.open(f"{(tmp_path / 'db').as_uri()}/|ocdbt:").result()
        for number in range(25):
            store["key"] = b"%d" % number
        found = told(capsys, tmp_path / "db")
        assert (found["kind"], found["format"]) == ("database", "OCDBT")
        assert (len(found["latest_versions"]), found["more_versions"]) == (20, True)
        assert found["latest_versions"][0]["keys"] == 1
        assert told(capsys, found["inside"])["first_keys"] == ["key"]
        (tmp_path / "db/manifest.ocdbt").write_bytes(b"?")
        assert main(["info", str(tmp_path / "db")]) == 1
        assert "corrupt manifest" in capsys.readouterr().err

    def test_a_safetensors_file_and_a_tensor_in_it(self, tmp_path, capsys):
        header = b'{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
        file = tmp_path / "m.safetensors"
        file.write_bytes(len(header).to_bytes(8, "little") + header + b"12")
        found = told(capsys, file)
        assert (found["kind"], [each["name"] for each in found["members"]]) == ("group", ["w"])
        assert told(capsys, file / "w")["shape"] == [2]

    @pytest.mark.parametrize("driver", ["zarr", "n5"])
    def test_other_formats(self, driver, tmp_path, capsys):
        spec = {"driver": driver, "kvstore": tmp_path}
        options: dict[str, Any] = {} if driver == "n5" else {"fill_value": np.nan}
        ts.open(spec, create=True, dtype="float32", shape=[4], **options).result()

        found = told(capsys, tmp_path)

        assert (found["driver"], found["shape"], found["bytes"]) == (driver, [4], 16)
        assert found.get("fill_value") in (None, "nan")

    def test_spec_files_json_and_urls(self, root, tmp_path, capsys):
        image = root / "a/image"
        (tmp_path / "spec.json").write_text(
            json.dumps({"driver": "zarr3", "kvstore": image.as_uri()})
        )
        for where in (tmp_path / "spec.json", image.as_uri(), f"{image.as_uri()}|zarr3:"):
            assert told(capsys, where)["shape"] == [64, 32]
        assert told(capsys, '{"driver": "array", "array": [1, 2], "dtype": "int8"}')["shape"] == [2]

    @pytest.mark.parametrize(
        ("place", "problem"),
        [
            ("nowhere", "does not exist"),
            ("empty", "no array found"),
            ("image.tif", "a value of no known format"),
            ("fil:///x", 'did you mean "file"'),
        ],
    )
    def test_what_is_not_there_is_said(self, place, problem, tmp_path, capsys):
        (tmp_path / "empty").mkdir()
        (tmp_path / "image.tif").write_bytes(b"II*")

        assert main(["info", place if ":" in place else str(tmp_path / place)]) == 1

        assert problem in capsys.readouterr().err

    def test_another_format_than_the_one_named_is_said(self, root, capsys):
        assert main(["info", (root / "a/image").as_uri() + "|zarr2:"]) == 1
        assert 'zarr.json is there: name the driver "zarr3"' in capsys.readouterr().err


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


class TestValidate:
    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.usefixtures("folder")
    def test_one_line_for_what_is_wrong(self, capsys, name):
        expected = FILES[name][1]
        assert main(["validate", name]) == (0 if expected is None else 1)
        assert capsys.readouterr().out == ("" if expected is None else f"{name}{expected}\n")

    def test_patterns_and_missing_files(self, folder, capsys):
        assert main(["validate", "**/*.json", "none.json", str(folder / "r*.json")]) == 1
        lines = capsys.readouterr().out.splitlines()
        wrong = sorted(name for name, (_, problem) in FILES.items() if problem)
        assert [line.partition(":")[0] for line in lines] == [*wrong, "none.json"]
        assert lines[-1] == "none.json: none.json does not exist; a spec file is expected"

    def test_standard_input(self, monkeypatch, capsys):
        class Input:
            buffer = io.BytesIO(b'{"driver": "zarr4"}')

        monkeypatch.setattr("sys.stdin", Input)
        assert main(["validate", "-"]) == 1
        assert re.match(r'-:driver: no driver is named "zarr4"', capsys.readouterr().out)

    def test_the_environment_only_where_asked_for(self, folder, capsys, monkeypatch):
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
    def test_the_kind_may_be_said(self, kind, name, code):
        assert main(["validate", "--kind", kind, name]) == code

    def test_the_hook_runs_this_command(self):
        hook = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
        assert "entry: tspy validate" in hook
        assert 'tspy = "tensorstore_py.cli.main:main"' in (ROOT / "pyproject.toml").read_text(
            "utf-8"
        )


class TestSchema:
    def test_prints_the_schema(self, capsys):
        assert main(["schema"]) == 0
        assert json.loads(capsys.readouterr().out) == ts.json_schema()

    def test_writes_the_schema(self, tmp_path, capsys):
        file = tmp_path / "tensorstore.schema.json"
        assert main(["schema", "--output", str(file)]) == 0
        assert json.loads(file.read_text("utf-8")) == ts.json_schema()
        assert capsys.readouterr().out == ""


class TestPlaces:
    def test_places(self):
        assert place("file:///a/") == "file:///a/"
        assert place('{"driver": "memory"}') == '{"driver": "memory"}'
        assert place("a/b") == pathlib.Path("a/b")

    @pytest.mark.parametrize(
        "text",
        [
            "memory://x/",
            "memory://x.zip|zip:|zarr3:",
            '{"driver": "memory"}',
            '{"driver": "zarr3", "kvstore": "memory://x/"}',
            '{"driver": "cast", "dtype": "int8", "base": "memory://x/|zarr3:"}',
        ],
    )
    def test_what_is_in_memory_does_not_last(self, text):
        with pytest.raises(
            argparse.ArgumentTypeError, match=r"gone when the command ends; name a file"
        ):
            lasting_place(text)

    @pytest.mark.parametrize(
        "text", ["a/b", "file:///x/", '{"driver": "file", "path": "/x/"}', '{"driver": "wrong"}']
    )
    def test_other_places_last(self, text):
        assert lasting_place(text) == place(text)

    @pytest.mark.parametrize("text", ["", "a", "1,b", "x=", "x=1=2", "x=1,2"])
    def test_wrong_extents(self, text):
        with pytest.raises(argparse.ArgumentTypeError):
            extents(text)

    def test_codecs(self):
        assert codec("zstd") == "zstd"
        assert codec('{"name": "gzip"}') == {"name": "gzip"}
        assert codec('[{"name": "gzip"}]') == [{"name": "gzip"}]
        with pytest.raises(argparse.ArgumentTypeError, match="no JSON"):
            codec("{name}")

    def test_errors_are_printed(self, capsys):
        def fail():
            raise ts.NotFoundError("nothing there")

        assert tried(lambda: "done") == 0
        assert tried(fail) == 1
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("done\n", "nothing there\n")


class TestMain:
    def test_version(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main(["--version"])
        assert caught.value.code == 0
        assert tensorstore_py.__version__ in capsys.readouterr().out

    @pytest.mark.parametrize(
        "arguments", [[], ["unheard"], ["validate"], ["schema", "--outptu", "a"]]
    )
    def test_wrong_calls_exit_with_2(self, arguments, capsys):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert "usage: tspy" in capsys.readouterr().err
