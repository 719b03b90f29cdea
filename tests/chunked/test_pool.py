"""Reads and writes through a cache pool, counted; and the pool itself, bounded in bytes."""

import asyncio
import sys
import threading
import time
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import DataLossError, NotFoundError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.codec import CodecChain
from tensorstore_py.plugin.driver import CachedChunk
from tensorstore_py.plugin.kvstore import ChunkCache, ReadResult, WholeRewrite
from tensorstore_py.testing import CountingStore, FaultyStore, LoopStore
from tests.chunked.stores import Hooked, counting, created, once, opened, pool
from tests.runtime.processes import start

#: What an entry counts besides its data.
SHARE = CachedChunk(None, b"", 0.0).size_bytes


def entry(size, generation=b"g"):
    return CachedChunk(np.zeros(size, "uint8"), generation, 1.0)


KEYS = st.integers(0, 5)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 600)),
        st.tuples(st.just("get"), KEYS, st.just(0)),
        st.tuples(st.just("drop"), KEYS, st.just(0)),
    ),
    max_size=40,
)


class TestPut:
    def test_replaces_what_the_key_had(self):
        cache = ChunkCache(10**6)
        cache.put("a", entry(100))
        cache.put("a", entry(10))
        assert (len(cache), cache.held_bytes) == (1, SHARE + 10)

    def test_what_does_not_fit_drops_the_entry_it_would_have_replaced(self):
        cache = ChunkCache(SHARE + 100)
        cache.put("a", entry(100))
        cache.put("a", entry(101))
        assert (cache.get("a"), cache.held_bytes) == (None, 0)

    def test_what_does_not_fit_leaves_others_alone(self):
        cache = ChunkCache(SHARE + 100)
        cache.put("a", entry(100))
        cache.put("b", entry(101))
        assert cache.get("a") is not None

    def test_missing_chunks_count_too(self):
        cache = ChunkCache(3 * SHARE)
        for key in range(10):
            cache.put(key, CachedChunk(None, b"", 1.0))
        assert [key for key in range(10) if cache.get(key)] == [7, 8, 9]

    def test_a_pool_of_nothing_keeps_nothing(self):
        cache = ChunkCache(0)
        cache.put("a", CachedChunk(None, b"", 1.0))
        assert (len(cache), cache.get("a")) == (0, None)


class TestReading:
    def test_what_was_read_before_a_drop_is_not_kept_after_it(self):
        cache = ChunkCache(10**6)
        with cache.reading("a"):
            cache.drop("a")
            cache.put("a", entry(1))
        assert cache.get("a") is None

    def test_another_key_does_not_matter(self):
        cache = ChunkCache(10**6)
        with cache.reading("a"):
            cache.drop("b")
            cache.put("a", entry(1))
        assert cache.get("a") is not None

    def test_the_next_reader_begins_anew(self):
        cache = ChunkCache(10**6)
        with cache.reading("a"):
            cache.drop("a")
        with cache.reading("a"):
            cache.put("a", entry(1))
        assert cache.get("a") is not None

    def test_a_reader_that_fails_leaves_no_trace(self):
        cache = ChunkCache(10**6)

        def read():
            with cache.reading("a"):
                cache.drop("a")
                raise OSError("unplugged")

        with pytest.raises(OSError, match="unplugged"):
            read()
        cache.put("a", entry(1))
        assert cache.get("a") is not None


class TestScope:
    ASKED: ClassVar[dict[str, Any]] = {"path": "a/", "store": ["store", 1], "form": b"zarr"}

    def test_the_same_array_has_the_same_for_every_caller(self):
        cache = ChunkCache(1)
        assert cache.scope(**self.ASKED) is cache.scope(**self.ASKED)

    @pytest.mark.parametrize("other", [{"path": "b/"}, {"store": ["store", 2]}, {"form": b"n5"}])
    def test_other_arrays_have_others(self, other):
        cache = ChunkCache(1)
        assert cache.scope(**self.ASKED) is not cache.scope(**{**self.ASKED, **other})

    def test_old_ones_of_a_path_are_let_go(self):
        cache = ChunkCache(1)
        first = cache.scope(**self.ASKED)
        for number in range(20):
            cache.scope("a/", "store", number)
        assert cache.scope(**self.ASKED) is not first


