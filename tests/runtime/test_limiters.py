"""Limits on threads, tasks, bytes and rates."""

import asyncio
import os
from threading import Barrier, Lock, Thread

import pytest

import tensorstore_py as ts
from tensorstore_py.plugin.http import RateLimits
from tensorstore_py.plugin.kvstore import Semaphore, ThreadLimiter
from tests.runtime.processes import run_inline


def run_all(*bodies):
    threads = [Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def memory_budget(limit):
    """What the context resource `memory_limit` gives."""
    return ts.Context({"memory_limit": {"limit_bytes": limit}})["memory_limit"].value


def take(budget, size):
    run_inline(budget.acquire(True, size))


class Peak:
    """Counts how many are inside."""

    def __init__(self):
        self.inside = self.highest = 0
        self.lock = Lock()

    def enter(self, weight=1):
        with self.lock:
            self.inside += weight
            self.highest = max(self.highest, self.inside)

    def leave(self, weight=1):
        with self.lock:
            self.inside -= weight


def test_threads_inside_never_exceed_the_places():
    places, peak = ThreadLimiter(3), Peak()
    barrier = Barrier(8)

    def body():
        barrier.wait()
        for _ in range(200):
            with places:
                peak.enter()
                peak.leave()

    run_all(*[body] * 8)
    assert peak.highest <= 3
    assert places.available == places.limit == 3


def test_a_caller_that_must_not_wait_takes_a_place_if_there_is_one():
    places = ThreadLimiter(2)

    assert [places.try_acquire() for _ in range(3)] == [True, True, False]
    places.release()
    assert places.try_acquire()


def test_a_place_is_given_back_by_an_error():
    places = ThreadLimiter(1)
    with pytest.raises(KeyError), places:
        raise KeyError
    assert places.available == 1
    places.acquire()
    assert places.available == 0
    places.release()
    assert places.available == 1


async def test_tasks_inside_never_exceed_the_slots():
    slots, peak = Semaphore(2), Peak()

    async def body():
        async with slots:
            peak.enter()
            await asyncio.sleep(0)
            peak.leave()

    await asyncio.gather(*(body() for _ in range(20)))
    assert peak.highest == slots.limit == 2


async def test_a_cancelled_task_frees_its_slot_and_its_turn():
    slots = Semaphore(1)
    order = []

    async def body(name):
        async with slots:
            order.append(name)
            await asyncio.sleep(3600 if name == "holder" else 0)

    holder = asyncio.ensure_future(body("holder"))
    await asyncio.sleep(0)
    waiter, last = (asyncio.ensure_future(body(name)) for name in ("waiter", "last"))
    await asyncio.sleep(0)
    waiter.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiter, return_exceptions=True)
    await last
    assert order == ["holder", "last"]


def test_bytes_in_flight_never_exceed_the_limit():
    budget, peak = memory_budget(100), Peak()
    barrier = Barrier(6)

    def body(size):
        barrier.wait()
        for _ in range(100):
            take(budget, size)
            peak.enter(size)
            peak.leave(size)
            budget.release(size)

    run_all(*(lambda size=size: body(size) for size in (10, 30, 40, 50, 60, 100)))
    assert peak.highest <= 100
    assert budget.held == 0


def test_what_is_larger_than_the_limit_goes_alone():
    budget = memory_budget(10)
    take(budget, 25)
    entered = []

    def body():
        take(budget, 1)
        entered.append(budget.held)
        budget.release(1)

    thread = Thread(target=body)
    thread.start()
    budget.release(25)
    thread.join(60)
    assert entered == [1]


def test_blocks_have_half_and_leave_the_other_to_chunks():
    budget = memory_budget(100)
    blocks = budget.blocks
    assert blocks.limit == 50
    take(budget, 80)
    entered = []

    def take_on_thread(of, size):
        def body():
            take(of, size)
            entered.append(size)

        thread = Thread(target=body)
        thread.start()
        return thread

    waiting = [take_on_thread(blocks, 30)]
    while not blocks._ledger.waiting[0]:
        pass
    waiting.append(take_on_thread(budget, 10))  # would fit, but there is a block to come
    while not blocks._ledger.waiting[1]:
        pass
    assert entered == []
    budget.release(80)
    for thread in waiting:
        thread.join(60)
    assert (budget.held, blocks.held) == (10, 30)
    budget.release(10)
    take(budget, 1000)  # the only chunk
    blocks.release(30)
    budget.release(1000)
    take(budget, 60)
    take(budget, 40)
    assert budget.held == 100


