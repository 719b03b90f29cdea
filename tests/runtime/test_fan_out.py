import asyncio
import itertools
import threading
from collections.abc import Callable

import pytest

from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.executors import on_worker, parts, submissions, width
from tensorstore_py._runtime.fan_out import fan_out, offload, to_thread, within
from tests.runtime.processes import occupy_workers

both = pytest.mark.parametrize("inline", [True, False])


def spread(inline, steps, work, count, width=None):
    """Run one fan-out to its end, in its execution mode."""
    return start(inline, lambda: fan_out(inline, steps, work, count=count, width=width)).result()


@both
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("wide", [None, 1, 2, 5])
def test_every_step_once(inline, count, wide):
    seen: list[int] = []

    async def work(step):
        seen.append(step)

    spread(inline, range(count), work, count, wide)
    assert sorted(seen) == list(range(count))


@both
def test_the_first_error_stops_the_rest(inline):
    seen: list[int] = []

    async def work(step):
        seen.append(step)
        if step == 3:
            raise KeyError(step)

    with pytest.raises(KeyError, match="3"):
        spread(inline, range(10_000), work, 10_000)
    # Every other thread or pump may be inside one more step, not in a batch of them.
    assert len(seen) < 200


def test_what_waits_for_a_device_is_done_by_more_threads_than_there_are_cores():
    together = threading.Barrier(2 * width())

    async def work(_step):
        together.wait(60)

    count = 2 * width()
    start(
        True, lambda: fan_out(True, range(count), work, count=count, width=count, waiting=True)
    ).result()


def test_of_a_store_that_allows_fewer_no_more_wait_at_a_time():
    together, lock = threading.Barrier(2), threading.Lock()
    inside, most, first = 0, 0, iter(range(2))

    async def work(_step):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        if next(first, None) is not None:
            together.wait(60)
        with lock:
            inside -= 1

    start(True, lambda: fan_out(True, range(98), work, count=98, width=2, waiting=True)).result()
    assert most == 2


def test_alone_nothing_runs_after_an_error():
    seen: list[int] = []

    async def work(step):
        seen.append(step)
        if step == 1:
            raise KeyError(step)

    for inline in (True, False):
        seen.clear()
        with pytest.raises(KeyError):
            spread(inline, range(100), work, 100, width=1)
        assert seen == [0, 1]


@both
def test_an_error_of_planning_is_the_outcome(inline):
    def steps():
        yield 0
        raise ZeroDivisionError

    async def work(step):
        pass

    with pytest.raises(ZeroDivisionError):
        spread(inline, steps(), work, 100)


@both
def test_steps_are_made_as_they_are_needed(inline):
    made, worked = [], []
    ahead: list[int] = []
    lock = threading.Lock()

    def steps():
        for step in range(2000):
            made.append(step)
            yield step

    async def work(step):
        with lock:
            worked.append(step)
            ahead.append(len(made) - len(worked))

    spread(inline, steps(), work, 2000, width=4)
    assert max(ahead) <= 4 * 16


@both
def test_width_bounds_how_many_run_at_a_time(inline):
    inside, most = [0], [0]
    lock = threading.Lock()

    async def work(_step):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        if not inline:
            await asyncio.sleep(0)
        with lock:
            inside[0] -= 1

    spread(inline, range(200), work, 200, width=3)
    assert 1 <= most[0] <= 3


def test_the_pool_helps():
    together = threading.Barrier(width() + 1 if width() == 1 else width())
    helpers: set[int] = set()

    async def work(step):
        helpers.add(threading.get_ident())
        if step < together.parties and width() > 1:
            together.wait(30)

    run_inline(fan_out(True, range(width()), work, count=width()))
    assert len(helpers) == width()


@pytest.mark.parametrize("count", [1, 2, 50, 5000])
def test_few_submissions(count):
    async def work(step):
        pass

    before = submissions()
    run_inline(fan_out(True, range(count), work, count=count))
    assert submissions() - before <= min(count, width()) - 1