class TestBounds:
    @given(st.integers(0, 2500), STEPS)
    def test_it_is_a_least_recently_used_map_bounded_in_bytes(self, limit, steps):
        cache = ChunkCache(limit)
        model: OrderedDict[int, CachedChunk] = OrderedDict()
        for operation, key, size in steps:
            if operation == "put":
                made = entry(size)
                cache.put(key, made)
                model.pop(key, None)
                if made.size_bytes <= limit:
                    model[key] = made
                while sum(each.size_bytes for each in model.values()) > limit:
                    model.popitem(last=False)
            elif operation == "get":
                assert cache.get(key) is model.get(key)
                if key in model:
                    model.move_to_end(key)
            else:
                cache.drop(key)
                model.pop(key, None)
            assert len(cache) == len(model)
            assert cache.held_bytes == sum(each.size_bytes for each in model.values()) <= limit

    def test_many_threads_leave_the_books_in_order(self):
        cache = ChunkCache(20 * SHARE)

        def work(seed):
            random = np.random.default_rng(seed)
            for key, size, operation in random.integers(0, [40, 300, 3], (300, 3)).tolist():
                if operation == 0:
                    cache.get(key)
                elif operation == 1:
                    cache.drop(key)
                else:
                    with cache.reading(key):
                        cache.put(key, entry(size))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        kept = [cache.get(key) for key in range(40)]
        assert (
            cache.held_bytes == sum(each.size_bytes for each in kept if each) <= cache.limit_bytes
        )
        for key in range(40):
            cache.drop(key)
        assert (len(cache), cache.held_bytes) == (0, 0)


CHUNKS = ["a/c/0", "a/c/1", "a/c/2"]


VALUES = np.arange(1, 13, dtype="uint8")


class Held(CountingStore):
    """Reads of one key wait until they are let go."""

    def __init__(self, base):
        super().__init__(base)
        self.cut = False
        self.hold(None)

    def hold(self, key):
        self.held = key
        self.free = threading.Event()
        self.entered = threading.Event()

    def let_go(self):
        self.free.set()

    async def read(self, key, *args, **named):
        result = await super().read(key, *args, **named)
        if key != self.held:
            return result
        self.entered.set()
        if self.inline:
            assert self.free.wait(60)
        else:
            await asyncio.to_thread(self.free.wait, 10)
        return ReadResult("value", result.value[:2], result.stamp) if self.cut else result


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


@pytest.fixture
def decoded(monkeypatch):
    """Counts the chunks that are decoded."""
    count = [0]
    decode_into, decode_scratch = CodecChain.decode_into, CodecChain.decode_scratch

    def into(self, data, out):
        count[0] += 1
        return decode_into(self, data, out)

    def scratch(self, data):
        count[0] += 1
        return decode_scratch(self, data)

    monkeypatch.setattr(CodecChain, "decode_into", into)
    monkeypatch.setattr(CodecChain, "decode_scratch", scratch)
    return count


def filled(store, **options):
    """Another handle has written the array; the one returned reads it through a pool."""
    created(store, [12], [4]).write(VALUES).result()
    array = opened(store, context=pool(), **options)
    store.reset()
    return array


def chunk_reads(store):
    return {key: count for key, count in store.reads.items() if key in CHUNKS}


class TestRecheck:
    def test_by_default_each_read_asks_but_nothing_is_sent_or_decoded_again(self, store, decoded):
        array = filled(store)
        for _ in range(3):
            assert array.read().result().tolist() == VALUES.tolist()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 3)
        assert [store.bytes_read[key] for key in CHUNKS] == [4, 4, 4]
        assert decoded == [3]

    def test_what_changed_is_read_again(self, store, decoded):
        array = filled(store)
        array.read().result()
        opened(store)[5] = 99
        decoded[0] = 0
        assert array.read().result()[5] == 99
        assert decoded == [1]

    def test_never(self, store, decoded):
        array = filled(store, recheck_cached_data=False)
        for index in (np.s_[2:9], np.s_[...], np.s_[::-1], np.s_[[0, 11, 5]]):
            assert array[index].read().result().tolist() == VALUES[index].tolist()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)
        assert decoded == [3]

    def test_since_it_was_opened(self, store):
        context = pool()
        filled(store)
        first = opened(store, context=context, recheck_cached_data="open")
        first.read().result()
        second = opened(store, context=context, recheck_cached_data="open")
        store.reset()
        for _ in range(3):
            first.read().result()
        assert chunk_reads(store) == {}
        for _ in range(3):
            second.read().result()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)
        assert sum(store.bytes_read[key] for key in CHUNKS) == 0

    def test_since_a_time(self, store):
        context = pool()
        filled(store)
        opened(store, context=context).read().result()
        store.reset()
        opened(store, context=context, recheck_cached_data=time.time() - 60).read().result()
        assert chunk_reads(store) == {}
        opened(store, context=context, recheck_cached_data=time.time() + 60).read().result()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)


