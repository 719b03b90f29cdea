"""`Step`: one operation of a plan, as it travels; and `Stage`: steps that wait for no other.

A step says what it does by JSON: specs, without what only this process has. Where it was made, it
may hold the open operation (`live`), which stays behind when it is pickled. The one invariant: what
travels has no credentials and no memory of this process in it.

An operation works on blocks that never meet in what they write, so its tasks need no locks and no
order, and may be done again. Rooms above register a kind of step with the function that opens it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Coroutine
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._plan.homes import STEPS, load
from tensorstore_py._spec.pretty import shown
from tensorstore_py.errors import SpecError, UnsupportedError, did_you_mean, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._runtime.limiters import MemoryBudget
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.json_value import Json

__all__ = [
    "Merging",
    "Opener",
    "Operation",
    "Stage",
    "Step",
    "TaskRun",
    "check_portable",
    "open_operation",
    "region_text",
    "register",
]


class Operation(Protocol):
    """What is done to each block of a step; blocks in memory count in the budget `memory`."""

    @property
    def inline(self) -> bool: ...
    @property
    def blocks(self) -> Blocks:
        """All of them, in their order."""

    @property
    def memory(self) -> MemoryBudget | None: ...
    @property
    def item_bytes(self) -> int:
        """How much memory an element of a block takes meanwhile."""

    @property
    def progress_bytes(self) -> int:
        """What an element counts in progress."""

    async def run(self, block: Block) -> object:
        """Do one of them, again if it was done before.

        Returns:
            None, or a partial result, which is small, has no dependence on the others, and is
            merged with them (`Merging`).
        """


class Merging(Protocol):
    """How partial results of a step become one; in any order, whatever is merged with what."""

    def merge(self, one: object, other: object) -> object:
        """Both as one; either may be used up."""

    def to_json(self, result: object) -> Json:
        """A partial result as JSON, for a manifest."""

    def from_json(self, json: Json) -> object:
        """What `to_json` made of one."""


#: Opens an operation: takes the step's arguments, the context that specs are bound to, and the
#: blocks, which are the plan's matter.
Opener: TypeAlias = "Callable[[JsonObject, Context, Blocks], Coroutine[Any, Any, Operation]]"

_openers: dict[str, tuple[Opener, Merging | None]] = {}


def register(kind: str, opener: Opener, merging: Merging | None = None) -> None:
    """Say how steps of a kind are opened, and how their partial results, if any, are merged.

    The opener never suspends where all stores are local.
    """
    _openers[kind] = (opener, merging)


def found(kind: str) -> tuple[Opener, Merging | None]:
    """What was registered of a kind.

    Raises SpecError: nothing was.
    """
    if kind not in _openers:
        load(STEPS, kind)
    if kind not in _openers:
        hint = did_you_mean(kind, sorted(STEPS))
        raise SpecError(f"there are no steps of kind {kind!r}{hint}", ("kind",))
    return _openers[kind]


async def open_operation(
    kind: str, arguments: JsonObject, context: Context, blocks: Blocks
) -> Operation:
    """The operation of a step.

    Raises SpecError: the kind is not registered, or something is wrong with the arguments.
    """
    return await found(kind)[0](arguments, context, blocks)


class Step:
    """One operation.

    Args:
        kind: as it was registered.
        name: of what it works on, for messages and progress: the path of an array.
        arguments: JSON, or what makes it when the step has to travel.
        blocks: what to work on.
        item_bytes: how much memory an element takes meanwhile.
        progress_bytes: what an element counts.
        live: the open operation, if it was opened here.
        form: a few letters that are others when what it works on is of another form.
        inline: the execution mode of its tasks; by default that of the open operation.
    """

    __slots__ = (
        "_arguments", "blocks", "form", "inline", "item_bytes", "kind", "live", "name",
        "progress_bytes",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        name: str,
        arguments: JsonObject | Callable[[], JsonObject],
        blocks: Blocks,
        item_bytes: int,
        progress_bytes: int,
        live: Operation | None = None,
        form: str = "",
        inline: bool | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self._arguments = arguments
        self.blocks = blocks
        self.item_bytes = item_bytes
        self.progress_bytes = progress_bytes
        self.live = live
        self.form = form
        self.inline = live is not None and live.inline if inline is None else inline

    @classmethod
    def of(
        cls,
        kind: str,
        name: str,
        arguments: Callable[[], JsonObject],
        operation: Operation,
        form: str = "",
    ) -> Step:
        """The step that does an open operation to all of its blocks."""
        sizes = operation.item_bytes, operation.progress_bytes
        return cls(kind, name, arguments, operation.blocks, *sizes, operation, form)

    @property
    def arguments(self) -> JsonObject:
        """What the operation needs to know, as JSON that another process understands.

        Raises:
            UnsupportedError: it needs what only this process has.
            SpecError: it says credentials.
        """
        if callable(self._arguments):
            made = self._arguments()
            check_portable(made, self.name)
            self._arguments = made
        return self._arguments

    def stay(self, problem: str) -> None:
        """Say why no other process can do it."""

        def refused() -> JsonObject:
            raise UnsupportedError(problem)

        self._arguments = refused

    @property
    def merging(self) -> Merging | None:
        """How its partial results become one; None: it has none."""
        return found(self.kind)[1]

    async def open(self, context: Context) -> Operation:
        """The operation; specs are bound to the context."""
        if self.live is None:
            self.live = await open_operation(self.kind, self.arguments, context, self.blocks)
        return self.live

    def said(self) -> JsonObject:
        """What there is to do, as JSON, without what another process needs to do it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "form": self.form,
            "blocks": self.blocks.to_json(),
            "item_bytes": self.item_bytes,
            "told_bytes": self.progress_bytes,  # as in documents that are stored already
            "inline": self.inline,
        }

    def to_json(self) -> JsonObject:
        """It as JSON; raises as `arguments`."""
        return {**self.said(), "arguments": self.arguments}

    @classmethod
    def from_json(cls, json: object) -> Step:
        """What `to_json` made of one.

        Raises SpecError: it is something else, or of a kind that is not registered.
        """
        match json:
            case {"kind": str(kind), "name": str(name), "form": str(form), "blocks": blocks,
                  "item_bytes": int(item_bytes), "told_bytes": int(progress_bytes),
                  "inline": bool(inline), "arguments": dict(arguments)}:  # fmt: skip
                found(kind)
                return cls(
                    kind, name, arguments, Blocks.from_json(blocks), item_bytes, progress_bytes,
                    form=form, inline=inline,
                )  # fmt: skip
        raise SpecError("expected a step with kind, name, blocks and arguments")

    def __reduce__(self) -> tuple[Callable[[object], Step], tuple[JsonObject]]:
        return Step.from_json, (self.to_json(),)

    def region(self, block: Block) -> str:
        """How to name a block of it to a person."""
        return region_text(self.name, block)