class TestPieces:
    """Steps of pieces that may be too short: done alone, until they take long enough."""

    @pytest.fixture
    def judged(self, monkeypatch):
        """What a piece was found to take each time; to be set: whether that is worth sharing."""

        class Judge(list):
            worth = False

            def __call__(self, piece_s):
                self.append(piece_s)
                return self.found(piece_s)

            def found(self, _piece_s):
                return self.worth

        judge = Judge()
        monkeypatch.setattr("tensorstore_py._runtime.fan_out.interpreter_lock", lambda: True)
        monkeypatch.setattr("tensorstore_py._runtime.fan_out.worth_sharing", judge)
        return judge

    @pytest.fixture
    def asked(self):
        """How many helpers were asked for since."""
        before = submissions()
        return lambda: submissions() - before

    @staticmethod
    def drain(work, count=64, pieces=4, width=None):
        steps = iter(range(count))
        run_inline(fan_out(True, steps, work, count=count, width=width, step_pieces=pieces))

    def test_no_thread_is_asked_to_help_with_what_is_over_sooner(self, judged, asked):
        seen: list[int] = []

        async def work(step):
            seen.append(step)

        self.drain(work)
        assert (seen, asked()) == (list(range(64)), 0)
        assert len(judged) >= 1

    def test_helpers_come_where_it_is_worth_it(self, judged, asked):
        seen: list[int] = []
        judged.worth = True

        async def work(step):
            seen.append(step)

        self.drain(work)
        assert sorted(seen) == list(range(64))
        assert asked() == width() - 1

    @staticmethod
    def taking(monkeypatch, judged, taken):
        """Time passes as given: so much for each step, one after the other."""
        now = 0.0
        coming = iter(taken)
        monkeypatch.setattr("tensorstore_py._runtime.fan_out.perf_counter", lambda: now)
        judged.found = lambda piece_s: piece_s >= 5.0

        async def work(_step):
            nonlocal now
            now += next(coming)

        return work

    def test_the_second_is_tried_where_the_first_may_have_been_an_exception(
        self, judged, asked, monkeypatch
    ):
        self.drain(self.taking(monkeypatch, judged, [40.0] + [4.0] * 63), pieces=4)
        assert asked() == 0

    def test_two_in_a_row_bring_helpers(self, judged, asked, monkeypatch):
        work = self.taking(monkeypatch, judged, itertools.repeat(24.0))
        self.drain(work, pieces=4, width=2)
        assert asked() == 1

    def test_what_takes_no_time_says_nothing_of_others(self, judged, asked, monkeypatch):
        """As where chunks are missing at the beginning of an array."""
        taken = itertools.chain([0.0] * 40, itertools.repeat(24.0))
        self.drain(self.taking(monkeypatch, judged, taken), pieces=4, width=2)
        assert asked() == 1

    def test_fresh_memory_of_a_large_array_is_no_clear_case(self, judged, asked, monkeypatch):
        taken = [4000.0] + [4.0] * 199
        self.drain(self.taking(monkeypatch, judged, taken), count=200, pieces=4)
        assert asked() == 0

    def test_a_clear_case_needs_one(self, judged, asked, monkeypatch):
        self.drain(self.taking(monkeypatch, judged, itertools.repeat(400.0)), pieces=4)
        assert asked() == width() - 1
        assert len(judged) == 1

    @pytest.mark.parametrize("worth", [False, True])
    @pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
    def test_every_step_once_however_few(self, judged, worth, count):
        seen: list[int] = []
        judged.worth = worth

        async def work(step):
            seen.append(step)

        self.drain(work, count)
        assert sorted(seen) == list(range(count))

    def test_a_step_alone_is_not_judged(self, judged, asked):
        async def work(_step):
            pass

        self.drain(work, count=1)
        self.drain(work, width=1)
        assert (judged, asked()) == ([], 0)

    @pytest.mark.parametrize("worth", [False, True])
    @pytest.mark.parametrize("failing", [0, 1, 2])
    def test_an_error_in_the_first_steps(self, judged, worth, failing):
        seen: list[int] = []
        judged.worth = worth

        async def work(step):
            seen.append(step)
            if step == failing:
                raise KeyError(step)

        with pytest.raises(KeyError, match=str(failing)):
            self.drain(work, count=1000)
        assert len(seen) <= failing + 1 + 16 * width()

    def test_an_error_of_planning(self, judged):
        def steps():
            yield 0
            raise ZeroDivisionError

        async def work(_step):
            pass

        judged.worth = True
        with pytest.raises(ZeroDivisionError):
            run_inline(fan_out(True, steps(), work, count=100, step_pieces=2))

    @pytest.mark.parametrize("worth", [False, True])
    def test_cancelled_in_the_first_step(self, judged, worth):
        begun, go_on = threading.Event(), threading.Event()
        seen: list[int] = []
        judged.worth = worth

        async def work(step):
            seen.append(step)
            begun.set()
            go_on.wait()

        future = start(True, lambda: fan_out(True, range(1000), work, count=1000, step_pieces=2))
        begun.wait()
        future.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            future.result()
        occupy_workers().set()
        assert seen == [0]

    def test_on_the_loop_it_makes_no_difference(self, judged):
        seen: list[int] = []

        async def work(step):
            seen.append(step)

        start(False, lambda: fan_out(False, range(9), work, count=9, step_pieces=3)).result()
        assert (sorted(seen), judged) == (list(range(9)), [])


