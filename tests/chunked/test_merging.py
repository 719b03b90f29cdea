import asyncio
import os
import threading

import pytest

from tensorstore_py._chunked.merging import MergedUpdates
from tensorstore_py._interface.update import Update
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, FaultyStore, LoopStore


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


class Rows(CountingStore):
    """Notes which keys are updated in one go."""

    def __init__(self, base=None):
        super().__init__(MemoryStore(SharedMap()) if base is None else base)
        self.rows = []

    async def update_values(self, keys, updates):
        self.rows.append(list(keys))
        return await super().update_values(keys, updates)


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


class TestAnnounced:
    """What waits is made by whoever comes first, in the order in which it was asked for."""

    def test_nothing_is_made_before(self):
        store = Rows()
        merged = MergedUpdates(store)
        merged.announce([("k", Append(b"1")), ("l", Append(b"2"))])
        assert (store.reads, store.writes) == ({}, {})
        assert merged.crowded(1)
        assert not merged.crowded(2)

    def test_the_last_one_makes_them_all(self):
        store = Rows()
        merged = MergedUpdates(store)
        waiting = merged.announce([("k", Append(b"%d" % n)) for n in range(5)])
        assert run_inline(merged.make(waiting[-1])) is None
        assert in_order(store, "k") == [b"01234"]
        assert [each.done for each in waiting] == [True] * 5
        for each in waiting:
            assert run_inline(merged.make(each)) is None
        assert store.writes == {"k": 1}
        assert (merged._waiting, merged._turns) == ({}, {})

    def test_one_alone_learns_its_stamp_whoever_makes_it(self):
        store = Rows()
        merged = MergedUpdates(store)
        one, other = merged.announce([("k", Append(b"1")), ("l", Append(b"2"))])
        run_inline(merged.make(one, 1))
        for each in (one, other):
            stamp = run_inline(merged.make(each))
            assert stamp is not None
            assert stamp.generation == run_inline(store.read(each.key)).stamp.generation

    def test_one_that_is_given_up_is_never_made(self):
        store = Rows()
        merged = MergedUpdates(store)
        first, gone, last = merged.announce([("k", Append(name)) for name in (b"1", b"2", b"3")])
        merged.give_up([gone])
        run_inline(merged.make(first))
        run_inline(merged.make(last))
        assert in_order(store, "k") == [b"13"]
        merged.give_up([first, gone, last])
        assert (merged._waiting, merged._turns) == ({}, {})

    def test_all_given_up_leave_nothing(self):
        store = Rows()
        merged = MergedUpdates(store)
        merged.give_up(merged.announce([("k", Append(b"1")), ("l", Append(b"2"))]))
        assert merged._waiting == {}
        run_inline(merged.update("k", Append(b"3")))
        assert in_order(store, "k", "l") == [b"3", b""]

    def test_what_is_asked_for_while_others_are_made_is_made_next(self):
        store = Rows()
        merged = MergedUpdates(store)
        late = []
        ask = lambda: late.extend(merged.announce([("k", Append(b"3"))]))  # noqa: E731
        first, _ = merged.announce([("k", Meanwhile(b"1", ask)), ("k", Append(b"2"))])
        run_inline(merged.make(first))
        assert in_order(store, "k") == [b"12"]
        assert not late[0].done
        run_inline(merged.make(late[0]))
        assert in_order(store, "k") == [b"123"]


