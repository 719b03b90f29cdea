"""What a step of a plan does, and how a process that was told of the step by JSON opens it.

An operation works on blocks that never meet in what they write, so its tasks need no locks and no
order, and may be done again. Rooms above register a kind of step with the function that opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block, Blocks
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._runtime.admission import Bytes
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.json_value import Json

__all__ = ["Merging", "Opener", "Operation", "open_operation", "register"]


class Operation(Protocol):
    """What is done to each block of a step.

    Attributes:
        inline: the temperament of `run`.
        memory: the budget that blocks in memory count in; None: there is none.
    """

    @property
    def inline(self) -> bool: ...
    @property
    def blocks(self) -> Blocks:
        """All of them, in their order."""

    @property
    def memory(self) -> Bytes | None: ...
    @property
    def item_bytes(self) -> int:
        """How much memory an element of a block takes meanwhile."""

    @property
    def told_bytes(self) -> int:
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
    """Say how steps of a kind are opened, and how their partial results are merged.

    Args:
        kind: its name in a plan.
        opener: never suspends where all stores are local.
        merging: None: there are no results.
    """
    _openers[kind] = (opener, merging)


def found(kind: str) -> tuple[Opener, Merging | None]:
    """What was registered of a kind.

    Raises:
        SpecError: nothing was.
    """
    if kind not in _openers:
        hint = did_you_mean(kind, sorted(_openers))
        raise SpecError(f"there are no steps of kind {kind!r}{hint}", ("kind",))
    return _openers[kind]


async def open_operation(
    kind: str, arguments: JsonObject, context: Context, blocks: Blocks
) -> Operation:
    """The operation of a step.

    Raises:
        SpecError: nobody knows the kind, or something is wrong with the arguments.
    """
    return await found(kind)[0](arguments, context, blocks)
