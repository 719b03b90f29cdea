"""Small writes that are under way together, counted: a chunk is read and stored once for all."""

import asyncio
import gc
import weakref
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._chunked import small_writes
from tensorstore_py._chunked.small_writes import SmallWrite
from tensorstore_py._interface.given import Given
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing import CountingStore, FaultyStore
from tests.chunked.stores import counting, created, opened
from tests.runtime.processes import occupy_loop, occupy_workers, run_script

VALUES = np.arange(1, 13, dtype="uint8")


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


@contextmanager
def at_once(store):
    """What is asked for within is begun when all of it was asked for."""
    free = occupy_workers() if store.inline else occupy_loop()
    try:
        yield
    finally:
        free.set()


def filled(store, chunks=6, **options):
    created(store, [12], [chunks]).write(VALUES).result()
    array = opened(store, **options)
    store.reset()
    return array


def writing(array, index, value):
    view = array[index]
    driver = array._driver
    source = np.broadcast_to(np.asarray(value, driver.data_type.numpy_dtype), view.shape)
    return driver.writing(view._get_transform(), source, Given())


def asked(array, *changes):
    """Writes that were asked for and have not begun."""
    writes = [writing(array, *change) for change in changes]
    assert all(isinstance(write, SmallWrite) for write in writes)
    return writes


def done(array, write):
    return start(array._driver.inline, write).result()


def stored(store):
    return opened(store).read().result().tolist()


def keys(store):
    found = opened(store).kvstore.list().result()
    return sorted(key.decode() for key in found)


class TestTogether:
    def test_one_read_and_one_write_for_a_chunk(self, store):
        array = filled(store)
        writes = asked(array, *[(number, 100 + number) for number in range(5)])
        for write in writes:
            done(array, write)
        assert (store.reads, store.writes) == ({"a/c/0": 1}, {"a/c/0": 1})
        assert stored(store) == [100, 101, 102, 103, 104, *range(6, 13)]

    def test_the_last_one_asked_for_counts(self, store):
        array = filled(store)
        writes = asked(array, (slice(0, 4), 50), (slice(2, 8), 60), (3, 70))
        for write in reversed(writes):
            done(array, write)
        assert stored(store) == [50, 50, 60, 70, 60, 60, 60, 60, 9, 10, 11, 12]
        assert store.writes == {"a/c/0": 1, "a/c/1": 1}

    def test_by_the_public_door(self, store):
        array = filled(store)
        with at_once(store):
            futures = [array[number % 12].write(number) for number in range(40)]
        for future in futures:
            future.result()
        assert store.writes == {"a/c/0": 1, "a/c/1": 1}
        assert stored(store) == [36, 37, 38, 39, *range(28, 36)]

    def test_awaited(self, store):
        array = filled(store)

        async def gathered():
            await asyncio.gather(*(array[number].write(100 + number) for number in range(12)))

        asyncio.run(gathered())
        assert stored(store) == list(range(100, 112))

    def test_any_selection(self, store):
        array = filled(store)
        writes = asked(
            array,
            (slice(None, None, 5), 90),
            (ts.d[0][[1, 7, 1]], [1, 2, 3]),
            (slice(5, 7), [20, 21]),
        )
        for write in writes:
            done(array, write)
        expected = VALUES.copy()
        expected[::5] = 90
        expected[[1, 7, 1]] = [1, 2, 3]
        expected[5:7] = [20, 21]
        assert stored(store) == expected.tolist()

    def test_what_becomes_fill_values_is_not_stored(self, store):
        array = filled(store)
        writes = asked(array, (slice(0, 3), 0), (slice(3, 6), 0))
        for write in writes:
            done(array, write)
        assert keys(store) == ["c/1", "zarr.json"]

    def test_through_a_cache_pool(self, store):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})
        array = filled(store, context=context)
        assert array[0].read().result() == 1
        for write in asked(array, *[(number, 100 + number) for number in range(4)]):
            done(array, write)
        assert array[:6].read().result().tolist() == [100, 101, 102, 103, 5, 6]
        assert store.writes == {"a/c/0": 1}

    def test_under_a_small_limit_on_memory(self, store):
        context = ts.Context({"memory_limit": {"limit_bytes": 8}})
        array = filled(store, context=context)
        for write in asked(array, (0, 50), (7, 51), (1, 52)):
            done(array, write)
        assert store.writes == {"a/c/0": 1, "a/c/1": 1}
        assert array._driver.memory.held == 0

    @pytest.mark.parametrize("codec", ["raw", "zstd", "blosc", "shards"])
    def test_any_boxes_are_what_numpy_gives(self, store, codec):
        codecs: list[Any] = [
            "bytes",
            *([] if codec == "raw" else ["zstd" if codec == "shards" else codec]),
        ]
        if codec == "shards":
            inner = {"chunk_shape": [2, 3], "codecs": codecs}
            codecs = [{"name": "sharding_indexed", "configuration": inner}]
        expected = np.arange(20 * 18, dtype="uint16").reshape(20, 18)
        members: dict[str, Any] = {"metadata": {"codecs": codecs}}
        if codec == "shards":
            grid = {"name": "regular", "configuration": {"chunk_shape": [8, 6]}}
            members["metadata"]["chunk_grid"] = grid
        chunks = None if codec == "shards" else [8, 6]
        array = created(store, [20, 18], chunks, "uint16", members=members)
        array.write(expected).result()
        random = np.random.default_rng(5)
        futures = []
        with at_once(store):
            for number in range(60):
                low = random.integers(0, [20, 18])
                high = np.minimum(low + random.integers(1, [7, 5]), [20, 18])
                box = tuple(map(slice, low.tolist(), high.tolist()))
                futures.append(array[box].write(1000 + number))
                expected[box] = 1000 + number
        for future in futures:
            future.result()
        np.testing.assert_array_equal(opened(store).read().result(), expected)


