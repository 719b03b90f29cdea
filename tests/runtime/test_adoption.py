"""An awaitable's outcome is handed on; see test_future.py for Futures of awaitables."""

import asyncio

import pytest

from tensorstore_py._runtime.adoption import adopt


async def answer():
    return 42


async def refuse():
    raise KeyError("no")


def outcome_of(awaitable, *, unwanted=False):
    found: list[object] = []

    async def run():
        adopt(awaitable, None, lambda: unwanted, found.append, found.append)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(run())
    return found


def test_a_value():
    assert outcome_of(answer()) == [42]


def test_an_error():
    (error,) = outcome_of(refuse())
    assert isinstance(error, KeyError)


def test_what_nobody_wants_is_not_begun():
    assert outcome_of(answer(), unwanted=True) == []


def test_it_is_cancelled_where_it_runs():
    found: list[object] = []

    async def run():
        cancel = adopt(asyncio.sleep(60), None, lambda: False, found.append, found.append)
        await asyncio.sleep(0)
        await asyncio.to_thread(cancel)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert [type(each) for each in found] == [asyncio.CancelledError]


def test_without_a_loop_a_coroutine_is_disposed_of():
    with pytest.raises(ValueError, match="no event loop"):
        adopt(answer(), None, lambda: False, print, print)
