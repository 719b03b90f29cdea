import asyncio
import threading

import pytest

from tensorstore_py._runtime.other_loop import in_other_loop
from tensorstore_py.errors import UnavailableError


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


async def test_runs_where_it_is_told_to(loop):
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
