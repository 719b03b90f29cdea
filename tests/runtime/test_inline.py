import asyncio

import pytest

from tensorstore_py._runtime.inline import InlineSuspendError, run_inline


async def nested(depth):
    if depth:
        return 1 + await nested(depth - 1)
    return 0


def test_returns_what_the_coroutine_returns():
    assert run_inline(nested(20)) == 20


def test_raises_what_the_coroutine_raises():
    async def fail():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        run_inline(fail())


def test_async_iteration_and_context_managers_need_no_loop():
    log: list[str] = []

    class Door:
        async def __aenter__(self):
            log.append("in")

        async def __aexit__(self, *_):
            log.append("out")

    async def numbers():
        for number in range(3):
            yield number

    async def body():
        async with Door():
            return [number async for number in numbers()]

    assert run_inline(body()) == [0, 1, 2]
    assert log == ["in", "out"]


def test_suspending_is_named_at_once_and_cleaned_up():
    cleaned = []

    async def waits_for_the_network():
        try:
            await asyncio.sleep(0)
        finally:
            cleaned.append(True)

    with pytest.raises(InlineSuspendError, match=r"waits_for_the_network.*inline = False"):
        run_inline(waits_for_the_network())
    assert cleaned


def test_works_inside_a_running_loop():
    async def outer():
        return run_inline(nested(3))

    assert asyncio.run(outer()) == 3
