"""Reads through a cache pool, counted: what is asked of the store, and what is decoded."""

import asyncio
import threading
import time

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._runtime.flight import Flight
from tensorstore_py.errors import DataLossError, NotFoundError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, FaultyStore, LoopStore
from tests.chunked.stores import Hooked, counting, created, once, opened, pool

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
        join = Flight.join

        def counted(flight, inline):
            joined.append(flight)
            if len(joined) == self.COUNT - 1:
                store.let_go()
            return join(flight, inline)

        monkeypatch.setattr(Flight, "join", counted)
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

    def test_who_asked_later_than_the_store_was_asked_asks_again(self, held, decoded):
        array = filled(held)
        assert self.outcomes(array, held) == [[1, 2, 3, 4]] * self.COUNT
        # One more answer is new enough for all who were waiting, and has no body.
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

    def test_everyone_who_opens_the_array_in_the_same_context_has_the_use_of_it(self, store):
        filled(store)
        context = pool()
        for _ in range(3):
            array = opened(store, context=context, recheck_cached_data=False)
            assert array.read().result().tolist() == VALUES.tolist()
        assert chunk_reads(store) == dict.fromkeys(CHUNKS, 1)

    def test_arrays_are_told_apart(self, store):
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


class Rewritten(CountingStore):
    """Each change costs as much as all of it: counts the changes."""

    rewritten = True

    def __init__(self, base):
        super().__init__(base)
        self.atomic = True
        self.changes = 0

    async def write(self, key, value, **named):
        self.changes += 1
        return await super().write(key, value, **named)

    async def write_together(self, values, conditions):
        self.changes += 1
        return await self.base.write_together(values, conditions)


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
