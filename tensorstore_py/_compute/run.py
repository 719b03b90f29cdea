"""Running an operation on all its blocks in this process, its results merged as they come.

Only one result is kept: whoever finishes a block takes the one that is there, merges, and puts the
outcome back, as long as nobody else has put one meanwhile. So merging holds nobody up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tensorstore_py._api.blockwise import each_block
from tensorstore_py._runtime.gate import Mutex

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block, Blocks
    from tensorstore_py._runtime.admission import Bytes
    from tensorstore_py._runtime.progress import Told

__all__ = ["Mergeable", "merged"]

P = TypeVar("P")


class Mergeable(Protocol[P]):
    """An operation on blocks that gives partial results.

    Attributes:
        inline: the temperament of `run`.
        regions: what is worked on.
        item_bytes: how much memory an element takes meanwhile.
        memory: the budget that this counts in; None: there is none.
        told_bytes: what an element counts for progress.
    """

    inline: bool
    regions: Blocks
    item_bytes: int
    memory: Bytes | None
    told_bytes: int

    async def run(self, region: Block) -> P:
        """The result of a block."""

    def merge(self, one: P, other: P) -> P:
        """Two results as one; neither is changed."""


async def merged(operation: Mergeable[P], told: Told) -> P | None:
    """The results of all blocks as one; None if there are no blocks.

    Args:
        operation: what to run.
        told: who is told how far it is.
    """
    waiting: list[Any] = []
    mutex = Mutex()

    async def work(block: Block) -> None:
        found = await operation.run(block)
        while True:
            with mutex:
                if not waiting:
                    waiting.append(found)
                    return
                other = waiting.pop()
            found = operation.merge(other, found)

    await each_block(
        operation.inline,
        operation.regions,
        work,
        item_bytes=operation.item_bytes,
        memory=operation.memory,
        told=told,
        told_bytes=operation.told_bytes,
    )
    return waiting[0] if waiting else None