class TestAtTheSameTime:
    """Any number of readers of a chunk that is not kept: one reads, the others wait for it."""

    COUNT = 8

    @pytest.fixture(params=[True, False], ids=["inline", "loop"])
    def held(self, request, monkeypatch):
        """A store that answers for the first chunk when all the others wait for it."""
        memory = MemoryStore(SharedMap())
        store = Held(memory if request.param else LoopStore(memory))
        joined = []
        flight_class = sys.modules[ChunkCache.__module__].SingleFlight
        join = flight_class.register

        def counted(flight, inline):
            joined.append(flight)
            if len(joined) == self.COUNT - 1:
                store.let_go()
            return join(flight, inline)

        monkeypatch.setattr(flight_class, "register", counted)
        return store

    def outcomes(self, array, store):
        """What the readers get."""
        found = []

        def read():
            try:
                found.append(array[:4].read().result().tolist())
            except DataLossError as error:
                found.append(error)

        store.hold("a/c/0")
        threads = [threading.Thread(target=read) for _ in range(self.COUNT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    @pytest.mark.parametrize("size", [10**7, 100], ids=["kept", "too large to keep"])
    def test_one_request_and_one_decode(self, held, decoded, size):
        created(held, [12], [4]).write(VALUES).result()
        array = opened(held, context=pool(size), recheck_cached_data=False)
        held.reset()
        assert self.outcomes(array, held) == [[1, 2, 3, 4]] * self.COUNT
        assert (chunk_reads(held), decoded) == ({"a/c/0": 1}, [1])

    def test_a_missing_chunk(self, held):
        created(held, [12], [4])
        array = opened(held, context=pool(), recheck_cached_data=False)
        assert self.outcomes(array, held) == [[0] * 4] * self.COUNT
        assert chunk_reads(held) == {"a/c/0": 1}

    def test_a_read_that_began_after_the_request_makes_another(self, held, decoded):
        array = filled(held)
        assert self.outcomes(array, held) == [[1, 2, 3, 4]] * self.COUNT
        # One more answer is new enough for all waiters, and has no body.
        assert chunk_reads(held)["a/c/0"] <= 2
        assert (held.bytes_read["a/c/0"], decoded) == (4, [1])

    def test_a_corrupt_chunk_is_an_error_for_all(self, held):
        array = filled(held, recheck_cached_data=False)
        held.cut = True
        outcomes = self.outcomes(array, held)
        assert [type(outcome) for outcome in outcomes] == [DataLossError] * self.COUNT
        assert all("a/c/0" in str(outcome) for outcome in outcomes)

    def test_what_was_written_meanwhile_is_read_again(self, held):
        array = filled(held, recheck_cached_data=False)
        held.hold("a/c/0")
        threads = [threading.Thread(target=lambda: array[:4].read().result()) for _ in range(2)]
        threads[0].start()
        assert held.entered.wait(60)
        array[0:4] = 99
        threads[1].start()
        held.let_go()
        for thread in threads:
            thread.join()
        assert array[:4].read().result().tolist() == [99] * 4


class TestWhatIsKept:
    def test_that_a_chunk_is_missing(self, store):
        created(store, [12], [4])
        array = opened(store, context=pool(), recheck_cached_data=False)
        for _ in range(2):
            assert array.read().result().tolist() == [0] * 12
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)

    def test_a_missing_chunk_may_be_an_error_every_time(self, store):
        created(store, [12], [4])
        members = {"fill_missing_data_reads": False}
        array = opened(store, context=pool(), recheck_cached_data=False, members=members)
        for _ in range(2):
            with pytest.raises(NotFoundError, match="a/c/0"):
                array[:4].read().result()

    def test_as_much_as_fits(self, store):
        filled(store)
        array = opened(store, context=pool(2 * 260), recheck_cached_data=False)
        for number in (0, 1, 0, 2, 0):
            array[4 * number].read().result()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)
        array[4].read().result()
        assert store.reads["a/c/1"] == 2

    def test_nothing_in_a_pool_of_nothing(self, store):
        filled(store)
        array = opened(store, context=pool(0), recheck_cached_data=False)
        for _ in range(2):
            array.read().result()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 2)

    def test_all_handles_of_the_same_context_have_the_use_of_it(self, store):
        filled(store)
        context = pool()
        for _ in range(3):
            array = opened(store, context=context, recheck_cached_data=False)
            assert array.read().result().tolist() == VALUES.tolist()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)

    def test_arrays_are_distinguished(self, store):
        context = pool()
        arrays = [
            created(store, [4], [4], path=path, context=context, recheck_cached_data=False)
            for path in ("a/", "b/")
        ]
        other = created(counting(), [4], [4], context=context, recheck_cached_data=False)
        arrays.append(other)
        for number, array in enumerate(arrays):
            array.write(number + 1).result()
        for _ in range(2):
            assert [int(array[0].read().result()) for array in arrays] == [1, 2, 3]

    def test_an_array_of_another_form_at_the_same_place_is_another(self, store):
        context = pool()
        filled(store)
        opened(store, context=context, recheck_cached_data=False).read().result()
        replaced = opened(
            store, create=True, delete_existing=True, dtype="uint16", shape=[12], context=context,
            chunk_layout=ts.ChunkLayout(chunk_shape=[4]), recheck_cached_data=False,
        )  # fmt: skip
        assert replaced.read().result().tolist() == [0] * 12

    def test_no_reader_can_change_it(self, store):
        array = filled(store, recheck_cached_data=False)
        array.read().result()[...] = 0
        array[0:4].read().result()[...] = 0
        assert array.read().result().tolist() == VALUES.tolist()


