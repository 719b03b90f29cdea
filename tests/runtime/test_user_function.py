import asyncio
import functools
import pickle
import threading

import pytest

from tensorstore_py._runtime.future import Promise
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.user_function import UserFunction
from tensorstore_py._runtime.workers import on_worker
from tensorstore_py.errors import FailedPreconditionError


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
def test_its_temperament_is_told_by_its_kind(function, inline):
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
