"""The cost of a thread switch, what is judged by it, and the best-effort lock for system calls."""

import sys
import threading
from pathlib import Path

import pytest

from tensorstore_py._runtime import interpreter_lock as module
from tensorstore_py._runtime.execution import Paced, run_inline
from tensorstore_py._runtime.interpreter_lock import (
    GrainEstimate,
    IoLock,
    switch_cost_s,
    worth_sharing,
)
from tests.runtime.processes import forked

SHORT, LONG = 20e-6, 1e-3


@pytest.fixture(autouse=True)
def _lock(monkeypatch):
    """As on an interpreter with a lock, whatever this one has."""
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)


@pytest.fixture
def unmeasured():
    """As in a process that has not measured yet; what is measured is forgotten afterwards."""
    module._measured_switch_s.cache_clear()
    yield
    module._measured_switch_s.cache_clear()


@pytest.mark.usefixtures("unmeasured")
class TestSwitchCost:
    def test_is_measured_once_by_threads_that_are_gone(self, monkeypatch):
        began: list[threading.Thread] = []
        run = threading.Thread.start

        def noted(self):
            began.append(self)
            run(self)

        monkeypatch.setattr(threading.Thread, "start", noted)
        assert 0 < switch_cost_s() == switch_cost_s() < 1
        assert len(began) == module._BOUTS
        assert not any(each.is_alive() for each in began)

    def test_is_the_median_of_the_longest_bout(self, monkeypatch):
        # Each round reads the clock twice: before and after.
        us = 1e-6
        on_one_core = [0.0, us, 1.0, 1.0 + us, 2.0, 2.0 + us]
        on_two = [0.0, 5.0, 0.0, 64 * us, 0.0, 32 * us]
        clock = iter([*on_one_core, *on_two, *on_one_core])
        monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
        monkeypatch.setattr(module, "_BOUTS", 3)
        monkeypatch.setattr(module, "_ROUNDS", 3)
        assert switch_cost_s() == 32 * us

    def test_where_no_thread_can_be_had_nothing_is_worth_sharing(self, monkeypatch):
        def refuse(_self):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert switch_cost_s() == float("inf")
        assert not worth_sharing(1e9)

    def test_pieces_that_take_much_longer_are_worth_sharing(self, monkeypatch):
        monkeypatch.setattr(module, "switch_cost_s", lambda: 1e-5)
        pieces_s = (0.0, 1e-5, 2.4e-5, 2.6e-5, 1.0)
        assert [worth_sharing(each) for each in pieces_s] == [False, False, False, True, True]


