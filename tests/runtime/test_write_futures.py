import asyncio
from typing import Any

import pytest
import tensorstore

from tensorstore_py._runtime.future import Future, Promise
from tensorstore_py._runtime.write_futures import Copying, WriteFutures


def pair():
    copied, copy = Promise[Any].new()
    committed, commit = Promise[Any].new()
    return copied, committed, WriteFutures(copy, commit)


@pytest.mark.parametrize("name", ["Future", "Promise", "WriteFutures"])
def test_everything_of_the_reference_is_there(name):
    ours = {"Future": Future, "Promise": Promise, "WriteFutures": WriteFutures}[name]
    theirs = getattr(tensorstore, name)
    public = {each for each in dir(theirs) if not each.startswith("_")} | {
        each for each in ("__await__",) if hasattr(theirs, each)
    }
    assert {each for each in public if not hasattr(ours, each)} == set()


def test_it_stands_for_commit():
    copied, committed, write = pair()
    copied.set_result(None)
    assert (write.copy.done(), write.done()) == (True, False)
    with pytest.raises(TimeoutError):
        write.result(timeout=0)
    committed.set_result(None)
    assert write.done()
    assert write.result() is None
    assert write.exception() is None


def test_an_error_shows_at_commit():
    _, committed, write = pair()
    committed.set_exception(ValueError("full"))
    assert isinstance(write.exception(), ValueError)
    with pytest.raises(ValueError, match="full"):
        write.result()


def test_cancelling_cancels_both():
    _copied, _committed, write = pair()
    assert write.cancel()
    assert write.cancelled()
    assert write.copy.cancelled()
    assert not write.cancel()


def test_callbacks_are_those_of_commit():
    _, committed, write = pair()
    calls: list[Future] = []
    write.add_done_callback(calls.append)
    write.add_done_callback(print)
    assert write.remove_done_callback(print) == 1
    committed.set_result(None)
    assert calls == [write.commit]


async def test_awaiting():
    _, committed, write = pair()
    asyncio.get_running_loop().call_soon(committed.set_result, None)
    assert await write is None


def test_copying_ends_before_the_commit_or_with_it():
    copying, (promise, commit) = Copying(), Promise[Any].new()
    futures = copying.until(commit)
    assert not futures.copy.done()
    copying.done()
    copying.done()
    assert futures.copy.result() is None
    assert not futures.done()
    promise.set_exception(KeyError("disk"))
    assert futures.copy.exception() is None

    copying, (promise, commit) = Copying(), Promise[Any].new()
    futures = copying.until(commit)
    promise.set_exception(KeyError("disk"))
    with pytest.raises(KeyError):
        futures.copy.result()


def test_copying_that_was_over_before_there_was_a_commit():
    copying, (_, commit) = Copying(), Promise[Any].new()
    copying.done()
    assert copying.until(commit).copy.done()
