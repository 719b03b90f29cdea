"""How a value reaches its key: written to a file beside it, which then takes the key's name.

A `Stage` is that file, and the right to publish it. Whatever happens between `open_stage` and
`release`, a reader of the key sees the old value or the new one, and no file is left behind
unless the process is killed; what a killed writer leaves is a `.__lock` file, which listings skip
and the next writer reuses. Generations and conditions are the store's business. What is written in
place of a value (`open_in_place`) has no stage.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Sequence
from typing import Final

from tensorstore_py.errors import UnavailableError
from tensorstore_py.kvstores.file.locking import (
    CREATE_FLAGS,
    WRITE_FLAGS,
    Backoff,
    acquire,
    check_lock_file,
)
from tensorstore_py.kvstores.file.paths import LOCK_SUFFIX, WINDOWS
from tensorstore_py.kvstores.file.resources import LockingMode
from tensorstore_py.kvstores.file.status import Present, check_replaceable, keep_access, set_bits
from tensorstore_py.plugin.kvstore import Buffer, CopiedRange

__all__ = [
    "Segment",
    "Stage",
    "copy_range",
    "make_parents",
    "open_in_place",
    "open_stage",
    "sync_directory",
    "write_all",
    "write_parts",
]

#: A part of a value: new, or of the one that is replaced.
Segment = Buffer | CopiedRange

_SHARING_TIMEOUT_S: Final = 10.0
_MKDIR_ATTEMPTS: Final = 100
_IN_PLACE_ATTEMPTS: Final = 100
_PIECE_BYTES: Final = 2**20
_MOST_PARTS: Final = 1024  # what Linux and macOS take at a time
_WRITEV: Final = getattr(os, "writev", None)
_COPY_RANGE: Final = getattr(os, "copy_file_range", None)


class Stage:
    """An open file that becomes a key's value, or nothing.

    Attributes:
        fd: open for writing, empty.
        path: where it is until it is published.
    """

    __slots__ = ("_bits", "_lock_fd", "_lock_path", "_published", "fd", "path")

    def __init__(self, fd: int, path: str, lock_fd: int = -1, lock_path: str = "") -> None:
        self.fd = fd
        self.path = path
        self._lock_fd = lock_fd
        self._lock_path = lock_path
        self._bits: int | None = None
        self._published = False

    def keep_access(self, key: str, present: Present) -> None:
        """Open the file to those who may use what it is to replace, before anything is in it.

        Raises:
            FailedPreconditionError: that must not be replaced by a file.
        """
        if present.status is not None:
            check_replaceable(key, present.status)
            self._bits = keep_access(self.fd, present.status, link=present.link)

    def publish(self, key: str) -> None:
        """Give the file the key's name, in one step, over whatever had it."""
        if WINDOWS:
            self._close()
            _replace_when_unread(self.path, key)
        else:
            os.replace(self.path, key)
        self._published = True
        if self._bits is not None:
            set_bits(self.fd, self._bits)

    def release(self) -> None:
        """Remove the file unless it was published, and let the next writer in."""
        if WINDOWS:
            self._close()
        try:
            # Before the lock goes: afterwards the name may belong to the next writer.
            if not self._published:
                _unlink(self.path)
        finally:
            self._close()
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
                _unlink(self._lock_path)

    def _close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def open_stage(mode: LockingMode, key: str, timeout_s: float) -> Stage:
    """Open the file for the next value of `key`, alone if the mode has locks.

    Raises:
        FileNotFoundError: the key's directory does not exist.
        UnavailableError: another writer held the lock until the timeout.
    """
    lock_path = key + LOCK_SUFFIX
    if mode == "lockfile":
        return Stage(_create_when_absent(lock_path, timeout_s), lock_path)
    if mode == "os" and not WINDOWS:
        # The lock file itself is written and renamed: fewer steps, and what the reference does.
        return Stage(acquire(lock_path, timeout_s), lock_path)
    # Windows renames no open file, so there the locked file cannot be the one that is written.
    lock_fd = acquire(lock_path, timeout_s) if mode == "os" else -1
    path = f"{key}_{secrets.token_hex(8)}{LOCK_SUFFIX}"
    try:
        return Stage(os.open(path, CREATE_FLAGS, 0o666), path, lock_fd, lock_path)
    except BaseException:
        if lock_fd >= 0:
            os.close(lock_fd)
        raise


def open_in_place(key: str, present: Present) -> int:
    """Open the file of a key, emptied, to be written where it is.

    A name of a file that has others, and a link, get a file of their own.

    Raises:
        FileNotFoundError: its directory does not exist.
        FailedPreconditionError: it is no file.
        UnavailableError: others replace it again and again.
    """
    if present.status is not None:
        check_replaceable(key, present.status)
    for _ in range(_IN_PLACE_ATTEMPTS):
        try:
            fd = os.open(key, CREATE_FLAGS, 0o666)
        except FileExistsError:
            if (own := _open_own(key)) is not None:
                return own
            continue
        try:
            if present.status is not None:
                bits = keep_access(fd, present.status, link=present.link)
                if bits is not None:
                    set_bits(fd, bits)
        except BaseException:
            os.close(fd)
            raise
        return fd
    raise UnavailableError(
        f'cannot write "{key}" in place: others replaced it {_IN_PLACE_ATTEMPTS} times meanwhile; '
        'use another mode of file_io_locking than "non_atomic"',
        _IN_PLACE_ATTEMPTS,
    )


