import threading

from tensorstore_py._runtime import scratch as module
from tensorstore_py._runtime.scratch import scratch


def address(view):
    import numpy as np

    return np.frombuffer(view, "u1").ctypes.data


def test_exactly_the_size_asked_for_and_writable():
    for size in (0, 1, 100, 4096):
        view = scratch(size)
        assert view.nbytes == size
        view[:] = b"x" * size


def test_the_same_memory_again():
    assert address(scratch(1000)) == address(scratch(10)) == address(scratch(1000))


def test_other_threads_have_their_own():
    mine = scratch(100)
    mine[:] = b"a" * 100
    others: list[int] = []

    def other():
        view = scratch(100)
        view[:] = b"b" * 100
        others.append(address(view))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert others != [address(mine)]
    assert bytes(mine) == b"a" * 100


def test_a_huge_chunk_is_not_kept(monkeypatch):
    monkeypatch.setattr(module, "KEEP_BYTES", 1 << 20)
    before = scratch(100)
    huge = scratch((1 << 20) + 1)
    assert huge.nbytes == (1 << 20) + 1
    assert address(scratch(100)) == address(before)
