"""Stores by name, and whatever else says where something is."""

import gc
from pathlib import Path

import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.zarr.storage import as_store


def test_a_directory_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = ts.zarr.DirectoryStore("a")
    assert store.path == str(tmp_path / "a")
    assert ts.zarr.LocalStore("a").root == tmp_path / "a"
    store["b/c"] = b"1"
    assert (tmp_path / "a/b/c").read_bytes() == b"1"


def test_a_nested_directory_has_one_for_each_dimension(tmp_path):
    store = ts.zarr.NestedDirectoryStore(tmp_path)
    z = ts.zarr.zeros((4, 4), chunks=(2, 2), store=store, zarr_format=2)
    z[:] = 1
    assert sorted(store) == [".zarray", "0/0", "0/1", "1/0", "1/1"]
    np.testing.assert_array_equal(zarr.open_array(tmp_path)[:], np.ones((4, 4)))


def test_a_temporary_directory_goes_with_its_store():
    store = ts.zarr.TempStore(suffix=".zarr", prefix="test")
    path = Path(store.path)
    ts.zarr.zeros(3, store=store)
    assert path.name.startswith("test")
    assert path.name.endswith(".zarr")
    assert (path / "zarr.json").exists()
    del store
    gc.collect()
    assert not path.exists()


def test_a_dictionary_is_one():
    files: dict[str, bytes] = {}
    z = ts.zarr.zeros(4, chunks=2, dtype="i1", store=files, zarr_format=2, compressor=None)
    z[0] = 7
    assert sorted(files) == [".zarray", "0"]
    assert files["0"] == b"\7\0"
    assert ts.zarr.open(files)[0] == 7
    assert ts.zarr.DictStore(files).mapping is files


def test_a_url_is_one(tmp_path):
    store = ts.zarr.FsspecStore.from_url((tmp_path / "a").as_uri())
    store["b"] = b"1"
    assert (tmp_path / "a/b").read_bytes() == b"1"
    with pytest.raises(PermissionError):
        ts.zarr.FSStore((tmp_path / "a").as_uri(), mode="r")["b"] = b"2"


@pytest.mark.parametrize(
    "form", ["text", "path", "url", "json", "kvstore", "spec", "store", "zarr-python"]
)
def test_whatever_says_where_is_a_store(form, tmp_path):
    directory = tmp_path / "a"
    url = directory.as_uri()
    said = {
        "text": str(directory),
        "path": directory,
        "url": url,
        "json": {"driver": "file", "path": f"{directory}/"},
        "kvstore": ts.KvStore.open(url).result(),
        "spec": ts.KvStore.Spec(url),
        "store": ts.zarr.LocalStore(directory),
        "zarr-python": zarr.storage.LocalStore(directory),
    }[form]
    ts.zarr.array([1, 2, 3], store=said)
    assert np.asarray(zarr.open_array(directory)[:]).tolist() == [1, 2, 3]
    assert as_store(said) == ts.zarr.LocalStore(directory)


def test_nothing_is_new_memory():
    assert as_store(None) != as_store(None)
    assert ts.zarr.zeros(3).store != ts.zarr.zeros(3).store


@pytest.mark.parametrize("wrong", [3, object(), b"a"])
def test_what_says_nothing_is_refused(wrong):
    with pytest.raises(TypeError, match=r"ts\.zarr\.ZipStore"):
        ts.zarr.open(wrong)


def test_resources_are_those_of_the_context():
    context = ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})
    first = ts.zarr.zeros(3, store="memory://a", context=context)
    first[0] = 5
    assert ts.zarr.open("memory://a", context=context)[0] == 5
    assert ts.zarr.open("memory://", context=context, path="a")[0] == 5
    with pytest.raises(ValueError, match="no array found"):
        ts.zarr.open_array("memory://a", mode="r")
