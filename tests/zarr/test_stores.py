"""Stores of the zarr API, and what users give for one."""

import asyncio
import gc
import hashlib
import pickle
import threading
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.buffer import cpu
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.store import StoreTests

import tensorstore_py as ts
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, ByteRange, Held, KeyRange
from tensorstore_py.zarr.described import StoredBytes, chunk_keys
from tensorstore_py.zarr.key_value_store import InlineKeyValueStore, KeyValueStore
from tensorstore_py.zarr.mapping import MappingSpec
from tensorstore_py.zarr.storage import store_of
from tensorstore_py.zarr.store import Store
from tests.runtime.processes import settle


@pytest.fixture(params=["memory", "dict", "directory", "url"])
def store(request, tmp_path):
    return {
        "memory": ts.zarr.MemoryStore,
        "dict": lambda: ts.zarr.MemoryStore({}),
        "directory": lambda: ts.zarr.DirectoryStore(tmp_path / "a"),
        "url": lambda: ts.zarr.FSStore((tmp_path / "b").as_uri()),
    }[request.param]()


class TestStore:
    def test_is_a_mapping(self, store):
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

    def test_has_directories(self, store):
        store.update({"run/2/log": b"late", "run/plan": b"2", "runs": b"", "notes/today": b"fog"})

        assert store.listdir() == ["notes", "run", "runs"]
        assert store.listdir("run") == ["2", "plan"]
        assert store.listdir("run/2/") == ["log"]
        assert (store.getsize(), store.getsize("run"), store.getsize("run/plan")) == (8, 5, 1)
        store.rmdir("run")
        assert list(store) == ["notes/today", "runs"]
        store.clear()
        assert len(store) == 0

    def test_what_is_read_only_is_not_changed(self):
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

    def test_is_equal_to_what_stores_in_the_same_place(self, tmp_path):
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

    def test_survives_pickling(self, tmp_path):
        store = ts.zarr.DirectoryStore(tmp_path)
        store["a"] = b"1"
        assert pickle.loads(pickle.dumps(store)) == store

    def test_needs_no_closing(self, tmp_path):
        with ts.zarr.DirectoryStore(tmp_path) as store:
            store["a"] = b"1"
            store.flush()
            assert (tmp_path / "a").read_bytes() == b"1"

    def test_says_where_it_is(self, tmp_path):
        assert repr(ts.zarr.MemoryStore()) == "<MemoryStore memory://>"
        assert repr(ts.zarr.LocalStore(tmp_path)) == f"<LocalStore {tmp_path.as_uri()}/>"
        assert "<dict>" in repr(ts.zarr.MemoryStore({}))


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


class TestStorage:
    def test_a_directory_is_one(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        store = ts.zarr.DirectoryStore("a")
        assert store.path == str(tmp_path / "a")
        assert ts.zarr.LocalStore("a").root == tmp_path / "a"
        store["b/c"] = b"1"
        assert (tmp_path / "a/b/c").read_bytes() == b"1"

    def test_a_nested_directory_has_one_for_each_dimension(self, tmp_path):
        store = ts.zarr.NestedDirectoryStore(tmp_path)
        z = ts.zarr.zeros((4, 4), chunks=(2, 2), store=store, zarr_format=2)
        z[:] = 1
        assert sorted(store) == [".zarray", "0/0", "0/1", "1/0", "1/1"]
        np.testing.assert_array_equal(zarr.open_array(tmp_path)[:], np.ones((4, 4)))

    def test_a_temporary_directory_goes_with_its_store(self):
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

    def test_a_dictionary_is_one(self):
        files: dict[str, bytes] = {}
        z = ts.zarr.zeros(4, chunks=2, dtype="i1", store=files, zarr_format=2, compressor=None)
        z[0] = 7
        assert sorted(files) == [".zarray", "0"]
        assert files["0"] == b"\7\0"
        assert ts.zarr.open(files)[0] == 7
        assert ts.zarr.DictStore(files).mapping is files

    def test_a_url_is_one(self, tmp_path):
        store = ts.zarr.FsspecStore.from_url((tmp_path / "a").as_uri())
        store["b"] = b"1"
        assert (tmp_path / "a/b").read_bytes() == b"1"
        with pytest.raises(PermissionError):
            ts.zarr.FSStore((tmp_path / "a").as_uri(), mode="r")["b"] = b"2"

    @pytest.mark.parametrize(
        "form", ["text", "path", "url", "json", "kvstore", "spec", "store", "zarr-python"]
    )
    def test_whatever_says_where_is_a_store(self, form, tmp_path):
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

    def test_nothing_is_new_memory(self):
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
    def test_an_array_s_spec_says_where_and_which_version(self, spec, zarr_format):
        context = ts.Context()
        z = ts.zarr.open(spec, mode="w", shape=3, context=context)
        assert (z.zarr_format, z.shape) == (zarr_format, (3,))
        z[:] = 5
        assert ts.zarr.open(spec, mode="r", context=context)[0] == 5
        assert ts.zarr.create(3, store=spec).zarr_format == zarr_format
        assert ts.zarr.group(spec).zarr_format == zarr_format

    def test_an_array_says_where_it_is(self):
        z = ts.zarr.array([1, 2])
        assert ts.zarr.open(z.ts, mode="r")[:].tolist() == [1, 2]
        with pytest.raises(TypeError, match="names no store"):
            ts.zarr.open(ts.array([1, 2]))

    @pytest.mark.parametrize("wrong", [3, object(), b"a"])
    def test_what_says_nothing_is_refused(self, wrong):
        with pytest.raises(TypeError, match=r"ts\.zarr\.ZipStore"):
            ts.zarr.open(wrong)

    def test_resources_are_those_of_the_context(self):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})
        first = ts.zarr.zeros(3, store="memory://a", context=context)
        first[0] = 5
        assert ts.zarr.open("memory://a", context=context)[0] == 5
        assert ts.zarr.open("memory://", context=context, path="a")[0] == 5
        with pytest.raises(ValueError, match="no array found"):
            ts.zarr.open_array("memory://a", mode="r")

    @pytest.mark.parametrize("form", ["path", "zip", "dict", "store", "url", "none"])
    def test_what_is_kept_is_kept_in_the_context(self, tmp_path, form):
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

    def test_a_store_has_one_context(self):
        with pytest.raises(TypeError, match="pass context= where that is made"):
            ts.zarr.open(ts.zarr.MemoryStore(), context=ts.Context())

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_the_usual_compressor_can_be_changed(self, monkeypatch, zarr_format):
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