def region_text(name: str, block: Block) -> str:
    """How to name a block of an array to a person."""
    bounds = ", ".join(f"{low}:{high}" for low, high in block.bounds)
    return f'"/{name}"[{bounds}]'


class TaskRun(NamedTuple):
    """Tasks that follow each other in one step.

    Attributes:
        stop: that after the last one.
        first: the number of the first as a task of the stage.
    """

    step: int
    start: int
    stop: int
    first: int


class Stage:
    """Steps whose tasks, numbered in their order, may run in any order."""

    __slots__ = ("_ends", "count", "steps")

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps
        self._ends = list(accumulate(step.blocks.count for step in steps))
        self.count = self._ends[-1] if steps else 0

    def task(self, number: int) -> tuple[Step, Block]:
        """What a task works on.

        Raises IndexError: there is no such task.
        """
        if not 0 <= number < self.count:
            raise IndexError(f"there are {self.count} tasks, and none of number {number}")
        at = bisect_right(self._ends, number)
        step = self.steps[at]
        return step, step.blocks[number - (self._ends[at] - step.blocks.count)]

    def runs(self, start: int, stop: int) -> Iterator[TaskRun]:
        """The tasks from one number up to another, step by step."""
        at = bisect_right(self._ends, start)
        while start < stop:
            first = self._ends[at] - self.steps[at].blocks.count
            end = min(stop, self._ends[at])
            if end > start:
                yield TaskRun(at, start - first, end - first, start)
            start = max(start, end)
            at += 1

    def some(self, start: int, stop: int) -> tuple[Stage, int, int]:
        """Only those steps that some tasks belong to; the number of the first; tasks before it."""
        runs = list(self.runs(start, stop))
        if not runs:
            return Stage(()), 0, start
        first, last = runs[0], runs[-1]
        return Stage(self.steps[first.step : last.step + 1]), first.step, first.first - first.start

    def __reduce__(self) -> tuple[type[Stage], tuple[tuple[Step, ...]]]:
        return Stage, (self.steps,)


def check_portable(json: JsonObject, name: str) -> None:
    """Refuse to send what must not travel, or would mean something else elsewhere.

    Raises:
        SpecError: there are credentials in it.
        UnsupportedError: it is in the memory of this process.
    """
    _check(json, name, ())


def _check(json: object, name: str, path: tuple[str, ...]) -> None:
    if isinstance(json, dict):
        if json.get("driver") == "memory":
            raise UnsupportedError(
                f'"/{name}" is in the memory of this process, where no other one sees it; store it '
                "elsewhere, or run in this process (executor=None, or a ThreadPoolExecutor)"
            )
        for member, value in json.items():
            if member == "headers" and shown({member: value}) != {member: value}:
                raise _credentials(name, (*path, member))
            _check(value, name, (*path, member))
    elif isinstance(json, list):
        for number, value in enumerate(json):
            _check(value, name, (*path, str(number)))
    elif isinstance(json, str) and without_secrets(json) != json:
        raise _credentials(name, path)


def _credentials(name: str, path: tuple[str, ...]) -> SpecError:
    return SpecError(
        f'the spec of "/{name}" has credentials, which never travel in a plan; have workers find '
        "them where they run, in their environment or in files",
        path,
    )
