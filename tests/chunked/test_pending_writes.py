"""Small writes that are pending together, counted: a chunk is read and stored once for all."""

import asyncio
import gc
import os
import threading
import weakref
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import DataLossError
from tensorstore_py._chunked import write as write_module
from tensorstore_py._chunked.modify import WriteCombiner
from tensorstore_py._chunked.write import WriteRequest
from tensorstore_py._interface.driver import BufferOwnership
from tensorstore_py._interface.store_abilities import update_values, write_values
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import BulkWrite, ReadModifyWrite, update_each
from tensorstore_py.testing import CountingStore, FaultyStore, LoopStore
from tests.chunked.stores import counting, created, opened
from tests.runtime.processes import occupy_loop, occupy_workers, run_inline, run_script, start

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
    return driver.prepare_write(view._get_transform(), source, BufferOwnership())


def asked(array, *changes):
    """Writes that were asked for and have not begun."""
    writes = [writing(array, *change) for change in changes]
    assert all(isinstance(write, WriteRequest) for write in writes)
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
    def _runs(self, monkeypatch):
        monkeypatch.setattr(write_module, "RUN_BYTES", 4 * 3)

    @pytest.fixture
    def runs(self, monkeypatch):
        lengths: list[int] = []

        async def noted(store, keys, changes):
            lengths.append(len(keys))
            return await update_values(store, keys, changes)

        monkeypatch.setattr("tensorstore_py._chunked.modify.update_values", noted)
        return lengths

    def many(self, store, **options):
        created(store, [24], [3]).write(np.arange(24, dtype="uint8")).result()
        array = opened(store, **options)
        store.reset()
        return array

    def test_from_the_end_of_the_line(self, runs):
        array = self.many(counting())
        writes = asked(array, *[(3 * number, 100 + number) for number in range(8)])
        done(array, writes[0])
        assert runs == [4]
        found = opened(array._driver.kvstore[1]).read().result()[::3]
        assert found.tolist() == [100, 3, 6, 9, 12, 105, 106, 107]
        for write in writes[1:]:
            done(array, write)
        assert runs == [4, 4]

    def test_not_on_the_loop(self, runs):
        store = counting(False)
        array = self.many(store)
        for write in asked(array, *[(3 * number, 100 + number) for number in range(8)]):
            done(array, write)
        assert runs == []
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
        assert (
            array._driver._shared_writers.combiner._pending
            == array._driver._shared_writers.combiner._locks._entries
            == {}
        )


