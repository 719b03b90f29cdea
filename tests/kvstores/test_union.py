"""The union store: the promises of reading and listing over two, and whose value it gives."""

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.kvstores.union import UnionStore
from tensorstore_py.testing import KvStoreListSuite, LoopStore


class TestTwo(KvStoreListSuite):
    @pytest.fixture
    def store(self):
        self.bases = [MemoryStore(SharedMap()), MemoryStore(SharedMap())]
        return UnionStore([(self.bases[0], "a/"), (self.bases[1], "")])

    async def put(self, store, key, value):
        # Every other key is in the second one.
        second = sum(key.encode()) % 2
        await self.bases[second].write(key if second else f"a/{key}", value)


class TestTwoOnTheLoop(TestTwo):
    @pytest.fixture
    def store(self):
        self.bases = [MemoryStore(SharedMap()), MemoryStore(SharedMap())]
        return UnionStore([(self.bases[0], "a/"), (LoopStore(self.bases[1]), "")])


@pytest.fixture
def context():
    return ts.Context()


def opened(url, context):
    return ts.KvStore.open(url, context=context).result()


def test_the_first_one_that_has_a_key_gives_its_value(context):
    opened("memory://a/", context)["x"] = b"1"
    opened("memory://b/", context)["x"] = b"2"
    opened("memory://b/", context)["y"] = b"3"
    spec = {"driver": "union", "bases": ["memory://a/", "memory://b/"]}

    store = opened(spec, context)

    assert (store["x"], store["y"], store.list().result()) == (b"1", b"3", [b"x", b"y"])
    assert store.spec().to_json()["bases"][1] == {"driver": "memory", "path": "b/"}


def test_it_is_read_only(context):
    store = opened({"driver": "union", "bases": ["memory://a/"]}, context)

    with pytest.raises(ts.UnsupportedError, match="read-only"):
        store["x"] = b"1"


def test_a_union_of_nothing_is_refused():
    with pytest.raises(ts.SpecError, match="bases: at least one"):
        ts.KvStore.Spec({"driver": "union", "bases": []})


def test_chunks_of_one_array_in_several_stores_are_one_array(context):
    for name, part in (("a", slice(0, 4)), ("b", slice(4, 8))):
        spec = {"driver": "zarr3", "kvstore": f"memory://{name}/w/"}
        chunks = ts.ChunkLayout(chunk_shape=[4])
        array = ts.open(
            spec, create=True, dtype="int8", shape=[8], chunk_layout=chunks, context=context
        ).result()
        array[part] = 7
    bases = ["memory://a/", "memory://b/"]

    whole = ts.open(
        {"driver": "zarr3", "kvstore": {"driver": "union", "bases": bases, "path": "w/"}},
        context=context,
    ).result()

    assert whole.read().result().tolist() == [7] * 8