def test_no_tasks_for_inline_steps():
    tasks: list[int] = []

    async def work(_step):
        tasks.append(len(asyncio.all_tasks()))

    async def main():
        await fan_out(True, range(100), work, count=100, width=1)

    asyncio.run(main())
    assert set(tasks) == {1}


def test_a_pump_for_each_of_the_width_on_the_loop():
    most = [0]

    async def work(_step):
        most[0] = max(most[0], len(asyncio.all_tasks()))
        await asyncio.sleep(0)

    async def main():
        await fan_out(False, range(500), work, count=500, width=7)

    asyncio.run(main())
    assert most[0] == 8


@both
def test_nested_on_a_small_pool_never_deadlocks(inline):
    seen: list[tuple[int, int, int]] = []

    async def outer(a):
        async def middle(b):
            async def inner(c):
                seen.append((a, b, c))

            await fan_out(inline, range(4), inner, count=4)

        await fan_out(inline, range(4), middle, count=4)

    futures = [
        start(inline, lambda: fan_out(inline, range(8), outer, count=8)) for _ in range(2 * width())
    ]
    for future in futures:
        future.result(timeout=240)
    assert len(seen) == 2 * width() * 8 * 16


def test_inline_cancellation_stops_between_two_steps():
    begun, go_on = threading.Event(), threading.Event()
    seen: list[int] = []

    async def work(step):
        seen.append(step)
        begun.set()
        go_on.wait()

    future = start(True, lambda: fan_out(True, range(10_000), work, count=10_000))
    begun.wait()
    future.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        future.result()
    occupy_workers().set()
    assert len(seen) <= width()


async def quiet():
    return None


def test_helpers_see_the_cancellation_of_the_job_they_help():
    outcome: list[BaseException | None] = []
    begun, go_on = threading.Event(), threading.Event()

    async def inner(_step):
        begun.set()
        go_on.wait()

    async def outer(_step):
        try:
            await fan_out(True, range(1000), inner, count=1000, width=1)
        except asyncio.CancelledError as error:
            outcome.append(error)
            raise

    future = start(True, lambda: fan_out(True, range(2), outer, count=2))
    begun.wait()
    future.cancel()
    go_on.set()
    occupy_workers().set()
    assert outcome


def test_loop_cancellation_stops_every_pump():
    begun = threading.Event()
    stopped: list[int] = []

    async def work(step):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(step)

    future = start(False, lambda: fan_out(False, range(100), work, count=100, width=5))
    begun.wait()
    start(False, quiet).result()
    future.cancel()
    for _ in range(5):
        start(False, quiet).result()
    assert sorted(stopped) == [0, 1, 2, 3, 4]


