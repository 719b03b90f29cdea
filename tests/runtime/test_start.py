import asyncio
import contextvars
import threading

import pytest

from tensorstore_py._runtime.loop import library_loop
from tensorstore_py._runtime.start import Announced, Deferred, Job, current_job, start, together
from tensorstore_py._runtime.workers import width
from tests.runtime.processes import occupy_workers


async def who():
    return threading.get_ident()


class TestInline:
    def test_a_result_nobody_began_is_worked_out_by_whoever_asks(self):
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

    def test_runs_once(self):
        runs: list[int] = []

        async def body():
            runs.append(1)
            return len(runs)

        for _ in range(50):
            runs.clear()
            future = start(True, body)
            assert future.result() == 1
            assert len(runs) == 1

    def test_its_error_is_the_outcome(self):
        async def fail():
            raise KeyError("x")

        with pytest.raises(KeyError):
            start(True, fail).result()

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

    def test_cancelled_while_it_runs_it_is_told(self):
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
    def test_runs_on_the_library_loop(self):
        async def where():
            return asyncio.get_running_loop()

        assert start(False, where).result() is library_loop()

    def test_its_error_is_the_outcome(self):
        async def fail():
            await asyncio.sleep(0)
            raise KeyError("x")

        with pytest.raises(KeyError):
            start(False, fail).result()

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
        assert first[0] == second[0]


@pytest.mark.parametrize("inline", [True, False])
class TestDeferred:
    def test_begins_when_it_is_told(self, inline):
        begun = []

        async def body():
            begun.append(1)
            return 5

        operations = [Deferred(inline, body) for _ in range(3)]
        assert not begun
        Deferred.begin_all(operations)
        assert [operation.future.result() for operation in operations] == [5] * 3
        assert len(begun) == 3

    def test_begins_when_somebody_waits(self, inline):
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


class Told(Announced):
    """Says what became of it."""

    def __init__(self):
        self.events = []

    async def __call__(self):
        self.events.append("ran")
        return 42

    def withdraw(self):
        self.events.append("withdrawn")


class TestAnnounced:
    @pytest.mark.parametrize("inline", [True, False])
    def test_it_runs_and_is_not_withdrawn(self, inline):
        told = Told()
        assert start(inline, told).result() == 42
        assert told.events == ["ran"]

    def test_it_is_withdrawn_if_it_was_cancelled_before(self):
        free = occupy_workers()
        told = Told()
        assert start(True, told).cancel()
        assert told.events == ["withdrawn"]
        free.set()

    def test_on_the_loop_too(self):
        told, busy = Told(), threading.Event()
        library_loop().call_soon_threadsafe(busy.wait)
        assert start(False, told).cancel()
        busy.set()

        async def settled():
            return None

        start(False, settled).result()
        assert told.events == ["withdrawn"]


class TestJob:
    """Work that is run once, by whoever comes first."""

    @pytest.fixture
    def told(self):
        return Told()

    @pytest.fixture
    def job(self, told):
        return Job(told)

    def test_a_claim_runs_it_here(self, job, told):
        future = job.future
        assert not job.begun
        assert job.claim()
        assert job.begun
        assert future.result() == 42
        assert not job.claim()
        assert not job.run_here()
        job.run()
        assert told.events == ["ran"]

    def test_the_future_claims_it(self, job, told):
        future = job.future
        assert future.claim()
        assert not future.claim()
        assert told.events == ["ran"]

    def test_stopped_before_it_began_it_is_withdrawn_once(self, job, told):
        future = job.future
        assert future.cancel()
        job.stop()
        assert (job.begun, job.cancelled) == (True, True)
        assert not job.claim()
        assert told.events == ["withdrawn"]

    def test_stopped_while_it_runs_it_is_not_withdrawn(self):
        class Stopping(Told):
            async def __call__(self):
                self.events.append(future.cancel())
                return job.cancelled

        told = Stopping()
        job = Job(told)
        future = job.future
        assert job.claim()
        assert future.cancelled()
        assert (told.events, job.cancelled) == ([True], True)

    def test_hurried_it_is_begun_by_another_thread(self):
        job = Job(who)
        future = job.future
        for _ in range(3):
            job.hurry()
        assert future.result(timeout=30) != threading.get_ident()

    def test_hurrying_what_was_begun_hands_nothing_in(self, job, told):
        future = job.future
        job.claim()
        job.hurry()
        assert (future.result(), told.events) == (42, ["ran"])

    def test_carried_on_it_runs_on_another_thread(self):
        job = Job(who)
        future = job.future
        job.carry_on()
        assert future.result(timeout=30) != threading.get_ident()

    def test_only_what_is_announced_as_short_is_short(self):
        class Short(Told):
            short = True

        assert [Job(body).short for body in (who, Told(), Short())] == [False, False, True]


class TestTogether:
    """A Future that goes along with another, without its value."""

    def test_is_done_with_it(self):
        whole = together(start(True, who))
        assert whole.result() is None

    def test_who_asks_for_it_runs_the_work(self):
        job = Job(who)
        future = job.future
        assert together(future).result() is None
        assert future.result() == threading.get_ident()

    def test_who_polls_it_hurries_the_work(self):
        done = threading.Event()
        future = start(True, who)
        future.follow(lambda _: done.set())
        whole = together(future)
        while not whole.done():
            done.wait(0.001)
        assert future.result() != threading.get_ident()

    def test_fails_with_it(self):
        async def fail():
            raise KeyError("x")

        with pytest.raises(KeyError):
            together(start(True, fail)).result()

    def test_is_cancelled_alone(self):
        free = occupy_workers()
        future = start(True, who)
        assert together(future).cancel()
        free.set()
        assert future.result(timeout=30)
