"""Futures: settling, waiting, awaiting, cancelling, and what they refuse."""

import asyncio
import copy
import gc
import inspect
import logging
import pickle
import signal
import threading
import time
import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorstore

import tensorstore_py as ts
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import Copying, Future, Promise, Settleable, Work, WriteFutures
from tensorstore_py._runtime.loop import library_loop
from tensorstore_py.errors import AbortedError
from tests.runtime.processes import run_script


async def seven():
    return 7


def note(calls, future):
    calls.append(future.result())


def settle_from_a_thread(promise, value):
    thread = threading.Thread(target=promise.set_result, args=(value,))
    thread.start()
    return thread


def test_a_plain_value_is_done():
    future = Future(3)
    assert (future.result(), future.done(), future.cancelled()) == (3, True, False)
    assert future.exception() is None
    assert not future.cancel()


def test_a_future_is_returned_as_it_is():
    future = Future(3)
    same: Future[int] = Future(future)
    assert same is future


def test_type_parameters_cost_nothing():
    promise, future = Promise[int].new()
    promise.set_result(5)
    assert future.result() == 5
    assert Future[int](4).result() == 4


class TestSettling:
    def test_the_first_outcome_counts(self):
        promise, future = Promise[Any].new()
        promise.set_result(1)
        promise.set_result(2)
        promise.set_exception(KeyError())
        assert future.result() == 1
        assert not future.cancel()

    def test_an_error_is_raised_and_shown(self):
        promise, future = Promise[Any].new()
        error = KeyError("x")
        promise.set_exception(error)
        assert future.exception() is error
        for _ in range(2):
            with pytest.raises(KeyError):
                future.result()

    def test_result_blocks_until_another_thread_settles(self):
        promise, future = Promise[Any].new()
        thread = settle_from_a_thread(promise, [4])
        assert future.result() == [4]
        thread.join()

    def test_every_waiting_thread_wakes(self):
        promise, future = Promise[Any].new()
        results: list[int] = []
        threads = [
            threading.Thread(target=lambda: results.append(future.result())) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        promise.set_result(1)
        for thread in threads:
            thread.join()
        assert results == [1] * 8

    def test_settled_exactly_once_however_many_threads_try(self):
        for _ in range(20):
            promise, future = Promise[Any].new()
            calls: list[int] = []
            future.add_done_callback(partial(note, calls))
            threads = [settle_from_a_thread(promise, number) for number in range(4)]
            for thread in threads:
                thread.join()
            assert calls == [future.result()]


class TestLimits:
    def test_timeout(self):
        _, future = Promise[Any].new()
        with pytest.raises(TimeoutError):
            future.result(timeout=0.001)
        with pytest.raises(TimeoutError):
            future.exception(timeout=0)
        assert not future.done()

    def test_deadline(self):
        _, future = Promise[Any].new()
        with pytest.raises(TimeoutError):
            future.result(deadline=time.time() + 0.001)
        with pytest.raises(TimeoutError):
            future.result(deadline=time.time() - 1000)

    def test_the_nearer_of_the_two_counts(self):
        _, future = Promise[Any].new()
        with pytest.raises(TimeoutError):
            future.result(timeout=1000, deadline=time.time() + 0.001)

    @pytest.mark.parametrize("timeout", [float("inf"), 1e300])
    def test_limits_beyond_what_a_lock_can_wait(self, timeout):
        promise, future = Promise[Any].new()
        thread = settle_from_a_thread(promise, 1)
        assert future.result(timeout=timeout, deadline=timeout) == 1
        thread.join()

    def test_done_in_time(self):
        assert Future(1).result(timeout=0) == 1

    def test_polling_leaves_nothing_behind(self):
        promise, future = Promise[Any].new()
        for _ in range(5):
            with pytest.raises(TimeoutError):
                future.result(timeout=0)
        promise.set_result(None)
        assert not future._waiters

    def test_a_limited_wait_does_not_run_the_work_on_the_waiting_thread(self):
        async def who():
            return threading.get_ident()

        assert start(True, who).result(timeout=30) != threading.get_ident()


class TestCallbacks:
    def test_called_with_the_future_once_settled(self):
        promise, future = Promise[Any].new()
        calls: list[Future] = []
        future.add_done_callback(calls.append)
        assert not calls
        promise.set_result(1)
        assert calls == [future]

    def test_called_at_once_when_done(self):
        calls: list[Future] = []
        future = Future(1)
        future.add_done_callback(calls.append)
        assert calls == [future]

    def test_removed_by_value_every_time(self):
        promise, future = Promise[Any].new()
        calls: list[Future] = []
        future.add_done_callback(calls.append)
        future.add_done_callback(calls.append)
        assert future.remove_done_callback(calls.append) == 2
        assert future.remove_done_callback(calls.append) == 0
        promise.set_result(1)
        assert not calls

    def test_an_exception_is_logged_and_the_others_still_run(self, caplog):
        promise, future = Promise[Any].new()
        calls: list[Future] = []

        def broken(_):
            raise ZeroDivisionError

        future.add_done_callback(broken)
        future.add_done_callback(calls.append)
        with caplog.at_level(logging.ERROR):
            promise.set_result(1)
        assert calls == [future]
        assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]

    def test_a_callback_may_use_the_future(self):
        promise, future = Promise[Any].new()
        calls: list[int] = []

        def again(each):
            each.add_done_callback(lambda inner: calls.append(inner.result()))

        future.add_done_callback(again)
        promise.set_result(3)
        assert calls == [3]


