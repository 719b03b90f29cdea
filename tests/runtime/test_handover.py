import threading

import pytest

from tensorstore_py._runtime import handover as module
from tensorstore_py._runtime.handover import handover_s, worth_sharing


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
    assert began == ["tensorstore_py-handover"]


@pytest.mark.usefixtures("unmeasured")
def test_the_thread_for_it_is_gone():
    handover_s()
    assert "tensorstore_py-handover" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("unmeasured")
def test_the_median_counts(monkeypatch):
    # Each round asks twice: before and after.
    clock = iter([0.0, 5.0, 10.0, 10.25, 20.0, 20.125])
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
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
    assert [worth_sharing(piece) for piece in (0.0, 1e-5, 3.9e-5, 4.1e-5, 1.0)] == [
        False, False, False, True, True
    ]  # fmt: skip