VARIANTS: dict[str, dict[str, Any]] = {
    "2": {"zarr_format": 2},
    "2/": {"zarr_format": 2, "dimension_separator": "/"},
    "3": {},
    "v2": {"chunk_key_encoding": ("v2", ".")},
    "shards": {"shards": (4, 6)},
}


class TestStored:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_chunks_and_bytes_are_counted_as_zarr_python_does(self, tmp_path, variant):
        z = ts.zarr.zeros((9, 13), chunks=(2, 3), store=tmp_path, dtype="i4", **VARIANTS[variant])
        theirs = zarr.open_array(tmp_path)
        assert (z.nchunks, z.nchunks_initialized) == (theirs.nchunks, 0)

        z[:3, 4:7] = 1
        z[-1, -1] = 1

        assert z.nchunks_initialized == theirs.nchunks_initialized > 0
        assert z.nbytes_stored == theirs.nbytes_stored()
        assert z.cdata_shape == theirs.cdata_shape

    def test_a_number_can_be_called(self):
        assert StoredBytes(5) + 1 == StoredBytes(5)() + 1 == 6

    def test_what_is_no_chunk_is_not_counted(self, tmp_path):
        z = ts.zarr.zeros(4, chunks=2, store=tmp_path, zarr_format=2)
        for name in ("0", "2", "x", "00"):
            (tmp_path / name).write_bytes(b"")
        assert z.nchunks_initialized == 1

    def test_a_scalar_has_one_chunk(self):
        z = ts.zarr.zeros(())
        z[()] = 5
        assert (z.nchunks, z.nchunks_initialized, z[()]) == (1, 1, 5)
        assert chunk_keys(z.form).decode("c") == ()

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_digest_is_of_all_that_is_stored(self, zarr_format):
        files: dict[str, bytes] = {}
        z = ts.zarr.zeros(4, chunks=2, store=files, zarr_format=zarr_format, attributes={"a": 1})
        z[:] = 1
        before = z.hexdigest()
        keys = [".zarray", ".zattrs"] if zarr_format == 2 else ["zarr.json"]
        chunks = ["0", "1"] if zarr_format == 2 else ["c/0", "c/1"]
        expected = b"".join(files[key] for key in [*chunks, *keys])

        assert before == hashlib.sha1(expected).hexdigest()
        assert z.digest("md5") == hashlib.md5(expected).digest()
        z.attrs["a"] = 2
        assert z.hexdigest() != before


class Published(StoreTests[KeyValueStore, cpu.Buffer]):
    """zarr-python's suite; what is stored behind the store's back is by the `ts.KvStore`."""

    store_cls = KeyValueStore
    buffer_cls = cpu.Buffer
    shown: str

    @pytest.fixture
    def store_kwargs(self, spec):
        return {"store": ts.KvStore.open(spec).result()}

    async def set(self, store, key, value):
        await store.kvstore.write(key, value.to_bytes())

    async def get(self, store, key):
        result = await store.kvstore.read(key)
        return self.buffer_cls.from_bytes(bytes(result.value))

    def test_store_repr(self, store):
        assert repr(store).startswith(f"ts.zarr.as_store({self.shown}")

    def test_store_supports_writes(self, store):
        assert store.supports_writes
        assert store.supports_deletes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


