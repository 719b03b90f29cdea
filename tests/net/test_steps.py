"""How many steps a request takes, counted: of these one thread does so many in a second."""

import asyncio
import statistics
import sys
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py.testing import Reply

OWN = str(Path(ts.__file__).parent)
VALUE = bytes(100)


@pytest.fixture
def store(serve):
    server = serve(lambda _: Reply(200, VALUE, {"ETag": '"1"'}))
    return ts.KvStore.open(f"{server.url}/").result()


def counted(operation):
    """Calls of our functions, and callbacks of the loop, in the thread that waits for it."""
    calls, callbacks = [], []
    handle = asyncio.Handle._run.__code__
    for _ in range(20):
        own = loop = 0

        def seen(frame, event, _):
            nonlocal own, loop
            if event == "call":
                own += frame.f_code.co_filename.startswith(OWN)
                loop += frame.f_code is handle

        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            operation()
        finally:
            sys.setprofile(before)
        calls.append(own)
        callbacks.append(loop)
    return statistics.median(calls), statistics.median(callbacks)


def test_a_read_takes_few_steps(store):
    assert store["a"] == VALUE  # what is made once is made
    calls, callbacks = counted(lambda: store.read("a").result())
    assert 50 <= calls <= 145
    assert 2 <= callbacks <= 6  # the answer comes in two pieces


def test_reads_in_flight_take_fewer(store):
    def reads():
        for each in [store.read("a") for _ in range(32)]:
            each.result()

    reads()
    calls, callbacks = counted(reads)
    assert 50 <= calls / 32 <= 130
    assert 2 <= callbacks / 32 <= 5.5
