"""`Plan`: what a call is going to do, before anything is done: steps, tasks, bytes and memory.

All figures are found by arithmetic. A plan goes through JSON and pickle to other processes, and
runs there as here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorstore_py._display.public_name import public
from tensorstore_py._plan.call import Call, call_named, call_of
from tensorstore_py._plan.document import document, document_place, stages_of
from tensorstore_py._plan.running import run_call
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.steps import Stage, Step
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike

    P = ParamSpec("P")

__all__ = ["Plan", "plan", "size_text"]

_SHOWN = 20
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


@public
class Plan:
    """What is going to be done.

    Made by `ts.plan`, or read from JSON. Nothing is changed by making one.

    Args:
        call: what was asked for.
        stages: what there is to do.

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://a/"}
        >>> source = ts.open(spec, create=True, dtype="int16", shape=[60, 60]).result()
        >>> plan = ts.plan(ts.copy, source, "memory://b/|zarr3:", chunks=30).result()
        >>> plan.tasks, plan.bytes
        (1, 7200)
        >>> plan.run().result()
        CopySummary(arrays=1, groups=0, bytes=7200, chunks=4, skipped=0)
    """

    __slots__ = ("call", "stages")

    def __init__(self, call: Call[Any], stages: tuple[Stage, ...]) -> None:
        self.call = call
        self.stages = stages

    @property
    def operation(self) -> str:
        """The name of the function that was asked for."""
        return self.call.operation

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, in their order."""
        return tuple(step for stage in self.stages for step in stage.steps)

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return sum(stage.count for stage in self.stages)

    @property
    def bytes(self) -> int:
        """Of all elements that are worked on, as they are in memory."""
        return sum(step.progress_bytes * step.blocks.size for step in self.steps)

    @property
    def chunks(self) -> int:
        """How many chunks are worked on: for copies, those that are written."""
        return sum(step.blocks.chunks for step in self.steps)

    @property
    def task_memory(self) -> int:
        """How many bytes the elements of the largest task take while it runs."""
        return max((step.item_bytes * step.blocks.largest for step in self.steps), default=0)

    def run(
        self, *, executor: object = None, manifest: object = None, progress: ProgressLike = None
    ) -> Future[Any]:
        """Do it.

        Args:
            executor: as for the function that was planned.
            manifest: as for that.
            progress: as for that.

        Returns:
            A Future of what that gives.

        Raises:
            Whatever the function does.
        """
        where = None if manifest is None else document_place(manifest, Context())
        reporter = Reporter(progress, self.operation)
        return run_call(self.call, executor, reporter, where, self.stages)

    def to_json(self) -> JsonObject:
        """The plan as JSON that another process understands.

        Raises:
            UnsupportedError: something is in this process's memory.
            SpecError: there are credentials in a spec.
        """
        return document(self.call, self.stages)

    @classmethod
    def from_json(cls, json: object) -> Plan:
        """What `to_json` made of one.

        Raises:
            SpecError: it is something else.
        """
        match json:
            case {"tensorstore_py_plan": 1, "operation": str(operation),
                  "arguments": dict(arguments), "stages": list(stages)}:  # fmt: skip
                return cls(call_named(operation, arguments), stages_of(stages))
        raise SpecError('expected a plan, with the member "tensorstore_py_plan": 1')

    def __reduce__(self) -> tuple[Callable[[object], Plan], tuple[JsonObject]]:
        return Plan.from_json, (self.to_json(),)

    def __str__(self) -> str:
        chunks = f"{self.chunks:,} chunk{'s' * (self.chunks != 1)}"
        memory = f"at most {size_text(self.task_memory)} of memory a task"
        what = f"{self.operation}: {_tasks(self.tasks)}"
        lines = [f"{what}, {size_text(self.bytes)} in {chunks}, {memory}"]
        lines += [
            f"  {step.kind} /{step.name}: {_tasks(step.blocks.count)}, "
            + size_text(step.progress_bytes * step.blocks.size)
            for step in self.steps[:_SHOWN]
        ]
        if len(self.steps) > _SHOWN:
            lines.append(f"  and {len(self.steps) - _SHOWN:,} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Plan({self.operation}, tasks={self.tasks}, bytes={self.bytes})"


def plan(
    operation: Callable[P, Future[Any]], /, *arguments: P.args, **options: P.kwargs
) -> Future[Plan]:
    """What a call is going to do, without doing it.

    Args:
        operation: the function: `ts.copy`, `ts.rechunk`, and others that take `executor`.
        *arguments: those of the call.
        **options: those of the call.

    Returns:
        A Future of a `Plan`: how many tasks, bytes and chunks there are, and how much memory a task
        takes; JSON, and picklable.

    Raises:
        SpecError: (at once) it is no such function; and whatever the call raises at once.
        Whatever the call finds out about its ends before it begins. (by the Future)

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://a/"}
        >>> source = ts.open(spec, create=True, dtype="int16", shape=[60, 60]).result()
        >>> print(ts.plan(ts.rechunk, source, "memory://b/|zarr3:", chunks=(60, 1)).result())
        rechunk: 1 task, 7.0 KiB in 60 chunks, at most 7.0 KiB of memory a task
          copy /: 1 task, 7.0 KiB
    """
    call = call_of(operation, arguments, options)

    async def planned() -> Plan:
        return Plan(call, await call.stages())

    return start(False, planned, on_interrupt=OnInterrupt.CANCEL)


def _tasks(count: int) -> str:
    return f"{count:,} task{'s' * (count != 1)}"


def size_text(size: float) -> str:
    """A number of bytes, for people.

    Example:
        >>> size_text(0), size_text(7200), size_text(3 * 2**40)
        ('0 B', '7.0 KiB', '3.0 TiB')
    """
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} B"
