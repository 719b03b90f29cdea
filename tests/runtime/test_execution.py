"""Bodies run in their mode: inline to their end, or on the library's loop."""

import asyncio
import contextvars
import threading

import pytest

from tensorstore_py._runtime.execution import (
    Deferred,
    InlineSuspendError,
    Job,
    PendingBody,
    completion_of,
    current_job,
    run_inline,
    start,
)
from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.loop import library_loop
from tests.runtime.processes import occupy_workers


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


async def who():
    return threading.get_ident()


@pytest.mark.parametrize("inline", [True, False])
def test_an_error_is_the_outcome(inline):
    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        start(inline, fail).result()


class TestInline:
    def test_a_result_that_has_not_begun_is_worked_out_by_the_thread_that_asks(self):
        free = occupy_workers()
        try:
            assert start(True, who).result() == threading.get_ident()
        finally:
            free.set()

    def test_runs_without_being_asked(self):
        done = threading.Event()
        future = start(True, who)
        future.add_done_callback(lambda _: done.set())
        assert done.wait(30)
        assert future.result() != threading.get_ident()

    def test_cancelled_before_it_began_it_never_begins(self):
        runs: list[int] = []

        async def body():
            runs.append(1)

        free = occupy_workers()
        future = start(True, body)
        assert future.cancel()
        # Once all workers are inside something else, none is left inside this.
        free.set()
        occupy_workers().set()
        assert not runs
        with pytest.raises(asyncio.CancelledError):
            future.result()

    def test_cancelled_while_it_runs_it_gets_the_cancellation(self):
        begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
        seen: list[bool] = []

        async def body():
            job = current_job()
            assert job is not None
            begun.set()
            go_on.wait()
            seen.append(job.cancelled)
            ended.set()

        future = start(True, body)
        begun.wait()
        future.cancel()
        assert future.cancelled()
        go_on.set()
        assert ended.wait(30)
        assert seen == [True]

    def test_an_outer_job_is_back_after_an_inner_one_ran_on_its_thread(self):
        async def outer():
            mine = current_job()
            start(True, who).result()
            return mine is current_job()

        assert start(True, outer).result()
        assert current_job() is None

    def test_results_asked_for_inside_results_never_starve_the_pool(self):
        async def tree(depth):
            if not depth:
                return 1
            branches = [start(True, lambda: tree(depth - 1)) for _ in range(3)]
            return sum(branch.result() for branch in branches)

        assert start(True, lambda: tree(5)).result() == 3**5

    def test_sys_exit_in_user_code_reaches_the_asker_and_spares_the_worker(self):
        async def leave():
            raise SystemExit(3)

        for _ in range(2 * width()):
            with pytest.raises(SystemExit):
                start(True, leave).result(timeout=30)
        assert start(True, who).result(timeout=30) != threading.get_ident()


class TestOnTheLoop:
    def test_sees_the_callers_context(self):
        name = contextvars.ContextVar("name", default="nobody")

        async def ask():
            return name.get()

        name.set("caller")
        assert start(False, ask).result() == "caller"

    def test_cancelling_reaches_the_body(self):
        begun, stopped = threading.Event(), threading.Event()

        async def endless():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        future = start(False, endless)
        begun.wait()
        future.cancel()
        assert stopped.wait(30)

    def test_cancelled_before_it_began_it_never_begins(self):
        runs: list[int] = []
        hold, held = threading.Event(), threading.Event()

        async def block():
            held.set()
            hold.wait()

        async def body():
            runs.append(1)

        start(False, block)
        held.wait()
        future = start(False, body)
        future.cancel()
        hold.set()
        start(False, who).result()
        assert not runs

    def test_two_user_loops_in_a_row(self):
        async def use():
            return await start(False, who), await start(True, who)

        first = asyncio.run(use())
        second = asyncio.run(use())
        assert first[0] == second[0] != threading.get_ident()


