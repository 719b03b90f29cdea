"""One writer per key, over threads, processes and implementations: a lock on `KEY.__lock`.

The lock belongs to the open file description (OFD on Linux, `flock` on other Unixes, a byte range
on Windows), so it excludes other threads as well as other processes, and vanishes with its
holder: a killed writer blocks no other. The protocol is the reference's: create or open the lock
file, lock it, then check that the path still names it, since the former holder renames or removes
it. Only a file that passed this check may be written to. Nothing here knows of values.

In a directory that others may write to, anything may be in the place of a lock file. What is no
file of one name is refused, without waiting and without a change. A file that another user left is
removed under its lock and made anew, since its owner could change the value afterwards.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time
from typing import Final, Never

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.file.paths import WINDOWS
from tensorstore_py.kvstores.file.status import what_it_is
from tensorstore_py.plugin.kvstore import pause

__all__ = ["CREATE_FLAGS", "WRITE_FLAGS", "Backoff", "acquire", "check_lock_file", "try_lock"]

_WRITE: Final = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
#: Makes a new file, and never opens what is there.
CREATE_FLAGS: Final = _WRITE | os.O_CREAT | os.O_EXCL
#: Opens what is there, but neither follows a link nor waits for the reader of a pipe.
WRITE_FLAGS: Final = (
    _WRITE
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)

if sys.platform == "win32":
    import msvcrt

    def try_lock(fd: int) -> bool:
        """Take the lock if it is free; returns whether it was."""
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

elif sys.platform == "linux":
    import fcntl

    # struct flock: an exclusive lock, from the start, of the whole file
    _EXCLUSIVE: Final = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

    def try_lock(fd: int) -> bool:
        """Take the lock if it is free; returns whether it was."""
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _EXCLUSIVE)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

else:
    import fcntl

    def try_lock(fd: int) -> bool:
        """Take the lock if it is free; returns whether it was."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Backoff:
    """Waits of growing length until a deadline.

    Args:
        timeout_s: how long to wait in all.
        longest_s: the longest single wait.
    """

    __slots__ = ("_deadline", "_longest_s", "_next_s", "_timeout_s")

    def __init__(self, timeout_s: float, longest_s: float = 0.001) -> None:
        self._timeout_s = timeout_s
        self._longest_s = longest_s
        self._next_s = 0.00005
        self._deadline = 0.0

    def wait(self, path: str) -> None:
        """Wait before looking at the lock file again.

        Raises:
            UnavailableError: the deadline has passed.
        """
        now = time.monotonic()
        if not self._deadline:
            self._deadline = now + self._timeout_s
        if now >= self._deadline:
            self._give_up(path)
        pause(min(self._next_s, self._deadline - now))
        self._next_s = min(2 * self._next_s, self._longest_s)

    def again(self, path: str) -> None:
        """Look at the lock file again at once, which is another one now.

        Raises:
            UnavailableError: so it was the last time, and the deadline has passed.
        """
        now = time.monotonic()
        if not self._deadline:
            self._deadline = now + self._timeout_s
        elif now >= self._deadline:
            self._give_up(path)

    def _give_up(self, path: str) -> Never:
        raise UnavailableError(
            f'gave up waiting for the lock "{path}" after {self._timeout_s:g} s: another '
            f"writer holds it, or left it behind in mode lockfile or as another user; remove the "
            f"file if no writer is alive, or raise acquire_timeout in file_io_locking"
        )


def acquire(path: str, timeout_s: float) -> int:
    """Create the lock file if need be, and lock it.

    Returns:
        A descriptor, open for writing; closing it frees the lock. The file is empty, of this user,
        and has no other name.

    Raises:
        FileNotFoundError: its directory does not exist.
        FailedPreconditionError: something else is in its place: a link, a pipe, a directory.
        UnavailableError: still locked at the end of the timeout.
    """
    backoff = Backoff(timeout_s)
    while True:
        fd, created = _open(path)
        usable = False
        try:
            locked = fd >= 0 and try_lock(fd)
            usable = locked and _is_usable(fd, path, created=created)
            if usable:
                return fd
        finally:
            if fd >= 0 and not usable:
                os.close(fd)
        if locked:
            backoff.again(path)
        else:
            backoff.wait(path)


def check_lock_file(path: str) -> None:
    """Refuse what is in the place of a lock file and is none.

    Raises:
        FailedPreconditionError: it is no file, or one with several names.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    _check(status, path)


def _open(path: str) -> tuple[int, bool]:
    """The lock file, and whether it is new; -1 if it may not be opened, or went away.

    Raises:
        FailedPreconditionError: as for `check_lock_file`.
    """
    try:
        return os.open(path, CREATE_FLAGS, 0o666), True
    except FileExistsError:
        pass
    check_lock_file(path)
    try:
        fd = os.open(path, WRITE_FLAGS)
    except (FileNotFoundError, PermissionError):
        return -1, False  # other users' writers are to be waited for, too
    except OSError:
        check_lock_file(path)  # it was put there in between
        raise
    try:
        _check(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd, False


def _check(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        found = what_it_is(status.st_mode)
    elif status.st_nlink > 1:
        found = "a file that has another name, too,"
    else:
        return
    raise FailedPreconditionError(
        f'cannot lock "{path}": {found} is in the place of the lock file; a writer would change '
        "it, or wait for it; find out who put it there, and remove it"
    )


def _is_usable(fd: int, path: str, *, created: bool) -> bool:
    """Whether a locked file may be written to; else another one is to be looked for.

    Raises:
        FailedPreconditionError: as for `check_lock_file`.
    """
    mine = os.fstat(fd)
    try:
        named = os.lstat(path)
    except FileNotFoundError:
        return False
    if mine.st_ino != named.st_ino or mine.st_dev != named.st_dev:
        check_lock_file(path)
        return False  # the former holder finished between our open and our lock
    if not created:
        _check(mine, path)
        if not WINDOWS and mine.st_uid != os.geteuid():
            os.unlink(path)
            return False
    # Left behind by a writer that was killed half-way: not part of our value.
    if mine.st_size:
        os.ftruncate(fd, 0)
    return True
