"""Stores as mappings of keys to bytes."""

import pickle

import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.store import Store


@pytest.fixture(params=["memory", "dict", "directory", "url"])
def store(request, tmp_path):
    return {
        "memory": ts.zarr.MemoryStore,
        "dict": lambda: ts.zarr.MemoryStore({}),
        "directory": lambda: ts.zarr.DirectoryStore(tmp_path / "a"),
        "url": lambda: ts.zarr.FSStore((tmp_path / "b").as_uri()),
    }[request.param]()


def test_is_a_mapping(store):
    entries = {"notes.txt": b"calibrated", "run/1/log": b"ok", "run/2/log": b""}
    for key, value in entries.items():
        store[key] = value

    assert dict(store) == entries
    assert sorted(store) == list(entries)
    assert len(store) == 3
    assert "run/1/log" in store
    for absent in ("run", "run/3/log", 3):
        assert absent not in store
    del store["run/1/log"]
    assert store.pop("run/2/log") == b""
    assert list(store) == ["notes.txt"]
    for gone in ("run/1/log", "run"):
        with pytest.raises(KeyError):
            store[gone]
        with pytest.raises(KeyError):
            del store[gone]


def test_has_directories(store):
    store.update({"run/2/log": b"late", "run/plan": b"2", "runs": b"", "notes/today": b"fog"})

    assert store.listdir() == ["notes", "run", "runs"]
    assert store.listdir("run") == ["2", "plan"]
    assert store.listdir("run/2/") == ["log"]
    assert (store.getsize(), store.getsize("run"), store.getsize("run/plan")) == (8, 5, 1)
    store.rmdir("run")
    assert list(store) == ["notes/today", "runs"]
    store.clear()
    assert len(store) == 0


def test_what_is_read_only_is_not_changed():
    store = ts.zarr.MemoryStore({"a": b"1"}, read_only=True)
    with pytest.raises(PermissionError, match="r\\+"):
        store["a"] = b""
    with pytest.raises(PermissionError):
        del store["a"]
    with pytest.raises(PermissionError):
        store.rmdir()
    with pytest.raises(PermissionError):
        ts.zarr.zeros(3, store=store)
    with pytest.raises(PermissionError):
        ts.zarr.group(store)
    assert store["a"] == b"1"


def test_is_equal_to_what_stores_in_the_same_place(tmp_path):
    here = ts.zarr.DirectoryStore(tmp_path)
    assert here == ts.zarr.LocalStore(tmp_path)
    assert here == Store(tmp_path.as_uri())
    assert here != ts.zarr.DirectoryStore(tmp_path / "a")
    assert here != tmp_path
    assert ts.zarr.MemoryStore() != ts.zarr.MemoryStore()
    assert hash(here) == hash(ts.zarr.LocalStore(tmp_path))
    files: dict[str, bytes] = {}
    assert ts.zarr.DictStore(files) == ts.zarr.MemoryStore(files)
    assert ts.zarr.DictStore(files) != ts.zarr.DictStore({})
    memory = ts.KvStore.open("memory://").result()
    assert Store(memory) == Store(memory)
    assert Store(memory) != Store(memory / "a")


def test_survives_pickling(tmp_path):
    store = ts.zarr.DirectoryStore(tmp_path)
    store["a"] = b"1"
    assert pickle.loads(pickle.dumps(store)) == store


def test_needs_no_closing(tmp_path):
    with ts.zarr.DirectoryStore(tmp_path) as store:
        store["a"] = b"1"
        store.flush()
        assert (tmp_path / "a").read_bytes() == b"1"


def test_says_where_it_is(tmp_path):
    assert repr(ts.zarr.MemoryStore()) == "<MemoryStore memory://>"
    assert repr(ts.zarr.LocalStore(tmp_path)) == f"<LocalStore {tmp_path.as_uri()}/>"
    assert "<dict>" in repr(ts.zarr.MemoryStore({}))