class TestAlong:
    """Small chunks are made several at a time, the last of the line along with the first."""

    @pytest.fixture(autouse=True)
    def _rows(self, monkeypatch):
        monkeypatch.setattr(small_writes, "_ROW_BYTES", 4 * 3)

    @pytest.fixture
    def rows(self, monkeypatch):
        lengths: list[int] = []
        update_values = CountingStore.update_values

        async def noted(self, keys, updates):
            lengths.append(len(keys))
            return await update_values(self, keys, updates)

        monkeypatch.setattr(CountingStore, "update_values", noted)
        return lengths

    def many(self, store, **options):
        created(store, [24], [3]).write(np.arange(24, dtype="uint8")).result()
        array = opened(store, **options)
        store.reset()
        return array

    def test_from_the_end_of_the_line(self, rows):
        array = self.many(counting())
        writes = asked(array, *[(3 * number, 100 + number) for number in range(8)])
        done(array, writes[0])
        assert rows == [4]
        found = opened(array._driver.kvstore[1]).read().result()[::3]
        assert found.tolist() == [100, 3, 6, 9, 12, 105, 106, 107]
        for write in writes[1:]:
            done(array, write)
        assert rows == [4, 4]

    def test_not_on_the_loop(self, rows):
        store = counting(False)
        array = self.many(store)
        for write in asked(array, *[(3 * number, 100 + number) for number in range(8)]):
            done(array, write)
        assert rows == []
        assert store.writes.total() == 8

    def test_an_error_is_that_of_its_chunk(self):
        faulty = FaultyStore(counting().base)
        array = self.many(CountingStore(faulty))
        faulty.alter("a/c/6", lambda value: value[:1])
        writes = asked(array, (0, 50), (18, 51), (19, 52), (21, 53))
        done(array, writes[0])
        for write in writes[1:3]:
            with pytest.raises(DataLossError, match="a/c/6"):
                done(array, write)
        done(array, writes[3])
        faulty.alter("a/c/6", lambda value: value)
        assert array._driver._merged._waiting == array._driver._merged._turns == {}