def _open_own(key: str) -> int | None:
    """A file that has no other name, emptied; None where there is none, or none any more."""
    try:
        if stat.S_ISLNK(os.lstat(key).st_mode):
            os.unlink(key)
            return None
        fd = os.open(key, WRITE_FLAGS)
    except FileNotFoundError:
        return None
    alone = False
    try:
        status = os.fstat(fd)
        check_replaceable(key, status)
        if status.st_nlink > 1:
            os.unlink(key)
            return None
        os.ftruncate(fd, 0)
        alone = True
        return fd
    finally:
        if not alone:
            os.close(fd)


def write_all(fd: int, value: Buffer) -> None:
    """Write the whole of `value` at the descriptor's position."""
    written = os.write(fd, value)
    view = memoryview(value).cast("B")
    # One call writes 2 GiB at most, and less when the disk is about to be full.
    while written < view.nbytes:
        written += os.write(fd, view[written:])


def write_parts(fd: int, parts: Sequence[Segment], kept_fd: int = -1) -> None:
    """Write all parts, one after the other, at the descriptor's position.

    Args:
        fd: what to write to.
        parts: what to write.
        kept_fd: the file that has what of it is kept.

    Raises:
        OSError: that file is shorter.
    """
    fresh: list[Buffer] = []
    for part in parts:
        if not isinstance(part, CopiedRange):
            fresh.append(part)
            continue
        _write_fresh(fd, fresh)
        fresh = []
        copy_range(kept_fd, fd, part.start, part.stop)
    _write_fresh(fd, fresh)


def _write_fresh(fd: int, parts: Sequence[Buffer]) -> None:
    if len(parts) == 1 or _WRITEV is None:
        for part in parts:
            write_all(fd, part)
        return
    for first in range(0, len(parts), _MOST_PARTS):
        some = parts[first : first + _MOST_PARTS]
        written = _WRITEV(fd, some)
        for part in some:  # less than all when the disk is about to be full, or beyond 2 GiB
            size = part.nbytes if isinstance(part, memoryview) else len(part)
            if written < size:
                write_all(fd, memoryview(part).cast("B")[written:])
            written = max(0, written - size)


def copy_range(fd: int, to_fd: int, start: int, stop: int) -> None:
    """Write bytes `[start, stop)` of a file at the other descriptor's position.

    Where the system can, the bytes do not come here; where the file system can, they are not even
    copied, but shared.

    Raises:
        OSError: the file is shorter.
    """
    while start < stop and _COPY_RANGE is not None:
        try:
            copied = _COPY_RANGE(fd, to_fd, stop - start, start)
        except OSError:
            break  # not between these two, or not at all
        if not copied:
            break
        start += copied
    if start < stop:
        os.lseek(fd, start, os.SEEK_SET)
    while start < stop:
        piece = os.read(fd, min(stop - start, _PIECE_BYTES))
        if not piece:
            raise OSError(errno.EIO, f"the file has less than {stop} bytes")
        write_all(to_fd, piece)
        start += len(piece)


def make_parents(path: str, *, sync: bool) -> None:
    """Create the directories above `path` that are missing.

    Args:
        path: of a file, or of a directory without a final `/`.
        sync: make the new directories' names survive a power cut.
    """
    parent = os.path.dirname(path)
    # Another process may remove an emptied directory again before anything is in it.
    for _ in range(_MKDIR_ATTEMPTS):
        try:
            os.mkdir(parent)
        except FileExistsError:
            return
        except FileNotFoundError:
            make_parents(parent, sync=sync)
        else:
            break
    if sync:
        sync_directory(parent)


def sync_directory(path: str) -> None:
    """Make the names in the directory that holds `path` survive a power cut."""
    # Windows opens no directories; its journal keeps names by itself.
    if sys.platform != "win32":
        fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _create_when_absent(path: str, timeout_s: float) -> int:
    backoff = Backoff(timeout_s, longest_s=1.0)
    while True:
        try:
            return os.open(path, CREATE_FLAGS, 0o666)
        except FileExistsError:
            check_lock_file(path)
            backoff.wait(path)


def _replace_when_unread(path: str, key: str) -> None:
    """Rename on Windows, which refuses while a reader has the old file open."""
    backoff = Backoff(_SHARING_TIMEOUT_S)
    while True:
        try:
            os.replace(path, key)
        except PermissionError:
            backoff.wait(key)
        else:
            return


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # Gone, or (Windows) opened by the next writer: either way it is not ours any more.
        return