class TestWrites:
    def test_ones_own_are_seen(self, store):
        array = filled(store, recheck_cached_data=False)
        array.read().result()
        array[5] = 99
        assert array[5].read().result() == 99
        assert store.reads["a/c/0"] == 1

    @pytest.mark.parametrize("bound", [True, False])
    def test_what_was_written_is_kept_and_not_decoded(self, store, decoded, bound):
        array = filled(store, recheck_cached_data=bound)
        array[0:9] = np.arange(50, 59, dtype="uint8")  # two whole chunks and a part of the third
        store.reset()
        decoded[0] = 0
        assert array.read().result().tolist() == [*range(50, 59), 10, 11, 12]
        assert sum(store.bytes_read[key] for key in CHUNKS) == 0
        assert (chunk_reads(store), decoded) == (dict.fromkeys(CHUNKS, 1) if bound else {}, [0])

    def test_what_was_written_stays_what_it_was(self, store):
        array = filled(store, recheck_cached_data=False)
        mine = np.full(12, 50, "uint8")
        array.write(mine).result()
        mine[:] = 0
        assert array.read().result().tolist() == [50] * 12

    def test_a_chunk_of_nothing_but_the_fill_value_is_missing(self, store):
        members = {"fill_missing_data_reads": False}
        array = filled(store, recheck_cached_data=False, members=members)
        array[0:4] = 0
        with pytest.raises(NotFoundError, match="a/c/0"):
            array[:4].read().result()

    def test_several_at_a_time_leave_nothing(self, store):
        array = filled(store, recheck_cached_data=False)
        for future in [array[number].write(number + 50) for number in range(4)]:
            future.result()
        assert array[:4].read().result().tolist() == [50, 51, 52, 53]

    def test_what_a_codec_rounds_is_read_back(self, store):
        values = np.linspace(0, 1, 12).astype("float32")
        codec = ts.CodecSpec({"driver": "zarr", "filters": [{"id": "bitround", "keepbits": 3}]})
        options = {"dtype": "float32", "shape": [12], "codec": codec, "context": pool()}
        array = opened(store, driver="zarr", create=True, recheck_cached_data=False, **options)
        array.write(values).result()
        found = array.read().result()
        assert found.tolist() != values.tolist()
        assert found.tolist() == opened(store, driver="zarr").read().result().tolist()

    def test_those_of_another_handle_in_the_context_are_seen(self, store):
        filled(store)
        context = pool()
        reader, writer = (
            opened(store, context=context, recheck_cached_data=False) for _ in range(2)
        )
        reader.read().result()
        writer[5] = 99
        assert reader[5].read().result() == 99

    def test_one_that_overtakes_a_read_outlives_it(self):
        store = Hooked()
        array = filled(store, recheck_cached_data=False)
        # The reader has the old bytes in hand when the writer stores new ones.
        store.after = once(lambda: array.__setitem__(0, 99), "read", "a/c/0")
        array[0].read().result()
        assert array[0].read().result() == 99

    def test_one_that_failed_halfway_is_not_hidden(self):
        store = FaultyStore(counting())
        created(store.base, [12], [4]).write(VALUES).result()
        array = opened(store, context=pool(), recheck_cached_data=False)
        array.read().result()
        store.fail("write", OSError("the answer was lost"), key="a/c/1", afterwards=True)
        with pytest.raises(OSError, match="lost"):
            array.write(7).result()
        assert array[4:8].read().result().tolist() == [7, 7, 7, 7]


