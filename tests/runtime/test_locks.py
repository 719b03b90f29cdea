"""Locks by key, and waiting for what another caller fetches."""

import asyncio
import os
import threading
from functools import partial

import pytest

from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex
from tensorstore_py._runtime.single_flight import SingleFlight
from tensorstore_py.plugin.kvstore import GroupCommit, PendingChange

both = pytest.mark.parametrize("inline", [True, False])


def run_threads(*bodies):
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class TestMutex:
    def test_excludes(self):
        mutex = Mutex()
        total = [0]

        def add():
            for _ in range(200):
                with mutex:
                    seen = total[0]
                    total[0] = seen + 1

        run_threads(*[add] * 4)
        assert total == [800]

    def test_is_free_after_an_error(self):
        mutex = Mutex()
        with pytest.raises(KeyError), mutex:
            raise KeyError
        with mutex:
            pass


async def enter(lock, key, inside):
    async with lock.acquire(key):
        inside.append(key)


class TestKeyedLock:
    @both
    def test_one_holder_a_key(self, inline):
        lock = KeyedLock(inline=inline)
        inside: dict[int, int] = dict.fromkeys(range(3), 0)
        worst: list[int] = []

        async def work(step):
            key = step % 3
            async with lock.acquire(key):
                inside[key] += 1
                worst.append(inside[key])
                if not inline:
                    await asyncio.sleep(0)
                inside[key] -= 1

        start(inline, lambda: fan_out(inline, range(300), work, count=300, width=8)).result()
        assert worst == [1] * 300
        assert not lock._entries

    def test_other_keys_do_not_wait(self):
        lock = KeyedLock(inline=True)

        async def hold_two():
            async with lock.acquire("a"), lock.acquire("b"):
                return "in"

        assert run_inline(hold_two()) == "in"

    @both
    def test_an_error_inside_lets_the_next_one_in(self, inline):
        lock = KeyedLock(inline=inline)

        async def fail():
            async with lock.acquire("a"):
                raise KeyError

        with pytest.raises(KeyError):
            start(inline, fail).result()
        inside: list[str] = []
        start(inline, lambda: enter(lock, "a", inside)).result()
        assert inside == ["a"]

    async def test_a_cancelled_waiter_leaves_no_trace(self):
        lock = KeyedLock(inline=False)
        async with lock.acquire("a"):
            waiting = asyncio.ensure_future(enter(lock, "a", []))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert not lock._entries
        await enter(lock, "a", [])


class TestTryAcquire:
    """Keys acquired without waiting."""

    @pytest.fixture
    def lock(self):
        return KeyedLock(inline=True)

    def test_takes_those_that_are_free(self, lock):
        assert lock.try_acquire("ab") == ["a", "b"]
        assert lock.try_acquire(iter(["a", "c", "b", "d", "e"]), 2) == ["c", "d"]
        assert lock.try_acquire([]) == []
        lock.release(["a", "b", "c", "d"])
        assert not lock._entries

    def test_others_wait_until_they_are_released(self, lock):
        keys = lock.try_acquire("ab")
        inside: list[str] = []
        threads = [
            threading.Thread(target=run_inline, args=(enter(lock, key, inside),)) for key in "aab"
        ]
        for thread in threads:
            thread.start()
        while [entry.users for entry in lock._entries.values()] != [3, 2]:
            pass
        run_inline(enter(lock, "c", inside))
        assert inside == ["c"]
        lock.release(keys)
        for thread in threads:
            thread.join()
        assert sorted(inside) == ["a", "a", "b", "c"]
        assert not lock._entries

    def test_they_are_free_in_a_forked_child(self, lock):
        keys = lock.try_acquire("a")
        child = os.fork()
        if child == 0:
            inside: list[str] = []
            run_inline(enter(lock, "a", inside))
            os._exit(0 if inside == ["a"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        lock.release(keys)


class TestSingleFlight:
    @pytest.fixture
    def flight(self):
        made: SingleFlight[int] = SingleFlight()
        return made

    def test_threads_wait_until_it_is_complete(self, flight):
        seen = []

        def wait(waiter):
            run_inline(flight.wait(waiter))
            seen.append(flight.found)

        waiters = [flight.register(inline=True) for _ in range(3)]
        threads = [threading.Thread(target=wait, args=(each,)) for each in waiters]
        for thread in threads:
            thread.start()
        flight.found = 5
        flight.complete()
        for thread in threads:
            thread.join()
        assert seen == [5] * 3

    async def test_tasks_wait_and_one_that_is_cancelled_does_not_disturb_others(self, flight):
        tasks = [asyncio.create_task(flight.wait(flight.register(inline=False))) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        flight.complete()
        await asyncio.gather(*tasks[1:])

    def test_waiting_may_begin_when_it_is_complete(self, flight):
        waiter = flight.register(inline=True)
        flight.complete()
        run_inline(flight.wait(waiter))


# Group commit: what waits while a commit is made is made by the next one.

WRITERS = width() + 30


class Log(GroupCommit[PendingChange]):
    """Remembers how many changes each commit made; the first one goes on when all wait."""

    def __init__(self, *, inline: bool) -> None:
        super().__init__(inline=inline)
        self.sizes: list[int] = []
        self.begun = 0
        self.counting = threading.Lock()
        self.all_begun = threading.Event()

    async def write(self) -> None:
        with self.counting:
            self.begun += 1
            if self.begun == WRITERS:
                self.all_begun.set()
        await self.make(PendingChange())

    async def commit(self, batch: list[PendingChange]) -> None:
        if not self.sizes:
            begun = partial(self.all_begun.wait, 120)
            all_begun = begun() if self._inline else await asyncio.to_thread(begun)
            assert all_begun, f"only {self.begun} of {WRITERS} were begun"
        self.sizes.append(len(batch))


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "loop"])
def test_more_writers_than_threads_join_one_commit(inline: bool) -> None:
    log = Log(inline=inline)

    futures = [start(inline, log.write) for _ in range(WRITERS)]
    futures[-1].force()
    for future in futures:
        future.result(timeout=120)

    assert sum(log.sizes) == WRITERS
    assert len(log.sizes) <= 1 + width()


def test_an_error_is_that_of_each_writer() -> None:
    class Failing(Log):
        async def commit(self, batch: list[PendingChange]) -> None:
            await super().commit(batch)
            raise OSError("unplugged")

    log = Failing(inline=True)
    futures = [start(True, log.write) for _ in range(WRITERS)]
    futures[-1].force()
    for future in futures:
        with pytest.raises(OSError, match="unplugged"):
            future.result(timeout=120)
    assert sum(log.sizes) == WRITERS
