"""Operations that are cancelled wherever they are: nothing half-written, held or left running.

On a loop an operation is cancelled after so many turns, one more each time, until it gets through;
CPU work is done at once, so that the turns are the same ones every time. Inline work is cancelled
by the store, at its nth operation.
"""

import asyncio
from contextlib import suppress
from itertools import count

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, NonAtomicMemoryStore, SharedMap
from tensorstore_py.testing import LoopStore
from tests.chunked.stores import Hooked, opened
from tests.internals import do_computations_at_once, leave_to_callers
from tests.runtime.processes import library_loop

OLD = np.arange(1, 65, dtype="int16").reshape(8, 8)
NEW = OLD + 100
LIMIT = 1200


class SlowStore(LoopStore):
    """Suspends after the operation, too: the answer is on its way."""

    async def read(self, *args, **named):
        result = await super().read(*args, **named)
        await asyncio.sleep(0)
        return result

    async def write(self, *args, **named):
        stamp = await super().write(*args, **named)
        await asyncio.sleep(0)
        return stamp


@pytest.fixture
def at_once(monkeypatch):
    do_computations_at_once(monkeypatch)


class World:
    """An array with old values in a store, and one with new ones in another."""

    def __init__(self, store, atomic, cached, limit=LIMIT):
        self.memory = (MemoryStore if atomic else NonAtomicMemoryStore)(SharedMap())
        self.store = store(self.memory)
        self.context = ts.Context(
            {
                "cache_pool": {"total_bytes_limit": 10**6 if cached else 0},
                "memory_limit": {"limit_bytes": limit},
            }
        )
        self.array = self.made("a/", [4, 4], [2, 2])
        self.other = self.made("b/", [3, 8], [3, 4])
        self.array.write(OLD).result()
        self.other.write(NEW).result()
        self.before = self.kept()

    def made(self, path, chunk, inner):
        layout = ts.ChunkLayout(write_chunk_shape=chunk, read_chunk_shape=inner)
        return opened(
            self.store,
            path=path,
            context=self.context,
            create=True,
            dtype="int16",
            shape=[8, 8],
            chunk_layout=layout,
        )

    def kept(self):
        entries = self.memory._shared.entries
        return {key: bytes(value) for key, (value, _) in entries.items()}

    def begin_again(self):
        for key, value in self.before.items():
            self.memory._shared.put(key, value)
        for key in set(self.memory._shared.entries) - set(self.before):
            self.memory._shared.put(key, None)
        self.array = self.array.resolve().result()

    def check(self, after):
        """Each key is old or new, and nothing is held."""
        for key, value in self.kept().items():
            assert value in (self.before.get(key), after.get(key)), key
        assert set(self.kept()) >= set(self.before) & set(after)
        driver = self.array._driver
        assert driver.memory.held == 0
        assert driver.memory.blocks.held == 0
        assert driver._shared_writers.combiner._pending == {}
        assert driver._shared_writers.combiner._locks._entries == {}
        assert [each for each in driver._cache._entries.values() if each.fetch or each.writes] == []


def write(array, _):
    return lambda: array.write(NEW)


def write_in_parts(array, _):
    return lambda: array[1:7, 1:7].write(NEW[1:7, 1:7])


def copy(array, other):
    return lambda: array[1:].write(other[1:])


def read(array, _):
    return array.read


def resize(array, _):
    return lambda: array.resize(exclusive_max=[3, 3])


def append(array, _):
    return lambda: array.append(NEW)


def commit(array, _):
    transaction = ts.Transaction()
    array.with_transaction(transaction)[1:7, 1:7].write(NEW[1:7, 1:7]).result()
    return transaction.commit_async


PREPARED = [write, write_in_parts, copy, read, resize, append, commit]
KINDS = pytest.mark.parametrize("prepare", PREPARED, ids=lambda each: each.__name__)
ATOMIC = pytest.mark.parametrize("atomic", [False, True], ids=["", "atomic"])
CACHED = pytest.mark.parametrize("cached", [False, True], ids=["", "cached"])


def reached(world, prepare):
    """What is stored when it is not cancelled; the world is as before then."""
    prepare(world.array, world.other)().result()
    after = world.kept()
    world.begin_again()
    return after


@KINDS
@ATOMIC
@CACHED
@pytest.mark.usefixtures("at_once")
def test_after_any_number_of_turns_of_the_loop(prepare, atomic, cached):
    world = World(SlowStore, atomic, cached)
    after = reached(world, prepare)
    assert (after == world.before) == (prepare is read)

    async def cancelled(begin, turns):
        loop = asyncio.get_running_loop()
        before = asyncio.all_tasks(loop)
        future = begin()
        for _ in range(turns):
            await asyncio.sleep(0)
        was_there = not future.cancel()
        left = asyncio.all_tasks(loop) - before
        if left:
            await asyncio.wait(left)
        return was_there

    for turns in count():
        begin = prepare(world.array, world.other)
        on_loop = asyncio.run_coroutine_threadsafe(cancelled(begin, turns), library_loop())
        if on_loop.result():
            break
        world.check(after)
        world.begin_again()
    assert turns > 5
    world.check(after)
    assert world.kept() == after
    world.begin_again()
    np.testing.assert_array_equal(world.array.read().result(), OLD)


@KINDS
@ATOMIC
@CACHED
def test_inline_at_any_operation_of_the_store(prepare, atomic, cached, monkeypatch):
    leave_to_callers(monkeypatch)  # no other thread is still at work when the call is over
    world = World(Hooked, atomic, cached, 10**6)
    after = reached(world, prepare)
    numbers: list[int] = []

    def cancel(*_):
        numbers[-1] -= 1
        if numbers[-1] == 0:
            future.cancel()

    for number in count(1):
        begin = prepare(world.array, world.other)
        numbers.append(number)
        future = begin()
        world.store.before = world.store.after = cancel
        with suppress(asyncio.CancelledError):
            future.result()
        world.store.before = world.store.after = lambda *_: None
        world.check(after)
        if numbers[-1] > 0:
            break
        world.begin_again()
    assert number > 2
    assert world.kept() == after