class TestAlone:
    def test_a_chunk_that_is_replaced(self, store):
        array = filled(store)
        assert not isinstance(writing(array, slice(0, 6), 1), WriteRequest)
        assert not isinstance(writing(array, slice(None), 1), WriteRequest)
        assert array._driver._shared_writers.combiner._pending == {}

    def test_one_of_very_many_chunks(self):
        array = created(counting(), [2, 600], [2, 1])
        assert not isinstance(writing(array, (0, slice(None)), 1), WriteRequest)
        assert isinstance(writing(array, (0, slice(0, 256)), 1), WriteRequest)

    def test_in_a_transaction(self, store):
        array = filled(store)
        with ts.Transaction() as transaction:
            within = array.with_transaction(transaction)
            assert not isinstance(writing(within, 0, 1), WriteRequest)

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
        assert array._driver._shared_writers.combiner._pending == {}

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
        assert array._driver._shared_writers.combiner._pending == {}

    def test_one_of_a_closed_handle(self, store):
        array = filled(store)
        array.close()
        with pytest.raises(ts.errors.FailedPreconditionError):
            array[0].write(9)
        assert array._driver._shared_writers.combiner._pending == {}

    def test_a_corrupt_chunk_is_named_to_everyone(self):
        faulty = FaultyStore(counting().base)
        array = filled(CountingStore(faulty))
        faulty.alter("a/c/0", lambda value: value[:3])
        for write in asked(array, (0, 1), (1, 1)):
            with pytest.raises(DataLossError, match="a/c/0"):
                done(array, write)
        assert array._driver._shared_writers.combiner._pending == {}

    def test_nothing_of_it_is_kept(self, store):
        array = filled(store)
        gc.collect()
        gc.disable()
        try:
            source = np.full(3, 7, "uint8")
            gone = weakref.ref(source)
            write = array._driver.prepare_write(
                array[1:4]._get_transform(), source, BufferOwnership()
            )
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
            from tensorstore_py._interface.driver import BufferOwnership
            array = ts.open(
                {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="uint8", shape=[9]
            ).result()
            ask = lambda at: array._driver.prepare_write(
                array[at]._get_transform(), np.asarray(at, "uint8"), BufferOwnership()
            )
            mine = ask(1)
            child = os.fork()
            if not child:
                array[2] = 2
                os._exit(int(array.read().result().tolist() != [0, 0, 2, 0, 0, 0, 0, 0, 0]))
            assert os.waitpid(child, 0)[1] == 0
            array[2] = 3
            assert array[:3].read().result().tolist() == [0, 1, 3]
            from tensorstore_py._runtime.execution import start
            start(True, mine).result()
            assert array[:3].read().result().tolist() == [0, 1, 3]
            """
        )


class Append(ReadModifyWrite):
    def __init__(self, *tails):
        self.tails = tails

    async def apply(self, stored):
        return (stored or b"") + b"".join(self.tails)

    def then(self, later):
        return Append(*self.tails, *later.tails)


class Slow(Append):
    """Lets everybody else go on first."""

    async def apply(self, stored):
        for _ in range(5):
            await asyncio.sleep(0)
        return await super().apply(stored)

    def then(self, later):
        return Slow(*self.tails, *later.tails)


class Failing(Append):
    async def apply(self, stored):
        await asyncio.sleep(0)
        raise ValueError("no")

    def then(self, later):
        return Failing(*self.tails, *later.tails)


def loop_store():
    return CountingStore(LoopStore(MemoryStore(SharedMap())))


async def value(store, key="k"):
    return bytes((await store.read(key)).value)


class BulkStore(BulkWrite, CountingStore):
    """Notes which keys are updated in one go."""

    def __init__(self, base=None):
        super().__init__(MemoryStore(SharedMap()) if base is None else base)
        self.together = []

    async def write_values(self, keys, values):
        await write_values(self.base, keys, values)

    async def update_values(self, keys, changes):
        self.together.append(list(keys))
        return await update_each(self, keys, changes)


class Meanwhile(Append):
    """Has something happen while it is made, the first time."""

    def __init__(self, tail, action):
        super().__init__(tail)
        self.actions = [action]

    async def apply(self, stored):
        if self.actions:
            self.actions.pop()()
        return await super().apply(stored)

    def then(self, later):
        return None


class FailingAtOnce(Append):
    async def apply(self, stored):
        raise ValueError("no")

    def then(self, later):
        return None


class Interrupted(Append):
    """Ctrl-C while it is made."""

    async def apply(self, stored):
        raise KeyboardInterrupt

    def then(self, later):
        return None


def in_order(store, *keys):
    return [run_inline(value(store, key)) for key in keys]


class TestRegistered:
    """What waits is made by whoever comes first, in the order in which it was asked for."""

    def test_nothing_is_made_before(self):
        store = BulkStore()
        combiner = WriteCombiner(store)
        combiner.register([("k", Append(b"1")), ("l", Append(b"2"))])
        assert (store.reads, store.writes) == ({}, {})
        assert combiner.crowded(1)
        assert not combiner.crowded(2)

    def test_the_last_one_makes_them_all(self):
        store = BulkStore()
        combiner = WriteCombiner(store)
        waiting = combiner.register([("k", Append(b"%d" % n)) for n in range(5)])
        assert run_inline(combiner.make(waiting[-1])) is None
        assert in_order(store, "k") == [b"01234"]
        assert [each.done for each in waiting] == [True] * 5
        for each in waiting:
            assert run_inline(combiner.make(each)) is None
        assert store.writes == {"k": 1}
        assert (combiner._pending, combiner._locks._entries) == ({}, {})

    def test_one_alone_learns_its_stamp_whoever_makes_it(self):
        store = BulkStore()
        combiner = WriteCombiner(store)
        one, other = combiner.register([("k", Append(b"1")), ("l", Append(b"2"))])
        run_inline(combiner.make(one, 1))
        for each in (one, other):
            stamp = run_inline(combiner.make(each))
            assert stamp is not None
            assert stamp.generation == run_inline(store.read(each.key)).stamp.generation

    def test_one_that_is_given_up_is_never_made(self):
        store = BulkStore()
        combiner = WriteCombiner(store)
        first, gone, last = combiner.register([("k", Append(name)) for name in (b"1", b"2", b"3")])
        combiner.withdraw([gone])
        run_inline(combiner.make(first))
        run_inline(combiner.make(last))
        assert in_order(store, "k") == [b"13"]
        combiner.withdraw([first, gone, last])
        assert (combiner._pending, combiner._locks._entries) == ({}, {})

    def test_all_given_up_leave_nothing(self):
        store = BulkStore()
        combiner = WriteCombiner(store)
        combiner.withdraw(combiner.register([("k", Append(b"1")), ("l", Append(b"2"))]))
        assert combiner._pending == {}
        run_inline(combiner.update("k", Append(b"3")))
        assert in_order(store, "k", "l") == [b"3", b""]

    def test_what_is_asked_for_while_others_are_made_is_made_next(self):
        store = BulkStore()
        combiner = WriteCombiner(store)
        late = []
        ask = lambda: late.extend(combiner.register([("k", Append(b"3"))]))  # noqa: E731
        first, _ = combiner.register([("k", Meanwhile(b"1", ask)), ("k", Append(b"2"))])
        run_inline(combiner.make(first))
        assert in_order(store, "k") == [b"12"]
        assert not late[0].done
        run_inline(combiner.make(late[0]))
        assert in_order(store, "k") == [b"123"]


class TestOtherKeys:
    """The last keys that wait are made along with one, by threads."""

    @pytest.fixture
    def store(self):
        return BulkStore()

    @pytest.fixture
    def combiner(self, store):
        return WriteCombiner(store)

    def test_from_the_end_of_the_line(self, store, combiner):
        waiting = combiner.register([(key, Append(key.encode())) for key in "abcdef"])
        run_inline(combiner.make(waiting[0], 2))
        assert store.together == [["a", "f", "e"]]
        assert [each.done for each in waiting] == [True, False, False, False, True, True]
        for each in waiting:
            run_inline(combiner.make(each, 2))
        assert store.together == [["a", "f", "e"], ["b", "d", "c"]]
        assert in_order(store, *"abcdef") == [key.encode() for key in "abcdef"]
        assert (combiner._pending, combiner._locks._entries) == ({}, {})

    def test_all_of_a_key(self, store, combiner):
        first, *_ = combiner.register([(key, Append(b"%d" % n)) for n, key in enumerate("abab")])
        run_inline(combiner.make(first, 5))
        assert store.together == [["a", "b"]]
        assert in_order(store, "a", "b") == [b"02", b"13"]
        assert store.writes == {"a": 1, "b": 1}

    def test_none_that_somebody_has_come_to(self, store, combiner):
        def come():
            (held,) = combiner.register([("b", Append(b"!"))])
            run_inline(combiner.make(inner, 5))
            assert not held.done
            combiner.withdraw([held])

        outer, inner, *_ = combiner.register(
            [("b", Meanwhile(b"1", come)), ("c", Append(b"2")), ("d", Append(b"3"))]
        )
        run_inline(combiner.make(outer))
        assert store.together == [["c", "d"]]
        assert in_order(store, *"bcd") == [b"1", b"2", b"3"]

    def test_an_error_is_that_of_its_key(self, store, combiner):
        waiting = combiner.register(
            [(key, (Append if key != "b" else FailingAtOnce)(b"1")) for key in "abbc"]
        )
        run_inline(combiner.make(waiting[0], 9))
        assert [each.done for each in waiting] == [True] * 4
        for each in waiting[1:3]:
            with pytest.raises(ValueError, match="no"):
                run_inline(combiner.make(each))
        run_inline(combiner.make(waiting[3]))
        assert in_order(store, *"abc") == [b"1", b"", b"1"]
        assert (combiner._pending, combiner._locks._entries) == ({}, {})

    def test_so_is_one_of_the_store(self):
        faulty = FaultyStore(MemoryStore(SharedMap()))
        combiner = WriteCombiner(store := BulkStore(faulty))
        waiting = combiner.register([(key, Append(b"1")) for key in "abc"])
        faulty.fail("write", OSError("unplugged"), key="a")
        with pytest.raises(OSError, match="unplugged"):
            run_inline(combiner.make(waiting[0], 2))
        for each in waiting[1:]:
            run_inline(combiner.make(each))
        assert in_order(store, *"abc") == [b"", b"1", b"1"]
        assert store.together == [["a", "c", "b"]]

    def test_an_interrupt_of_one_leaves_the_others_to_themselves(self, store, combiner):
        mine, *others = combiner.register(
            [("a", Interrupted(b"")), ("b", Append(b"1")), ("b", Append(b"2")), ("c", Append(b"3"))]
        )
        with pytest.raises(KeyboardInterrupt):
            run_inline(combiner.make(mine, 2))
        assert combiner._locks._entries == {}
        assert sorted(combiner._pending) == ["b", "c"]
        for each in others:
            run_inline(combiner.make(each))
        assert in_order(store, *"abc") == [b"", b"12", b"3"]
        assert (combiner._pending, combiner._locks._entries) == ({}, {})

    def test_a_waiter_that_left_meanwhile_leaves_no_trace(self, store, combiner):
        def interrupt():
            combiner.withdraw([gone])
            raise KeyboardInterrupt

        mine, gone, patient = combiner.register(
            [("a", Meanwhile(b"", interrupt)), ("b", Append(b"1")), ("b", Append(b"2"))]
        )
        with pytest.raises(KeyboardInterrupt):
            run_inline(combiner.make(mine, 1))
        run_inline(combiner.make(patient))
        assert in_order(store, "a", "b") == [b"", b"2"]

    def test_threads_lose_nothing(self, store, combiner):
        keys = [f"{number}" for number in range(16)]
        begin = threading.Barrier(4)

        def work(name):
            begin.wait()
            for _ in range(10):
                waiting = combiner.register([(key, Append(name)) for key in keys])
                for each in waiting:
                    run_inline(combiner.make(each, 3))

        threads = [threading.Thread(target=work, args=(bytes([65 + n]),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [sorted(found) for found in in_order(store, *keys)] == [sorted(b"ABCD" * 10)] * 16
        assert (combiner._pending, combiner._locks._entries) == ({}, {})
        assert store.together


class TestCombiner:
    async def test_a_hundred_updates_of_a_key_cost_two_reads_and_writes(self):
        store = loop_store()
        combiner = WriteCombiner(store)
        await asyncio.gather(*(combiner.update("k", Append(b"%d," % n)) for n in range(100)))
        assert await value(store) == b"".join(b"%d," % n for n in range(100))
        assert store.writes["k"] <= 3
        assert store.reads["k"] <= 4

    async def test_keys_do_not_wait_for_each_other(self):
        store = loop_store()
        combiner = WriteCombiner(store)
        await asyncio.gather(*(combiner.update(str(n), Append(b"x")) for n in range(9)))
        assert store.writes.total() == 9

    def test_threads_lose_nothing(self):
        store = CountingStore(MemoryStore(SharedMap()))
        combiner = WriteCombiner(store)
        begin = threading.Barrier(8)

        def work(name):
            begin.wait()
            for _ in range(200):
                run_inline(combiner.update("k", Append(name)))

        threads = [threading.Thread(target=work, args=(bytes([65 + n]),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = run_inline(value(store))
        assert sorted(found) == sorted(b"ABCDEFGH" * 200)

    async def test_a_failure_reaches_all_callers_that_took_part(self):
        store = loop_store()
        combiner = WriteCombiner(store)
        results = await asyncio.gather(
            *(combiner.update("k", Failing(b"x")) for _ in range(4)), return_exceptions=True
        )
        assert [type(result) for result in results] == [ValueError] * 4
        await combiner.update("k", Append(b"y"))
        assert await value(store) == b"y"

    async def test_the_stamp_is_given_to_a_single_writer(self):
        store = loop_store()
        combiner = WriteCombiner(store)
        stamp = await combiner.update("k", Append(b"y"))
        assert stamp is not None
        assert stamp.generation == (await store.read("k")).stamp.generation
        stamps = await asyncio.gather(*(combiner.update("k", Append(b"z")) for _ in range(4)))
        assert stamps[1:] == [None] * 3

    @pytest.mark.parametrize("cancelled", [0, 1, 2])
    async def test_one_that_is_cancelled_cancels_no_other(self, cancelled):
        store = loop_store()
        combiner = WriteCombiner(store)
        names = [b"a", b"b", b"c"]
        tasks = [asyncio.create_task(combiner.update("k", Slow(name))) for name in names]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks[cancelled].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[cancelled], asyncio.CancelledError)
        assert not [r for n, r in enumerate(results) if n != cancelled and isinstance(r, Exception)]
        found = await value(store)
        others = [name[0] for n, name in enumerate(names) if n != cancelled]
        assert [byte for byte in found if byte in others] == others
        await combiner.update("k", Append(b"d"))
        assert await value(store) == found + b"d"

    def test_a_forked_child_does_not_store_what_its_parent_will(self):
        store = MemoryStore(SharedMap())
        combiner = WriteCombiner(store)
        held, free = threading.Event(), threading.Event()

        class Holding(Append):
            async def apply(self, stored):
                held.set()
                free.wait()
                return await super().apply(stored)

            def then(self, later):
                raise AssertionError(later)

        threads = [
            threading.Thread(target=lambda update=update: run_inline(combiner.update("k", update)))
            for update in (Holding(b"1"), Append(b"2"))
        ]
        threads[0].start()
        held.wait()
        threads[1].start()
        while not combiner._pending:
            pass
        child = os.fork()
        if child == 0:
            run_inline(combiner.update("k", Append(b"c")))
            os._exit(0 if run_inline(value(store)) == b"c" else 1)
        free.set()
        for thread in threads:
            thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert run_inline(value(store)) == b"12"

    async def test_a_writer_that_left_while_another_stored_is_forgotten_with_it(
        self,
    ):
        store = loop_store()
        combiner = WriteCombiner(store)
        first = asyncio.create_task(combiner.update("k", Slow(b"1")))
        await asyncio.sleep(0)
        names = [b"a", b"b", b"c"]
        leader, gone, patient = [
            asyncio.create_task(combiner.update("k", Slow(name))) for name in names
        ]
        await first
        for _ in range(3):  # the leader takes all three in hand
            await asyncio.sleep(0)
        assert not combiner._pending
        gone.cancel()
        await asyncio.sleep(0)
        leader.cancel()
        await patient
        assert await value(store) == b"1c"


def test_memory_that_lasts_may_be_given_to_an_array_in_memory():
    array = ts.array(np.zeros(8, "int32"))
    given = BufferOwnership(lasting=True)
    values = np.full(8, 2, "int32")
    start(True, lambda: array._driver.write_buffer(array._transform, values, given)).result()
    assert array.read().result().tolist() == [2] * 8


@pytest.mark.parametrize("inline", [True, False])
class TestTaken:
    """The caller that gave the values learns that they are read no more, and may change them."""

    def told(self, array, values):
        calls = []
        given = BufferOwnership(taken=lambda: calls.append(1))
        body = lambda: array._driver.write_buffer(array._transform, values, given)  # noqa: E731
        start(array._driver.inline, body).result()
        return bool(calls)

    @pytest.mark.parametrize("view", [slice(None), slice(1, 7), slice(0, 4), slice(0, 0)])
    def test_is_called_at_the_end_at_the_latest(self, inline, view):
        array = created(counting(inline), [8], [4])
        values = np.arange(1, 9, dtype="uint8")[view]
        assert self.told(array[view], values) == (values.size > 0)

    def test_of_shards(self, inline):
        codec = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2]}}
        grid = {"name": "regular", "configuration": {"chunk_shape": [4]}}
        members = {"metadata": {"chunk_grid": grid, "codecs": [codec]}}
        array = opened(counting(inline), members=members, create=True, dtype="uint8", shape=[8])
        assert self.told(array, np.arange(8, dtype="uint8"))
        assert self.told(array[1:7], np.arange(6, dtype="uint8"))
