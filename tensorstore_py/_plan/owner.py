"""Who does a part: one worker in one process on one machine.

Of processes of this machine it can be told at once whether they are still there: a number that was
given to another process since is told apart by when that began. Of other machines nothing is known
here. The one invariant: a worker that is alive never counts as gone.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Owner"]

_GONE: Final = None
_UNKNOWN: Final = ""
#: The workers of this process that are at work.
_at_work: set[str] = set()


class Owner(NamedTuple):
    """A worker, as others see it.

    Attributes:
        id: at random, so that no two are ever the same.
        host: the machine's name, for people.
        pid: of its process.
        machine: tells machines, and containers, apart.
        began: tells processes apart that had one number after the other.

    Example:
        >>> owner = Owner.new()
        >>> owner.is_gone()
        True
        >>> owner.enter()
        >>> owner.is_gone()
        False
        >>> owner.leave()
    """

    id: str
    host: str
    pid: int
    machine: str
    began: str

    @classmethod
    def new(cls) -> Owner:
        """A worker of this process."""
        pid = os.getpid()
        return cls(secrets.token_hex(6), socket.gethostname(), pid, _machine(), _began(pid) or "")

    def enter(self) -> None:
        """It is at work from now on."""
        _at_work.add(self.id)

    def leave(self) -> None:
        """It is not any more."""
        _at_work.discard(self.id)

    def is_gone(self) -> bool:
        """Whether it is certain that it does not work any more."""
        if self.machine != _machine():
            return False
        now = _began(self.pid)
        if self.pid == os.getpid() and self.began == (now or ""):
            return self.id not in _at_work
        if now is _GONE:
            return True
        return bool(self.began) and now not in (_UNKNOWN, self.began)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _began(pid: int) -> str | None:
    """When a process began, on whatever clock; None if there is none, "" if that is all we know."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        state, *fields = text.rpartition(")")[2].split()
        # a zombie is a process that has ended, and whose parent has not looked yet
        return _GONE if state in "ZXx" else fields[18]
    except (OSError, IndexError, ValueError):
        return _without_proc(pid)


def _without_proc(pid: int) -> str | None:
    if os.name != "posix":  # where the call below would end the process
        return _UNKNOWN
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return _GONE
    except OSError:
        return _UNKNOWN
    return _UNKNOWN


@cache
def _machine() -> str:
    """The machine, since it was started, and the container: process numbers mean the same there."""
    known = [socket.gethostname()]
    for path, read in (
        ("/proc/sys/kernel/random/boot_id", Path.read_text),
        ("/proc/self/ns/pid", os.readlink),
    ):
        try:
            known.append(str(read(Path(path))).strip())
        except OSError:
            known.append("")
    return sha256("\n".join(known).encode()).hexdigest()[:16]
