"""What the status of a file tells: its generation, and who may use it.

A generation is device, inode and modification time, packed as the reference packs them: both
implementations may serve one directory, so they must agree byte for byte. The invariant: no two
values that a key ever had share a generation (see `advance_mtime`).

A file that replaces another one is open to those who could use the former, as far as possible:
permission bits and the group are kept, and the owner if the process may give files away. Access
control lists and extended attributes are not. The invariant: a new file is never open to more users
than the one that it replaces.
"""

from __future__ import annotations

import os
import stat
import struct
from contextlib import suppress
from time import time_ns
from typing import Final, NamedTuple

from tensorstore_py.errors import FailedPreconditionError
from tensorstore_py.kvstores.file.paths import WINDOWS
from tensorstore_py.plugin.kvstore import NO_VALUE

__all__ = [
    "Present",
    "advance_mtime",
    "check_replaceable",
    "generation_of",
    "keep_access",
    "present_at",
    "set_bits",
    "what_it_is",
]

_PACK: Final = struct.Struct("<xQQq").pack
_WORD: Final = 2**64 - 1
_UTIME_TAKES_FD: Final = os.utime in os.supports_fd

# The resolutions of the file systems there are: ext4 and xfs, NTFS, HFS+ and ext3, FAT.
_RESOLUTIONS_NS: Final = (1, 100, 1000, 1_000_000, 1_000_000_000, 2_000_000_000)


def generation_of(status: os.stat_result) -> bytes:
    """The generation of the file that has this status."""
    # Some Windows file systems number files with 128 bits.
    return _PACK(status.st_dev & _WORD, status.st_ino & _WORD, status.st_mtime_ns)


class Present(NamedTuple):
    """What is at a path.

    Attributes:
        generation: `NO_VALUE` unless it is a file.
        mtime_ns: its modification time; 0 unless it is a file.
        status: its status, behind a symbolic link if it is one; None if there is nothing.
        link: whether it is a symbolic link.
    """

    generation: bytes = NO_VALUE
    mtime_ns: int = 0
    status: os.stat_result | None = None
    link: bool = False


_NOTHING: Final = Present()


def present_at(path: str) -> Present:
    """What is stored at `path`."""
    try:
        status = os.lstat(path)
        link = stat.S_ISLNK(status.st_mode)
        if link:
            status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING
    if not stat.S_ISREG(status.st_mode):
        return Present(status=status, link=link)
    return Present(generation_of(status), status.st_mtime_ns, status, link)


def advance_mtime(fd: int, path: str, previous_mtime_ns: int) -> bytes:
    """Date a new file later than the one it replaces; returns its generation.

    Left alone, three quick writes can end where they began: the second takes a new inode, the
    third gets the first one's inode back, and the kernel's clock, which ticks in milliseconds,
    has not moved. A writer that had seen the first value would then overwrite the third,
    believing nothing had changed. So each value is dated later than the one before it, and by
    the precise clock, so that this holds over a deletion, too. Call with the key's lock held.

    Args:
        fd: the new file, completely written.
        path: its present path, for platforms that date files by path only.
        previous_mtime_ns: the date of the value that it replaces.
    """
    target: int | str = fd if _UTIME_TAKES_FD else path
    now = time_ns()
    for step in _RESOLUTIONS_NS:
        os.utime(target, ns=(now, max(now, previous_mtime_ns + step)))
        # Coarse file systems round down, perhaps to the previous date: then take a longer step.
        if (status := os.fstat(fd)).st_mtime_ns > previous_mtime_ns:
            return generation_of(status)
    return generation_of(os.fstat(fd))


_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def what_it_is(mode: int) -> str:
    """What a status mode is of, as text.

    Example:
        >>> what_it_is(stat.S_IFIFO | 0o600)
        'a named pipe'
    """
    return next((name for test, name in _KINDS if test(mode)), "a file")


def check_replaceable(key: str, status: os.stat_result) -> None:
    """Refuse to put a file in the place of a pipe, a socket, a device or a directory.

    Raises:
        FailedPreconditionError: it is one of these.
    """
    if not stat.S_ISREG(status.st_mode):
        raise FailedPreconditionError(
            f'cannot write "{key}": {what_it_is(status.st_mode)} is in its place; '
            "remove it, or use another key"
        )


def keep_access(fd: int, of: os.stat_result, *, link: bool) -> int | None:
    """Open a new file to those who may use the one that it is to replace.

    Its owner can write it meanwhile, whatever the bits say, since a lock file that its own user
    cannot open would be in the way of the next writer if this one is killed.

    Args:
        fd: the new file, still empty.
        of: what it is to replace.
        link: that is behind a symbolic link, which may be another user's.

    Returns:
        The permission bits to set when the new file has its name; None: it has them.
    """
    if WINDOWS:
        return None
    mine = os.fstat(fd)
    bits, fresh = stat.S_IMODE(of.st_mode) & 0o777, stat.S_IMODE(mine.st_mode)
    if of.st_uid != mine.st_uid and (link or os.geteuid() != 0):
        bits &= fresh  # another user chose them
    if not _keep_owner(fd, mine, of, link=link):
        both = (bits >> 3) & bits & 0o7  # who is of the group, and who is not, changes
        bits = (bits & 0o700) | both << 3 | both
    if fresh != bits | 0o200:
        set_bits(fd, bits | 0o200)
    return None if bits & 0o200 else bits


def set_bits(fd: int, bits: int) -> None:
    """Set the permission bits, on file systems that have some."""
    with suppress(OSError):
        os.fchmod(fd, bits)


def _keep_owner(fd: int, mine: os.stat_result, of: os.stat_result, *, link: bool) -> bool:
    """Give the file to the owner and group of another one if that is allowed; whether the group."""
    gives = of.st_uid != mine.st_uid and not link and os.geteuid() == 0
    owner = of.st_uid if gives else -1
    group = of.st_gid if of.st_gid != mine.st_gid else -1
    for wanted in dict.fromkeys(((owner, group), (-1, group))):
        if wanted == (-1, -1):
            return True
        with suppress(OSError):
            os.fchown(fd, *wanted)
            return True
    return False
