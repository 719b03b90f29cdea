import fcntl
import os
import socket
import time

import pytest
import tensorstore as reference

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.file import locking
from tensorstore_py.kvstores.file.locking import Backoff, acquire, check_lock_file, try_lock


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
    written.result(timeout=60)

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
    monkeypatch.setattr(locking, "pause", slept.append)
    backoff = Backoff(1000, longest_s=0.001)
    for _ in range(10):
        backoff.wait("a")

    assert slept == sorted(slept)
    assert slept[0] == 0.00005
    assert slept[-1] == 0.001


def planted(path, kind, victim):
    """Something in the place of a lock file."""
    if kind == "link":
        os.symlink(victim, path)
    elif kind == "dangling link":
        os.symlink(f"{victim}.absent", path)
    elif kind == "other name":
        os.link(victim, path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
    else:
        os.mkdir(path)


KINDS = ["link", "dangling link", "other name", "pipe", "socket", "directory"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_lock_file_is_refused_and_left_alone(tmp_path, path, kind):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    planted(path, kind, victim)
    before = os.lstat(path)

    for refuse in (lambda: acquire(path, 60), lambda: check_lock_file(path)):
        with pytest.raises(FailedPreconditionError, match=r"cannot lock .*a\.__lock.*remove it"):
            refuse()

    assert os.lstat(path).st_ino == before.st_ino
    assert victim.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["a.__lock", "victim"]


def test_a_pipe_that_somebody_reads_is_refused(path):
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(FailedPreconditionError, match="a named pipe"):
            acquire(path, 60)
    finally:
        os.close(reader)


@pytest.mark.parametrize("kind", KINDS)
def test_what_takes_the_place_of_a_lock_file_meanwhile_is_refused(
    tmp_path, path, monkeypatch, kind
):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")

    def plant_first(fd):
        os.unlink(path)
        planted(path, kind, victim)
        return try_lock(fd)

    monkeypatch.setattr(locking, "try_lock", plant_first)
    with pytest.raises(FailedPreconditionError, match="cannot lock"):
        acquire(path, 60)

    assert victim.read_bytes() == b"precious"


def test_no_lock_file_is_fine(path):
    check_lock_file(path)
    open(path, "w").close()
    check_lock_file(path)


def test_a_file_that_another_user_left_is_made_anew(path, monkeypatch):
    with open(path, "w") as theirs:
        theirs.write("half a value")
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        fd = acquire(path, 1)
        try:
            assert os.fstat(fd).st_ino == os.stat(path).st_ino != os.fstat(theirs.fileno()).st_ino
        finally:
            os.close(fd)


def test_one_that_may_not_be_opened_is_waited_for(path, monkeypatch):
    fd = acquire(path, 1)
    os.close(fd)
    usual, refused = os.open, [3]
    slept: list[float] = []

    def refuse(name, flags, *mode):
        if not flags & os.O_CREAT and refused[0]:
            refused[0] -= 1
            raise PermissionError(13, os.strerror(13))
        return usual(name, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(locking, "pause", slept.append)
    os.close(acquire(path, 60))
    assert len(slept) == 3

    refused[0] = 10**6
    with pytest.raises(UnavailableError, match=r"a\.__lock.*as another user; remove"):
        acquire(path, 0.001)


def test_a_place_that_changes_for_ever_is_given_up(path, monkeypatch):
    """Somebody removes each file before it is locked."""
    clock = [100.0]

    def remove_first(fd):
        clock[0] += 1
        os.unlink(path)
        return try_lock(fd)

    monkeypatch.setattr(locking, "try_lock", remove_first)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with pytest.raises(UnavailableError, match="after 60 s"):
        acquire(path, 60)
    assert clock[0] < 200
