import asyncio

import pytest

from tensorstore_py._net.failures import Failure, Patience
from tensorstore_py._net.stall import StallGuard, stall_limit_s
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