class TestErrors:
    def test_a_corrupt_chunk_is_named_and_not_kept(self, store):
        array = filled(store, recheck_cached_data=False)
        good = store.base.base._shared if hasattr(store.base, "base") else store.base._shared
        good_bytes = good.entries["a/c/1"]
        good.entries["a/c/1"] = (b"123", b"rotten")
        with pytest.raises(DataLossError, match='"a/c/1"'):
            array.read().result()
        good.entries["a/c/1"] = good_bytes
        assert array.read().result().tolist() == VALUES.tolist()

    def test_an_error_of_the_store_is_not_kept(self):
        store = FaultyStore(counting())
        created(store.base, [12], [4]).write(VALUES).result()
        array = opened(store, context=pool(), recheck_cached_data=False)
        store.fail("read", OSError("unplugged"), key="a/c/1")
        with pytest.raises(OSError, match="unplugged"):
            array.read().result()
        assert array.read().result().tolist() == VALUES.tolist()


class Rewritten(CountingStore, WholeRewrite):
    """Each change costs as much as all of it: counts the changes."""

    def __init__(self, base):
        super().__init__(base)
        self.changes = 0

    async def write(self, key, value, **named):
        self.changes += 1
        return await super().write(key, value, **named)

    async def write_batch(self, values, conditions):
        self.changes += 1
        return await super().write_batch(values, conditions)


class TestStoresThatAreRewritten:
    @pytest.fixture(params=[True, False], ids=["inline", "loop"])
    def rewritten(self, request):
        memory = MemoryStore(SharedMap())
        return Rewritten(memory if request.param else LoopStore(memory))

    @pytest.mark.parametrize("size", [0, 10**6])
    def test_the_chunks_of_a_write_are_stored_together(self, rewritten, size):
        created(rewritten, [12], [4])
        array = opened(rewritten, context=pool(size), recheck_cached_data=False)
        array.read().result()
        rewritten.changes = 0
        array[1:11] = VALUES[1:11]
        assert rewritten.changes == 1
        array[5] = 99
        assert rewritten.changes == 2
        expected = [0, *VALUES[1:11].tolist(), 0]
        expected[5] = 99
        assert array.read().result().tolist() == expected

    def test_nothing_is_stored_if_one_of_them_is_corrupt(self, rewritten):
        array = created(rewritten, [12], [4])
        array[...] = 1
        asyncio.run(_damage(rewritten, "a/c/2"))
        with pytest.raises(DataLossError, match="a/c/2"):
            array[1:11].write(5).result()
        assert array[:8].read().result().tolist() == [1] * 8

    def test_writers_of_the_same_chunks_lose_nothing(self, rewritten):
        array = created(rewritten, [12], [4])
        futures = [array[n::3].write(n + 1) for n in range(3)]
        for future in futures:
            future.result()
        assert array.read().result().tolist() == [1, 2, 3] * 4


