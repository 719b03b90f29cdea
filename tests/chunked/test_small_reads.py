"""Small reads that are under way together, counted: one request and one decode for all of them."""

import asyncio
import gc
import weakref

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._chunked.small_reads import SmallRead
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.workers import submissions, width
from tensorstore_py.errors import DataLossError, NotFoundError, OutOfRangeError
from tensorstore_py.testing import CountingStore, FaultyStore
from tests.chunked.stores import Hooked, counting, created, once, opened
from tests.runtime.processes import occupy_workers

VALUES = np.arange(1, 13, dtype="uint8")


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


@pytest.fixture
def decoded(monkeypatch):
    """Counts the chunks that are decoded."""
    count = [0]

    def counted(decode):
        def wrapper(self, *arguments):
            count[0] += 1
            return decode(self, *arguments)

        return wrapper

    for decode in (CodecChain.decode_into, CodecChain.decode_scratch):
        monkeypatch.setattr(CodecChain, decode.__name__, counted(decode))
    return count


@pytest.fixture
def busy():
    """No worker begins anything, so that what is asked for together is asked for before it runs."""
    free = occupy_workers()
    yield
    free.set()


def filled(store, chunks=6, **options):
    created(store, [12], [chunks]).write(VALUES).result()
    array = opened(store, **options)
    store.reset()
    return array


def asked(array, *indices):
    """Reads that were asked for and have not begun."""
    driver = array._driver
    reads = [driver.reading(array[index]._get_transform(), "C") for index in indices]
    assert all(isinstance(read, SmallRead) for read in reads)
    return reads


def result(array, read):
    return start(array._driver.inline, read).result().tolist()


async def nothing():
    return None


class TestTogether:
    def test_one_request_and_one_decode_for_a_chunk(self, store, decoded):
        array = filled(store)
        reads = asked(array, *[slice(i, i + 2) for i in range(5)])
        assert [result(array, read) for read in reads] == [[i + 1, i + 2] for i in range(5)]
        assert (store.reads, decoded) == ({"a/c/0": 1}, [1])

    @pytest.mark.usefixtures("busy")
    def test_by_the_public_door(self, decoded):
        store = counting()
        array = filled(store)
        futures = [array[i % 12].read() for i in range(40)]
        assert [int(future.result()) for future in futures] == [i % 12 + 1 for i in range(40)]
        assert (store.reads, decoded) == ({"a/c/0": 1, "a/c/1": 1}, [2])

    def test_awaited(self, store):
        array = filled(store)

        async def gathered():
            return await asyncio.gather(*(array[i].read() for i in range(12)))

        assert [int(found) for found in asyncio.run(gathered())] == VALUES.tolist()

    def test_a_read_of_several_chunks_takes_what_others_have_begun(self, store, decoded):
        array = filled(store, chunks=4)
        across, right, left = asked(array, slice(3, 5), slice(5, 6), slice(0, 2))
        assert result(array, right) == [6]
        assert result(array, across) == [4, 5]
        assert result(array, left) == [1, 2]
        assert (store.reads, decoded) == ({"a/c/0": 1, "a/c/1": 1}, [2])

    def test_memory_order(self):
        array = created(counting(), [8, 8], [4, 8])
        array.write(np.arange(64, dtype="uint8").reshape(8, 8)).result()
        found = array[1:3, 2:4].read(order="F").result()
        assert found.flags.f_contiguous
        assert found.tolist() == [[10, 11], [18, 19]]

    def test_a_missing_chunk_is_asked_for_once(self, store):
        array = created(store, [12], [6], fill_value=7)
        store.reset()
        reads = asked(array, 1, 2, 3)
        assert [result(array, read) for read in reads] == [7, 7, 7]
        assert store.reads == {"a/c/0": 1}

    def test_under_a_small_limit_on_memory(self, store, decoded):
        context = ts.Context({"memory_limit": {"limit_bytes": 8}})
        array = filled(store, context=context)
        reads = asked(array, 0, 7, 1, 8)
        assert [result(array, read) for read in reads] == [1, 8, 2, 9]
        assert decoded == [2]
        assert array._driver.memory.held == 0


class TestNewEnough:
    def test_what_is_asked_for_after_a_write_shows_it(self, store):
        array = filled(store)
        (before,) = asked(array, 0)
        array[1] = 99
        (after,) = asked(array, 1)
        # Whoever runs first, what is fetched was asked for by both before.
        assert result(array, before) == 1
        assert result(array, after) == 99
        assert store.reads["a/c/0"] == 2  # one of them is the writer's

    def test_a_read_asked_for_while_the_chunk_is_fetched_asks_again(self):
        store = Hooked()
        array = filled(store)
        late = []

        def write_and_ask():
            array[1] = 99
            late.extend(asked(array, 1))

        store.after = once(write_and_ask, "read", "a/c/0")
        (early,) = asked(array, 0)
        assert result(array, early) == 1
        assert result(array, late[0]) == 99

    def test_a_resize_is_seen(self, store):
        array = filled(store)
        other = opened(store)
        other.resize(exclusive_max=[20]).result()
        with pytest.raises(IndexError):
            array[15].read().result()
        assert array.resolve().result()[15].read().result() == 0


