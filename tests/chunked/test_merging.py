import asyncio
import os
import threading

import pytest

from tensorstore_py._chunked.merging import MergedUpdates
from tensorstore_py._interface.update import Update
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, LoopStore


class Append(Update):
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


async def test_a_hundred_updates_of_a_key_cost_two_reads_and_writes():
    store = loop_store()
    merged = MergedUpdates(store)
    await asyncio.gather(*(merged.update("k", Append(b"%d," % n)) for n in range(100)))
    assert await value(store) == b"".join(b"%d," % n for n in range(100))
    assert store.writes["k"] <= 3
    assert store.reads["k"] <= 4


async def test_keys_do_not_wait_for_each_other():
    store = loop_store()
    merged = MergedUpdates(store)
    await asyncio.gather(*(merged.update(str(n), Append(b"x")) for n in range(9)))
    assert store.writes.total() == 9


def test_threads_lose_nothing():
    store = CountingStore(MemoryStore(SharedMap()))
    merged = MergedUpdates(store)
    begin = threading.Barrier(8)

    def work(name):
        begin.wait()
        for _ in range(200):
            run_inline(merged.update("k", Append(name)))

    threads = [threading.Thread(target=work, args=(bytes([65 + n]),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = run_inline(value(store))
    assert sorted(found) == sorted(b"ABCDEFGH" * 200)


async def test_a_failure_is_everybodys_who_was_part_of_it():
    store = loop_store()
    merged = MergedUpdates(store)
    results = await asyncio.gather(
        *(merged.update("k", Failing(b"x")) for _ in range(4)), return_exceptions=True
    )
    assert [type(result) for result in results] == [ValueError] * 4
    await merged.update("k", Append(b"y"))
    assert await value(store) == b"y"


async def test_the_stamp_is_given_to_who_was_alone():
    store = loop_store()
    merged = MergedUpdates(store)
    stamp = await merged.update("k", Append(b"y"))
    assert stamp is not None
    assert stamp.generation == (await store.read("k")).stamp.generation
    stamps = await asyncio.gather(*(merged.update("k", Append(b"z")) for _ in range(4)))
    assert stamps[1:] == [None] * 3


@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_one_that_is_cancelled_takes_nobody_along(cancelled):
    store = loop_store()
    merged = MergedUpdates(store)
    names = [b"a", b"b", b"c"]
    tasks = [asyncio.create_task(merged.update("k", Slow(name))) for name in names]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks[cancelled].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[cancelled], asyncio.CancelledError)
    assert not [r for n, r in enumerate(results) if n != cancelled and isinstance(r, Exception)]
    found = await value(store)
    others = [name[0] for n, name in enumerate(names) if n != cancelled]
    assert [byte for byte in found if byte in others] == others
    await merged.update("k", Append(b"d"))
    assert await value(store) == found + b"d"


def test_a_forked_child_does_not_store_what_its_parent_will():
    store = MemoryStore(SharedMap())
    merged = MergedUpdates(store)
    held, free = threading.Event(), threading.Event()

    class Holding(Append):
        async def apply(self, stored):
            held.set()
            free.wait()
            return await super().apply(stored)

        def then(self, later):
            raise AssertionError(later)

    threads = [
        threading.Thread(target=lambda update=update: run_inline(merged.update("k", update)))
        for update in (Holding(b"1"), Append(b"2"))
    ]
    threads[0].start()
    held.wait()
    threads[1].start()
    while not merged._waiting:
        pass
    child = os.fork()
    if child == 0:
        run_inline(merged.update("k", Append(b"c")))
        os._exit(0 if run_inline(value(store)) == b"c" else 1)
    free.set()
    for thread in threads:
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run_inline(value(store)) == b"12"


async def test_who_went_while_another_stored_theirs_is_forgotten_with_that_one():
    store = loop_store()
    merged = MergedUpdates(store)
    first = asyncio.create_task(merged.update("k", Slow(b"1")))
    await asyncio.sleep(0)
    names = [b"a", b"b", b"c"]
    leader, gone, patient = [asyncio.create_task(merged.update("k", Slow(name))) for name in names]
    await first
    for _ in range(3):  # the leader takes all three in hand
        await asyncio.sleep(0)
    assert not merged._waiting
    gone.cancel()
    await asyncio.sleep(0)
    leader.cancel()
    await patient
    assert await value(store) == b"1c"
