import threading
from pathlib import Path

import pytest

from tensorstore_py._runtime import turns as module
from tensorstore_py._runtime.turns import Turns
from tests.runtime.test_fork import forked


@pytest.fixture
def waited(monkeypatch):
    """Nobody is waited for: whoever finds the turn taken has waited long enough."""
    monkeypatch.setattr(module, "_PATIENCE_S", 0)


def elsewhere(turns):
    """Make a stretch on another thread; returns once that is over."""
    thread = threading.Thread(target=lambda: enter(turns))
    thread.start()
    thread.join()


def enter(turns):
    with turns.mine():
        pass


def test_one_stretch_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 60)
    turns = Turns()
    inside: list[int] = []
    most: list[int] = []
    together = threading.Barrier(4)

    def stretches():
        together.wait()
        for _ in range(50):
            with turns.mine():
                inside.append(1)
                most.append(len(inside))
                Path().stat()  # sets the interpreter free: whoever waits could come in here
                inside.pop()

    threads = [threading.Thread(target=stretches) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200


def test_who_waits_goes_on_when_the_turn_is_free(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 60)
    turns = Turns()
    order: list[str] = []

    def second():
        with turns.mine():
            order.append("second")

    thread = threading.Thread(target=second)
    with turns.mine():
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.usefixtures("waited")
def test_nobody_waits_long():
    turns = Turns()
    with turns.mine():
        elsewhere(turns)


def test_the_patience_is_short():
    assert 0 < module._PATIENCE_S <= 0.01


def test_after_that_some_stretches_do_not_wait_at_all(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0)
    turns = Turns()
    with turns.mine():
        elsewhere(turns)
        # From here on whoever waited would wait for good.
        monkeypatch.setattr(module, "_PATIENCE_S", -1)
        for _ in range(module._FREE):
            elsewhere(turns)
        monkeypatch.setattr(module, "_PATIENCE_S", 0)
        assert turns._free == 0
        elsewhere(turns)
        assert turns._free == module._FREE


@pytest.mark.usefixtures("waited")
def test_after_those_turns_are_taken_again():
    turns = Turns()
    with turns.mine():
        for _ in range(1 + module._FREE):
            elsewhere(turns)
    with turns.mine():
        assert turns._lock.locked()


def test_a_miscount_is_no_leave_for_good():
    # Two threads that see the last free stretch both take it.
    turns = Turns()
    turns._free = -1
    with turns.mine():
        assert turns._lock.locked()


@pytest.mark.usefixtures("waited")
def test_a_stretch_that_fails_gives_the_turn_back():
    turns = Turns()
    for _ in range(2):
        with pytest.raises(KeyError), turns.mine():
            raise KeyError
        assert not turns._lock.locked()
    with turns.mine(), pytest.raises(KeyError), turns.mine():
        raise KeyError
    assert not turns._lock.locked()


def test_a_turn_that_somebody_had_is_free_in_a_forked_child():
    out = forked("""
        from tensorstore_py._runtime.turns import Turns
        turns = Turns()
        had, go_on = threading.Event(), threading.Event()
        def keep():
            with turns.mine():
                had.set()
                go_on.wait()
        threading.Thread(target=keep).start()
        had.wait()
        def child():
            with turns.mine():
                print(turns._lock.locked(), turns._free)
            print(turns._lock.locked())
        in_child(child)
        go_on.set()
    """)
    assert out == "True 0\nFalse\n"
