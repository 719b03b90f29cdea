import asyncio

import pytest

from tensorstore_py._runtime.rates import Rate


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
    return lambda *arguments: Rate(*arguments, now=lambda: clock.now, sleep=clock.sleep)


async def test_turns_are_as_far_apart_as_the_rate_says(rate, clock):
    rate = rate(5)

    for _ in range(20):
        await rate.turn()

    assert clock.slept == pytest.approx([0.2] * 20)


async def test_what_was_not_used_may_be_used_later(rate, clock):
    rate = rate(5)
    clock.now += 2

    for _ in range(12):
        await rate.turn()

    assert clock.slept == pytest.approx([0.2, 0.2])


async def test_but_not_for_ever(rate, clock):
    rate = rate(5000)
    clock.now += 3600

    for _ in range(2001):
        await rate.turn()

    assert len(clock.slept) == 1


async def test_turns_come_in_the_order_of_asking():
    wakes = []

    async def sleep(seconds):
        wakes.append(seconds)

    rate = Rate(10, now=lambda: 0.0, sleep=sleep)

    await asyncio.gather(*(rate.turn() for _ in range(4)))

    assert wakes == pytest.approx([0.1, 0.2, 0.3, 0.4])


async def test_who_is_cancelled_gives_the_turn_back():
    asleep = asyncio.Event()
    waits = []

    async def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            asleep.set()
            await asyncio.Event().wait()

    rate = Rate(10, now=lambda: 0.0, sleep=sleep)
    first = asyncio.create_task(rate.turn())
    await asleep.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    await rate.turn()

    assert waits == pytest.approx([0.1, 0.1])


async def test_a_rate_that_doubles(rate, clock):
    rate = rate(10, 60.0)
    counts = [0, 0, 0]

    while clock.now < 1180:
        await rate.turn()
        counts[min(2, int((clock.now - 1000) // 60))] += 1

    # 10 a second at the start of the first minute, 20 at its end, 40 after the second.
    assert counts[0] == pytest.approx(60 * 10 / 0.6931, rel=0.01)
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.01)
    assert counts[2] == pytest.approx(4 * counts[0], rel=0.01)


async def test_a_rate_that_has_doubled_very_often_is_none(rate, clock):
    rate = rate(1, 1.0)
    clock.now += 1e9

    for _ in range(5000):
        await rate.turn()

    assert clock.slept == []
