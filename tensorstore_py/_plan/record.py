"""What is recorded of a part: a small JSON document that only its owner replaces.

Each version is told from any other by who wrote it and how many that one had written: so a writer
that got no answer finds out whether its write happened. The one invariant: what `result` is made of
is exactly what `done` says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._plan.owner import Owner
from tensorstore_py._plan.task_numbers import TaskNumbers
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["MOST_FAILURES", "Done", "Failure", "PartState", "Record"]

#: So many of a part are described; the others are only counted, or records would not be small.
MOST_FAILURES: Final = 100

PartState = Literal["claimed", "free", "failed", "done"]


class Failure(NamedTuple):
    """A task that could not be done, since what it reads is damaged.

    Attributes:
        task: its number.
        region: what it was to work on.
        message: what went wrong.
    """

    task: int
    region: str
    message: str

    def __str__(self) -> str:
        return f"task {self.task} ({self.region}): {self.message}"


class Done(NamedTuple):
    """How much a worker has done since it began.

    Attributes:
        tasks: how many tasks.
        bytes: how many bytes these told.
        since: when it began, in seconds since the epoch.
    """

    tasks: int = 0
    bytes: int = 0
    since: float = 0.0


@dataclass(slots=True)
class Record:
    """What is known of a part.

    Attributes:
        owner: whose it is, or was.
        state: `"claimed"`: somebody works on it; `"free"`: nobody does, take it; `"failed"`: all
            of it that can be done is; `"done"`.
        sequence: how many records the owner had written by then, this one included.
        at: when this was written, in seconds since the epoch.
        lease_s: the owner writes again within this time, or has abandoned it.
        done: which of its tasks are done.
        bytes: how many bytes these told.
        result: their partial results, merged, as JSON.
        failures: tasks that could not be done; not all are described.
        failed: how many.
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
    worker: Done = Done()

    @property
    def until(self) -> float:
        """When the owner will have written again, in seconds since the epoch."""
        return self.at + self.lease_s

    def serialized(self) -> bytes:
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

        Raises:
            DataLossError: it is something else; names `where`.
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
            Done(**json["worker"]),  # type: ignore[arg-type]
        )
