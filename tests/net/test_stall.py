import asyncio

import pytest

from tensorstore_py._net.failures import Failure, Patience
from tensorstore_py._net.stall import StallGuard, least_rate, stall_limit_s
from tensorstore_py.errors import UnavailableError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 60.0), ("7", 7.0), ("0.5", 0.5), ("0", 60.0), ("-1", 60.0), ("soon", 60.0)],
)
def test_the_environment_sets_the_limit(monkeypatch, text, seconds):
    name = "TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS"
    if text is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, text)

    assert stall_limit_s() == seconds


async def forever():
    await asyncio.Event().wait()


async def test_what_does_not_move_is_given_up():
    said = pytest.raises(Failure, match=r"nothing moved for 0\.02 s")
    with said as failure, StallGuard(0.02).watch():
        await forever()

    assert failure.value.error is UnavailableError
    assert (failure.value.patience, failure.value.may_have_run) == (Patience.FULL, True)


async def test_the_task_goes_on_afterwards():
    guard = StallGuard(0.01)
    for _ in range(2):
        with pytest.raises(Failure), guard.watch():
            await forever()

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_moves_may_take_its_time():
    loop = asyncio.get_running_loop()
    guard = StallGuard(0.05)
    began = loop.time()

    with guard.watch() as watch:
        while loop.time() - began < 0.15:
            await asyncio.sleep(0)
            watch.move()

    assert loop.time() - began >= 0.15


async def test_a_cancellation_by_others_stays_one():
    async def work():
        with StallGuard(0.01).watch():
            await forever()

    async def work_and_hang():
        with StallGuard(60).watch():
            await forever()

    task = asyncio.create_task(work_and_hang())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()

    with pytest.raises(Failure):
        await asyncio.create_task(work())


async def test_another_error_stays_what_it_is():
    with pytest.raises(KeyError), StallGuard(60).watch():
        raise KeyError


async def test_many_are_watched_by_one_timer(monkeypatch):
    loop = asyncio.get_running_loop()
    timers = []
    guard = StallGuard(0.02)
    original = loop.call_later

    def counted(delay, callback, *arguments, **options):
        if getattr(callback, "__self__", None) is guard:
            timers.append(delay)
        return original(delay, callback, *arguments, **options)

    async def one():
        with guard.watch():
            await forever()

    monkeypatch.setattr(loop, "call_later", counted)
    for _ in range(50):
        with guard.watch():
            pass
    assert len(timers) == 1
    failures = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)

    assert all(isinstance(failure, Failure) for failure in failures)
    assert len(timers) < 12


def test_a_guard_serves_one_loop_after_another():
    guard = StallGuard(0.01)

    async def stalled():
        with guard.watch():
            await forever()

    for _ in range(2):
        with pytest.raises(Failure):
            asyncio.run(stalled())


@pytest.mark.parametrize(
    ("text", "rate"),
    [(None, 100.0), ("7", 7.0), ("0", 0.0), ("-1", 100.0), ("inf", 100.0), ("fast", 100.0)],
)
def test_the_environment_sets_the_rate(monkeypatch, text, rate):
    name = "TENSORSTORE_CURL_LOW_SPEED_LIMIT_BYTES"
    if text is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, text)

    assert least_rate() == rate


async def drip(guard, size):
    with guard.watch() as watch:
        watch.receives()
        while True:
            await asyncio.sleep(0)
            watch.move(size)


async def test_what_drips_is_given_up():
    with pytest.raises(Failure, match=r"less than 1e\+09 a second.*LOW_SPEED_LIMIT") as failure:
        await drip(StallGuard(0.02, 1e9), 1)

    assert failure.value.error is UnavailableError
    assert (failure.value.patience, failure.value.may_have_run) == (Patience.LITTLE, True)


async def looked_at(rate, seconds, *, receiving=True, bytes_a_second=0.0, unsent=None):
    """Until when an exchange goes on that is judged every 15 s; None if to the end."""
    second = 0
    try:
        with StallGuard(60.0, rate).watch() as watch:
            began = watch.loop.time()
            if receiving:
                watch.receives()
            if unsent is not None:
                watch.sends(lambda: unsent, unsent)
            for second in range(1, seconds + 1):
                watch.moved = began + second
                watch.count += bytes_a_second
                if second % 15 == 0:
                    watch.judge(began + second)
                    await asyncio.sleep(0)
    except Failure:
        return second
    return None


@pytest.mark.parametrize("unsent", [None, 10**6])
async def test_the_rate_is_that_of_each_span(unsent):
    receiving = unsent is None
    found = [
        await looked_at(100.0, 600, receiving=receiving, bytes_a_second=each, unsent=unsent)
        for each in (1, 70, 110, 10**6)
    ]

    assert {*found[:2]} <= {60, 75}  # seen by the next look after a span
    assert found[2:] == [None, None]


async def test_while_the_server_thinks_there_is_no_rate():
    assert await looked_at(100.0, 600, receiving=False) is None


async def test_without_a_rate_anything_will_do():
    assert await looked_at(0.0, 600, bytes_a_second=0.001) is None
