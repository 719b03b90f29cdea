"""Stores by name, and whatever else says where something is."""

import gc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.zarr.storage import store_of
from tests.runtime.processes import settle


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
    settle()
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
    assert store_of(said) == ts.zarr.LocalStore(directory)


def test_nothing_is_new_memory():
    assert store_of(None) != store_of(None)
    assert ts.zarr.zeros(3).store != ts.zarr.zeros(3).store


@pytest.mark.parametrize(
    ("spec", "zarr_format"),
    [
        ({"driver": "zarr", "kvstore": "memory://a/"}, 2),
        ({"driver": "zarr3", "kvstore": "memory://", "path": "a"}, 3),
        ("memory://a/|zarr2:", 2),
        ("memory://a/|auto:", 3),
        (ts.Spec("memory://a/|zarr3:"), 3),
    ],
)
def test_an_array_s_spec_says_where_and_which_version(spec, zarr_format):
    context = ts.Context()
    z = ts.zarr.open(spec, mode="w", shape=3, context=context)
    assert (z.zarr_format, z.shape) == (zarr_format, (3,))
    z[:] = 5
    assert ts.zarr.open(spec, mode="r", context=context)[0] == 5
    assert ts.zarr.create(3, store=spec).zarr_format == zarr_format
    assert ts.zarr.group(spec).zarr_format == zarr_format


def test_an_array_says_where_it_is():
    z = ts.zarr.array([1, 2])
    assert ts.zarr.open(z.ts, mode="r")[:].tolist() == [1, 2]
    with pytest.raises(TypeError, match="names no store"):
        ts.zarr.open(ts.array([1, 2]))


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


@pytest.mark.parametrize("form", ["path", "zip", "dict", "store", "url", "none"])
def test_what_is_kept_is_kept_in_the_context(tmp_path, form):
    context = ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})
    store: Any = {
        "path": tmp_path / "a",
        "zip": tmp_path / "a.zip",
        "dict": {},
        "store": ts.zarr.LocalStore(tmp_path / "a", context=context),
        "url": (tmp_path / "a").as_uri(),
        "none": None,
    }[form]
    z = ts.zarr.zeros(4, store=store, context=context)
    assert z.store.context is context
    model: Any = z.ts.spec(retain_context=True).model
    assert model.cache_pool == context["cache_pool"]


def test_a_store_has_one_context():
    with pytest.raises(TypeError, match="pass context= where that is made"):
        ts.zarr.open(ts.zarr.MemoryStore(), context=ts.Context())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_usual_compressor_can_be_changed(monkeypatch, zarr_format):
    usual = ts.zarr.zeros(3, zarr_format=zarr_format).compressor
    monkeypatch.setattr(ts.zarr.storage, "default_compressor", ts.zarr.GZip(3))
    group = ts.zarr.group(zarr_format=zarr_format)
    assert ts.zarr.zeros(3, zarr_format=zarr_format).compressor == ts.zarr.GZip(3)
    assert group.zeros("a", 3).compressor == ts.zarr.GZip(3)
    assert group.zeros("b", 3, compressors=None).compressor is None
    monkeypatch.setattr(ts.zarr.storage, "default_compressor", None)
    assert ts.zarr.zeros(3, zarr_format=zarr_format).compressor is None
    monkeypatch.setattr(ts.zarr.storage, "default_compressor", "default")
    assert ts.zarr.zeros(3, zarr_format=zarr_format).compressor == usual


class TestZip:
    def test_is_written_and_read_as_by_zarr_python(self, tmp_path):
        path = tmp_path / "a.zip"
        with ts.zarr.ZipStore(path, mode="w") as store:
            root = ts.zarr.group(store, zarr_format=2)
            root.create_group("foo").create_dataset("bar", shape=(20, 20), chunks=(10, 10))
            root["foo/bar"][:] = 42

        names = zipfile.ZipFile(path).namelist()
        assert sorted(names) == [
            ".zgroup",
            "foo/.zgroup",
            "foo/bar/.zarray",
            *(f"foo/bar/{row}.{column}" for row in (0, 1) for column in (0, 1)),
        ]
        with zarr.storage.ZipStore(path, mode="r") as theirs:
            found: Any = zarr.open_array(theirs, path="foo/bar", mode="r")
            assert (found[:] == 42).all()

    def test_modes(self, tmp_path):
        path = tmp_path / "a.zip"
        ts.zarr.array([1, 2], store=ts.zarr.ZipStore(path, mode="x"))
        with pytest.raises(FileExistsError, match="mode='a'"):
            ts.zarr.ZipStore(path, mode="x")
        assert ts.zarr.open(ts.zarr.ZipStore(path, mode="r")).read_only
        ts.zarr.open(ts.zarr.ZipStore(path))[0] = 5
        assert ts.zarr.load(path).tolist() == [5, 2]
        assert len(ts.zarr.ZipStore(path, mode="w")) == 0

    @pytest.mark.parametrize("number", [0, 8])
    def test_compression_goes_by_the_numbers_of_zipfile(self, tmp_path, number):
        store = ts.zarr.ZipStore(tmp_path / "a.zip", compression=number)
        store["a"] = b"x" * 100
        (entry,) = zipfile.ZipFile(tmp_path / "a.zip").infolist()
        assert entry.compress_type == number

    def test_a_compression_must_be_known(self, tmp_path):
        with pytest.raises(ValueError, match=r"0 \(stored\) or 8"):
            ts.zarr.ZipStore(tmp_path / "a.zip", compression=5)

    def test_a_path_that_ends_so_is_one(self, tmp_path):
        ts.zarr.save(tmp_path / "a.zip", np.arange(3))
        assert zipfile.is_zipfile(tmp_path / "a.zip")
        assert ts.zarr.load(str(tmp_path / "a.zip")).tolist() == [0, 1, 2]
