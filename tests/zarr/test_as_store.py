"""Our stores in the hands of zarr-python."""

import asyncio
import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.buffer import cpu, default_buffer_prototype

import tensorstore_py as ts
from tensorstore_py import FailedPreconditionError, UnsupportedError
from tensorstore_py.testing import FaultServer
from tests.kvstores.s3.fake_s3 import FakeS3


def buffer(value):
    return cpu.Buffer.from_bytes(value)


def get(store, key, byte_range=None):
    found = asyncio.run(store.get(key, default_buffer_prototype(), byte_range))
    return None if found is None else found.to_bytes()


@pytest.fixture
def dataset():
    values = np.arange(12.0).reshape(3, 4)
    return xr.Dataset({"t": (("time", "x"), values)}, coords={"time": [0, 1, 2]})


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
class TestAsStore:
    @pytest.mark.parametrize(
        "place", ["memory://", "memory://lab/", "{}/data", "file://{}/a.zip|zip:"]
    )
    def test_xarray_writes_appends_and_changes_regions(self, dataset, tmp_path, place):
        store = ts.zarr.as_store(place.format(tmp_path))

        dataset.to_zarr(store)
        dataset.assign_coords(time=[3, 4, 5]).to_zarr(store, append_dim="time")
        (dataset[["t"]].drop_vars("time") * 0).to_zarr(store, region={"time": slice(1, 4)})

        with xr.open_zarr(store) as found:
            assert found.time.values.tolist() == [0, 1, 2, 3, 4, 5]
            assert found.t.values[:, 0].tolist() == [0, 0, 0, 0, 4, 8]

    def test_xarray_writes_trees(self, dataset):
        store: Any = ts.zarr.as_store("memory://")
        tree = xr.DataTree.from_dict({"/": dataset, "/a/b": dataset * 2})

        tree.to_zarr(store)

        with xr.open_datatree(store, engine="zarr") as found:
            assert found.identical(tree)

    def test_a_transaction_stores_a_dataset_at_once(self, dataset):
        kvstore = ts.KvStore.open("memory://").result()

        with ts.Transaction(atomic=True) as transaction:
            store = ts.zarr.as_store(kvstore, transaction=transaction)
            dataset.to_zarr(store)
            with xr.open_zarr(store) as seen:
                assert seen.load().identical(dataset)
            assert kvstore.list().result() == []

        with xr.open_zarr(ts.zarr.as_store(kvstore)) as found:
            assert found.identical(dataset)
        with pytest.raises(FailedPreconditionError):
            get(store, "zarr.json")

    @pytest.mark.parametrize(
        ("request_", "value"),
        [
            (None, b"0123456789"),
            (RangeByteRequest(2, 5), b"234"),
            (RangeByteRequest(8, 99), b"89"),
            (RangeByteRequest(3, 3), b""),
            (RangeByteRequest(20, 30), b""),
            (OffsetByteRequest(7), b"789"),
            (OffsetByteRequest(10), b""),
            (OffsetByteRequest(11), b""),
            (SuffixByteRequest(3), b"789"),
            (SuffixByteRequest(0), b""),
            (SuffixByteRequest(99), b"0123456789"),
        ],
    )
    def test_a_range_that_goes_too_far_gives_what_there_is(self, request_, value):
        store: Any = ts.zarr.as_store("memory://")
        asyncio.run(store.set("a", buffer(b"0123456789")))

        assert get(store, "a", request_) == value
        assert store.get_sync("a", byte_range=request_).to_bytes() == value
        assert get(store, "b", request_) is None

    def test_one_request_for_each_call(self):
        server = FaultServer(FakeS3().handle, ())
        spec = {
            "driver": "s3",
            "bucket": "bucket",
            "aws_credentials": {"type": "anonymous"},
            "aws_region": "x",
        }
        with server.running():
            store = ts.zarr.as_store({**spec, "endpoint": server.url, "path": "data/"})
            for key in ("a", "b/c"):
                asyncio.run(store.set(key, buffer(b"0123456789")))

            def requests(call):
                before = len(server.requests)
                call()
                return len(server.requests) - before

            assert requests(lambda: get(store, "a")) == 1
            assert requests(lambda: get(store, "a", RangeByteRequest(2, 4))) == 1
            assert requests(lambda: get(store, "a", SuffixByteRequest(2))) == 1
            assert requests(lambda: get(store, "nothing")) == 1
            assert requests(lambda: asyncio.run(store.exists("a"))) == 1
            assert requests(lambda: asyncio.run(store.getsize("a"))) == 1
            assert requests(lambda: asyncio.run(store.getsize_prefix(""))) == 1
            assert requests(lambda: asyncio.run(store.set("a", buffer(b"")))) == 1

    def test_of_many_creators_one_wins(self, tmp_path):
        store = ts.zarr.as_store(tmp_path)

        async def create():
            values = [b"%d" % number for number in range(20)]
            await asyncio.gather(*(store.set_if_not_exists("a", buffer(value)) for value in values))

        asyncio.run(create())
        first = get(store, "a")
        asyncio.run(store.set_if_not_exists("a", buffer(b"late")))

        assert get(store, "a") == first != b"late"

    def test_a_store_without_conditional_writes_is_asked_first(self, tmp_path):
        spec = {"driver": "fsspec", "url": f"file://{tmp_path}/"}
        store = ts.zarr.as_store(spec)

        asyncio.run(store.set_if_not_exists("a", buffer(b"1")))
        asyncio.run(store.set_if_not_exists("a", buffer(b"2")))

        assert get(store, "a") == b"1"

    def test_what_a_store_cannot_do_it_says(self):
        store = ts.zarr.as_store("http://127.0.0.1:1/data/")
        zipped = ts.zarr.as_store("http://127.0.0.1:1/data.zip|zip:")

        for each in (store, zipped):
            assert (each.read_only, each.supports_writes, each.supports_deletes) == (
                True,
                False,
                False,
            )
        assert (store.supports_listing, zipped.supports_listing) == (False, True)
        with pytest.raises(ValueError, match="read-only"):
            asyncio.run(store.set("a", buffer(b"1")))
        writable: Any = ts.zarr.as_store("memory://")
        with pytest.raises(TypeError, match="Buffer"):
            asyncio.run(writable.set("a", b"1"))

    def test_reading_only_is_said_by_the_store_or_asked_for(self):
        kvstore = ts.zarr.MemoryStore(read_only=True)

        assert ts.zarr.as_store(kvstore).read_only
        assert ts.zarr.as_store("memory://", read_only=True).read_only
        assert not ts.zarr.as_store(kvstore).with_read_only(False).read_only
        assert ts.zarr.as_store(kvstore) != ts.zarr.as_store(kvstore, read_only=False)

    def test_a_pickle_says_where_the_store_is(self, tmp_path):
        store = ts.zarr.as_store(tmp_path, read_only=True)

        again = pickle.loads(pickle.dumps(store))

        assert (again, hash(again)) == (store, hash(store))
        assert again != ts.zarr.as_store(tmp_path / "other", read_only=True)

    def test_memory_is_not_read_elsewhere(self):
        store = ts.zarr.as_store("memory://")
        zarr.create_array(store, shape=4, dtype="i4")[:] = 7
        code = (
            "import pickle, sys, zarr\n"
            "store = pickle.load(sys.stdin.buffer)\n"
            "try:\n    print(zarr.open_array(store)[:])\n"
            "except Exception as error:\n    print(type(error).__name__)\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps(store), capture_output=True, check=True
        )

        assert ran.stdout.split() == [b"FailedPreconditionError"]

    def test_a_transaction_is_not_sent(self):
        store = ts.zarr.as_store("memory://", transaction=ts.Transaction())

        with pytest.raises(UnsupportedError, match="transaction"):
            pickle.dumps(store)

    def test_without_zarr_python_the_error_names_the_extra(self):
        code = (
            "import sys\nsys.modules['zarr'] = None\n"
            "import tensorstore_py as ts\n"
            "try:\n    ts.zarr.as_store('memory://')\n"
            "except ts.errors.UnsupportedError as error:\n    print(error)\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert "pip install 'tensorstore-py[zarr]'" in ran.stdout


@pytest.fixture
def stored_dataset():
    return xr.Dataset({"t": (("time", "x"), np.arange(12.0).reshape(3, 4))})


def made(tmp_path):
    yield ts.zarr.LocalStore(tmp_path / "local")
    yield ts.zarr.NestedDirectoryStore(tmp_path / "nested")
    yield ts.zarr.ZipStore(tmp_path / "a.zip")
    yield ts.zarr.MemoryStore()
    yield ts.zarr.MemoryStore({})
    yield ts.zarr.FsspecStore("memory://x/")
    yield ts.zarr.TempStore()


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
class TestBridged:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_xarray_writes_and_opens_them(self, stored_dataset, tmp_path, zarr_format):
        for store in made(tmp_path):
            stored_dataset.to_zarr(store, zarr_format=zarr_format)
            stored_dataset.to_zarr(store, zarr_format=zarr_format, append_dim="time")

            with xr.open_zarr(store) as found:
                assert found.t.shape == (6, 4), store
                assert found.isel(time=slice(3, None)).identical(stored_dataset), store

    def test_they_are_stores_of_zarr_python_and_mappings(self, tmp_path):
        store: Any
        for store in made(tmp_path):
            zarr.create_array(store, name="a/b", shape=4, dtype="i4")[:] = 7

            known: object = store
            assert isinstance(known, Store)
            assert store.__class__ is type(store)
            assert ts.zarr.open(store, mode="r")["a/b"][1] == 7
            assert {"zarr.json", "a/zarr.json", "a/b/zarr.json"} <= set(store)
            assert store.get("nothing") is None
            assert store.get("nothing", b"default") == b"default"
            assert store.get("a/b/zarr.json") == store["a/b/zarr.json"]
            prototype = default_buffer_prototype()
            for asked in (
                store.get("zarr.json", prototype),
                store.get("zarr.json", prototype=prototype),
            ):
                assert asyncio.run(asked).to_bytes() == store["zarr.json"]

    def test_reading_only_holds_there_too(self, stored_dataset):
        store = ts.zarr.MemoryStore(read_only=True)

        with pytest.raises(ValueError, match="read-only"):
            stored_dataset.to_zarr(store)
        assert pickle.loads(pickle.dumps(store)).read_only
        assert copy.copy(store) == store

    def test_an_unknown_name_is_missed(self):
        store = ts.zarr.MemoryStore()

        for name in ("nothing", "__nothing__", "kvstores"):
            with pytest.raises(AttributeError, match=name):
                getattr(store, name)
        assert store.supports_listing

    def test_zarr_python_may_be_imported_later(self):
        code = (
            "import sys\nimport tensorstore_py as ts\n"
            "store = ts.zarr.MemoryStore()\n"
            "assert not hasattr(store, 'supports_listing') and 'zarr' not in sys.modules\n"
            "isinstance(store, dict)\n"
            "import zarr\n"
            "print(zarr.create_array(store, shape=2, dtype='i4').shape)\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert ran.stdout.strip() == "(2,)"
