"""What users of `ts.migrate` see, and what zarr-python makes of it."""

import json
import warnings
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import tensorstore_py as ts

VARIANTS: dict[str, Any] = {
    "plain": {},
    "columns": {"order": "F"},
    "big": {"dtype": ">f8", "fill_value": np.nan},
    "zlib": {"compressors": numcodecs.Zlib(3)},
    "blosc": {"compressors": numcodecs.Blosc()},
    "delta": {"filters": [numcodecs.Delta("<i4")]},
    "time": {"dtype": "<M8[s]", "fill_value": "NaT"},
    "bool": {"dtype": "bool"},
    "nested/x": {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "scalar": {"shape": (), "chunks": ()},
    "record": {"dtype": np.dtype([("a", "<i2"), ("b", "<f4")])},
    "bytes": {"dtype": "S4"},
    "text": {"dtype": "<U3"},
}


def written(where):
    """What is in a hierarchy that zarr-python made."""
    group = zarr.open_group(where, mode="w", zarr_format=2, attributes={"a": 1})
    for name, form in VARIANTS.items():
        array = group.create_array(name, **{"shape": (7, 5), "chunks": (3, 2), "dtype": "<i4",
                                            **form})  # fmt: skip
        numbers = np.arange(1, 1 + array.size).reshape(array.shape)
        if array.dtype.names is None:
            numbers = numbers.astype(array.dtype)
            if array.shape:
                array[:4] = numbers[:4]
            else:
                array[...] = numbers
        else:
            array[:2] = np.array((1, 2.5), array.dtype)
        array.attrs["name"] = name
    words = group.create_array("words", shape=(4,), chunks=(2,), dtype=str)
    words[:] = ["a", "bcd", "", "é"]
    return contents(where)


def contents(where):
    group = zarr.open_group(where, mode="r")
    arrays = {
        path: node for path, node in group.members(max_depth=None) if isinstance(node, zarr.Array)
    }
    return {path: (np.asarray(node[...]), dict(node.attrs)) for path, node in arrays.items()}


def check(found, wanted):
    assert found.keys() == wanted.keys()
    for path, (array, attributes) in found.items():
        np.testing.assert_array_equal(array, wanted[path][0], err_msg=path)
        assert attributes == wanted[path][1]


@pytest.fixture(autouse=True)
def quiet():
    """zarr-python warns of types and codecs that have no specification yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("consolidated", [False, True])
def test_zarr_python_reads_what_it_wrote(tmp_path, consolidated):
    before = written(tmp_path)
    if consolidated:
        zarr.consolidate_metadata(tmp_path)

    done = ts.migrate(tmp_path).result()

    assert {step.action for step in done.steps} == {"metadata"}
    assert not [*tmp_path.rglob(".z*")]
    check(contents(tmp_path), before)
    group = zarr.open_group(tmp_path, mode="r")
    assert group.metadata.zarr_format == 3
    assert (group.metadata.consolidated_metadata is not None) == consolidated
    assert dict(group.attrs) == {"a": 1}


def test_somewhere_else(tmp_path):
    before = written(tmp_path / "old")

    done = ts.migrate(tmp_path / "old", dest=tmp_path / "new").result()

    assert done.dest is not None
    check(contents(tmp_path / "old"), before)
    check(contents(tmp_path / "new"), before)
    assert zarr.open_group(tmp_path / "new").metadata.zarr_format == 3


META = {
    "zarr_format": 1, "shape": [5, 4], "chunks": [2, 3], "dtype": "<i4", "compression": "zlib",
    "compression_opts": 1, "fill_value": 42, "order": "F",
}  # fmt: skip


@pytest.fixture
def first(tmp_path):
    """An array of version 1, with the first column of chunks stored."""
    where = tmp_path / "first"
    where.mkdir()
    (where / "meta").write_text(json.dumps(META))
    (where / "attrs").write_text('{"a": 1}')
    for row in range(3):
        chunk = np.full((2, 3), row, "<i4", order="F")
        chunk[0, 1] = -row
        (where / f"{row}.0").write_bytes(numcodecs.Zlib(1).encode(chunk.tobytes("F")))
    return where


def check_first(array, attributes):
    wanted = np.full((5, 4), 42)
    for row in range(3):
        wanted[2 * row : 2 * row + 2, :3] = row
        wanted[2 * row, 1] = -row
    np.testing.assert_array_equal(array, wanted)
    assert dict(attributes) == {"a": 1}


@pytest.mark.parametrize("to", [2, 3])
def test_version_1(first, to):
    done = ts.migrate(first, to).result()

    assert [(step.from_, step.action) for step in done.steps] == [(1, "metadata")]
    found = zarr.open_array(first, mode="r")
    assert found.metadata.zarr_format == to
    check_first(found[...], found.attrs)
    assert not (first / "meta").exists()
    assert not (first / "attrs").exists()


def test_version_1_by_way_of_version_2(first):
    ts.migrate(first, 2, keep=True).result()
    again = ts.migrate(first, 2, dry_run=True).result()
    ts.migrate(first, 3).result()

    assert [step.action for step in again.steps] == ["finish"]
    found = zarr.open_array(first, mode="r")
    check_first(found[...], found.attrs)
    assert sorted(path.name for path in first.iterdir()) == ["0.0", "1.0", "2.0", "zarr.json"]


@pytest.mark.parametrize("to", [2, 3])
def test_version_1_somewhere_else(first, tmp_path, to):
    ts.migrate(first, to, dest=tmp_path / "new").result()

    found = zarr.open_array(tmp_path / "new", mode="r")
    assert found.metadata.zarr_format == to
    check_first(found[...], found.attrs)
    assert (first / "meta").exists()


def test_what_is_newer_cannot_become_older_in_place():
    group = ts.Group.open("memory://", create=True).result()

    with pytest.raises(ts.UnsupportedError, match="zarr_format=2"):
        ts.migrate(group.kvstore, 2).result()


def test_refuses():
    with pytest.raises(ts.SpecError, match="expected 2 or 3"):
        ts.migrate("memory://", 4)  # type: ignore[arg-type]
    with pytest.raises(ts.SpecError, match="dest"):
        ts.migrate("memory://", in_place=False)
    with pytest.raises(ts.SpecError):
        ts.migrate("some/path")
    with pytest.raises(ts.NotFoundError, match="nothing to migrate"):
        ts.migrate("memory://").result()
    with pytest.raises(ts.NotFoundError, match="nothing to migrate"):
        ts.migrate("memory://", dest="memory://a/").result()


@pytest.mark.parametrize("by_path", [True, False])
def test_an_archive(tmp_path, by_path):
    where = f"file://{tmp_path}/old.zip|zip:"
    group = ts.Group.open(where, create=True, zarr_format=2).result()
    group.create_array("a", dtype="int8", shape=[3]).result()[...] = 5

    ts.migrate(tmp_path / "old.zip" if by_path else where).result()
    ts.copy(tmp_path / "old.zip", tmp_path / "out").result()

    found = ts.Group.open(tmp_path / "out").result()
    assert found.zarr_format == 3
    assert found["a"].read().result().tolist() == [5, 5, 5]
