"""The obstore store on what the library has in memory and on disk."""

from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.obstore import ObstoreClients, ObstoreConfig, ObstoreStore
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, ByteRange
from tensorstore_py.testing import FaultServer, KvStoreSuite, drive
from tests.kvstores.s3.fake_s3 import FakeS3

BAD = ("", "/a", "a/", "a//b", ".", "a/..", "a/./b", "a\x01")


class ObstoreSuite(KvStoreSuite):
    bad_keys = BAD


class TestInMemory(ObstoreSuite):
    @pytest.fixture
    def store(self):
        return ObstoreStore(ObstoreClients(ObstoreConfig()), "memory:///")


class TestOnDisk(ObstoreSuite):
    @pytest.fixture
    def store(self):
        clients = ObstoreClients(ObstoreConfig())
        return ObstoreStore(clients, "file:///", use_conditional_write=False)

    @pytest.fixture
    def prefix(self, tmp_path):
        return f"{str(tmp_path)[1:]}/"


class TestOnS3(ObstoreSuite):
    """Real requests, to a server that answers as S3 does."""

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls):
        server = FaultServer(FakeS3().handle, ())
        with server.running():
            options = {"endpoint": server.url, "region": "x", "skip_signature": True}
            config = ObstoreConfig.parse({**options, "client_options": {"allow_http": True}})
            yield ObstoreStore(ObstoreClients(config), "s3://bucket")

    @pytest.fixture
    def prefix(self, tmp_path):
        return f"{tmp_path.name}/"


class TestOfAServiceThatIsTold(ObstoreSuite):
    """Conditions checked here, as for services that have none."""

    @pytest.fixture
    def store(self):
        clients = ObstoreClients(ObstoreConfig())
        return ObstoreStore(clients, "memory:///", use_conditional_write=False)


def test_a_service_without_conditional_writes_is_not_trusted_with_them(tmp_path):
    store = ObstoreStore(ObstoreClients(ObstoreConfig()), "file:///")
    key = f"{str(tmp_path)[1:]}/a"
    stamp = drive(store, lambda: store.write(key, b"1", if_equal=NO_VALUE))

    with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
        drive(store, lambda: store.write(key, b"2", if_equal=stamp.generation))
    assert bytes(drive(store, lambda: store.read(key)).value) == b"1"


class Client:
    """What the library's client answers, as a service would without ETags."""

    def __init__(self, client, **changed):
        self.client = client
        self.changed = changed
        self.modes = []

    async def get_async(self, key, options):
        found = await self.client.get_async(key, options=options)
        return Found(found, {**found.meta, **self.changed})

    async def head_async(self, key):
        return {**await self.client.head_async(key), **self.changed}

    async def put_async(self, key, value, mode):
        self.modes.append(mode)
        if isinstance(mode, dict):
            mode = "overwrite"
        told = await self.client.put_async(key, value, mode=mode)
        return {**told, **{name: self.changed.get(name) for name in ("e_tag", "version")}}


class Found:
    def __init__(self, found, meta):
        self.found, self.meta, self.range = found, meta, found.range

    async def bytes_async(self):
        return await self.found.bytes_async()


def answering(**changed):
    clients = ObstoreClients(ObstoreConfig())
    client: Any = Client(clients.open("memory:///"), **changed)
    clients.made["memory:///"] = client
    return ObstoreStore(clients, "memory:///"), client


def test_without_etags_time_and_size_tell_values_apart():
    store, client = answering(e_tag=None, version=None)

    first = drive(store, lambda: store.write("a", b"1"))
    assert first.generation == drive(store, lambda: store.read("a")).stamp.generation
    second = drive(store, lambda: store.write("a", b"22"))
    assert first.generation != second.generation
    assert drive(store, lambda: store.read("a", if_equal=first.generation)).state == "unspecified"
    late = drive(store, lambda: store.write("a", b"3", if_equal=second.generation))
    assert late.generation == UNKNOWN
    assert client.modes == ["overwrite"] * 2


def test_a_version_is_reported_beside_the_etag():
    store, client = answering(e_tag='"x"', version="17")

    stamp = drive(store, lambda: store.write("a", b"1"))
    drive(store, lambda: store.write("a", b"2", if_equal=stamp.generation))

    assert client.modes == ["overwrite", {"e_tag": '"x"', "version": "17"}]


def test_a_part_that_grew_meanwhile_is_read():
    store, _ = answering()
    drive(store, lambda: store.write("a", b"0123"))

    assert bytes(drive(store, lambda: store.read("a", ByteRange(4))).value) == b""
    with pytest.raises(ts.OutOfRangeError, match='cannot read "memory:///a"'):
        drive(store, lambda: store.read("a", ByteRange(2, 5)))


def test_arrays_with_chunks_and_shards():
    context = ts.Context()
    data = np.arange(6400, dtype=np.uint16).reshape(80, 80)
    layout = ts.ChunkLayout(write_chunk_shape=[40, 40], read_chunk_shape=[10, 10])
    spec = {"driver": "zarr3", "kvstore": {"driver": "obstore", "url": "memory:///vol/a"}}
    made = ts.open(
        spec, create=True, dtype="uint16", shape=data.shape, chunk_layout=layout, context=context
    ).result()
    made[...] = data
    made[3:5, 7] = 0
    data[3:5, 7] = 0

    found = ts.open(spec, context=context).result()
    np.testing.assert_array_equal(found[...].read().result(), data)


def test_several_keys_are_deleted_at_once_and_copied_where_they_are():
    store = ts.KvStore.open({"driver": "obstore", "url": "memory:///"}).result()
    for number in range(20):
        store[f"a/{number}"] = b"%d" % number

    (store / "a/").experimental_copy_range_to(store / "b/").result()
    store.delete_range(ts.KvStore.KeyRange("a/1", "a/3")).result()

    assert store["b/13"] == b"13"
    assert len((store / "a/").list().result()) == 8
    assert len((store / "b/").list().result()) == 20
