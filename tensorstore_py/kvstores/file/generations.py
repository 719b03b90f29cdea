"""Generations of files: device, inode and modification time, packed as the reference packs them.

Both implementations may serve one directory, so they must agree on this encoding, byte for byte.
The invariant: no two values that a key ever had share a generation (see `advance_mtime`).
"""

from __future__ import annotations

import os
import stat
import struct
from time import time_ns
from typing import Final, NamedTuple

from tensorstore_py.plugin import NO_VALUE

__all__ = ["Present", "advance_mtime", "generation_of", "present_at"]

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