class TestCancelling:
    def test_marks_it_as_cancelled(self):
        promise, future = Promise[Any].new()
        assert future.cancel()
        assert not future.cancel()
        assert (future.done(), future.cancelled()) == (True, True)
        for ask in (future.result, future.exception):
            with pytest.raises(asyncio.CancelledError):
                ask()
        promise.set_result(5)
        assert future.cancelled()

    def test_wakes_whoever_waits(self):
        _, future = Promise[Any].new()
        outcome: list[type] = []
        waiting = threading.Event()

        def wait():
            waiting.set()
            try:
                future.result()
            except asyncio.CancelledError as error:
                outcome.append(type(error))

        thread = threading.Thread(target=wait)
        thread.start()
        waiting.wait()
        future.cancel()
        thread.join()
        assert outcome == [asyncio.CancelledError]

    async def test_of_the_awaiting_task_reaches_the_future(self):
        _, future = Promise[Any].new()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, 0.001)
        assert future.cancelled()

    async def test_of_the_future_reaches_the_awaiting_task(self):
        _, future = Promise[Any].new()

        async def wait():
            await future

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    async def test_of_an_adopted_coroutine_reaches_it(self):
        begun, stopped = asyncio.Event(), asyncio.Event()

        async def endless():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        future: Future[None] = Future(endless())
        await begun.wait()
        future.cancel()
        await stopped.wait()
        assert future.cancelled()

    async def test_before_an_adopted_coroutine_began_never_begins_it(self):
        ran = []

        async def body():
            ran.append(True)

        future: Future[None] = Future(body())
        future.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not ran


