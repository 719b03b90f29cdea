"""Who waits for a read is woken when it is over, whatever comes of it."""

import asyncio
import threading

import pytest

from tensorstore_py._runtime.flight import Flight
from tensorstore_py._runtime.inline import run_inline


def test_threads_wait_until_it_lands():
    flight: Flight[int] = Flight()
    seen = []
    joined = [flight.join(inline=True) for _ in range(3)]

    def wait(each):
        run_inline(flight.over(each))
        seen.append(flight.found)

    threads = [threading.Thread(target=wait, args=(each,)) for each in joined]
    for thread in threads:
        thread.start()
    flight.found = 5
    flight.land()
    for thread in threads:
        thread.join()
    assert seen == [5] * 3


async def test_tasks_wait_until_it_lands():
    flight: Flight[int] = Flight()
    tasks = [asyncio.create_task(flight.over(flight.join(inline=False))) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    flight.land()
    await asyncio.gather(*tasks)


async def test_who_was_cancelled_disturbs_nobody():
    flight: Flight[int] = Flight()
    first, second = (asyncio.create_task(flight.over(flight.join(inline=False))) for _ in "ab")
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    flight.land()
    await second


def test_waiting_may_begin_when_it_is_over():
    flight: Flight[int] = Flight()
    joined = flight.join(inline=True)
    flight.land()
    run_inline(flight.over(joined))
