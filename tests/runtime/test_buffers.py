"""Memory for chunks."""

import threading

import numpy as np
import pytest

from tensorstore_py._runtime import buffers as module
from tensorstore_py._runtime.buffers import (
    HUGE_PAGE_BYTES,
    huge_page_buffer,
    joined,
    scratch,
    staging_buffer,
)

both = pytest.mark.parametrize("give", [scratch, staging_buffer])


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
    row, chunk = staging_buffer(1000), scratch(1000)
    row[:] = b"r" * 1000
    chunk[:] = b"c" * 1000
    scratch(10**6)[:] = bytes(10**6)
    assert bytes(row) == b"r" * 1000
    assert not np.shares_memory(np.frombuffer(row, "u1"), np.frombuffer(scratch(10**6), "u1"))


@pytest.mark.parametrize("size", [10, HUGE_PAGE_BYTES + 10])
def test_parts_are_joined_in_order_and_the_result_is_read_only(size):
    parts: list[bytes | bytearray | memoryview] = [
        b"begin",
        memoryview(bytes(size)),
        b"",
        bytearray(b"end"),
    ]

    value = joined(parts)

    assert bytes(value) == b"".join(parts)
    assert memoryview(value).readonly


def test_large_memory_can_be_written_to():
    memory = huge_page_buffer(3)
    memory[:] = b"abc"

    assert bytes(memory) == b"abc"