@pytest.mark.usefixtures("unmeasured")
def test_without_an_interpreter_lock_no_work_is_too_small(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert switch_cost_s() == 0
    assert worth_sharing(0.0)
    grain, lock = GrainEstimate(), IoLock()
    for _ in range(20):
        assert not grain.short
        grain.end(grain.begin(), 1)
    with lock.acquire(), lock.acquire():
        pass
    # An extension that needs the lock turns it on when it is imported.
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    assert switch_cost_s() > 0


class Clock:
    """Time as tests make it pass: on this thread, and everywhere."""

    def __init__(self):
        self.passed = self.computed = 100.0
        self.looks = 0

    def look(self):
        self.looks += 1
        return self.computed

    def spend(self, computed, waited=0.0):
        self.computed += computed
        self.passed += computed + waited


class TestGrainEstimate:
    @pytest.fixture
    def clock(self, monkeypatch):
        """A switch takes 10 µs: what computes for less than 80 µs is short."""
        made = Clock()
        monkeypatch.setattr(module, "perf_counter", lambda: made.passed)
        monkeypatch.setattr(module, "thread_time", made.look)
        monkeypatch.setattr(module, "switch_cost_s", lambda: 1e-5)
        return made

    @pytest.fixture
    def grain(self):
        return GrainEstimate()

    @pytest.fixture
    def work(self, clock, grain):
        """Does as many pieces of work one after the other, and returns the estimates."""

        def done(computed, waited=0.0, times=1, pieces=1):
            found = []
            for _ in range(times):
                began = grain.begin()
                clock.spend(computed, waited)
                grain.end(began, pieces)
                found.append(grain.short)
            return found

        return done

    @pytest.mark.parametrize("waited", [0.0, 1.0])
    def test_of_operations_of_a_kind_one_of_eight_is_measured(self, clock, grain, waited):
        class Operation(Paced[int]):
            async def work(self):
                clock.spend(1e-6, waited)
                return 7

        clock.looks = 0
        for number in range(2 + 8 * 8):
            assert Operation(grain).short == (number < 2 or not waited)
            assert run_inline(Operation(grain)()) == 7
        assert clock.looks == 2 * (2 + 8)

    def test_what_is_not_known_is_short_until_two_were_done(self, grain, work):
        assert grain.short
        assert work(LONG, times=3) == [True, False, False]

    def test_short_ones_stay_short(self, work):
        assert set(work(SHORT, times=30)) == {True}

    def test_it_changes_after_eight_more(self, work):
        work(LONG, times=2)
        assert work(SHORT, times=9) == [False] * 7 + [True] * 2
        # The next eight have the last short one among them.
        assert work(LONG, times=15) == [True] * 14 + [False]

    def test_the_quickest_counts_for_computing_and_for_waiting(self, work):
        work(SHORT, waited=LONG)
        assert work(70e-6) == [True]
        work(LONG, times=7)
        assert work(SHORT) == [True]

    @pytest.mark.parametrize(
        ("computed", "waited", "short"),
        [(79e-6, 0, True), (81e-6, 0, False), (SHORT, LONG, False), (SHORT, 100e-6, True)],
    )
    def test_it_is_judged_by_the_cost_of_a_switch(self, work, computed, waited, short):
        assert work(computed, waited, times=2)[-1] is short

    def test_where_no_thread_can_be_had_all_is_short(self, work, monkeypatch):
        monkeypatch.setattr(module, "switch_cost_s", lambda: float("inf"))
        assert set(work(LONG, waited=1.0, times=20)) == {True}

    def test_it_is_that_of_one_of_several_pieces(self, work):
        assert work(50 * SHORT, times=2, pieces=50)[-1] is True
        assert work(50 * LONG, times=8, pieces=50)[-1] is False

    def test_pieces_of_several_threads_overlap(self, clock, grain):
        for _ in range(2):
            first = grain.begin()
            clock.spend(LONG)
            second = grain.begin()
            clock.spend(LONG)
            grain.end(first, 1)
            grain.end(second, 1)
        assert not grain.short


class TestIoLock:
    @pytest.fixture
    def lock(self):
        return IoLock()

    @pytest.fixture
    def impatient(self, monkeypatch):
        """A thread that finds the lock taken has waited long enough."""
        monkeypatch.setattr(module, "_PATIENCE_S", 0)

    @staticmethod
    def elsewhere(lock, times=1):
        """Make stretches on another thread; returns once they are over."""

        def enter():
            for _ in range(times):
                with lock.acquire():
                    pass

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()

    @staticmethod
    def held(lock):
        return lock._lock.locked()

    def test_one_stretch_at_a_time(self, lock, monkeypatch):
        monkeypatch.setattr(module, "_PATIENCE_S", 60)
        inside: list[int] = []
        most: list[int] = []
        together = threading.Barrier(4)

        def stretches():
            together.wait()
            for _ in range(50):
                with lock.acquire():
                    inside.append(1)
                    most.append(len(inside))
                    Path().stat()  # sets the interpreter free: another thread could come in here
                    inside.pop()

        threads = [threading.Thread(target=stretches) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == [1] * 200

    def test_no_thread_waits_long(self, lock, monkeypatch):
        assert 0 < module._PATIENCE_S <= 0.01
        monkeypatch.setattr(module, "_PATIENCE_S", 0)
        with lock.acquire():
            self.elsewhere(lock)

    def test_after_that_some_stretches_do_not_take_it_at_all(self, lock, monkeypatch):
        monkeypatch.setattr(module, "_PATIENCE_S", 0)
        with lock.acquire():
            self.elsewhere(lock)
            monkeypatch.setattr(module, "_PATIENCE_S", -1)  # a thread that waits waits for good
            self.elsewhere(lock, module._FREE)
        with lock.acquire():
            assert self.held(lock)

    @pytest.mark.usefixtures("impatient")
    def test_a_stretch_that_fails_lets_go_of_it(self, lock):
        for _ in range(2):
            with pytest.raises(KeyError), lock.acquire():
                raise KeyError
            assert not self.held(lock)
        with lock.acquire(), pytest.raises(KeyError), lock.acquire():
            raise KeyError
        assert not self.held(lock)

    def test_a_miscount_of_threads_is_not_for_good(self, lock):
        lock._free = -1  # two threads that see the last free stretch both take it
        with lock.acquire():
            assert self.held(lock)

    def test_it_is_free_in_a_forked_child(self):
        out = forked("""
            import sys
            sys._is_gil_enabled = lambda: True
            from tensorstore_py._runtime.interpreter_lock import IoLock
            lock = IoLock()
            had, go_on = threading.Event(), threading.Event()
            def keep():
                with lock.acquire():
                    had.set()
                    go_on.wait()
            threading.Thread(target=keep).start()
            had.wait()
            def child():
                with lock.acquire():
                    print(lock._lock.locked(), lock._free)
                print(lock._lock.locked())
            in_child(child)
            go_on.set()
        """)
        assert out == "True 0\nFalse\n"
