"""What is recorded of a part, by whom and when: a small JSON document that only its owner replaces.

Each version of a record is distinguished by its owner and how many records that one had
written: so a writer that got no answer finds out whether its write happened. The one invariant:
what `result` is made of is exactly what `done` says.

Of processes of this machine it can be told at once whether they are still there: a process number
that was given to another process since is told apart by when that began. Of other machines nothing
is known here. The one invariant: a worker that is alive never counts as gone.
"""

from __future__ import annotations

import builtins
import json
import os
import secrets
import socket
import time
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._plan.parts import TaskNumbers
from tensorstore_py._runtime.retry import Clock as _Clock
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["MOST_FAILURES", "Clock", "Failure", "Owner", "PartState", "Record", "WorkerTotals"]


class Clock(_Clock):
    """Time and chance."""

    def wall(self) -> float:
        """Seconds since the epoch, as this machine believes."""
        return time.time()


_GONE: Final = None
_UNKNOWN: Final = ""
#: The workers of this process that are at work.
_at_work: set[str] = set()


class Owner(NamedTuple):
    """A worker, as others see it.

    Attributes:
        id: at random, so that no two are ever the same.
        host: the machine's name, for people.
        machine: tells machines, and containers, apart.
        began: tells processes apart that had one number after the other.
    """

    id: str
    host: str
    pid: int
    machine: str
    began: str

    @classmethod
    def new(cls, pid: int | None = None) -> Owner:
        """A worker of a process of this machine, by default this one."""
        pid = os.getpid() if pid is None else pid
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


#: So many of a part are described; the others are only counted, or records would not be small.
MOST_FAILURES: Final = 100

PartState = Literal["claimed", "free", "failed", "done"]


class Failure(NamedTuple):
    """A task that could not be done, since what it reads is damaged."""

    task: int
    region: str
    message: str

    def __str__(self) -> str:
        return f"task {self.task} ({self.region}): {self.message}"


class WorkerTotals(NamedTuple):
    """How much a worker has done since it began."""

    tasks: int = 0
    bytes: int = 0
    since: float = 0.0


@dataclass(slots=True)
class Record:
    """What is known of a part.

    Attributes:
        state: `"claimed"`: its owner works on it; `"free"`: its owner released it; `"failed"`:
            all of it that can be done is; `"done"`.
        sequence: how many records the owner had written by then, this one included.
        at: when this was written, in seconds since the epoch.
        lease_s: the owner writes again within this time, or has abandoned it.
        bytes: how many bytes these have.
        result: their partial results, merged, as JSON.
        failures: tasks that could not be done; not all are described.
        worker: how much the owner has done, of this part and others.
    """

    owner: Owner
    state: PartState = "claimed"
    sequence: int = 0
    at: float = 0.0
    lease_s: float = 0.0
    done: TaskNumbers = field(default_factory=TaskNumbers)
    bytes: int = 0
    result: object = None
    failures: list[Failure] = field(default_factory=list)
    failed: int = 0
    worker: WorkerTotals = field(default_factory=WorkerTotals)

    @property
    def until(self) -> float:
        """When the owner will have written again, in seconds since the epoch."""
        return self.at + self.lease_s

    def serialized(self) -> builtins.bytes:
        """Its JSON text."""
        return json.dumps(
            {
                "state": self.state,
                "owner": self.owner._asdict(),
                "sequence": self.sequence,
                "at": self.at,
                "until": self.until,
                "done": str(self.done),
                "bytes": self.bytes,
                "result": self.result,
                "failures": [each._asdict() for each in self.failures],
                "failed": self.failed,
                "worker": self.worker._asdict(),
            }
        ).encode()

    @classmethod
    def parse(cls, data: Buffer, where: str) -> Record:
        """What `serialized` made of one.

        Raises DataLossError: it is something else; names `where`.
        """
        json = parse_document(data, where)
        try:
            return cls._of(json)
        except (KeyError, TypeError, ValueError, SpecError) as error:
            raise DataLossError(
                f"Error reading {where}: this is no record of a part ({error}); delete it, and the "
                f"part is done again"
            ) from error

    @classmethod
    def _of(cls, json: JsonObject) -> Record:
        state = json["state"]
        if state not in get_args(PartState):
            raise ValueError(f"state {state!r}")
        at = json["at"]
        return cls(
            Owner(**json["owner"]),  # type: ignore[arg-type]
            state,  # type: ignore[arg-type]
            json["sequence"],  # type: ignore[arg-type]
            at,  # type: ignore[arg-type]
            json["until"] - at,  # type: ignore[operator]
            TaskNumbers.parse(json["done"]),
            json["bytes"],  # type: ignore[arg-type]
            json["result"],
            [Failure(**each) for each in json["failures"]],  # type: ignore[attr-defined]
            json["failed"],  # type: ignore[arg-type]
            WorkerTotals(**json["worker"]),  # type: ignore[arg-type]
        )