class TestAlong:
    """The last keys that wait are made along with one, by threads."""

    @pytest.fixture
    def store(self):
        return Rows()

    @pytest.fixture
    def merged(self, store):
        return MergedUpdates(store)

    def test_from_the_end_of_the_line(self, store, merged):
        waiting = merged.announce([(key, Append(key.encode())) for key in "abcdef"])
        run_inline(merged.make(waiting[0], 2))
        assert store.rows == [["a", "f", "e"]]
        assert [each.done for each in waiting] == [True, False, False, False, True, True]
        for each in waiting:
            run_inline(merged.make(each, 2))
        assert store.rows == [["a", "f", "e"], ["b", "d", "c"]]
        assert in_order(store, *"abcdef") == [key.encode() for key in "abcdef"]
        assert (merged._waiting, merged._turns) == ({}, {})

    def test_all_of_a_key(self, store, merged):
        first, *_ = merged.announce([(key, Append(b"%d" % n)) for n, key in enumerate("abab")])
        run_inline(merged.make(first, 5))
        assert store.rows == [["a", "b"]]
        assert in_order(store, "a", "b") == [b"02", b"13"]
        assert store.writes == {"a": 1, "b": 1}

    def test_none_that_somebody_has_come_to(self, store, merged):
        def come():
            (held,) = merged.announce([("b", Append(b"!"))])
            run_inline(merged.make(inner, 5))
            assert not held.done
            merged.give_up([held])

        outer, inner, *_ = merged.announce(
            [("b", Meanwhile(b"1", come)), ("c", Append(b"2")), ("d", Append(b"3"))]
        )
        run_inline(merged.make(outer))
        assert store.rows == [["c", "d"]]
        assert in_order(store, *"bcd") == [b"1", b"2", b"3"]

    def test_an_error_is_that_of_its_key(self, store, merged):
        waiting = merged.announce(
            [(key, (Append if key != "b" else FailingAtOnce)(b"1")) for key in "abbc"]
        )
        run_inline(merged.make(waiting[0], 9))
        assert [each.done for each in waiting] == [True] * 4
        for each in waiting[1:3]:
            with pytest.raises(ValueError, match="no"):
                run_inline(merged.make(each))
        run_inline(merged.make(waiting[3]))
        assert in_order(store, *"abc") == [b"1", b"", b"1"]
        assert (merged._waiting, merged._turns) == ({}, {})

    def test_so_is_one_of_the_store(self):
        faulty = FaultyStore(MemoryStore(SharedMap()))
        merged = MergedUpdates(store := Rows(faulty))
        waiting = merged.announce([(key, Append(b"1")) for key in "abc"])
        faulty.fail("write", OSError("unplugged"), key="a")
        with pytest.raises(OSError, match="unplugged"):
            run_inline(merged.make(waiting[0], 2))
        for each in waiting[1:]:
            run_inline(merged.make(each))
        assert in_order(store, *"abc") == [b"", b"1", b"1"]
        assert store.rows == [["a", "c", "b"]]

    def test_of_one_who_is_interrupted_the_others_are_left_to_themselves(self, store, merged):
        mine, *others = merged.announce(
            [("a", Interrupted(b"")), ("b", Append(b"1")), ("b", Append(b"2")), ("c", Append(b"3"))]
        )
        with pytest.raises(KeyboardInterrupt):
            run_inline(merged.make(mine, 2))
        assert merged._turns == {}
        assert sorted(merged._waiting) == ["b", "c"]
        for each in others:
            run_inline(merged.make(each))
        assert in_order(store, *"abc") == [b"", b"12", b"3"]
        assert (merged._waiting, merged._turns) == ({}, {})

    def test_one_who_went_meanwhile_is_not_left(self, store, merged):
        def interrupt():
            merged.give_up([gone])
            raise KeyboardInterrupt

        mine, gone, patient = merged.announce(
            [("a", Meanwhile(b"", interrupt)), ("b", Append(b"1")), ("b", Append(b"2"))]
        )
        with pytest.raises(KeyboardInterrupt):
            run_inline(merged.make(mine, 1))
        run_inline(merged.make(patient))
        assert in_order(store, "a", "b") == [b"", b"2"]

    def test_threads_lose_nothing(self, store, merged):
        keys = [f"{number}" for number in range(16)]
        begin = threading.Barrier(4)

        def work(name):
            begin.wait()
            for _ in range(10):
                waiting = merged.announce([(key, Append(name)) for key in keys])
                for each in waiting:
                    run_inline(merged.make(each, 3))

        threads = [threading.Thread(target=work, args=(bytes([65 + n]),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [sorted(found) for found in in_order(store, *keys)] == [sorted(b"ABCD" * 10)] * 16
        assert (merged._waiting, merged._turns) == ({}, {})
        assert store.rows
