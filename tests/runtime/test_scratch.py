import threading

import numpy as np
import pytest

from tensorstore_py._runtime import scratch as module
from tensorstore_py._runtime.scratch import row_scratch, scratch

both = pytest.mark.parametrize("give", [scratch, row_scratch])


def address(view):
    return np.frombuffer(view, "u1").ctypes.data


@both
def test_exactly_the_size_asked_for_and_writable(give):
    for size in (0, 1, 100, 4096):
        view = give(size)
        assert view.nbytes == size
        view[:] = b"x" * size


@both
def test_the_same_memory_again(give):
    assert address(give(1000)) == address(give(10)) == address(give(1000))


@both
def test_other_threads_have_their_own(give):
    mine = give(100)
    mine[:] = b"a" * 100
    others: list[int] = []

    def other():
        view = give(100)
        view[:] = b"b" * 100
        others.append(address(view))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert others != [address(mine)]
    assert bytes(mine) == b"a" * 100


@both
def test_a_huge_chunk_is_not_kept(give, monkeypatch):
    monkeypatch.setattr(module, "KEEP_BYTES", 1 << 20)
    before = give(100)
    huge = give((1 << 20) + 1)
    assert huge.nbytes == (1 << 20) + 1
    assert address(give(100)) == address(before)


def test_a_row_stands_in_other_memory_than_a_chunk():
    row, chunk = row_scratch(1000), scratch(1000)
    row[:] = b"r" * 1000
    chunk[:] = b"c" * 1000
    scratch(10**6)[:] = bytes(10**6)
    assert bytes(row) == b"r" * 1000
    assert not np.shares_memory(np.frombuffer(row, "u1"), np.frombuffer(scratch(10**6), "u1"))
