"""Copying one array to another, block by block (`blockwise`).

Several blocks are on their way at a time, so that one is read while another is written. Only these
are in memory, within the target's `memory_limit`. The two drivers may have different temperaments:
each body runs where it belongs, and this one waits for it without holding a loop up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._api.blocks import Block, Blocks
from tensorstore_py._api.blockwise import each_block, limits, selected
from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap, propagate_bounds
from tensorstore_py._runtime.fan_out import within
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._runtime.admission import Bytes
    from tensorstore_py._runtime.progress import Told
    from tensorstore_py._spec.dtype import dtype

__all__ = ["ArrayCopy", "check_convertible", "check_types", "copy_array"]

Box = tuple[tuple[int, int], ...]


def check_convertible(source: Driver, target: Driver) -> None:
    """Whether elements can be copied without losing anything.

    Raises:
        MismatchError: their data types do not allow it.
    """
    check_types(source.data_type, target.data_type)


def check_types(there: dtype, here: dtype) -> None:
    """The same for the data types of the source and the target."""
    if not np.can_cast(there.record.array_dtype, here.record.array_dtype, "safe"):
        raise MismatchError(
            f"cannot copy {there.name} data to an array of {here.name} "
            "without loss; read it, convert it, and write the result"
        )


class ArrayCopy(NamedTuple):
    """One array on its way to another: the blocks, and how one of them is copied.

    Attributes:
        source: where from.
        seen: the source from the copy's positions; extent 1 where it is broadcast.
        target: where to.
        to: the target from the copy's positions.
        inline: the temperament of copying.
        blocks: what to copy.
        memory: the budget that blocks count in; None: there is none.
    """

    source: Driver
    seen: IndexTransform
    target: Driver
    to: IndexTransform
    inline: bool
    blocks: Blocks
    memory: Bytes | None

    @staticmethod
    def of(
        source: Driver, source_view: IndexTransform, target: Driver, target_view: IndexTransform
    ) -> ArrayCopy:
        """The copy of what one view selects to where another one says.

        Args:
            source: where from.
            source_view: its dimensions are matched with the target's by label if both have some,
                else from the last one back; their extents must be equal, or 1 to broadcast.
            target: where to.
            target_view: see above.

        Raises:
            MismatchError: the shapes do not broadcast; names the dimension. Or elements cannot be
                copied without losing anything.
        """
        check_convertible(source, target)
        from_ = propagate_bounds(source.domain.mark_bounds_implicit[False], source_view)
        to = propagate_bounds(target.domain.mark_bounds_implicit[False], target_view)
        seen = _aligned(from_, to)
        memory = target.memory or source.memory
        sizes = limits(_item_bytes(source, target), memory)
        blocks = Blocks.of_copy(target, to, source, seen, **sizes)
        inline = source.inline and target.inline
        return ArrayCopy(source, seen, target, to, inline, blocks, memory)

    @property
    def item_bytes(self) -> int:
        """How much memory an element takes on its way."""
        return _item_bytes(self.source, self.target)

    @property
    def told_bytes(self) -> int:
        """What an element counts."""
        return self.target.data_type.array_dtype.itemsize

    async def run(self, block: Block) -> None:
        """Copy one block."""
        source, target = self.source, self.target
        part = self.seen[_within_bounds(block.bounds, self.seen)]
        data = await within(self.inline, source.inline, lambda: source.read(part, "C"))
        place = self.to[selected(block.bounds)]
        data = data.astype(target.data_type.record.array_dtype, copy=False)
        await within(self.inline, target.inline, lambda: target.write(place, data))


async def copy_array(
    source: Driver,
    source_view: IndexTransform,
    target: Driver,
    target_view: IndexTransform,
    told: Told,
) -> None:
    """Copy what `source_view` selects to where `target_view` says.

    Args and errors are those of `ArrayCopy.of`, and `told`, who is told how far it is.
    """
    found = ArrayCopy.of(source, source_view, target, target_view)
    await each_block(
        found.inline,
        found.blocks,
        found.run,
        item_bytes=found.item_bytes,
        memory=found.memory,
        told=told,
        told_bytes=found.told_bytes,
    )


def _item_bytes(source: Driver, target: Driver) -> int:
    there, here = source.data_type.array_dtype, target.data_type.array_dtype
    return here.itemsize + (there.itemsize if there != here else 0)


def _aligned(source: IndexTransform, target: IndexTransform) -> IndexTransform:
    """The source seen from the target's positions; it has extent 1 where it is broadcast.

    Raises:
        MismatchError: extents differ; names the dimension.
    """
    matches = _matches(source, target)
    outputs = []
    for dim, (low, extent, match) in enumerate(
        zip(source.input_origin, source.input_shape, matches, strict=True)
    ):
        if match is not None and target.input_shape[match] == extent:
            outputs.append(
                OutputIndexMap(input_dimension=match, offset=low - target.input_origin[match])
            )
        elif extent == 1:
            matches[dim] = None
            outputs.append(OutputIndexMap(offset=low))
        else:
            wanted = (
                "has no counterpart in the target"
                if match is None
                else f"has another extent than the target's dimension {match} "
                f"({target.input_shape[match]})"
            )
            raise MismatchError(
                f"Error aligning dimensions: source dimension {dim} of extent {extent} {wanted}"
            )
    shape = [
        extent if dim in matches else min(extent, 1)
        for dim, extent in enumerate(target.input_shape)
    ]
    seen = IndexTransform(
        input_inclusive_min=target.input_origin, input_shape=shape, output=outputs
    )
    return source[seen]


def _matches(source: IndexTransform, target: IndexTransform) -> list[int | None]:
    """The target's dimension for each of the source's: by label, or else from the last one back."""
    if not any(source.input_labels) or not any(target.input_labels):
        skipped = source.input_rank - target.input_rank
        return [dim - skipped if dim >= skipped else None for dim in range(source.input_rank)]
    unlabeled = [dim for dim, label in enumerate(target.input_labels) if not label]
    found: list[int | None] = []
    for label in reversed(source.input_labels):
        if label:
            found.append(target.input_labels.index(label) if label in target.input_labels else None)
        else:
            found.append(unlabeled.pop() if unlabeled else None)
    return found[::-1]


def _within_bounds(box: Box, aligned: IndexTransform) -> IndexDomain:
    """The box, or the source's only position along dimensions that it broadcasts."""
    return selected(
        tuple(
            (low, low + 1) if extent == 1 else bounds
            for bounds, low, extent in zip(
                box, aligned.input_origin, aligned.input_shape, strict=True
            )
        )
    )