async def _damage(store, key):
    base = store.base
    await getattr(base, "base", base).write(key, b"x")


KEY = "c/0/0"


SQUARE = np.arange(256, dtype="int32").reshape(16, 16)


def shards(shape, *codecs):
    return {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": shape, "codecs": list(codecs) or ["bytes"]},
    }


@pytest.fixture(params=["inline", "loop"])
def shard_store(request, monkeypatch):
    base = MemoryStore(SharedMap())
    shard_store = CountingStore(base if request.param == "inline" else LoopStore(base))
    monkeypatch.setattr("tensorstore_py.kvstores.memory.MemorySpec.open", lambda _: shard_store)
    return shard_store


def created_shards(bound=False, limit=10**6, codec=None, context=None):
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
    array.write(SQUARE).result()
    return array


def same(view):
    origin, shape = view.origin, view.shape
    wanted = SQUARE[tuple(slice(low, low + n) for low, n in zip(origin, shape, strict=True))]
    return np.array_equal(view.read().result(), wanted)


class TestShards:
    def test_inner_chunks_are_fetched_once(self, shard_store):
        array = created_shards()
        shard_store.reset()
        assert same(array[4:8, 4:8])
        assert shard_store.reads[KEY] == 2  # its index, and the inner chunk
        for _ in range(3):
            assert same(array[4:8, 4:8])
            assert same(array[5:7, 6:8])
        assert shard_store.reads[KEY] == 2
        assert same(array[:8, :8])
        assert shard_store.reads[KEY] <= 4  # three more inner chunks, and no index
        assert same(array[...])
        before = shard_store.reads[KEY]
        assert same(array[...])
        assert shard_store.reads[KEY] == before

    def test_asking_whether_the_index_is_current_costs_no_body(self, shard_store):
        array = created_shards(bound=True)
        assert same(array[...])
        shard_store.reset()
        assert same(array[...])
        assert shard_store.reads[KEY] == 1
        assert shard_store.bytes_read[KEY] == 0

    @pytest.mark.usefixtures("shard_store")
    @pytest.mark.parametrize("bound", [True, False])
    def test_writes_are_seen(self, bound):
        array = created_shards(bound=bound)
        assert same(array[...])
        array[5, 5] = -1
        found = array.read().result()
        assert found[5, 5] == -1
        assert (found != SQUARE).sum() == 1
        other = ts.open(array.spec(retain_context=True)).result()
        assert other[5, 5].read().result() == -1

    @pytest.mark.usefixtures("shard_store")
    def test_writes_of_another_process_are_seen_by_later_reads(self):
        array = created_shards(bound=True)
        assert same(array[...])
        theirs = ts.open(array.spec(), context=ts.Context()).result()
        theirs[8:] = 0
        assert same(array[:8])
        assert array[8:].read().result().max() == 0

    @pytest.mark.usefixtures("shard_store")
    def test_a_shard_that_is_replaced_while_it_is_read(self):
        array = created_shards(bound=False)
        assert same(array[:4, :4])
        theirs = ts.open(array.spec(), context=ts.Context()).result()
        theirs[...] = 7
        # The index that is kept is of the old shard, whose bytes are gone.
        assert array[12:, 12:].read().result().tolist() == [[7] * 4] * 4

    def test_what_is_not_stored_is_remembered_too(self, shard_store):
        array = created_shards()
        array[...] = 0
        shard_store.reset()
        for _ in range(3):
            assert array[3, 3].read().result() == 0
        assert shard_store.reads[KEY] == 1

    @pytest.mark.usefixtures("shard_store")
    def test_a_small_pool_keeps_what_fits(self):
        array = created_shards(limit=900)
        for _ in range(2):
            assert same(array[...])
            assert same(array[4:12, 4:12])

    @pytest.mark.usefixtures("shard_store")
    def test_shards_within_shards(self):
        array = created_shards(codec=shards([8, 8], shards([4, 4])))
        for _ in range(2):
            assert same(array[2:14, 3:9])

    def test_one_of_many_readers_fetches(self, shard_store):
        array = created_shards()
        shard_store.reset()
        if shard_store.inline:
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
        assert shard_store.reads[KEY] == 2

    def test_shards_of_different_sizes(self, shard_store):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})
        grid = {
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [[4, 8, 4]]},
        }
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
        shard_store.reset()
        assert array[3:14].read().result().tolist() == [*range(3, 14)]
        assert not shard_store.reads


