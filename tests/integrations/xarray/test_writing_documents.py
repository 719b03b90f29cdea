"""Documents of nodes in both versions, read and stored many at a time."""

import json

import pytest

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_documents import ABSENT, Documents, Form
from tensorstore_py.integrations.xarray.writing_place import as_place


def documents(files):
    return Documents(as_place(files, zarr_format=None, context=None, transaction=None))


def files_of(zarr_format):
    files: dict[str, bytes] = {}
    group = ts.zarr.group(store=files, zarr_format=zarr_format)
    group.attrs["title"] = "a"
    array = group.create("v", (2, 3), dtype="i2", dimension_names=("y", "x"))
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    return files


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nodes_are_what_is_stored(zarr_format) -> None:
    if zarr_format == 2:
        files: dict[str, bytes] = {}
        ts.zarr.group(store=files, zarr_format=2).attrs["title"] = "a"
        made = ts.zarr.open_group(files).create("v", (2, 3), dtype="i2")
        made.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    else:
        files = files_of(3)
    form = Form(zarr_format)

    nodes = documents(files).look(["", "v", "w"], None)

    assert [(each.kind, each.zarr_format) for each in nodes.values()] == [
        ("group", zarr_format), ("array", zarr_format), (None, None)
    ]  # fmt: skip
    assert nodes[""].attributes == {"title": "a"}
    assert form.dims(nodes["v"]) == ("y", "x")
    assert not nodes[""].consolidated
    ts.Group.open(ts.zarr.MemoryStore(files).kvstore).result().consolidate().result()
    assert documents(files).look([""], zarr_format)[""].consolidated


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_of_new_nodes_are_those_of_other_writers(zarr_format) -> None:
    form, files = Form(zarr_format), {}
    for key, value in form.group({"title": "a"}).items():
        files[key] = json.dumps(value).encode()

    assert ts.zarr.open_group(files, mode="r").attrs["title"] == "a"
    assert list(form.array({"a": 1}, ["x"], {"b": 2}))[-1] == form.array_key


def test_conditions_hold_or_say_so() -> None:
    found = documents({})
    found.store_all({"a": ({"n": 1}, ABSENT)})

    with pytest.raises(ts.AbortedError, match=r"a.*changed by somebody else"):
        found.store_all({"a": ({"n": 2}, ABSENT)})
    found.take_back("a", b"another")
    assert json.loads(found.read("a").result().value) == {"n": 1}


def test_all_below_is_deleted_and_nothing_beside() -> None:
    files = {"a/x": b"1", "a/y/z": b"1", "ab": b"1", "a": b"1", "b": b"1"}
    found = documents(files)

    found.delete_below("a")
    assert sorted(files) == ["a", "ab", "b"]
    found.delete("a", "b")
    found.delete_below("")
    assert files == {}


def test_what_is_no_json_is_named() -> None:
    with pytest.raises(ts.DataLossError, match=r"zarr\.json"):
        documents({"v/zarr.json": b"{"}).look(["v"], 3)
