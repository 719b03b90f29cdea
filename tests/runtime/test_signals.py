import os
import signal
import sys
import threading
from functools import partial

import pytest

from tensorstore_py._runtime import signals
from tensorstore_py._runtime.execution import GaveWay, run_inline
from tensorstore_py._runtime.signals import (
    acquire,
    check_signals,
    deferring,
    enter,
    give_way,
    leave,
    lifted,
    pause,
    pending,
    uninterrupted,
)


class Stop(BaseException):
    pass


class Again(BaseException):
    pass


def raiser(kind):
    def handler(*_):
        raise kind

    return handler


@pytest.fixture(autouse=True)
def handlers():
    """`SIGUSR1` and `SIGUSR2` raise; nothing is left of it afterwards."""
    before = {
        number: signal.signal(number, raiser(kind))
        for number, kind in ((signal.SIGUSR1, Stop), (signal.SIGUSR2, Again))
    }
    yield
    assert not signals._main.depth
    assert not signals._main.pending
    for number, handler in before.items():
        signal.signal(number, handler)


send = partial(signal.raise_signal, signal.SIGUSR1)


def test_what_a_handler_raises_comes_out_after_the_work():
    done = []

    @uninterrupted
    def work():
        send()
        done.append(pending())

    with pytest.raises(Stop):
        work()

    assert done == [True]
    assert not pending()


def test_the_handlers_stand_as_before():
    handler = signal.getsignal(signal.SIGUSR1)
    default = signal.getsignal(signal.SIGINT)

    uninterrupted(lambda: None)()

    assert signal.getsignal(signal.SIGUSR1) is handler
    assert signal.getsignal(signal.SIGINT) is default


def test_a_handler_that_the_work_puts_in_place_stays():
    mine = raiser(Again)

    uninterrupted(lambda: signal.signal(signal.SIGUSR1, mine))()

    assert signal.getsignal(signal.SIGUSR1) is mine


def test_work_within_work_is_one():
    order = []

    @uninterrupted
    def inner():
        send()
        order.append("inner")

    @uninterrupted
    def outer():
        inner()
        order.append("outer")

    with pytest.raises(Stop):
        outer()

    assert order == ["inner", "outer"]


def test_a_signal_that_came_twice_is_delivered_once():
    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(1))

    @uninterrupted
    def work():
        send()
        send()

    work()

    assert told == [1]


def test_every_signal_is_delivered_even_if_a_handler_raises():
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append("term"))

    @uninterrupted
    def work():
        send()
        signal.raise_signal(signal.SIGUSR2)
        signal.raise_signal(signal.SIGTERM)

    try:
        with pytest.raises(Again) as raised:
            work()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    assert isinstance(raised.value.__context__, Stop)
    assert told == ["term"]


def test_an_error_of_the_work_is_the_context_of_what_the_handler_raises():
    @uninterrupted
    def work():
        send()
        raise ValueError("of the work")

    with pytest.raises(Stop) as raised:
        work()

    assert isinstance(raised.value.__context__, ValueError)


def test_signals_that_no_handler_takes_are_left_alone():
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        uninterrupted(send)()
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_other_threads_have_no_part_in_it():
    found = []

    def elsewhere():
        found.append(enter())
        found.append(deferring())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    assert found == [False, False]


def test_functions_of_the_user_are_interrupted():
    reached = []

    @uninterrupted
    def work():
        with lifted():
            send()
            reached.append("after the signal")

    with pytest.raises(Stop):
        work()

    assert reached == []


def test_a_signal_that_came_before_reaches_the_function_of_the_user():
    reached = []

    @uninterrupted
    def work():
        send()
        with lifted():
            reached.append("in the function")

    with pytest.raises(Stop):
        work()

    assert reached == []


def test_after_a_function_of_the_user_signals_are_deferred_again():
    @uninterrupted
    def work():
        with lifted():
            pass
        send()
        return pending()

    with pytest.raises(Stop):
        work()


def test_a_signal_that_comes_again_breaks_through_in_the_end(monkeypatch):
    monkeypatch.setattr(signals, "monotonic", iter([10.0, 10.0 + signals.PATIENCE_S]).__next__)
    reached = []

    @uninterrupted
    def work():
        send()
        reached.append("once")
        send()
        reached.append("twice")

    with pytest.raises(Stop):
        work()

    assert reached == ["once"]


def test_waiting_looks_for_signals():
    @uninterrupted
    def work():
        send()
        pause(60)

    with pytest.raises(Stop):
        work()


def test_where_it_does_no_harm_handlers_are_called():
    reached = []

    @uninterrupted
    def work():
        check_signals()
        reached.append("no signal")
        send()
        check_signals()
        reached.append("a signal")

    with pytest.raises(Stop):
        work()

    assert reached == ["no signal"]


def test_a_body_gives_way_only_when_a_signal_came():
    async def body():
        await give_way()
        send()
        await give_way()
        return "the rest"

    @uninterrupted
    def work():
        coroutine = body()
        with pytest.raises(GaveWay):
            run_inline(coroutine, movable=True)
        rest = []
        thread = threading.Thread(target=lambda: rest.append(run_inline(coroutine)))
        thread.start()
        thread.join()
        outcome.extend([*rest, "here"])

    outcome: list[str] = []
    with pytest.raises(Stop):
        work()

    assert outcome == ["the rest", "here"]


def test_a_body_that_cannot_be_moved_goes_on_where_it_is():
    async def body():
        send()
        await give_way()
        return "here"

    found = []
    with pytest.raises(Stop):
        uninterrupted(lambda: found.append(run_inline(body())))()

    assert found == ["here"]


def test_waiting_for_a_lock_gives_way_to_a_signal():
    lock = threading.Lock()
    lock.acquire()

    @uninterrupted
    def work():
        send()
        with pytest.raises(GaveWay):
            run_inline(acquire(lock), movable=True)

    with pytest.raises(Stop):
        work()


def test_a_forked_child_has_the_thread_that_forked_for_its_main_thread():
    read, write = os.pipe()

    def elsewhere():
        child = os.fork()
        if not child:
            entered = enter()
            leave()
            os.write(write, b"y" if entered else b"n")
            os._exit(0)
        os.waitpid(child, 0)

    @uninterrupted
    def work():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    work()

    assert os.read(read, 1) == b"y"
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("at", range(40))
def test_an_interrupt_at_any_line_leaves_the_handlers_in_place(at):
    """Also at the lines that put the stand-in in place, and take it away."""
    handlers = [signal.getsignal(number) for number in signals._NUMBERS]
    lines = 0

    def trace(frame, *_):
        nonlocal lines
        if frame.f_code.co_filename != signals.__file__:
            return None
        lines += 1
        if lines == at + 1:
            sys.settrace(None)
            send()
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        uninterrupted(lambda: None)()
    except Stop:
        pass
    finally:
        sys.settrace(outer)
    uninterrupted(lambda: None)()

    assert [signal.getsignal(number) for number in signals._NUMBERS] == handlers