class PublishedInline(Published):
    """With the calls that do not await."""

    store_cls = InlineKeyValueStore


class PublishedRemote(Published):
    """zarr-python has these calls for stores that need not wait, and leaves them out elsewhere."""

    def test_it_has_no_calls_that_do_not_await(self, store):
        assert not hasattr(store, "get_sync")


for _name in (
    "test_get_sync",
    "test_get_sync_missing",
    "test_get_sync_byte_range_parity",
    "test_set_sync",
    "test_delete_sync",
    "test_delete_sync_missing",
    "test_delete_sync_visible_to_async_get",
    "test_sync_async_set_get_parity",
):
    setattr(PublishedRemote, _name, None)


class TestMemory(PublishedInline):
    shown = "'memory://"

    @pytest.fixture
    def spec(self):
        return "memory://data/"


class TestFile(PublishedInline):
    shown = "'file://"

    @pytest.fixture
    def spec(self, tmp_path):
        return f"file://{tmp_path}/data/"


class TestZipStore(PublishedInline):
    shown = "'file://"

    @pytest.fixture
    def spec(self, tmp_path):
        return f"file://{tmp_path}/data.zip|zip:"


class TestS3(PublishedRemote):
    shown = "'http://127.0.0.1"

    @pytest.fixture(scope="class")
    @classmethod
    def bucket(cls, moto_s3):
        return moto_s3.make_bucket()

    @pytest.fixture
    def spec(self, moto_s3, bucket):
        return {
            "driver": "s3",
            "bucket": bucket,
            "endpoint": moto_s3.endpoint,
            "aws_credentials": {
                "type": "static",
                "access_key_id": moto_s3.access_key,
                "secret_access_key": moto_s3.secret_key,
            },
            "path": f"{uuid.uuid4()}/",
        }


class TestGcs(PublishedRemote):
    shown = "'gs://bucket/"

    @pytest.fixture
    def spec(self, gcs_server, monkeypatch):
        monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        return {"driver": "gcs", "bucket": "bucket", "path": f"{uuid.uuid4()}/"}


class TestKeyValueStore:
    @pytest.mark.parametrize(
        ("machine", "place"),
        [
            (ZarrStoreStateMachine, "memory://"),
            (ZarrStoreStateMachine, "file://{}/a.zip|zip:"),
            (ZarrHierarchyStateMachine, "{}/data"),
        ],
    )
    @pytest.mark.filterwarnings("ignore")  # the machines try what zarr-python warns of
    def test_any_sequence_of_calls_does_what_zarr_pythons_model_does(
        self, tmp_path_factory, machine, place
    ):
        def begun():
            return machine(ts.zarr.as_store(place.format(tmp_path_factory.mktemp("machine"))))

        begin: Any = begun  # it may be a function as well
        few = settings(max_examples=3, stateful_step_count=8, phases=[Phase.generate])
        run_state_machine_as_test(begin, settings=few)


def opened(mapping):
    return MappingSpec(held=Held(mapping)).open()


class TestMapping:
    def test_reads_what_is_in_it(self):
        store = opened({"a": b"12345"})
        found = asyncio.run(store.read("a", ByteRange(1, 3)))
        assert (found.state, bytes(found.value)) == ("value", b"23")
        assert asyncio.run(store.read("b")).state == "missing"

    def test_writes_on_condition(self):
        files: dict[str, bytes] = {}
        store = opened(files)

        first = asyncio.run(store.write("a", b"1", if_equal=NO_VALUE))
        assert asyncio.run(store.write("a", b"2", if_equal=NO_VALUE)).generation == UNKNOWN
        assert files == {"a": b"1"}
        files["a"] = b"changed"
        assert asyncio.run(store.write("a", b"2", if_equal=first.generation)).generation == UNKNOWN
        asyncio.run(store.write("a", None))
        asyncio.run(store.write("a", None))
        assert files == {}

    def test_lists_with_sizes(self):
        store = opened({"b/x": b"12", "a": b"1", "b/y": b""})

        async def listed():
            return [tuple(entry) async for entry in store.list(KeyRange.prefix("b/"))]

        assert asyncio.run(listed()) == [("b/x", 2), ("b/y", 0)]

    def test_is_itself_and_no_other(self):
        files: dict[str, bytes] = {}
        assert Held(files) == Held(files)
        assert Held(files) != Held({})
        assert len({Held(files), Held(files)}) == 1

    def test_threads_lose_nothing_however_often_it_is_opened(self):
        files: dict[str, bytes] = {}
        ts.zarr.zeros(40, store=files, chunks=40, dtype="i4")

        def write(start):
            z = ts.zarr.open_array(files)
            for place in range(start, 40, 4):
                z[place] = place

        threads = [threading.Thread(target=write, args=[start]) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ts.zarr.open_array(files)[:].tolist() == list(range(40))
