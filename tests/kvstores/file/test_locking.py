import fcntl
import os
import time

import pytest
import tensorstore as reference

from tensorstore_py.errors import UnavailableError
from tensorstore_py.kvstores.file import locking
from tensorstore_py.kvstores.file.locking import Backoff, acquire, try_lock


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/a.__lock"


def is_locked(path):
    fd = os.open(path, os.O_WRONLY)
    try:
        return not try_lock(fd)
    finally:
        os.close(fd)


def test_excludes_others_until_it_is_closed(path):
    fd = acquire(path, 1)

    assert is_locked(path)
    os.close(fd)
    assert not is_locked(path)


def test_closing_another_descriptor_of_the_file_frees_nothing(path):
    # With classic POSIX locks it would.
    fd = acquire(path, 1)
    os.close(os.open(path, os.O_RDONLY))

    assert is_locked(path)
    os.close(fd)


def test_gives_up_at_the_end_of_the_timeout(path):
    fd = acquire(path, 1)

    with pytest.raises(UnavailableError, match=r"a\.__lock.*after 0\.001 s.*acquire_timeout"):
        acquire(path, 0.001)
    os.close(fd)


def test_what_a_dead_writer_left_is_cut_off(path):
    with open(path, "w") as file:
        file.write("half a value")

    fd = acquire(path, 1)

    assert os.fstat(fd).st_size == 0
    os.close(fd)


@pytest.mark.parametrize("finish", ["rename", "unlink"])
def test_a_lock_on_a_file_that_lost_its_name_does_not_count(path, monkeypatch, finish):
    """The former holder finishes between our open and our lock."""
    attempts = []

    def finish_first(fd):
        attempts.append(os.fstat(fd).st_ino)
        if len(attempts) == 1:
            os.write(fd, b"the other's value")
            if finish == "rename":
                os.rename(path, path.removesuffix(".__lock"))
            else:
                os.unlink(path)
        return try_lock(fd)

    monkeypatch.setattr(locking, "try_lock", finish_first)
    fd = acquire(path, 1)

    assert len(attempts) == 2
    assert os.fstat(fd).st_ino == os.stat(path).st_ino
    assert os.fstat(fd).st_size == 0
    if finish == "rename":
        with open(path.removesuffix(".__lock")) as file:
            assert file.read() == "the other's value"
    os.close(fd)


def test_errors_leave_no_descriptor_open(path, monkeypatch):
    def fail(_fd):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locking, "try_lock", fail)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No locks"):
        acquire(path, 1)

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_directory_is_the_callers_business(tmp_path):
    with pytest.raises(FileNotFoundError):
        acquire(f"{tmp_path}/b/a.__lock", 1)


def test_the_reference_waits_for_our_lock(tmp_path, path):
    store = reference.KvStore.open(f"file://{tmp_path}/").result()
    fd = acquire(path, 1)

    written = store.write("a", b"1")
    waited = not written.done()
    os.close(fd)
    written.result(timeout=10)

    assert waited
    assert store["a"] == b"1"


def test_we_wait_for_a_lock_as_the_reference_takes_it(path):
    other = os.open(path, os.O_WRONLY | os.O_CREAT)
    fcntl.fcntl(other, fcntl.F_OFD_SETLK, locking._EXCLUSIVE)

    with pytest.raises(UnavailableError):
        acquire(path, 0)
    os.close(other)


def test_waits_grow_up_to_the_longest(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    backoff = Backoff(1000, longest_s=0.001)
    for _ in range(10):
        backoff.wait("a")

    assert slept == sorted(slept)
    assert slept[0] == 0.00005
    assert slept[-1] == 0.001
