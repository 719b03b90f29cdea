import asyncio
import time

from tensorstore_py._plan.clock import Clock


def test_tells_the_time_of_this_machine():
    clock = Clock()

    before = time.time(), time.monotonic()
    found = clock.wall(), clock.now()
    after = time.time(), time.monotonic()

    assert all(low <= now <= high for low, now, high in zip(before, found, after, strict=True))


def test_chance_and_waiting():
    clock = Clock()

    assert len({clock.chance() for _ in range(20)}) > 10
    asyncio.run(clock.pause(0))
