"""`Report`: what came of a job, step by step, for people and as JSON.

A report is of one process: where others work on the same plan, `tspy status` tells of all of them.
The state of a job is that of its first step that is not done.
"""

from __future__ import annotations

import dataclasses
import math
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._plan.plan import size_text
from tensorstore_py.errors import without_secrets

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = ["EXIT_CODES", "Report", "State", "StepReport", "as_json", "time_text"]

State = Literal["not begun", "running", "done", "partly done", "failed", "interrupted"]

#: What a process that ran a job ends with.
EXIT_CODES: Final[dict[State, int]] = {"done": 0, "failed": 1, "partly done": 3, "interrupted": 130}
_NOT_FINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


@dataclass
class StepReport:
    """What came of a step.

    Attributes:
        operation: its name.
        state: how far it came.
        seconds: how long it took.
        bytes_done: of the elements that are done, here or elsewhere.
        bytes_total: of all.
        chunks_done: how many chunks are.
        tasks_here: of one of several workers: how many tasks it did.
        bytes_here: and of how many bytes.
        result: what the operation gives.
        error: what went wrong.
    """

    operation: str
    state: State = "not begun"
    seconds: float = 0.0
    bytes_done: int = 0
    bytes_total: int = 0
    chunks_done: int = 0
    tasks_here: int | None = None
    bytes_here: int | None = None
    result: Any = None  # of any operation
    error: str = ""

    def to_json(self) -> JsonObject:
        """It as JSON."""
        done = self.bytes_done if self.bytes_here is None else self.bytes_here
        rate = done / self.seconds if self.seconds else 0.0
        json = {
            **self.__dict__,
            "seconds": round(self.seconds, 3),
            "bytes_per_second": round(rate),
            "result": as_json(self.result),
        }
        return {name: value for name, value in json.items() if value is not None and value != ""}


@dataclass
class Report:
    """What came of a job.

    Attributes:
        steps: of each.
        description: of the job.
        engine: what ran it, as JSON.
        part: which part of it this was, `"3/64"`; None: all.
        began: when, in seconds since the epoch.
        seconds: how long it took.
    """

    steps: list[StepReport]
    description: str = ""
    engine: JsonObject | None = None
    part: str | None = None
    began: float = field(default_factory=time.time)
    seconds: float = 0.0

    @property
    def state(self) -> State:
        """Of the whole: that of the first step that is not done."""
        return next((each.state for each in self.steps if each.state != "done"), "done")

    @property
    def exit_code(self) -> int:
        """See `EXIT_CODES`."""
        return EXIT_CODES.get(self.state, 1)

    def to_json(self) -> JsonObject:
        """It as JSON."""
        json: JsonObject = {
            "tensorstore_py_report": 1,
            "description": self.description or None,
            "state": self.state,
            "exit_code": self.exit_code,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began)),
            "seconds": round(self.seconds, 3),
            "host": socket.gethostname(),
            "engine": self.engine,
            "part": self.part,
            "steps": [each.to_json() for each in self.steps],
        }
        return {name: value for name, value in json.items() if value is not None}

    def __str__(self) -> str:
        lines = []
        for each in self.steps:
            result = "" if each.result is None else f": {_shown(each.result)}"
            size = f"{size_text(each.bytes_done)} in {each.seconds:.1f} s"
            if each.tasks_here is not None and each.bytes_here is not None:
                size += f", {size_text(each.bytes_here)} in {each.tasks_here:,} tasks of it here"
            lines.append(f"{each.operation}: {each.state}, {size}{result}")
        return "\n".join(lines)


def _shown(result: object) -> object:
    """A result for people."""
    if isinstance(result, TensorStore):
        where = result.kvstore
        at = "" if where is None else f" at {without_secrets(where.url)}"
        return f"{result.dtype.name} of shape {list(result.shape)}{at}"
    if isinstance(result, dict):
        return {
            name: each.item() if isinstance(each, np.generic) else each
            for name, each in result.items()
        }
    return result


def as_json(value: Any) -> Any:  # noqa: ANN401 - any result of any operation
    """A result as JSON; what has no form there becomes text.

    Example:
        >>> import numpy as np
        >>> as_json({"mean": np.float64(1.5), "shape": (1, 2)})
        {'mean': 1.5, 'shape': [1, 2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE.get(value, "NaN")  # JSON has no number for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, TensorStore):
        return value.spec().to_json()
    if isinstance(value, np.generic | np.ndarray):
        return as_json(value.tolist())
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_json({each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    if isinstance(value, dict):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(each) for each in value]
    return str(value)


def time_text(seconds: float) -> str:
    """A duration, for people.

    Example:
        >>> time_text(59.6), time_text(3700)
        ('0:01:00', '1:01:40')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
