import asyncio
import gc

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py._interface.batch import Batch, BatchedReads
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import OutOfRangeError, UnavailableError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, FaultyStore, KvStoreReadSuite, LoopStore


def filled(**values):
    store = MemoryStore(SharedMap())
    for key, value in values.items():
        run_inline(store.write(key, value))
    return store


class TestBatchedReadsInline(KvStoreReadSuite):
    """Seen through a batch a store keeps its promises of reading."""

    @pytest.fixture
    def store(self):
        return BatchedReads(MemoryStore(SharedMap()))

    async def put(self, store, key, value):
        store._known.clear()  # a batch does not outlive what it reads
        await store.base.write(key, value)


class TestBatchedReadsOnALoop(KvStoreReadSuite):
    @pytest.fixture
    def store(self):
        return BatchedReads(LoopStore(MemoryStore(SharedMap())))

    async def put(self, store, key, value):
        await store.base.write(key, value)


@pytest.mark.parametrize("library", [ts, reference], ids=["ours", "theirs"])
class TestLikeTheReference:
    def test_reads_begin_when_it_is_submitted(self, library):
        store = library.KvStore.open("memory://").result()
        store["a"] = b"12345"
        with library.Batch() as batch:
            whole = store.read("a", batch=batch)
            part = store.read("a", batch=batch, byte_range=slice(1, 3))
        assert whole.result().value == b"12345"
        assert part.result().value == b"23"

    def test_nothing_can_be_added_later(self, library):
        store = library.KvStore.open("memory://").result()
        batch = library.Batch()
        batch.submit()
        batch.submit()
        with pytest.raises(ValueError, match="batch was already submitted"):
            store.read("a", batch=batch)

    def test_a_block_that_fails_submits_too(self, library):
        store = library.KvStore.open("memory://").result()
        batch = library.Batch()
        with pytest.raises(KeyError), batch:
            raise KeyError
        with pytest.raises(ValueError, match="already submitted"):
            store.read("a", batch=batch)


def test_it_begins_when_nobody_has_it():
    store = ts.KvStore.open("memory://").result()
    batch = Batch()
    read = store.read("a", batch=batch)
    del batch
    gc.collect()
    assert read.result(timeout=60).state == "missing"


def test_who_waits_too_early_begins_alone():
    batch = Batch()
    read = ts.KvStore.open("memory://").result().read("a", batch=batch)
    assert read.result().state == "missing"
    batch.submit()


def test_what_changes_in_between_is_read_anew():
    store = filled(a=b"12345")
    batched = BatchedReads(store)
    old = run_inline(batched.read("a", ByteRange(0, 1))).stamp.generation
    run_inline(store.write("a", b"67890"))
    assert run_inline(batched.read("a", ByteRange(1, 2), if_equal=old)).state == "unspecified"
    assert bytes(run_inline(batched.read("a", ByteRange(0, 1))).value) == b"6"


async def test_what_many_want_at_once_is_one_request():
    store = CountingStore(LoopStore(filled(a=bytes(range(100)), b=b"b")))
    batched = BatchedReads(store)
    ranges = [ByteRange(n, n + 10) for n in range(0, 90, 10)] * 2
    results = await asyncio.gather(
        *(batched.read("a", each) for each in ranges), batched.read("b"), batched.read("b")
    )
    assert [bytes(each.value)[0] for each in results[:18]] == [*range(0, 90, 10)] * 2
    assert [bytes(each.value) for each in results[18:]] == [b"b", b"b"]
    assert dict(store.reads) == {"a": 1, "b": 1}
    assert store.bytes_read["a"] == 90


async def test_somebody_elses_error_is_not_mine():
    batched = BatchedReads(LoopStore(filled(a=b"12345")))
    good, bad = await asyncio.gather(
        batched.read("a", ByteRange(0, 2)),
        batched.read("a", ByteRange(3, 9)),
        return_exceptions=True,
    )
    assert isinstance(good, ReadResult)
    assert bytes(good.value) == b"12"
    assert isinstance(bad, OutOfRangeError)


async def test_a_failure_is_everybodys():
    store = FaultyStore(LoopStore(filled(a=b"12345")))
    store.fail("read", UnavailableError("down"))
    results = await asyncio.gather(
        *(BatchedReads(store).read("a") for _ in range(1)), return_exceptions=True
    )
    assert [type(each) for each in results] == [UnavailableError]


async def test_conditions_are_each_readers_own():
    store = LoopStore(filled(a=b"12345"))
    generation = (await store.read("a")).stamp.generation
    batched = BatchedReads(store)
    results = await asyncio.gather(
        batched.read("a", ByteRange(0, 1), if_equal=generation),
        batched.read("a", ByteRange(1, 2), if_equal=b"other"),
        batched.read("a", if_not_equal=generation),
    )
    assert [each.state for each in results] == ["value", "unspecified", "unspecified"]


def test_inline_readers_ask_once_for_small_parts():
    store = CountingStore(filled(a=b"12345"))
    batched = BatchedReads(store)
    for _ in range(3):
        assert bytes(run_inline(batched.read("a", ByteRange(0, 2))).value) == b"12"
    assert store.reads["a"] == 1


SHARDED = {
    "driver": "zarr3",
    "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 4]}}],
}


@pytest.mark.parametrize("loop", [False, True])
def test_chunks_of_one_shard_in_few_requests(loop, monkeypatch):
    base = MemoryStore(SharedMap())
    store = CountingStore(LoopStore(base) if loop else base)
    monkeypatch.setattr("tensorstore_py.kvstores.memory.MemorySpec.open", lambda _: store)
    array = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype="int32",
        shape=[16, 16],
        codec=ts.CodecSpec(SHARDED),
        chunk_layout=ts.ChunkLayout(write_chunk_shape=[16, 16]),
    ).result()
    values = np.arange(256, dtype="int32").reshape(16, 16)
    array.write(values).result()
    views = [array[x : x + 4, y : y + 4] for x in range(0, 16, 4) for y in range(0, 16, 4)]

    store.reset()
    with ts.Batch() as batch:
        reads = [view.read(batch=batch) for view in views]
    for view, read in zip(views, reads, strict=True):
        origin = view.origin
        assert np.array_equal(
            read.result(),
            values[origin[0] : origin[0] + 4, origin[1] : origin[1] + 4],
        )
    assert store.reads["c/0/0"] == (2 if loop else 17)

    store.reset()
    for view in views:
        view.read().result()
    assert store.reads["c/0/0"] == 32


def test_adapters_read_in_it():
    base = ts.array(np.arange(12, dtype="int32").reshape(3, 4))
    with ts.Batch() as batch:
        reads = [
            ts.cast(base, "float64").read(batch=batch),
            ts.stack([base, base]).read(batch=batch),
            ts.downsample(base, [1, 2], "max").read(batch=batch),
        ]
    assert [read.result().shape for read in reads] == [(3, 4), (2, 3, 4), (3, 2)]


def test_opening_and_resolving_in_it():
    context = ts.Context()
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    with ts.Batch() as batch:
        made = ts.open(spec, create=True, dtype="int8", shape=[3], context=context, batch=batch)
    with ts.Batch() as batch:
        again = ts.open(spec, context=context, batch=batch)
        bounds = made.result().resolve(batch=batch)
    assert again.result().shape == bounds.result().shape == (3,)
