"""One writer per key, over threads, processes and implementations: a lock on `KEY.__lock`.

The lock belongs to the open file description (OFD on Linux, `flock` on other Unixes, a byte range
on Windows), so it excludes other threads as well as other processes, and vanishes with its
holder: a killed writer blocks nobody. The protocol is the reference's: open or create the lock
file, lock it, then check that the path still names it, since the former holder renames or removes
it. Only a file that passed this check may be written to. Nothing here knows of values.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time
from typing import Final

from tensorstore_py.errors import UnavailableError
from tensorstore_py.plugin import pause

__all__ = ["CREATE_FLAGS", "Backoff", "acquire", "try_lock"]

CREATE_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
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
            raise UnavailableError(
                f'gave up waiting for the lock "{path}" after {self._timeout_s:g} s: another '
                f"writer holds it, or left it behind in mode lockfile; remove the file if no "
                f"writer is alive, or raise acquire_timeout in file_io_locking"
            )
        pause(min(self._next_s, self._deadline - now))
        self._next_s = min(2 * self._next_s, self._longest_s)


def acquire(path: str, timeout_s: float) -> int:
    """Create the lock file if need be, and lock it.

    Args:
        path: of the lock file.
        timeout_s: how long to wait for its holder.

    Returns:
        A descriptor, open for writing; closing it frees the lock. The file is empty.

    Raises:
        FileNotFoundError: its directory does not exist.
        UnavailableError: still locked at the end of the timeout.
    """
    backoff = Backoff(timeout_s)
    while True:
        fd = os.open(path, CREATE_FLAGS, 0o666)
        try:
            if try_lock(fd):
                size = _size_if_named(fd, path)
                if size is not None:
                    # Left behind by a writer that was killed half-way: not part of our value.
                    if size:
                        os.ftruncate(fd, 0)
                    return fd
                # The former holder finished between our open and our lock: start over.
                os.close(fd)
                continue
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        backoff.wait(path)


def _size_if_named(fd: int, path: str) -> int | None:
    """The size of the locked file if `path` is still its name, else None."""
    mine = os.fstat(fd)
    try:
        named = os.stat(path)
    except FileNotFoundError:
        return None
    same = mine.st_ino == named.st_ino and mine.st_dev == named.st_dev
    return mine.st_size if same else None