class TestOffload:
    def test_inline_stays_on_the_thread(self):
        assert run_inline(offload(True, threading.get_ident)) == threading.get_ident()

    def test_on_the_loop_it_leaves_for_a_worker(self):
        assert start(False, lambda: offload(False, on_worker)).result() is True

    @both
    def test_its_error_is_raised_where_it_was_awaited(self, inline):
        def fail():
            raise KeyError("x")

        with pytest.raises(KeyError):
            start(inline, lambda: offload(inline, fail)).result()

    def test_cancelling_does_not_wait_for_the_work(self):
        begun, go_on = threading.Event(), threading.Event()

        def work():
            begun.set()
            go_on.wait()

        future = start(False, lambda: offload(False, work))
        begun.wait()
        future.cancel()
        try:
            assert future.cancelled()
            assert start(False, quiet).result() is None
        finally:
            go_on.set()


async def one():
    return 1


@pytest.mark.parametrize(
    "part", [lambda: offload(False, lambda: 1), lambda: within(False, True, one)]
)
def test_parts_of_what_is_under_way_go_on_while_all_workers_wait(part):
    """As for memory that is held for such parts."""
    go_on = occupy_workers()
    try:
        assert start(False, part).result(60) == 1
    finally:
        go_on.set()


def test_a_body_elsewhere_stops_with_its_waiter():
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()
    done: list[int] = []

    async def step(each):
        done.append(each)
        begun.set()
        go_on.wait()

    async def body():
        try:
            await fan_out(True, range(100), step, count=100, width=1)
        finally:
            over.set()

    future = start(False, lambda: within(False, True, body))
    begun.wait()
    future.cancel()
    start(False, quiet).result()
    go_on.set()
    over.wait()
    assert done == [0]


def test_a_body_elsewhere_is_over_when_what_it_is_part_of_has_failed():
    begun, go_on = threading.Event(), threading.Event()
    over: list[int] = []

    async def write():
        begun.set()
        go_on.wait()
        over.append(1)

    async def step(number):
        if number == 0:
            await within(False, True, write)
        await asyncio.to_thread(begun.wait)
        asyncio.get_running_loop().call_later(0.1, go_on.set)
        raise KeyError(number)

    with pytest.raises(KeyError):
        start(False, lambda: fan_out(False, range(2), step, count=2, width=2)).result(60)
    assert over == [1]


def test_a_body_elsewhere_that_has_not_begun_never_does(monkeypatch):
    waiting: list[Callable[[], None]] = []
    monkeypatch.setattr(parts, "submit", waiting.append)
    begun: list[int] = []

    async def body():
        begun.append(1)

    async def both():
        task = asyncio.ensure_future(within(False, True, body))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert start(False, both).result(60)
    for run in waiting:
        run()
    assert not begun


def test_what_is_set_aside_may_wait_for_computations():
    def wait():
        return [start(False, lambda: offload(False, on_worker)).result(60) for _ in range(3)]

    async def body():
        return await asyncio.gather(*(to_thread(wait) for _ in range(2 * width())))

    assert start(False, body).result(30) == [[True] * 3] * (2 * width())


class TestWithin:
    def test_a_body_that_is_over_at_once(self, monkeypatch):
        monkeypatch.setattr(parts, "submit", lambda run: run())
        assert start(False, lambda: within(False, True, one)).result(60) == 1

    @pytest.mark.parametrize(
        ("here", "there", "moved"),
        [(True, True, False), (False, False, False), (False, True, True)],
    )
    def test_a_body_runs_where_it_belongs(self, here, there, moved):
        async def body():
            return on_worker(), threading.get_ident()

        async def caller():
            return threading.get_ident(), await within(here, there, body)

        mine, (worker, found) = start(here, caller).result()
        assert (found != mine) == moved
        assert worker or not moved

    @pytest.mark.parametrize("here", [True, False])
    def test_its_error_arrives(self, here):
        async def body():
            raise KeyError("inside")

        with pytest.raises(KeyError, match="inside"):
            start(here, lambda: within(here, True, body)).result()
