"""Who may use a file that replaces another one: as far as possible, those who could use the former.

Permission bits and the group are kept, and the owner if the process may give files away. Access
control lists and extended attributes are not. The one invariant: a new file is never open to more
users than the one that it replaces.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from tensorstore_py.errors import FailedPreconditionError
from tensorstore_py.kvstores.file.paths import WINDOWS

__all__ = ["check_replaceable", "keep_access", "set_bits", "what_it_is"]

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

    Args:
        key: the path.
        status: of what is there, behind a link if it is one.

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
        link: that is behind a symbolic link, which may be somebody else's.

    Returns:
        The permission bits to set when the new file has its name; None: it has them.
    """
    if WINDOWS:
        return None
    mine = os.fstat(fd)
    bits, fresh = stat.S_IMODE(of.st_mode) & 0o777, stat.S_IMODE(mine.st_mode)
    if of.st_uid != mine.st_uid and (link or os.geteuid() != 0):
        bits &= fresh  # somebody else chose them
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
