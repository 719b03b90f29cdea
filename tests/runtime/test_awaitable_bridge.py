"""Coroutines and functions of other code, from here and back."""

import asyncio
import functools
import pickle
import threading

import pytest

from tensorstore_py._runtime.awaitable_bridge import in_other_loop, run_coroutine
from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.executors import on_worker
from tensorstore_py._runtime.future import Promise
from tensorstore_py._runtime.user_function import UserFunction
from tensorstore_py.errors import FailedPreconditionError, UnavailableError


@pytest.fixture
def loop():
    """A loop of somebody else's, on its thread."""
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    yield other
    other.call_soon_threadsafe(other.stop)
    thread.join()
    other.close()


async def running():
    return asyncio.get_running_loop()


async def test_runs_in_the_loop_that_is_given(loop):
    assert await in_other_loop(loop, running) is loop


async def test_is_awaited_at_once_in_its_own_loop():
    assert await in_other_loop(asyncio.get_running_loop(), running) is asyncio.get_running_loop()


async def test_an_error_comes_back(loop):
    async def fail():
        raise KeyError("a")

    with pytest.raises(KeyError, match="a"):
        await in_other_loop(loop, fail)


async def test_to_cancel_it_here_cancels_it_there(loop):
    begun, ended = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(in_other_loop(loop, wait))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_closed_loop_is_an_error():
    closed = asyncio.new_event_loop()
    closed.close()

    with pytest.raises(UnavailableError, match="closed"):
        await in_other_loop(closed, running)


async def test_coroutines_are_run_to_their_end() -> None:
    async def waits(count: int) -> int:
        for _ in range(count):
            await asyncio.sleep(0)
        return count

    async def fails() -> int:
        raise KeyError("a")

    assert run_coroutine(lambda: waits(0)) == 0
    assert run_coroutine(lambda: waits(3)) == 3
    with pytest.raises(KeyError):
        run_coroutine(fails)


async def test_a_loop_that_runs_is_neither_seen_nor_changed() -> None:
    loop = asyncio.get_running_loop()
    seen: list[object] = []

    async def looks() -> int:
        seen.append(asyncio.get_running_loop())
        return await asyncio.to_thread(int, "7")

    assert run_coroutine(looks) == 7
    assert len(seen) == 1
    assert seen[0] is not loop
    assert asyncio.get_running_loop() is loop
    await asyncio.sleep(0)


def test_without_a_loop_none_is_left_behind() -> None:
    async def waits() -> int:
        await asyncio.sleep(0)
        return 5

    assert run_coroutine(waits) == 5
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def plain(number):
    return number + 1


async def slow(number):
    await asyncio.sleep(0)
    return number + 1


class Callable:
    async def __call__(self, number):
        return number + 1


@pytest.mark.parametrize(
    ("function", "inline"),
    [
        (plain, True),
        (slow, False),
        (functools.partial(slow), False),
        (Callable(), False),
        (lambda number: slow(number + 0), True),
    ],
)
def test_its_execution_mode_follows_from_its_kind(function, inline):
    wrapped = UserFunction(function, None)
    assert wrapped.inline is inline
    assert start(wrapped.inline, lambda: wrapped(wrapped.inline, 4)).result() == 5


def test_a_plain_function_of_an_inline_caller_runs_where_the_caller_runs():
    wrapped = UserFunction(threading.get_ident, None)
    assert run_inline(wrapped(True)) == threading.get_ident()


def test_a_plain_function_of_another_caller_runs_on_a_worker():
    wrapped = UserFunction(on_worker, None)
    assert start(False, lambda: wrapped(False)).result() is True


@pytest.mark.parametrize("inline", [True, False])
def test_what_it_returns_is_awaited(inline):
    promise: Promise[int]
    promise, future = Promise.new()
    promise.set_result(7)
    wrapped = UserFunction(lambda: future, None)
    assert start(inline, lambda: wrapped(inline)).result() == 7


async def test_coroutines_run_on_the_loop_that_was_given():
    mine = asyncio.get_running_loop()

    async def which():
        return asyncio.get_running_loop()

    def plainly():
        return which()

    for function, inline in ((which, False), (plainly, True)):
        wrapped = UserFunction(function, mine)
        assert await start(inline, functools.partial(wrapped, inline)) is mine
    without = UserFunction(which, None)
    assert await start(False, lambda: without(False)) is not mine


async def test_a_loop_never_waits_for_itself():
    wrapped = UserFunction(lambda: asyncio.sleep(0), asyncio.get_running_loop())
    coroutine = wrapped(True)
    with pytest.raises(FailedPreconditionError, match="await the Future"):
        run_inline(coroutine)


@pytest.mark.parametrize("function", [plain, slow])
def test_errors_arrive(function):
    wrapped = UserFunction(function, None)
    with pytest.raises(TypeError):
        start(wrapped.inline, lambda: wrapped(wrapped.inline, "text")).result()


def test_it_travels_without_its_loop():
    loop = asyncio.new_event_loop()
    again = pickle.loads(pickle.dumps(UserFunction(plain, loop)))
    loop.close()
    assert run_inline(again(True, 1)) == 2
