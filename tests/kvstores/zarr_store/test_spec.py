"""Objects that zarr-python takes as stores, as users pass them."""

import pickle
import subprocess
import sys

import fsspec
import icechunk
import numpy as np
import obstore.store
import pytest
import zarr
from zarr.storage import (
    FsspecStore,
    LocalStore,
    MemoryStore,
    ObjectStore,
    StorePath,
    WrapperStore,
    ZipStore,
)

import tensorstore_py as ts
from tensorstore_py.errors import NotFoundError, PermissionDeniedError, SpecError


def create(store, **options):
    spec = {"driver": "zarr3", "kvstore": store}
    options = {"chunk_layout": {"chunk": {"shape": [4]}}, **options}
    return ts.open(spec, create=True, dtype="u2", shape=[8], **options).result()


def stores(tmp_path):
    yield MemoryStore()
    yield LocalStore(tmp_path / "local")
    yield ZipStore(tmp_path / "a.zip", mode="w")
    yield WrapperStore(MemoryStore())
    yield FsspecStore.from_url(f"memory://{tmp_path.name}")
    yield ObjectStore(obstore.store.MemoryStore())
    yield StorePath(MemoryStore(), "in/side")
    yield ts.zarr.as_store("memory://")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_any_store_of_zarr_python_is_taken_everywhere(tmp_path):
    for store in stores(tmp_path):
        create(store)[1:6] = 7

        expected = [0, 7, 7, 7, 7, 7, 0, 0]
        assert ts.open(store).result().read().result().tolist() == expected, store
        assert b"zarr.json" in ts.KvStore.open(store).result().list().result()
        assert ts.zarr.open_array(store, mode="r")[:].tolist() == expected
        assert np.asarray(zarr.open_array(store, mode="r+")[:]).tolist() == expected


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_groups_of_any_store_are_opened(tmp_path):
    for store in stores(tmp_path):
        group = ts.Group.open(store, create=True, attributes={"a": 1}).result()
        group.create_array("x/y", shape=[4], dtype="i4").result()

        found = ts.Group.open(store).result()
        assert dict(found.attrs) == {"a": 1}
        assert found.open("x/y").result().shape == (4,)
        assert ts.zarr.open_group(store, mode="r")["x/y"].shape == (4,)
        assert "x/y" in zarr.open_group(store, mode="r+")


def test_writes_are_seen_by_icechunk_when_they_are_committed():
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    session = repository.writable_session("main")
    array = create(session.store)
    array[1:6] = 7
    array[2] = 9
    snapshot = session.commit("seven")

    found = repository.readonly_session(snapshot_id=snapshot).store
    assert ts.open(found).result().read().result().tolist() == [0, 7, 9, 7, 7, 7, 0, 0]
    assert zarr.open_array(found, mode="r")[2] == 9
    with pytest.raises(PermissionDeniedError, match="read only"):
        ts.open(found).result()[0] = 1
    other = repository.writable_session("main")
    ts.open(other.store).result()[0] = 1
    assert ts.open(found).result()[0].read().result() == 0
    ts.KvStore.open(other.store).result().delete_range(ts.KvStore.KeyRange()).result()
    assert ts.KvStore.open(other.store).result().list().result() == []


def test_shards_in_icechunk_are_read_in_part():
    session = icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")
    layout = {"write_chunk": {"shape": [8]}, "read_chunk": {"shape": [2]}}
    array = create(session.store, chunk_layout=layout)
    array[:] = np.arange(8, dtype="u2")
    array[3] = 30

    assert ts.open(session.store).result()[2:6].read().result().tolist() == [2, 30, 4, 5]


def test_a_directory_is_opened_as_one(tmp_path):
    assert ts.KvStore.Spec(LocalStore(tmp_path)).url == f"file://{tmp_path}/"

    class Special(LocalStore):
        pass

    for store in (Special(tmp_path), LocalStore(tmp_path, read_only=True)):
        assert ts.KvStore.Spec(store).to_json()["driver"] == "zarr_store"
    by_name = ts.KvStore.Spec({"driver": "zarr_store", "store": LocalStore(tmp_path), "path": "a/"})
    assert by_name.to_json() == {"driver": "zarr_store", "path": "a/", "store": "<LocalStore>"}


def test_what_is_no_store_is_refused():
    for store in ("<MemoryStore>", 5, None, fsspec.filesystem("memory")):
        with pytest.raises(SpecError, match="store object of zarr-python"):
            ts.KvStore.Spec({"driver": "zarr_store", "store": store})


def test_a_store_that_is_read_only_is_not_changed(tmp_path):
    create(LocalStore(tmp_path))
    store = LocalStore(tmp_path, read_only=True)
    array = ts.open(store).result()

    for change in (lambda: array.write(1), lambda: array[1].write(1)):
        with pytest.raises(PermissionDeniedError, match="read only"):
            change().result()
    assert ts.zarr.open(store).read_only
    with pytest.raises(NotFoundError):
        ts.open(LocalStore(tmp_path / "nothing", read_only=True)).result()


def test_unaligned_writers_of_this_process_lose_nothing():
    array = create(MemoryStore(), chunk_layout={"chunk": {"shape": [8]}})

    for future in [array[place].write(place + 1) for place in range(8)]:
        future.result()

    assert array.read().result().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_pickle_has_the_object(tmp_path):
    create({"driver": "zarr_store", "store": LocalStore(tmp_path)})[:] = 5
    array = ts.open({"driver": "zarr_store", "store": LocalStore(tmp_path)}).result()
    code = "import pickle, sys\nprint(pickle.load(sys.stdin.buffer).read().result().tolist())\n"

    ran = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(array), capture_output=True, check=True
    )

    assert ran.stdout.decode().strip() == str([5] * 8)


def test_requests_are_as_few_as_they_can_be():
    class Counted(WrapperStore):
        async def get(self, key, *arguments, **options):
            asked.append(key)
            return await super().get(key, *arguments, **options)

    asked: list[str] = []
    store = Counted(MemoryStore())
    create(store)[:] = 5
    array = ts.open({"driver": "zarr3", "kvstore": store}).result()
    asked.clear()

    assert array.read().result().sum() == 40
    assert sorted(asked) == ["c/0", "c/1"]
