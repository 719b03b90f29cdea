"""What a pool keeps of shards, counted."""

import asyncio
import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, LoopStore

KEY = "c/0/0"
VALUES = np.arange(256, dtype="int32").reshape(16, 16)


def shards(shape, *codecs):
    return {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": shape, "codecs": list(codecs) or ["bytes"]},
    }


@pytest.fixture(params=["inline", "loop"])
def store(request, monkeypatch):
    base = MemoryStore(SharedMap())
    store = CountingStore(base if request.param == "inline" else LoopStore(base))
    monkeypatch.setattr("tensorstore_py.kvstores.memory.MemorySpec.open", lambda _: store)
    return store


def created(bound=False, limit=10**6, codec=None, context=None):
    context = context or ts.Context({"cache_pool": {"total_bytes_limit": limit}})
    array = ts.open(
        {"driver": "zarr3", "kvstore": "memory://", "recheck_cached_data": bound},
        create=True,
        dtype="int32",
        shape=[16, 16],
        codec=ts.CodecSpec({"driver": "zarr3", "codecs": [codec or shards([4, 4])]}),
        chunk_layout=ts.ChunkLayout(write_chunk_shape=[16, 16]),
        context=context,
    ).result()
    array.write(VALUES).result()
    return array


def same(view):
    origin, shape = view.origin, view.shape
    wanted = VALUES[tuple(slice(low, low + n) for low, n in zip(origin, shape, strict=True))]
    return np.array_equal(view.read().result(), wanted)


def test_inner_chunks_are_fetched_once(store):
    array = created()
    store.reset()
    assert same(array[4:8, 4:8])
    assert store.reads[KEY] == 2  # its index, and the inner chunk
    for _ in range(3):
        assert same(array[4:8, 4:8])
        assert same(array[5:7, 6:8])
    assert store.reads[KEY] == 2
    assert same(array[:8, :8])
    assert store.reads[KEY] <= 4  # three more inner chunks, and no index
    assert same(array[...])
    before = store.reads[KEY]
    assert same(array[...])
    assert store.reads[KEY] == before


def test_asking_whether_the_index_is_current_costs_no_body(store):
    array = created(bound=True)
    assert same(array[...])
    store.reset()
    assert same(array[...])
    assert store.reads[KEY] == 1
    assert store.bytes_read[KEY] == 0


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("bound", [True, False])
def test_writes_are_seen(bound):
    array = created(bound=bound)
    assert same(array[...])
    array[5, 5] = -1
    found = array.read().result()
    assert found[5, 5] == -1
    assert (found != VALUES).sum() == 1
    other = ts.open(array.spec(retain_context=True)).result()
    assert other[5, 5].read().result() == -1


@pytest.mark.usefixtures("store")
def test_writes_of_somebody_else_are_seen_by_who_asks():
    array = created(bound=True)
    assert same(array[...])
    theirs = ts.open(array.spec(), context=ts.Context()).result()
    theirs[8:] = 0
    assert same(array[:8])
    assert array[8:].read().result().max() == 0


@pytest.mark.usefixtures("store")
def test_a_shard_that_is_replaced_while_it_is_read():
    array = created(bound=False)
    assert same(array[:4, :4])
    theirs = ts.open(array.spec(), context=ts.Context()).result()
    theirs[...] = 7
    # The index that is kept is of the old shard, whose bytes are gone.
    assert array[12:, 12:].read().result().tolist() == [[7] * 4] * 4


def test_what_is_not_stored_is_remembered_too(store):
    array = created()
    array[...] = 0
    store.reset()
    for _ in range(3):
        assert array[3, 3].read().result() == 0
    assert store.reads[KEY] == 1


@pytest.mark.usefixtures("store")
def test_a_small_pool_keeps_what_fits():
    array = created(limit=900)
    for _ in range(2):
        assert same(array[...])
        assert same(array[4:12, 4:12])


@pytest.mark.usefixtures("store")
def test_shards_within_shards():
    array = created(codec=shards([8, 8], shards([4, 4])))
    for _ in range(2):
        assert same(array[2:14, 3:9])


def test_one_of_many_readers_fetches(store):
    array = created()
    store.reset()
    if store.inline:
        threads = [
            threading.Thread(target=lambda: array[4:8, 4:8].read().result()) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:

        async def read():
            await asyncio.gather(*(array[4:8, 4:8].read() for _ in range(50)))

        asyncio.run(read())
    assert store.reads[KEY] == 2


def test_shards_of_different_sizes(store):
    context = ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[4, 8, 4]]}}
    array = ts.open(
        {
            "driver": "zarr3",
            "kvstore": "memory://",
            "recheck_cached_data": False,
            "metadata": {
                "shape": [16],
                "data_type": "int32",
                "chunk_grid": grid,
                "codecs": [shards([2])],
            },
        },
        create=True,
        context=context,
    ).result()
    array.write(np.arange(16, dtype="int32")).result()
    for _ in range(2):
        assert array[3:14].read().result().tolist() == [*range(3, 14)]
    store.reset()
    assert array[3:14].read().result().tolist() == [*range(3, 14)]
    assert not store.reads
