"""Jobs reach the workers exactly when another thread is needed for them."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

from tensorstore_py._runtime import submission_queue as module
from tensorstore_py._runtime.execution import PendingBody, start
from tensorstore_py._runtime.executors import operations, width
from tensorstore_py._runtime.submission_queue import SubmissionQueue, flush


class NoTicker(SubmissionQueue):
    """Nothing happens here by itself."""

    def _start_ticker(self):
        pass


@pytest.fixture
def queue(monkeypatch):
    queue = NoTicker()
    monkeypatch.setattr(module, "_queue", queue)
    return queue


@pytest.fixture
def sent(queue, monkeypatch):
    """What workers are to do for this queue; they do it when the test says so."""
    found: list[Callable[[], None]] = []

    def noted(work):
        (found.append if work.__self__ is queue else submit)(work)

    submit = operations.submit
    monkeypatch.setattr(module, "operations", SimpleNamespace(submit=noted, closed=False))
    return found


async def nothing():
    return 7


def test_a_result_asked_for_at_once_wakes_no_worker(sent):
    for _ in range(100):
        start(True, nothing).result()

    assert sent == []


def test_a_job_whose_result_is_not_asked_for_begins_all_the_same():
    begun = threading.Event()

    async def work():
        begun.set()

    future = start(True, work)

    assert begun.wait(30)
    future.result(30)


def test_jobs_begin_although_the_ticker_fell_asleep():
    for _ in range(3):
        begun = threading.Event()

        async def work(begun=begun):
            begun.set()

        start(True, work)
        assert begun.wait(30)
        while module._queue.awake:
            threading.Event().wait(0.001)


def test_workers_take_many_jobs_at_a_time(sent):
    futures = [start(True, nothing) for _ in range(500)]
    flush()
    turns = 0
    while sent:
        sent.pop()()
        turns += 1

    assert all(future.done() for future in futures)
    assert turns <= 500 / 16 + width()  # a worker takes up to sixteen at a time


def test_what_waits_begins_when_the_result_of_another_is_asked_for():
    begun = threading.Event()

    async def wait():
        return begun.wait(30)

    async def begin():
        begun.set()

    first, second = start(True, wait), start(True, begin)

    assert first.result()  # this thread runs it, so a worker must have run the second
    second.result()


def test_many_threads_submit_at_once_and_nothing_is_lost():
    done = []

    async def work(number):
        done.append(number)

    def submit_many(first):
        for number in range(first, first + 200):
            start(True, partial(work, number))

    threads = [threading.Thread(target=submit_many, args=(200 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start(True, nothing).result(30)
    until = threading.Event()
    for _ in range(3000):
        if len(done) == 800:
            break
        until.wait(0.01)

    assert sorted(done) == list(range(800))


def test_awaiting_and_polling_send_the_job_to_the_pool():
    async def main():
        return await start(True, nothing)

    assert asyncio.run(main()) == 7

    future = start(True, nothing)
    while not future.done():
        threading.Event().wait(0.001)
    assert future.result() == 7


class Registered(PendingBody):
    """A body that says whether it is short, and notes that it ran."""

    def __init__(self, ran, short=True):
        self.ran = ran
        self.is_short = short

    @property
    def short(self):
        return self.is_short

    async def __call__(self):
        self.ran.append(self)
        return len(self.ran)

    def withdraw(self):
        raise AssertionError


class TestShortJobs:
    """One thread does them sooner than several."""

    @pytest.fixture
    def ran(self):
        return []

    @pytest.fixture
    def tick(self, queue, monkeypatch):
        """Lets a ticker see the queue after each of these actions."""
        sleep, mine = time.sleep, threading.get_ident()

        class EnoughError(Exception):
            pass

        def run(*actions):
            left = list(actions)

            def act(seconds):
                if threading.get_ident() != mine:
                    sleep(seconds)
                elif left:
                    left.pop(0)()
                else:
                    raise EnoughError

            monkeypatch.setattr(module, "sleep", act)
            queue.bell.put(None)
            with pytest.raises(EnoughError):
                queue.tick(queue.bell)

        return run

    @staticmethod
    def asked(ran, count, *, short=True):
        return [start(True, Registered(ran, short)) for _ in range(count)]

    @staticmethod
    def work(sent):
        """Has one worker at a time do what there is; how often one was sent."""
        times = 0
        while sent:
            assert len(sent) == 1
            sent.pop()()
            times += 1
        return times

    @pytest.mark.parametrize("step", [1, -1], ids=["forwards", "backwards"])
    def test_are_left_to_the_threads_that_ask_for_their_results(self, ran, sent, step):
        for future in self.asked(ran, 40)[::step]:
            future.result()
        assert (len(ran), sent) == (40, [])

    def test_that_somebody_waits_for_elsewhere_get_one_worker(self, ran, sent):
        futures = self.asked(ran, 40)
        for _ in range(3):
            flush()
            assert not futures[-1].done()
        assert len(sent) == 1
        assert self.work(sent) == 3  # the thread that goes on after each turn of sixteen
        assert [future.result() for future in futures] == list(range(1, 41))

    def test_those_that_are_not_get_all_workers(self, ran, sent):
        futures = self.asked(ran, 40, short=False)
        flush()
        assert len(sent) == width()
        while sent:
            sent.pop()()
        assert [future.done() for future in futures] == [True] * 40

    def test_a_thread_that_asks_for_one_that_is_not_is_helped_by_the_others(self, ran, sent):
        futures = self.asked(ran, 40, short=False)
        futures[0].result()
        assert len(sent) == max(1, width() - 1)
        assert len(ran) == 1

    def test_get_one_worker_when_no_thread_waits(self, ran, sent, tick):
        futures = []

        def ask():
            futures.extend(self.asked(ran, 40))

        tick(ask, *[int] * 60)
        assert len(sent) == 1
        assert self.work(sent) == 3
        assert len(ran) == 40
        assert all(future.done() for future in futures)

    def test_others_get_all_when_no_thread_waits(self, ran, sent, tick):
        futures = []

        def ask():
            futures.extend(self.asked(ran, 40, short=False))

        tick(ask, *[int] * 20)
        assert len(sent) == width()
        assert not ran

    def test_are_left_to_the_caller_that_runs_them_one_after_the_other(
        self, ran, sent, tick, monkeypatch
    ):
        monkeypatch.setattr(module, "interpreter_lock", lambda: True)
        futures = []

        def ask():
            futures.extend(self.asked(ran, 90))

        def run_one():
            futures.pop(0).result()

        tick(ask, *[run_one] * 60)
        assert (len(ran), sent) == (60, [])
        tick(int, int)  # no thread ran any between these
        assert len(sent) == 1
        self.work(sent)
        assert [future.done() for future in futures] == [True] * 30

    def test_without_an_interpreter_lock_jobs_wait_for_one_tick(self, ran, sent, tick, monkeypatch):
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        futures = []

        def ask():
            futures.extend(self.asked(ran, 40, short=False))

        tick(ask)
        assert len(sent) == width()

    def test_one_left_behind_is_run_although_callers_go_on(self, ran, sent, tick):
        left = []

        def leave():
            left.extend(self.asked(ran, 1))

        def go_on():
            self.asked(ran, 1)[0].result()

        tick(leave, *[go_on] * 60)
        assert len(sent) == 1
        assert len(ran) == 60
        self.work(sent)
        assert left[0].done()

    def test_one_left_behind_is_run_by_a_real_worker(self, ran):
        begun = threading.Event()

        class Last(Registered):
            async def __call__(self):
                begun.set()

        left = start(True, Last(ran))
        while not begun.is_set():
            self.asked(ran, 1)[0].result()
        left.result(30)
