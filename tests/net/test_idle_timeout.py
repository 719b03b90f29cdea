import asyncio

import pytest

from tensorstore_py._net.failures import Failure, Retryability
from tensorstore_py._net.idle_timeout import IdleTimeouts, idle_limit_s, least_rate
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

    assert idle_limit_s() == seconds


async def forever():
    await asyncio.Event().wait()


async def test_what_does_not_move_is_given_up():
    said = pytest.raises(Failure, match=r"nothing moved for 0\.02 s")
    with said as failure, IdleTimeouts(0.02).watch():
        await forever()

    assert failure.value.error is UnavailableError
    assert (failure.value.retryability, failure.value.may_have_run) == (Retryability.FULL, True)


async def test_the_task_goes_on_afterwards():
    timeouts = IdleTimeouts(0.01)
    for _ in range(2):
        with pytest.raises(Failure), timeouts.watch():
            await forever()

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_moves_may_take_its_time():
    loop = asyncio.get_running_loop()
    timeouts = IdleTimeouts(0.05)
    began = loop.time()

    with timeouts.watch() as idle:
        while loop.time() - began < 0.15:
            await asyncio.sleep(0)
            idle.progress()

    assert loop.time() - began >= 0.15


async def test_a_cancellation_by_others_stays_one():
    async def work():
        with IdleTimeouts(0.01).watch():
            await forever()

    async def work_and_hang():
        with IdleTimeouts(60).watch():
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
    with pytest.raises(KeyError), IdleTimeouts(60).watch():
        raise KeyError


async def test_many_are_watched_by_one_timer(monkeypatch):
    loop = asyncio.get_running_loop()
    timers = []
    timeouts = IdleTimeouts(0.02)
    original = loop.call_later

    def counted(delay, callback, *arguments, **options):
        if getattr(callback, "__self__", None) is timeouts:
            timers.append(delay)
        return original(delay, callback, *arguments, **options)

    async def one():
        with timeouts.watch():
            await forever()

    monkeypatch.setattr(loop, "call_later", counted)
    for _ in range(50):
        with timeouts.watch():
            pass
    assert len(timers) == 1
    failures = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)

    assert all(isinstance(failure, Failure) for failure in failures)
    assert len(timers) < 12


def test_a_timeouts_serves_one_loop_after_another():
    timeouts = IdleTimeouts(0.01)

    async def stalled():
        with timeouts.watch():
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


async def drip(timeouts, size):
    with timeouts.watch() as idle:
        idle.received(0)
        while True:
            await asyncio.sleep(0)
            idle.progress(size)


async def test_what_drips_is_given_up():
    with pytest.raises(Failure, match=r"less than 1e\+09 a second.*LOW_SPEED_LIMIT") as failure:
        await drip(IdleTimeouts(0.02, 1e9), 1)

    assert failure.value.error is UnavailableError
    assert (failure.value.retryability, failure.value.may_have_run) == (Retryability.LITTLE, True)


async def looked_at(rate, seconds, *, receiving=True, bytes_a_second=0.0, unsent=None):
    """Until when an exchange goes on that is judged every 15 s; None if to the end."""
    second = 0
    try:
        with IdleTimeouts(60.0, rate).watch() as idle:
            began = idle.loop.time()
            if receiving:
                idle.received(0)
            if unsent is not None:
                idle.sends(lambda: unsent, unsent)
            for second in range(1, seconds + 1):
                idle.moved = began + second
                idle.count += bytes_a_second
                if second % 15 == 0:
                    idle.judge(began + second)
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
