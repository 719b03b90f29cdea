import asyncio
import heapq
import itertools
import random

import pytest

from tensorstore_py.errors import AbortedError, DataLossError, TensorStoreError, UnavailableError
from tensorstore_py.plugin.kvstore import RetryPolicy
from tensorstore_py.testing import CountedWaits
from tests.runtime.processes import run_inline


def where():
    return '"a/b"'


def exhaust(policy, seen=None, *, inline=True, error=None):
    """The error at the end, and how long the waits before it were."""
    attempts = policy.begin("update", where, inline=inline)
    states = itertools.count() if seen is None else itertools.repeat(seen)

    async def lose():
        while True:
            await attempts.lost(next(states), error)

    with CountedWaits() as waits, pytest.raises(TensorStoreError) as raised:
        run_inline(lose())
    return raised.value, waits.seconds


@pytest.mark.parametrize("inline", [True, False])
def test_ends_with_the_last_attempt_and_says_how_many_there_were(inline):
    error, waits = exhaust(RetryPolicy(attempts=5), inline=inline)

    assert type(error) is AbortedError
    assert str(error).startswith(
        'cannot update "a/b": others changed it first, 5 times (attempt 5)'
    )
    assert error.attempts == 5
    assert len(waits) == 4


def test_waits_double_up_to_the_longest():
    policy = RetryPolicy(attempts=6, initial_s=0.1, longest_s=0.5)

    assert exhaust(policy)[1] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_a_wait_is_anywhere_in_its_span():
    attempts = RetryPolicy(initial_s=8.0).begin("update", where, inline=True)

    with CountedWaits(chance=0.25) as waits:
        run_inline(attempts.lost())

    assert waits.seconds == [0.25]


def test_chance_neither_follows_nor_disturbs_what_a_program_seeds():
    def drawn():
        random.seed(7)
        before = random.getstate()
        found = [RetryPolicy.clock.chance() for _ in range(4)]
        assert random.getstate() == before
        return found

    assert drawn() != drawn()


def test_what_did_not_change_is_given_up_sooner():
    error, waits = exhaust(RetryPolicy(attempts=100, fruitless=7), seen=b"17")

    assert type(error) is UnavailableError
    assert "refused 7 times in a row" in str(error)
    assert error.attempts == 7
    assert len(waits) == 6


def test_a_change_in_between_begins_the_count_of_fruitless_ones_anew():
    attempts = RetryPolicy(attempts=100, fruitless=3).begin("update", where, inline=True)

    with CountedWaits() as waits:
        for seen in (1, 1, 2, 2, 1, 1):
            run_inline(attempts.lost(seen))

    assert len(waits.seconds) == 6


def test_no_attempt_begins_after_the_deadline():
    policy = RetryPolicy(initial_s=1.0, longest_s=1.0, deadline_s=3.5)

    error, waits = exhaust(policy)

    assert waits == [1.0, 1.0, 1.0]
    assert error.attempts == 4


def test_an_error_of_the_callers_own_is_what_it_ends_with():
    mine = DataLossError("mine")

    assert exhaust(RetryPolicy(attempts=2), error=mine)[0] is mine


def test_the_name_is_not_made_before_it_gives_up():
    with CountedWaits() as waits:
        run_inline(RetryPolicy().begin("update", lambda: pytest.fail("named"), inline=True).lost())

    assert len(waits.seconds) == 1


class Simulated:
    """Time that passes at once: whoever waits is woken in the order of the moments waited for."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._time = 0.0
        self._waiting = []
        self._numbers = itertools.count()

    def now(self):
        return self._time

    def chance(self):
        return self._random.random()

    async def pause(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._time + seconds, next(self._numbers), woken))
        await woken

    async def run(self, tasks):
        """Until all tasks are done."""
        while not all(task.done() for task in tasks):
            for _ in range(3):  # whoever was woken comes to its next wait
                await asyncio.sleep(0)
            if self._waiting:
                self._time, _, woken = heapq.heappop(self._waiting)
                woken.set_result(None)
        return [task.result() for task in tasks]


async def count_up(clock, stored, times, request_s):
    """Count a number up by conditional writes; the most attempts that one of them took."""
    most = 0
    for _ in range(times):
        attempts = RetryPolicy().begin("count", where, inline=False)
        while True:
            await clock.pause(request_s)
            seen = stored[0]
            await clock.pause(request_s)
            if stored[0] == seen:
                stored[0] += 1
                break
            await attempts.lost(seen)
        most = max(most, attempts.failed + 1)
    return most


async def race(monkeypatch, delays_s, times):
    clock, stored = Simulated(seed=7), [0]
    monkeypatch.setattr(RetryPolicy, "clock", clock)
    tasks = [asyncio.create_task(count_up(clock, stored, times, each)) for each in delays_s]
    most = await clock.run(tasks)
    assert stored == [times * len(delays_s)]
    return most


@pytest.mark.parametrize("request_s", [1e-5, 0.001, 0.05])
async def test_writers_of_one_key_all_get_through_with_room_to_spare(monkeypatch, request_s):
    most = await race(monkeypatch, [request_s] * 16, times=60)

    assert max(most) < RetryPolicy().attempts / 8


async def test_a_slow_writer_gets_through_beside_fast_ones(monkeypatch):
    most = await race(monkeypatch, [0.005] + [0.001] * 15, times=40)

    assert max(most) < RetryPolicy().attempts / 4