class TestAwaiting:
    async def test_done_or_not(self):
        assert await Future(2) == 2
        promise, future = Promise[Any].new()
        thread = settle_from_a_thread(promise, 3)
        assert await future == 3
        assert await future == 3
        thread.join()

    async def test_raises_the_error(self):
        promise, future = Promise[Any].new()
        asyncio.get_running_loop().call_soon(promise.set_exception, KeyError("x"))
        with pytest.raises(KeyError):
            await future

    async def test_by_many_tasks(self):
        promise, future = Promise[Any].new()

        async def wait():
            return await future

        tasks = [asyncio.ensure_future(wait()) for _ in range(5)]
        await asyncio.sleep(0)
        promise.set_result(1)
        assert await asyncio.gather(*tasks) == [1] * 5

    def test_in_two_loops_one_after_the_other(self):
        promise, future = Promise[Any].new()

        async def give_up():
            waiter = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            assert not waiter.done()
            promise.set_result(9)
            return await waiter

        async def wait():
            return await future

        assert asyncio.run(give_up()) == 9
        assert asyncio.run(wait()) == 9

    def test_in_two_loops_at_the_same_time(self):
        promise, future = Promise[Any].new()
        ready = threading.Barrier(3)
        results: list[int] = []

        async def wait():
            ready.wait()
            return await future

        threads = [
            threading.Thread(target=lambda: results.append(asyncio.run(wait()))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        ready.wait()
        promise.set_result(4)
        for thread in threads:
            thread.join()
        assert results == [4, 4]

    def test_a_loop_that_closed_meanwhile_is_no_trouble(self, caplog):
        promise, future = Promise[Any].new()
        loop = asyncio.new_event_loop()

        async def wait():
            await future

        coroutine = wait()
        task = loop.create_task(coroutine)
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        promise.set_result(1)
        assert not caplog.records
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine.close()


class TestAdopting:
    def test_a_coroutine_needs_a_loop(self):
        with pytest.raises(ValueError, match="no event loop specified"):
            Future(seven())

    async def test_a_coroutine_runs_on_the_running_loop(self):
        async def where():
            return asyncio.get_running_loop()

        assert await Future(where()) is asyncio.get_running_loop()

    def test_a_coroutine_runs_on_the_loop_given(self):
        async def where():
            return asyncio.get_running_loop()

        assert Future(where(), loop=library_loop()).result() is library_loop()

    def test_its_error_is_the_outcome(self):
        async def fail():
            raise KeyError("x")

        assert isinstance(Future(fail(), loop=library_loop()).exception(), KeyError)


class TestDroppedPromise:
    def test_its_future_fails_instead_of_waiting_for_ever(self):
        promise, future = Promise[Any].new()
        errors = []
        future.add_done_callback(lambda done: errors.append(done.exception()))
        del promise

        assert future.done()
        assert isinstance(errors[0], AbortedError)

    def test_a_settled_one_is_no_trouble(self):
        promise, future = Promise[Any].new()
        promise.set_result(3)
        del promise

        assert future.result() == 3


class Noted(Work):
    """Work that notes what is asked of it; to run it settles its Future with `value`."""

    def __init__(self, value=None):
        self.asked = []
        self.value = value
        self.future: Future[Any] = Future()
        self.future._work = self

    def run(self):
        self.asked.append("run")
        if self.value is not None:
            self.future._fulfil(self.value)
        return self.value is not None

    def cancel(self):
        assert self.future.cancelled()
        self.asked.append("cancel")

    def start(self):
        self.asked.append("start")


class TestWork:
    """What a Future asks of its work, and when it lets go of it."""

    def test_is_done_by_the_thread_that_asks_for_the_result(self):
        work = Noted(7)
        assert work.future.result() == 7
        assert work.asked == ["run"]

    def test_is_started_by_a_caller_that_asks_with_a_limit(self):
        work = Noted(7)
        with pytest.raises(TimeoutError):
            work.future.result(timeout=0)
        assert work.asked == ["start"]

    def test_is_started_by_a_caller_that_waits_because_it_has_begun(self):
        class Begun(Noted):
            def start(self):
                self.future._fulfil(7)

        work = Begun()
        assert work.future.result() == 7
        assert work.asked == ["run"]

    def test_is_started_by_a_caller_that_polls_or_adds_a_callback(self):
        work = Noted(7)
        assert not work.future.done()
        work.future.add_done_callback(print)
        work.future.force()
        assert work.asked == ["start"] * 3
        work.future.follow(print)
        assert work.asked == ["start"] * 3

    def test_is_cancelled_once(self):
        work = Noted(7)
        assert work.future.cancel()
        assert not work.future.cancel()
        assert work.asked == ["cancel"]

    def test_is_left_alone_when_it_is_done(self):
        work = Noted(7)
        work.future._fulfil(7)
        assert work.future.result(timeout=0) == 7
        assert work.future.done()
        assert not work.future.cancel()
        assert not work.future.claim()
        work.future.force()
        assert work.asked == []

    @pytest.mark.parametrize("end", ["value", "error", "cancel"])
    def test_is_let_go_of_at_the_end(self, end):
        work = Noted()
        future, gone = work.future, weakref.ref(work.future)
        if end == "value":
            future._fulfil(7)
        elif end == "error":
            future._fail(KeyError())
        else:
            future.cancel()
        assert future._work is None
        del future, work.future
        assert gone() is None

    def test_by_its_functions(self):
        asked = []
        settle: Settleable[int] = Settleable()

        def run():
            asked.append("run")
            settle.value(7)
            return True

        settle.attach(run, lambda: asked.append("cancel"), lambda: asked.append("start"))
        settle.future.force()
        assert settle.future.result() == 7
        settle.error(KeyError("late"))
        assert settle.future.result() == 7
        assert asked == ["start", "run"]

    def test_that_can_only_be_cancelled(self):
        asked = []
        settle: Settleable[int] = Settleable()
        settle.attach(None, lambda: asked.append("cancel"), None)
        settle.future.force()
        assert not settle.future.claim()
        assert settle.future.cancel()
        assert asked == ["cancel"]


class TestOwnLoopThread:
    def test_blocking_it_is_refused(self):
        async def block():
            promise, future = Promise[Any].new()
            future.result()
            promise.set_result(None)

        with pytest.raises(RuntimeError, match="await the Future"):
            start(False, block).result()

    def test_a_done_future_is_no_trouble_there(self):
        async def ask():
            return Future(1).result()

        assert start(False, ask).result() == 1

    def test_awaiting_there_is_fine(self):
        async def ask():
            return await start(True, seven) + await start(False, seven)

        assert start(False, ask).result() == 14


def test_a_result_is_freed_with_its_last_holder():
    """Not by the cycle collector, some time: results are large."""

    async def make():
        return np.zeros(10)

    gc.disable()
    try:
        for inline in (True, False):
            future = start(inline, make)
            array = weakref.ref(future.result())
            link = weakref.ref(future)
            # What settled it may still be on its way out of that call: ask it for one more thing.
            start(False, seven).result()
            start(True, seven).result(timeout=30)
            del future
            assert link() is None
            assert array() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("started_with", [signal.SIG_IGN, signal.default_int_handler])
def test_ctrl_c_interrupts_a_blocked_main_thread(started_with):
    before = signal.signal(signal.SIGINT, started_with)
    try:
        out = run_script(BLOCKED)
    finally:
        signal.signal(signal.SIGINT, before)

    assert out == "interrupted False\n"


BLOCKED = """
import os, signal, threading
from tensorstore_py._runtime.future import Promise
promise, future = Promise.new()
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    future.result()
except KeyboardInterrupt:
    print("interrupted", future.done())
"""


def pair():
    made: tuple[Promise[str], Future[str]] = Promise.new()
    return made


def test_a_repr_says_how_it_stands():
    promise, future = pair()
    assert repr(future) == "<Future pending>"
    promise.set_result("text")
    assert repr(future) == "<Future done: str>"
    promise, future = pair()
    promise.set_exception(KeyError("x"))
    assert repr(future) == "<Future failed: KeyError>"
    promise, future = pair()
    future.cancel()
    assert repr(future) == "<Future cancelled>"


REMEDY = r"call \.result\(\) or await it"


@pytest.fixture
def future():
    # Loaded when it is asked for; Futures stand for groups from then on.
    assert ts.Group.__name__ == "Group"
    return ts.Future(3)


@pytest.mark.parametrize(
    "name", ["shape", "dtype", "read", "keys", "mean", "create_group", "value"]
)
def test_an_attribute_of_the_value_names_the_remedy(future, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; {REMEDY}"):
        getattr(future, name)
    assert not hasattr(future, name)


def test_every_public_attribute_of_what_is_opened_is_known(future):
    for value in (ts.TensorStore, ts.Group, ts.KvStore):
        for name in dir(value):
            if not name.startswith("_"):
                with pytest.raises(AttributeError, match=REMEDY):
                    getattr(future, name)


@pytest.mark.parametrize(
    "mistake",
    [
        np.asarray,
        np.sum,
        lambda future: np.ones(2) + future,
        lambda future: future[0],
        lambda future: future[0, 1:],
        lambda future: future.__setitem__(0, 1),
        len,
        list,
        iter,
        float,
        int,
        abs,
        lambda future: future + 1,
        lambda future: 1 + future,
        lambda future: -future,
        lambda future: future @ future,
        lambda future: future < 2,
        lambda future: 1 in future,
        lambda future: future.__enter__(),
    ],
)
def test_what_only_the_value_can_do_names_the_remedy(future, mistake):
    with pytest.raises(TypeError, match=REMEDY):
        for _ in mistake(future):
            pass


def test_a_with_statement_names_the_remedy(future):
    with pytest.raises(TypeError, match=REMEDY), future:
        pass


def test_a_future_written_to_an_array_names_the_remedy(future):
    store = ts.array(np.zeros(3, np.uint8))

    with pytest.raises(TypeError, match=REMEDY):
        store[0] = future
    with pytest.raises(TypeError, match=REMEDY):
        store.write(store.read()).result()


async def test_all_else_of_a_future_is_as_before(future):
    assert future
    assert future == future  # noqa: PLR0124 - equality is identity
    assert future != ts.Future(3)
    assert {future: 1}[future] == 1
    assert not isinstance(future, Iterable)
    assert inspect.isawaitable(future)
    assert not hasattr(future, "nonsense")
    assert not hasattr(future, "__iter__")
    assert list(await asyncio.gather(future, future)) == [3, 3]
    assert [future, None].index(future) == 0


def test_what_is_not_there_is_not_listed(future):
    assert "shape" not in dir(future)
    assert {"result", "done", "exception", "cancel"} <= set(dir(future))
    assert dict(inspect.getmembers(future))["result"]() == 3


def _live():
    promise: ts.Promise[int]
    future: ts.Future[int]
    promise, future = ts.Promise.new()
    spec = {"driver": "zarr3", "kvstore": "memory://", "dtype": "int8", "schema": {"rank": 0}}
    store = ts.open(spec, create=True, domain=ts.IndexDomain(rank=0)).result()
    return [promise, future, store.write(3), store.read(), ts.Batch(), ts.Transaction()]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_live_objects_say_so(again):
    for each in _live():
        with pytest.raises(TypeError, match=f"a {type(each).__name__} can be neither copied"):
            again(each)


def both_moments():
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
    copied, committed, write = both_moments()
    copied.set_result(None)
    assert (write.copy.done(), write.done()) == (True, False)
    with pytest.raises(TimeoutError):
        write.result(timeout=0)
    committed.set_result(None)
    assert write.done()
    assert write.result() is None
    assert write.exception() is None


def test_an_error_shows_at_commit():
    _, committed, write = both_moments()
    committed.set_exception(ValueError("full"))
    assert isinstance(write.exception(), ValueError)
    with pytest.raises(ValueError, match="full"):
        write.result()


def test_cancelling_cancels_both():
    _copied, _committed, write = both_moments()
    assert write.cancel()
    assert write.cancelled()
    assert write.copy.cancelled()
    assert not write.cancel()


def test_callbacks_are_those_of_commit():
    _, committed, write = both_moments()
    calls: list[Future] = []
    write.add_done_callback(calls.append)
    write.add_done_callback(print)
    assert write.remove_done_callback(print) == 1
    committed.set_result(None)
    assert calls == [write.commit]


async def test_awaiting():
    _, committed, write = both_moments()
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