class TestNothingIsKept:
    def test_of_a_chunk(self, store, decoded):
        array = filled(store)
        for count in (1, 2, 3):
            assert array[2].read().result() == 3
            assert (store.reads, decoded) == ({"a/c/0": count}, [count])

    def test_of_a_read_that_is_over(self, store):
        array = filled(store)
        reads = asked(array, 0, 1)
        gone = [weakref.ref(read) for read in reads]
        for _ in range(2):
            result(array, reads.pop())
        start(array._driver.inline, nothing).result()  # whoever ran them has gone on
        gc.collect()
        assert [ref() for ref in gone] == [None, None]

    @pytest.mark.usefixtures("busy")
    def test_of_a_read_that_was_cancelled_before_it_began(self, decoded):
        store = counting()
        array = filled(store)
        cancelled, *others = [array[i].read() for i in range(3)]
        wanted = array._driver._small._wanted[(0,)]
        assert len(wanted) == 3
        assert cancelled.cancel()
        assert len(array._driver._small._wanted[(0,)]) == 2
        assert [int(other.result()) for other in others] == [2, 3]
        assert array._driver._small._wanted == {}
        assert decoded == [1]


class TestFailure:
    @pytest.fixture
    def faulty(self, store):
        return FaultyStore(store.base)

    def test_of_the_one_who_serves_is_not_that_of_the_others(self, faulty):
        store = CountingStore(faulty)
        array = filled(store)
        faulty.fail("read", OSError("unplugged"), key="a/c/0")
        first, second, third = asked(array, 0, slice(5, 7), 1)
        with pytest.raises(OSError, match="unplugged"):
            result(array, first)
        assert result(array, second) == [6, 7]
        assert result(array, third) == 2
        assert store.reads == {"a/c/0": 2, "a/c/1": 1}

    def test_of_a_codec_names_the_key_to_everyone(self, faulty):
        array = filled(CountingStore(faulty))
        faulty.alter("a/c/0", lambda value: value[:3])
        for read in asked(array, 0, 1):
            with pytest.raises(DataLossError, match="a/c/0"):
                result(array, read)

    def test_of_a_read_withdraws_what_it_wanted_elsewhere(self, faulty):
        array = filled(CountingStore(faulty))
        faulty.fail("read", OSError("unplugged"), key="a/c/0")
        (across,) = asked(array, slice(4, 8))
        with pytest.raises(OSError, match="unplugged"):
            result(array, across)
        assert array._driver._small._wanted == {}

    def test_a_missing_chunk_may_be_an_error_for_everyone(self, store):
        created(store, [12], [6])
        array = opened(store, members={"fill_missing_data_reads": False})
        for read in asked(array, 0, 1):
            with pytest.raises(NotFoundError, match="a/c/0"):
                result(array, read)

    def test_what_lies_outside_is_an_error_of_the_future(self, store):
        array = filled(store)
        view = array[10:]
        opened(store).resize(exclusive_max=[5]).result()
        array.resolve().result()
        future = view[11].read()
        with pytest.raises(OutOfRangeError, match="11"):
            future.result()


class TestOthersGoAlone:
    def test_large_ones(self, store):
        array = filled(store)
        reading = array._driver.reading(array[:4]._get_transform(), "C")
        assert not isinstance(reading, SmallRead)

    def test_in_a_transaction_and_a_batch(self, store):
        array = filled(store)
        transaction = ts.Transaction()
        batch = ts.Batch()
        for driver in (
            array.with_transaction(transaction)._driver,
            array._driver.batched(batch),
        ):
            reading = driver.reading(array[:1]._get_transform(), "C")
            assert not isinstance(reading, SmallRead)
        batch.submit()
        transaction.abort()

    def test_where_metadata_is_asked_for_at_each_read(self, store):
        array = filled(store, recheck_cached_metadata=True)
        reading = array._driver.reading(array[:1]._get_transform(), "C")
        assert not isinstance(reading, SmallRead)
        assert array[:1].read().result().tolist() == [1]


@pytest.mark.parametrize("worth", [False, True])
def test_one_read_of_much_is_shared_out_where_that_is_worth_it(worth, monkeypatch):
    # 16 chunks of 128 KiB are four threads' worth: what a read wants itself is no crowd.
    monkeypatch.setattr("tensorstore_py._runtime.fan_out.worth_sharing", lambda _: worth)
    store = counting(True)
    array = created(store, [16, 2**17], [1, 2**17])
    before = submissions()

    future = array[:, 5].read()
    future.result()

    assert submissions() - before == (min(width(), 4) - 1 if worth else 0)
