"""Arrays and groups that the command line makes."""

import json
import re

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


def made(capsys, *arguments, code=0):
    """What `tspy create` prints: standard output, or where it fails standard error."""
    assert main(["create", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def opened(path, driver="zarr3"):
    return ts.open({"driver": driver, "kvstore": path}).result()


class TestArrays:
    def test_as_it_is_described(self, tmp_path, capsys):
        place = tmp_path / "a"
        told = made(
            capsys, place, "--shape", "y=40,x=60", "--dtype", "uint16", "--chunks", "16",
            "--shards", "y=32,x=64", "--codec", "zstd", "--fill-value", "7", "--units", "x=4nm",
            "--attributes", '{"title": "Run 7"}',
        )  # fmt: skip
        assert told == (
            f"created an array of zarr3, 40 x 60 uint16, chunks 16 x 16, shards 32 x 64: {place}\n"
        )
        array = opened(place)
        assert (array.shape, array.domain.labels) == ((40, 60), ("y", "x"))
        assert array.dtype == ts.uint16
        assert array.fill_value is not None
        assert array.fill_value == 7
        assert array.dimension_units == (None, ts.Unit("4nm"))
        assert array.attrs["title"] == "Run 7"
        assert "zstd" in json.dumps(array.codec.to_json())

    @pytest.mark.parametrize(
        ("name", "format_", "driver"),
        [("a", "zarr2", "zarr"), ("a", "n5", "n5"), ("a.n5", None, "n5"), ("a", None, "zarr3")],
    )
    def test_formats(self, name, format_, driver, tmp_path, capsys):
        asked = ["--format", format_] if format_ else []
        made(capsys, tmp_path / name, "--shape", "4,6", "--dims", "y,x", "--dtype", "float32",
             "--chunks", "x=2", "--codec", "gzip", *asked)  # fmt: skip
        array = opened(tmp_path / name, driver)
        assert array.chunk_layout.read_chunk.shape == (4, 2)
        assert "gzip" in json.dumps(array.codec.to_json())
        array[...] = np.ones((4, 6), dtype="float32")

    @pytest.mark.parametrize("format_", ["zarr3", "zarr2", "n5"])
    def test_no_codec(self, format_, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--shape", "4", "--dtype", "int8", "--codec", "none",
             "--format", format_)  # fmt: skip
        driver = {"zarr2": "zarr"}.get(format_, format_)
        array = opened(tmp_path / "a", driver)
        array[...] = np.arange(4, dtype="int8")
        stored = [path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()]
        assert any(value.endswith(b"\0\1\2\3") for value in stored)

    @pytest.mark.parametrize(
        ("text", "value"), [("nan", np.nan), ("-inf", -np.inf), ("2.5", 2.5), ("0", 0)]
    )
    def test_fill_values(self, text, value, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--shape", "4", "--dtype", "float32", f"--fill-value={text}")
        np.testing.assert_array_equal(opened(tmp_path / "a").fill_value, value)

    def test_archives_and_databases(self, tmp_path, capsys):
        for name, inside in (("a.zip", "|zip:"), ("db|ocdbt:a", "")):
            place = f"{tmp_path.as_uri()}/{name}"
            made(capsys, place, "--shape", "4", "--dtype", "int8")
            assert ts.open(place + inside).result().shape == (4,)

    def test_a_dry_run_prints_a_spec_that_creates_it(self, tmp_path, capsys):
        spec = json.loads(
            made(capsys, tmp_path / "a", "--shape", "y=4,x=6", "--dtype", "int8", "--shards", "4",
                 "--chunks", "2", "--attributes", '{"a": 1}', "--dry-run")
        )  # fmt: skip
        assert not (tmp_path / "a").exists()
        array = ts.open(spec).result()
        assert array.domain.labels == ("y", "x")
        assert array.chunk_layout.write_chunk.shape == (4, 4)
        assert array.attrs["a"] == 1

    def test_attributes_of_a_file(self, tmp_path, capsys):
        (tmp_path / "attributes.json").write_text('{"a": [1, 2]}')
        made(capsys, tmp_path / "a", "--shape", "4", "--dtype", "int8",
             "--attributes", f"@{tmp_path}/attributes.json")  # fmt: skip
        assert opened(tmp_path / "a").attrs["a"] == [1, 2]

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ("--dtype int8", "--shape"),
            ("--shape 4", "--dtype"),
            ("--shape 4 --dtype int9", "int9"),
            ("--shape y=4,x=4 --dtype int8 --chunks w=2", 'named "w"; there are y, x'),
            ("--shape 4 --dtype int8 --units x=nm", "none has a name"),
            ("--shape 4 --dtype int8 --chunks 2,2", "for 2 dimensions, and there are 1"),
            ("--shape 4 --dtype int8 --chunks 0", "positive"),
            ("--shape 4 --dtype int8 --dims x,y", "there are 1"),
            ("--shape 4 --dtype int8 --codec nothing", "nothing"),
            ("--shape 4 --dtype int8 --format zarr2 --shards 2", "only arrays of zarr3"),
            ("--group --shape 4", "--shape describes an array"),
            ("--group --format n5", "no groups"),
            ('--shape 4 --dtype int8 --format n5 --attributes {"a":1}', "have none"),
        ],
    )
    def test_what_is_wrong_with_the_description(self, arguments, problem, tmp_path, capsys):
        assert problem in made(capsys, tmp_path / "a", *arguments.split(), code=2)
        assert not (tmp_path / "a").exists()

    @pytest.mark.parametrize(
        ("name", "format_"), [("a.n5", "zarr3"), ("a.h5", "zarr3"), ("{uri}/a|zarr2:", "zarr3")]
    )
    def test_names_that_contradict_the_format(self, name, format_, tmp_path, capsys):
        place = name.format(uri=tmp_path.as_uri()) if "{" in name else tmp_path / name
        made(capsys, place, "--shape", "4", "--dtype", "int8", "--format", format_, code=2)
        assert not list(tmp_path.iterdir())

    def test_nothing_is_made_in_memory(self, capsys):
        with pytest.raises(SystemExit):
            main(["create", "memory://x", "--shape", "4", "--dtype", "int8"])
        assert "memory is gone" in capsys.readouterr().err


class TestLikeAnother:
    @pytest.fixture
    def other(self, tmp_path, capsys):
        made(capsys, tmp_path / "other", "--shape", "y=40,x=60", "--dtype", "uint16", "--chunks",
             "16", "--shards", "32", "--codec", "zstd", "--fill-value", "7", "--units", "x=4nm",
             "--attributes", '{"a": 1}')  # fmt: skip
        return tmp_path / "other"

    def test_all_of_it(self, other, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--like", other)
        assert json.loads((tmp_path / "a/zarr.json").read_text()) == json.loads(
            (other / "zarr.json").read_text()
        )

    def test_but_for_what_is_said(self, other, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--like", other, "--dtype", "float32", "--shape", "100,200",
             "--attributes", "{}", "--fill-value", "nan")  # fmt: skip
        array = opened(tmp_path / "a")
        assert (array.shape, array.dtype) == ((100, 200), ts.float32)
        assert array.domain.labels == ("y", "x")
        assert array.chunk_layout.write_chunk.shape == (32, 32)
        assert array.fill_value is not None
        assert np.isnan(array.fill_value)
        assert "a" not in array.attrs

    @pytest.mark.parametrize(("format_", "driver"), [("zarr2", "zarr"), ("n5", "n5")])
    def test_in_another_format(self, other, format_, driver, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--like", other, "--format", format_, "--fill-value", "0")
        array = opened(tmp_path / "a", driver)
        assert (array.shape, array.dtype) == ((40, 60), ts.uint16)
        assert array.chunk_layout.read_chunk.shape == (16, 16)
        made(capsys, tmp_path / "b", "--like", tmp_path / "a", "--format", "zarr3")
        assert opened(tmp_path / "b").shape == (40, 60)

    def test_a_selection(self, other, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--like", f"{other}[x=0:10]")
        assert opened(tmp_path / "a").shape == (40, 10)

    def test_a_group(self, tmp_path, capsys):
        made(capsys, tmp_path / "g", "--group", "--format", "zarr2", "--attributes", '{"a": 1}')
        made(capsys, tmp_path / "h", "--like", tmp_path / "g")
        group = ts.Group.open(tmp_path / "h").result()
        assert (group.zarr_format, group.attrs.read().result()) == (2, {"a": 1})
        made(capsys, tmp_path / "i", "--like", tmp_path / "g", "--shape", "4", code=2)

    def test_what_is_not_there(self, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--like", tmp_path / "no", code=1)


class TestWhatIsThere:
    def test_stays_unless_asked(self, tmp_path, capsys):
        array = ["--shape", "4", "--dtype", "int8"]
        for format_ in ("zarr3", "zarr2", "n5"):
            place = tmp_path / format_
            made(capsys, place, *array, "--format", format_)
            before = {path: path.read_bytes() for path in place.rglob("*")}
            made(capsys, place, *array, "--format", format_, code=1)
            told = made(capsys, place, *array, "--delete-existing", "--format", format_, code=2)
            assert re.search(r"would delete what is at .*, 1 key, .*--yes", told)
            assert {path: path.read_bytes() for path in place.rglob("*")} == before
            (place / "more").write_text("x")
            made(capsys, place, *array, "--format", format_, "--delete-existing", "--yes")
            assert not (place / "more").exists()

    def test_a_group_and_an_array(self, tmp_path, capsys):
        made(capsys, tmp_path / "a", "--group", "--attributes", '{"a": 1}')
        assert "a group" in made(capsys, tmp_path / "a", "--shape", "4", "--dtype", "int8", code=1)
        made(capsys, tmp_path / "a", "--shape", "4", "--dtype", "int8", "--delete-existing", "-y")
        assert "an array" in made(capsys, tmp_path / "a", "--group", code=1)

    def test_the_group_above_says_the_format(self, tmp_path, capsys):
        made(capsys, tmp_path / "g", "--group", "--format", "zarr2")
        made(capsys, tmp_path / "g/a", "--shape", "4", "--dtype", "int8")
        made(capsys, tmp_path / "g/h", "--group")
        assert (tmp_path / "g/a/.zarray").exists()
        assert (tmp_path / "g/h/.zgroup").exists()
        told = made(capsys, tmp_path / "g/b", "--group", "--format", "zarr3", code=1)
        assert "inside a group of format zarr2" in told
        told = made(capsys, tmp_path / "g/a/b", "--group", code=1)
        assert "inside an array" in told