@pytest.mark.parametrize("inline", [True, False])
class TestDeferred:
    def test_begins_when_it_is_started(self, inline):
        begun = []

        async def body():
            begun.append(1)
            return 5

        operations = [Deferred(inline, body) for _ in range(3)]
        assert not begun
        Deferred.begin_all(operations)
        assert [operation.future.result() for operation in operations] == [5] * 3
        assert len(begun) == 3

    def test_begins_when_its_result_is_awaited(self, inline):
        begun = []

        async def body():
            begun.append(1)

        operation = Deferred(inline, body)
        operation.future.result(timeout=60)
        Deferred.begin_all([operation])
        assert begun == [1]

    def test_can_be_cancelled_before(self, inline):
        async def body():
            raise AssertionError

        operation = Deferred(inline, body)
        assert operation.future.cancel()
        Deferred.begin_all([operation])
        assert operation.future.cancelled()


class Registered(PendingBody):
    """Notes what became of it."""

    def __init__(self):
        self.events = []

    async def __call__(self):
        self.events.append("ran")
        return 42

    def withdraw(self):
        self.events.append("withdrawn")


class TestPendingBody:
    @pytest.mark.parametrize("inline", [True, False])
    def test_it_runs_and_is_not_withdrawn(self, inline):
        body = Registered()
        assert start(inline, body).result() == 42
        assert body.events == ["ran"]

    def test_it_is_withdrawn_if_it_was_cancelled_before(self):
        free = occupy_workers()
        body = Registered()
        assert start(True, body).cancel()
        assert body.events == ["withdrawn"]
        free.set()

    def test_on_the_loop_too(self):
        body, busy = Registered(), threading.Event()
        library_loop().call_soon_threadsafe(busy.wait)
        assert start(False, body).cancel()
        busy.set()

        async def settled():
            return None

        start(False, settled).result()
        assert body.events == ["withdrawn"]


class TestJob:
    """Work that is run once, by the first thread that comes to it."""

    @pytest.fixture
    def body(self):
        return Registered()

    @pytest.fixture
    def job(self, body):
        return Job(body)

    def test_it_runs_once(self, job, body):
        future = job.future
        assert not job.begun
        assert job.run()
        assert job.begun
        assert not job.run()
        job.run_on_worker()
        job.start()
        assert future.result() == 42
        assert body.events == ["ran"]

    def test_its_future_runs_it(self, job, body):
        future = job.future
        assert future.claim()
        assert not future.claim()
        assert body.events == ["ran"]

    def test_cancelled_before_it_began_it_is_withdrawn_once(self, job, body):
        assert job.future.cancel()
        job.cancel()
        assert (job.begun, job.cancelled) == (True, True)
        assert not job.run()
        assert body.events == ["withdrawn"]

    def test_cancelled_while_it_runs_it_is_not_withdrawn(self):
        class Cancelling(Registered):
            async def __call__(self):
                self.events.append(future.cancel())
                return job.cancelled

        body = Cancelling()
        job = Job(body)
        future = job.future
        assert job.run()
        assert future.cancelled()
        assert (body.events, job.cancelled) == ([True], True)

    @pytest.mark.parametrize("begin", [Job.start, Job.start_as_part])
    def test_started_it_runs_on_another_thread(self, begin):
        job = Job(who)
        future = job.future
        for _ in range(3):
            begin(job)
        assert future.result(timeout=30) != threading.get_ident()

    def test_only_a_pending_body_that_says_so_is_short(self):
        class Short(Registered):
            short = True

        assert [Job(body).short for body in (who, Registered(), Short())] == [False, False, True]


class TestCompletion:
    """A Future that goes along with another, without its value."""

    def test_is_done_with_it(self):
        whole = completion_of(start(True, who))
        assert whole.result() is None

    def test_the_thread_that_asks_for_it_runs_the_work(self):
        job = Job(who)
        future = job.future
        assert completion_of(future).result() is None
        assert future.result() == threading.get_ident()

    def test_polling_it_hurries_the_work(self):
        done = threading.Event()
        future = start(True, who)
        future.follow(lambda _: done.set())
        whole = completion_of(future)
        while not whole.done():
            done.wait(0.001)
        assert future.result() != threading.get_ident()

    def test_fails_with_it(self):
        async def fail():
            raise KeyError("x")

        with pytest.raises(KeyError):
            completion_of(start(True, fail)).result()

    def test_is_cancelled_alone(self):
        free = occupy_workers()
        future = start(True, who)
        assert completion_of(future).cancel()
        free.set()
        assert future.result(timeout=30)
