"""What counts as an engine; plans on each of them are in test_running."""

import gc
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import aclosing

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.engines import engine_of, run_pieces
from tensorstore_py._runtime.start import start


class Giving:
    """A piece that gives its number, or raises it."""

    def __init__(self, number, error=None):
        self.number, self.error = number, error

    def run(self):
        if self.error is not None:
            raise self.error
        return self.number


def given(engine, pieces, most=None):
    async def body():
        found = []
        async with aclosing(run_pieces(engine, iter(pieces), "test")) as ended:
            async for each in ended:
                found.append(each)
                if len(found) == most:
                    break
        return found

    return start(False, body).result()


def test_nothing_is_this_process():
    assert engine_of(None) is None


def test_all_pieces_run():
    with ThreadPoolExecutor(3) as executor:
        engine = engine_of(executor)
        assert engine is not None
        found = given(engine, map(Giving, range(100)))

    assert sorted(found) == list(range(100))
    assert (engine.workers, engine.shares_memory) == (3, True)


def test_pieces_are_made_a_few_at_a_time():
    made = []

    def pieces():
        for number in range(1000):
            made.append(number)
            yield Giving(number)

    with ThreadPoolExecutor(2) as executor:
        found = given(engine_of(executor), pieces(), most=5)

    assert len(found) == 5
    assert len(made) < 20


def test_the_first_error_is_the_end():
    made = []

    def pieces():
        for number in range(1000):
            made.append(number)
            yield Giving(number, ts.NotFoundError("gone") if number == 3 else None)

    with ThreadPoolExecutor(2) as executor, pytest.raises(ts.NotFoundError, match="gone"):
        given(engine_of(executor), pieces())

    assert len(made) < 20


def test_whatever_looks_like_an_executor():
    class Looks:
        max_workers = 5

        def submit(self, function, *arguments):
            raise AssertionError

        map = submit

    looks = engine_of(Looks())
    assert looks is not None
    assert looks.workers == 5
    with ProcessPoolExecutor(1) as executor:
        engine = engine_of(executor)
    assert engine is not None
    assert not engine.shares_memory


@pytest.mark.parametrize("wrong", [3, "dask", object()])
def test_what_is_no_engine(wrong):
    with pytest.raises(ts.SpecError, match="executor"):
        engine_of(wrong)


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(ts.UnsupportedError, match="pip install ray"):
        engine_of("ray")


def test_errors_that_come_together_are_told_once(caplog):
    with ThreadPoolExecutor(4) as executor, pytest.raises(ts.NotFoundError):
        given(engine_of(executor), [Giving(0, ts.NotFoundError("gone")) for _ in range(40)])
    gc.collect()

    assert caplog.records == []
