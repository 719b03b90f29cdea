"""Which thread runs the library's loop, while something waits for what is done there."""

import asyncio
import threading
from contextlib import closing
from functools import partial
from threading import Event, Thread, get_ident

import pytest

from tests.runtime.processes import LoopTurns, library_loop, loop_turns, start


async def where():
    await asyncio.sleep(0)
    return get_ident()


def here():
    """Work that is over once the thread that calls this runs the loop."""
    asking = get_ident()

    async def body():
        while get_ident() != asking:  # noqa: ASYNC110 - which thread it is nobody tells
            await asyncio.sleep(0)
        return True

    return start(False, body)


@pytest.fixture
def attended():
    """The loop is run by its own thread."""
    seen = Event()
    library_loop().call_soon_threadsafe(seen.set)
    assert seen.wait(10)
    return next(each for each in threading.enumerate() if each.name == "tensorstore_py-loop").ident


@pytest.mark.usefixtures("attended")
def test_a_thread_that_waits_runs_the_loop():
    assert here().result()


@pytest.mark.usefixtures("attended")
def test_threads_that_wait_run_it_in_turns():
    for _ in range(50):
        assert here().result()
        library_loop()  # somebody has a use for it, so its own thread takes it back


@pytest.mark.usefixtures("attended")
def test_what_was_begun_first_is_begun_first():
    begun = []

    async def body(number):
        begun.append(number)

    futures = [start(False, partial(body, number)) for number in range(100)]
    for future in reversed(futures):
        future.result()

    assert begun == list(range(100))


@pytest.mark.usefixtures("attended")
def test_what_nobody_waits_for_is_done_all_the_same():
    done = Event()

    async def body():
        done.set()

    here().result()
    start(False, body)

    assert done.wait(10)


def test_what_is_left_behind_goes_on_by_the_loops_own_thread(attended):
    done = Event()

    async def later():
        for _ in range(20):
            await asyncio.sleep(0.001)
        done.set()
        return get_ident()

    other = start(False, later)
    here().result()

    assert done.wait(10)
    assert other.result() == attended


def test_with_a_limit_the_loops_own_thread_does_it(attended):
    assert start(False, where).result(timeout=10) == attended


async def test_what_is_awaited_is_done_by_the_loops_own_thread(attended):
    assert await start(False, where) == attended


async def test_within_another_loop_the_thread_only_waits(attended):
    assert start(False, where).result() == attended
    assert await asyncio.sleep(0, "and that loop goes on") == "and that loop goes on"


def test_what_another_thread_waits_for_does_not_wait_for_a_turn(attended):
    entered, go_on = Event(), Event()

    async def slow():
        entered.set()
        while not go_on.is_set():  # noqa: ASYNC110 - an event of threads
            await asyncio.sleep(0.001)
        return get_ident()

    first = start(False, slow)
    first.force()
    assert entered.wait(10)

    assert start(False, where).result() == attended
    go_on.set()
    assert first.result(timeout=10) == attended


@pytest.mark.usefixtures("attended")
def test_many_threads_take_turns():
    results = []

    def ask():
        for number in range(50):

            async def body(number=number):
                await asyncio.sleep(0)
                return number

            results.append(start(False, body).result() == number)

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [True] * 400


@pytest.mark.usefixtures("attended")
def test_a_turn_ends_when_what_it_is_for_is_cancelled():
    begun = Event()

    async def forever():
        begun.set()
        await asyncio.Event().wait()

    future = start(False, forever)

    def cancel():
        begun.wait(10)
        future.cancel()

    canceller = Thread(target=cancel)
    canceller.start()
    with pytest.raises(asyncio.CancelledError):
        future.result()
    canceller.join()


@pytest.mark.usefixtures("attended")
def test_to_wait_on_the_thread_that_runs_the_loop_is_refused():
    async def body():
        return start(False, where).result()

    with pytest.raises(RuntimeError, match="block it for good"):
        start(False, body).result()
    assert here().result()


def test_a_loop_of_another_kind_stays_on_its_thread():
    class Turn:
        is_wanted = is_over = False

        def begin(self) -> None:
            raise AssertionError("the loop knows nothing of turns")

    turn = Turn()
    with closing(asyncio.BaseEventLoop()) as loop:
        LoopTurns(loop).drive(turn)

    assert not turn.is_over


def test_a_result_is_not_waited_for_by_an_idle_tick(attended):
    """A loop that is lent costs those nothing that ask for its own thread: they ring."""
    here().result()

    assert start(False, where).result(timeout=10) == attended
    assert loop_turns().loop is library_loop()