def pooled(store, **options):
    created(store, [12], [6]).write(VALUES).result()
    array = opened(store, context=pool(), **options)
    store.reset()
    return array


def asked(array, *indices):
    driver = array._driver
    return [driver.prepare_read(array[index]._get_transform(), "C") for index in indices]


def result(array, read):
    return start(array._driver.inline, read).result().tolist()


class TestWhatIsAsked:
    def test_reads_that_were_asked_for_together_ask_once(self, store):
        array = pooled(store)
        reads = asked(array, 0, slice(1, 3), 5)
        assert [result(array, read) for read in reads] == [1, [2, 3], 6]
        assert store.reads == {"a/c/0": 1}

    def test_a_chunk_that_was_fetched_since_is_used_unasked(self, store):
        array = pooled(store)
        late, other = asked(array, 0, 7)
        array[1:3].read().result()
        (later,) = asked(array, 3)
        assert result(array, other) == 8
        assert store.reads == {"a/c/0": 1, "a/c/1": 1}
        assert result(array, late) == 1
        assert result(array, later) == 4
        assert store.bytes_read["a/c/0"] == 6

    def test_by_default_a_later_read_asks_and_nothing_is_sent(self, store):
        array = pooled(store)
        for _ in range(3):
            assert array[2].read().result() == 3
        assert (store.reads["a/c/0"], store.bytes_read["a/c/0"]) == (3, 6)

    def test_never(self, store):
        array = pooled(store, recheck_cached_data=False)
        for _ in range(3):
            assert array[2].read().result() == 3
        assert store.reads == {"a/c/0": 1}


class TestWhatIsFound:
    def test_ones_own_writes(self, store):
        array = pooled(store, recheck_cached_data=False)
        assert array[2].read().result() == 3
        array[2] = 99
        assert array[2].read().result() == 99

    def test_those_of_others(self, store):
        array = pooled(store)
        assert array[2].read().result() == 3
        opened(store)[2] = 99
        assert array[2].read().result() == 99

    def test_a_missing_chunk(self, store):
        created(store, [12], [6])
        array = opened(store, context=pool(), recheck_cached_data=False)
        store.reset()
        for _ in range(2):
            assert array[2].read().result() == 0
        assert store.reads == {"a/c/0": 1}

    def test_no_reader_can_change_what_is_kept(self, store):
        array = pooled(store, recheck_cached_data=False)
        array[:2].read().result()[...] = 0
        assert array[:2].read().result().tolist() == [1, 2]

    def test_a_corrupt_chunk_is_named(self):
        faulty = FaultyStore(counting())
        array = pooled(CountingStore(faulty))
        faulty.alter("a/c/0", lambda value: value[:3])
        for read in asked(array, 0, 1):
            with pytest.raises(DataLossError, match="a/c/0"):
                result(array, read)


class TestSmallReadsOfShards:
    """A shard of 4 x 4 chunks of 4 x 4 elements, read through a pool in small parts."""

    def array(self, store, **options):
        metadata = {
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}},
            "codecs": [shards([4, 4])],
        }
        created = opened(
            store, create=True, dtype="int32", shape=[16, 16], members={"metadata": metadata}
        )
        created.write(SQUARE).result()
        array = opened(store, context=pool(), **options)
        store.reset()
        return array

    @pytest.mark.parametrize("bound", [True, False])
    def test_share_the_index_and_inner_chunks(self, store, decoded, bound):
        array = self.array(store, recheck_cached_data=bound)
        views: list[Any] = [np.s_[0, 0], np.s_[1:3, 2], np.s_[3, 3], np.s_[1, 5]]
        reads = asked(array, *views)
        for view, read in zip(views, reads, strict=True):
            assert result(array, read) == SQUARE[view].tolist()
        assert store.reads == {"a/c/0/0": 2}  # the index, and both inner chunks
        assert store.bytes_read.total() == 16 * 16 + 4 + 2 * 64
        assert decoded == [2]
