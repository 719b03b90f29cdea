"""Whatever is open is closed once, and what was begun before comes to its end."""

import asyncio
import threading

import pytest

import tensorstore_py as ts
from tensorstore_py._runtime.future import Promise
from tensorstore_py._runtime.lifetime import Closable, Lifetime
from tests.runtime.processes import run_script


def close_blocking(life):
    life.close()


def close_awaiting(life):
    asyncio.run(life.aclose())


both = pytest.mark.parametrize("close", [close_blocking, close_awaiting])


@both
def test_it_ends_once(close):
    ends = []
    life = Lifetime("thing", lambda: ends.append(1))
    life.check()
    for _ in range(3):
        close(life)
    assert (ends, life.closed) == ([1], True)
    with pytest.raises(ts.FailedPreconditionError, match=r"^this thing is closed; open it again$"):
        life.check()


@both
def test_it_waits_for_what_is_under_way(close):
    ended = threading.Event()
    life = Lifetime("thing", ended.set)
    promises = [Promise[int].new() for _ in range(3)]
    for _, future in promises:
        assert life.follow(future) is future
    closing = threading.Thread(target=close, args=(life,))
    closing.start()
    for promise, _ in promises:
        assert not ended.is_set()
        promise.set_result(1)
    closing.join()
    assert ended.is_set()


@both
def test_what_is_done_is_not_kept(close):
    life = Lifetime("thing")
    promise, future = Promise[int].new()
    life.follow(future)
    life.follow(ts.Future(3))
    promise.set_result(1)
    assert not life._under_way
    close(life)


@both
def test_what_was_begun_while_somebody_closed_it_is_refused(close):
    life = Lifetime("thing")
    _, late = Promise.new()
    life.check()
    close(life)

    with pytest.raises(ts.FailedPreconditionError, match=r"^this thing is closed"):
        life.follow(late)
    assert late.cancelled()
    assert life.follow(ts.Future(3)).result() == 3
    assert not life._under_way


@both
def test_the_first_error_is_raised_and_all_of_it_is_over(close):
    ends = []
    life = Lifetime("thing", lambda: ends.append(1))
    for _ in range(2):
        promise, future = Promise[int].new()
        life.follow(future)
        # It fails while it is waited for.
        threading.Timer(0.01, promise.set_exception, [KeyError("lost")]).start()
    with pytest.raises(KeyError, match="lost"):
        close(life)
    assert ends == [1]
    close(life)


@both
def test_what_was_cancelled_is_no_error(close):
    life = Lifetime("thing")
    _, future = keep = Promise[int].new()
    life.follow(future)
    threading.Timer(0.01, future.cancel).start()
    close(life)
    assert keep


def test_cancelling_it_cancels_nothing_that_is_under_way():
    life = Lifetime("thing")
    promise, future = Promise[int].new()
    life.follow(future)

    async def close_a_bit():
        task = asyncio.create_task(life.aclose())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(close_a_bit())
    assert not future.done()
    promise.set_result(1)
    assert future.result() == 1


@both
def test_it_ends_what_it_includes(close):
    ends = []
    outer = Lifetime("outer", lambda: ends.append("outer"))
    inner = Lifetime("inner", lambda: ends.append("inner"))
    early = Lifetime("early", lambda: ends.append("early"))
    outer.include(inner)
    outer.include(early)
    close(early)
    close(outer)
    assert (ends, inner.closed) == (["early", "inner", "outer"], True)
    with pytest.raises(ts.FailedPreconditionError):
        outer.include(Lifetime("late"))


def test_what_has_no_reference_is_not_kept():
    outer = Lifetime("outer")
    outer.include(Lifetime("inner"))
    assert outer._inner is not None
    assert not len(outer._inner)


class Thing(Closable):
    def __init__(self):
        self._life = Lifetime("thing")


def test_blocks():
    with Thing() as one:
        states = [one.closed]
    states.append(one.closed)
    assert states == [False, True]

    async def enter():
        async with Thing() as other:
            states = [other.closed]
        states.append(other.closed)
        assert states == [False, True]
        with pytest.raises(ts.FailedPreconditionError):
            async with other:
                pass

    asyncio.run(enter())
    with pytest.raises(ts.FailedPreconditionError), one:
        pass


def test_a_forked_child_does_not_wait_for_its_parents_work():
    out = run_script("""
        import os
        from tensorstore_py._runtime.future import Promise
        from tensorstore_py._runtime.lifetime import Lifetime
        life = Lifetime("thing")
        promise, future = Promise[int].new()
        life.follow(future)
        if os.fork() == 0:
            life.close()
            print("closed", flush=True)
            os._exit(0)
        os.wait()
        promise.set_result(1)
        life.close()
    """)
    assert out == "closed\n"