class TestAlone:
    def test_a_chunk_that_is_replaced(self, store):
        array = filled(store)
        assert not isinstance(writing(array, slice(0, 6), 1), SmallWrite)
        assert not isinstance(writing(array, slice(None), 1), SmallWrite)
        assert array._driver._merged._waiting == {}

    def test_one_of_very_many_chunks(self):
        array = created(counting(), [2, 600], [2, 1])
        assert not isinstance(writing(array, (0, slice(None)), 1), SmallWrite)
        assert isinstance(writing(array, (0, slice(0, 256)), 1), SmallWrite)

    def test_in_a_transaction(self, store):
        array = filled(store)
        with ts.Transaction() as transaction:
            within = array.with_transaction(transaction)
            assert not isinstance(writing(within, 0, 1), SmallWrite)

    def test_what_lies_outside_is_an_error_of_the_future(self, store):
        array = filled(store)
        view = array[10:]
        opened(store).resize(exclusive_max=[5]).result()
        array.resolve().result()
        with pytest.raises(ts.errors.OutOfRangeError, match="11"):
            view[11].write(1).result()

    def test_after_the_array_was_resized(self, store):
        array = filled(store)
        (write,) = asked(array, (7, 50))
        array.resize(exclusive_max=[14]).result()
        done(array, write)
        assert stored(store) == [*range(1, 8), 50, *range(9, 13), 0, 0]
        assert array._driver._merged._waiting == {}

    def test_after_the_array_shrank_it_is_outside(self, store):
        array = filled(store)
        (write,) = asked(array, (7, 50))
        array.resize(exclusive_max=[5]).result()
        with pytest.raises(ts.errors.OutOfRangeError):
            done(array, write)
        assert keys(store) == ["c/0", "zarr.json"]


class TestNotMade:
    def test_one_that_was_cancelled_before_it_began(self, store):
        array = filled(store)
        with at_once(store):
            futures = [array[number].write(50 + number) for number in range(4)]
            assert futures[1].cancel()
        for future in (futures[0], *futures[2:]):
            future.result()
        assert stored(store)[:5] == [50, 2, 52, 53, 5]
        assert array._driver._merged._waiting == {}

    def test_one_of_a_closed_handle(self, store):
        array = filled(store)
        array.close()
        with pytest.raises(ts.errors.FailedPreconditionError):
            array[0].write(9)
        assert array._driver._merged._waiting == {}

    def test_a_corrupt_chunk_is_named_to_everyone(self):
        faulty = FaultyStore(counting().base)
        array = filled(CountingStore(faulty))
        faulty.alter("a/c/0", lambda value: value[:3])
        for write in asked(array, (0, 1), (1, 1)):
            with pytest.raises(DataLossError, match="a/c/0"):
                done(array, write)
        assert array._driver._merged._waiting == {}

    def test_nothing_of_it_is_kept(self, store):
        array = filled(store)
        gc.collect()
        gc.disable()
        try:
            source = np.full(3, 7, "uint8")
            gone = weakref.ref(source)
            write = array._driver.writing(array[1:4]._get_transform(), source, Given())
            done(array, write)
            del source, write
            array[0].read().result()  # by now the loop is done with the task that it ran before
            assert gone() is None
        finally:
            gc.enable()

    def test_a_forked_child_makes_only_its_own(self):
        run_script(
            """
            import os
            import numpy as np
            import tensorstore_py as ts
            from tensorstore_py._interface.given import Given
            array = ts.open(
                {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="uint8", shape=[9]
            ).result()
            ask = lambda at: array._driver.writing(
                array[at]._get_transform(), np.asarray(at, "uint8"), Given()
            )
            mine = ask(1)
            child = os.fork()
            if not child:
                array[2] = 2
                os._exit(int(array.read().result().tolist() != [0, 0, 2, 0, 0, 0, 0, 0, 0]))
            assert os.waitpid(child, 0)[1] == 0
            array[2] = 3
            assert array[:3].read().result().tolist() == [0, 1, 3]
            from tensorstore_py._runtime.start import start
            start(True, mine).result()
            assert array[:3].read().result().tolist() == [0, 1, 3]
            """
        )