def test_blocks_and_chunks_go_on_at_any_limit():
    budget, peak = memory_budget(100), Peak()
    barrier = Barrier(4)

    def body(block, chunk):
        barrier.wait()
        for _ in range(50):
            take(budget.blocks, block)
            peak.enter(block)
            take(budget, chunk)
            peak.enter(chunk)
            peak.leave(chunk)
            budget.release(chunk)
            peak.leave(block)
            budget.blocks.release(block)

    run_all(*(lambda sizes=sizes: body(*sizes) for sizes in ((50, 50), (25, 30), (10, 40), (5, 5))))
    assert peak.highest <= 100
    assert budget.held == budget.blocks.held == 0


async def test_first_come_first_served_on_a_loop():
    budget = memory_budget(10)
    await budget.acquire(False, 8)
    order = []

    async def body(name, size):
        await budget.acquire(False, size)
        order.append(name)
        budget.release(size)

    tasks = []
    for name, size in (("large", 9), ("small", 1)):
        tasks.append(asyncio.ensure_future(body(name, size)))
        await asyncio.sleep(0)
    assert order == []  # the small one would fit, but would starve the large one
    budget.release(8)
    await asyncio.gather(*tasks)
    assert order == ["large", "small"]
    assert budget.held == 0


async def test_a_cancelled_waiter_leaves_the_queue():
    budget = memory_budget(10)
    take(budget, 10)
    waiter = asyncio.ensure_future(budget.acquire(False, 10))
    follower = asyncio.ensure_future(budget.acquire(False, 1))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    budget.release(10)
    await follower
    assert budget.held == 1


async def test_a_waiter_cancelled_when_its_turn_has_come_gives_it_back():
    budget = memory_budget(10)
    take(budget, 10)
    waiter = asyncio.ensure_future(budget.acquire(False, 10))
    await asyncio.sleep(0)
    budget.release(10)  # it is let in, but does not know yet
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    assert budget.held == 0


def test_what_cannot_exceed_the_limit_is_not_counted():
    budget = memory_budget(6400)
    assert not budget.matters(True, 100)
    assert budget.matters(True, 101)
    assert budget.matters(False, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_finds_everything_free():
    places, budget = ThreadLimiter(1), memory_budget(5)
    places.acquire()
    take(budget, 5)
    child = os.fork()
    if child == 0:
        os._exit(0 if places.available == 1 and budget.held == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    places.release()


class Clock:
    """Stands still but for the sleeps, which are recorded and pass at once."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rate(clock):
    return lambda rate, doubling_s=0.0: (
        RateLimits(rate, None, doubling_s, now=lambda: clock.now, sleep=clock.sleep).read
    )


async def test_turns_are_as_far_apart_as_the_rate_says(rate, clock):
    rate = rate(5)

    for _ in range(20):
        await rate.acquire()

    assert clock.slept == pytest.approx([0.2] * 20)


async def test_what_was_not_used_may_be_used_later(rate, clock):
    rate = rate(5)
    clock.now += 2

    for _ in range(12):
        await rate.acquire()

    assert clock.slept == pytest.approx([0.2, 0.2])


async def test_but_not_for_ever(rate, clock):
    rate = rate(5000)
    clock.now += 3600

    for _ in range(2001):
        await rate.acquire()

    assert len(clock.slept) == 1


async def test_turns_come_in_the_order_of_asking():
    wakes = []

    async def sleep(seconds):
        wakes.append(seconds)

    rate = RateLimits(10, now=lambda: 0.0, sleep=sleep).read
    assert rate is not None

    await asyncio.gather(*(rate.acquire() for _ in range(4)))

    assert wakes == pytest.approx([0.1, 0.2, 0.3, 0.4])


async def test_a_cancelled_caller_gives_the_turn_back():
    asleep = asyncio.Event()
    waits = []

    async def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            asleep.set()
            await asyncio.Event().wait()

    rate = RateLimits(10, now=lambda: 0.0, sleep=sleep).read
    assert rate is not None
    first = asyncio.create_task(rate.acquire())
    await asleep.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    await rate.acquire()

    assert waits == pytest.approx([0.1, 0.1])


async def test_a_rate_that_doubles(rate, clock):
    rate = rate(10, 60.0)
    counts = [0, 0, 0]

    while clock.now < 1180:
        await rate.acquire()
        counts[min(2, int((clock.now - 1000) // 60))] += 1

    # 10 a second at the start of the first minute, 20 at its end, 40 after the second.
    assert counts[0] == pytest.approx(60 * 10 / 0.6931, rel=0.01)
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.01)
    assert counts[2] == pytest.approx(4 * counts[0], rel=0.01)


async def test_a_rate_that_has_doubled_very_often_is_none(rate, clock):
    rate = rate(1, 1.0)
    clock.now += 1e9

    for _ in range(5000):
        await rate.acquire()

    assert clock.slept == []
