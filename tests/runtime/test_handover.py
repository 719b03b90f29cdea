import threading

import pytest

from tensorstore_py._runtime import handover as module
from tensorstore_py._runtime.handover import Pace, handover_s, worth_sharing


@pytest.fixture
def unmeasured():
    """As in a process where nobody asked before; what is found out is forgotten afterwards."""
    handover_s.cache_clear()
    yield
    handover_s.cache_clear()


def test_it_takes_some_time():
    assert 0 < handover_s() < 1


@pytest.mark.usefixtures("unmeasured")
def test_it_is_measured_once(monkeypatch):
    began: list[str] = []
    run = threading.Thread.start

    def noted(self):
        began.append(self.name)
        run(self)

    monkeypatch.setattr(threading.Thread, "start", noted)
    assert handover_s() == handover_s()
    assert began == ["tensorstore_py-handover"] * module._BOUTS


@pytest.mark.usefixtures("unmeasured")
def test_the_thread_for_it_is_gone():
    handover_s()
    assert "tensorstore_py-handover" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("unmeasured")
def test_the_median_counts_of_the_longest_bout(monkeypatch):
    # Each round asks twice: before and after.
    on_one_core = [0.0, 0.01, 1.0, 1.01, 2.0, 2.01]
    on_two = [10.0, 15.0, 20.0, 20.25, 30.0, 30.125]
    clock = iter([*on_one_core, *on_two, *on_one_core])
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(module, "_BOUTS", 3)
    monkeypatch.setattr(module, "_ROUNDS", 3)
    assert handover_s() == 0.125


@pytest.mark.usefixtures("unmeasured")
def test_where_no_thread_can_be_had_nothing_is_worth_sharing(monkeypatch):
    def refuse(_self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert handover_s() == float("inf")
    assert not worth_sharing(1e9)


def test_worth_it_is_what_takes_much_longer_than_that(monkeypatch):
    monkeypatch.setattr(module, "handover_s", lambda: 1e-5)
    assert [worth_sharing(piece) for piece in (0.0, 1e-5, 2.4e-5, 2.6e-5, 1.0)] == [
        False, False, False, True, True
    ]  # fmt: skip


class Clock:
    """Time as tests make it pass: on this thread, and for everybody."""

    def __init__(self):
        self.passed = self.computed = 100.0

    def spend(self, computed, waited=0.0):
        self.computed += computed
        self.passed += computed + waited


@pytest.fixture
def clock(monkeypatch):
    """A handover takes 10 µs: what computes for less than 80 µs is short."""
    made = Clock()
    monkeypatch.setattr(module, "perf_counter", lambda: made.passed)
    monkeypatch.setattr(module, "thread_time", lambda: made.computed)
    monkeypatch.setattr(module, "handover_s", lambda: 1e-5)
    return made


SHORT, LONG = 20e-6, 1e-3


class TestPace:
    @pytest.fixture
    def pace(self):
        return Pace()

    @pytest.fixture
    def work(self, clock, pace):
        """Does as many pieces of work one after the other, and tells what is thought of them."""

        def done(computed, waited=0.0, times=1, pieces=1):
            found = []
            for _ in range(times):
                began = pace.begin()
                clock.spend(computed, waited)
                pace.end(began, pieces)
                found.append(pace.short)
            return found

        return done

    def test_of_what_is_not_known_is_short(self, pace):
        assert pace.short

    def test_is_known_after_two(self, work):
        assert work(LONG, times=3) == [True, False, False]

    def test_of_short_ones_stays_short(self, work):
        assert set(work(SHORT, times=30)) == {True}

    def test_changes_after_eight_more(self, work):
        work(LONG, times=2)
        assert work(SHORT, times=9) == [False] * 7 + [True] * 2
        # The next eight have the last short one among them.
        assert work(LONG, times=15) == [True] * 14 + [False]

    def test_goes_by_the_quickest(self, work):
        assert work(LONG) == work(SHORT) == [True]
        work(LONG, times=7)
        assert work(SHORT) == [True]

    def test_of_what_waits_is_not_short(self, work):
        assert work(SHORT, waited=LONG, times=2)[-1] is False

    def test_a_little_waiting_may_be_for_a_turn(self, work):
        assert work(SHORT, waited=100e-6, times=2)[-1] is True

    def test_computing_and_waiting_are_each_judged_by_the_quickest(self, work):
        work(SHORT, waited=LONG)
        assert work(70e-6) == [True]

    @pytest.mark.parametrize(("computed", "short"), [(79e-6, True), (81e-6, False)])
    def test_goes_by_the_handover(self, work, computed, short):
        assert work(computed, times=2)[-1] is short

    def test_where_nobody_can_be_handed_to_all_is_short(self, work, monkeypatch):
        monkeypatch.setattr(module, "handover_s", lambda: float("inf"))
        assert set(work(LONG, waited=1.0, times=20)) == {True}

    def test_is_that_of_one_of_several_pieces(self, work, clock, pace):
        assert work(50 * SHORT, times=2, pieces=50)[-1] is True
        assert work(50 * LONG, times=8, pieces=50)[-1] is False

    def test_pieces_of_several_threads_overlap(self, clock, pace):
        for _ in range(2):
            first = pace.begin()
            clock.spend(LONG)
            second = pace.begin()
            clock.spend(LONG)
            pace.end(first, 1)
            pace.end(second, 1)
        assert not pace.short
