"""What a function gives is found out by calling it once, with a small block of ones.

Not of zeros, since fewer functions mind ones. The block has all of what is dropped, and its halo,
so only a function that counts on the extent of its blocks is asked for what it cannot do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._compute.map_blocks_operation import made_of
from tensorstore_py._index import IndexDomain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._compute.alignment import Alignment
    from tensorstore_py._compute.block_function import BlockFunction
    from tensorstore_py._compute.halo import Halo
    from tensorstore_py._spec.dtype import dtype

__all__ = ["data_type_of"]

#: The block's extent, without its halo, along dimensions that are cut.
_EXTENT: Final = 8


async def data_type_of(
    function: BlockFunction,
    alignment: Alignment,
    halo: Sequence[Halo],
    types: Sequence[dtype],
) -> np.dtype[Any]:
    """The data type of what a function gives.

    Args:
        function: it.
        alignment: which dimensions there are.
        halo: along each dimension of the space.
        types: the data types of the sources.

    Raises:
        MismatchError: it gives another shape than that of the block.
        Whatever the function raises.
    """
    space = alignment.space.shape
    lengths = [
        extent if dim in alignment.dropped else min(extent, _EXTENT)
        for dim, extent in enumerate(space)
    ]
    windows = [
        each.window(0, length, extent)
        for each, length, extent in zip(halo, lengths, space, strict=True)
    ]
    wide = [window.extent for window in windows]
    blocks = [
        np.ones(_shape(dims, once, wide), kind.array_dtype)
        for dims, once, kind in zip(alignment.sources, alignment.once, types, strict=True)
    ]
    extents, margins = [], []
    for dim, extent in zip(alignment.output, alignment.made.shape, strict=True):
        extents.append(extent if dim is None else lengths[dim])
        margins.append((0, 0) if dim is None else windows[dim].margins)
    domain = IndexDomain(shape=extents, labels=alignment.made.labels)
    try:
        found = await function(False, *blocks, domain=domain, quiet=True)
        return made_of(found, extents, margins, alignment.made.labels, function.name).dtype
    except Exception as error:
        error.add_note(
            f"{function.name} was called with ones of shape "
            f"{', '.join(str(block.shape) for block in blocks)}, to find out the data type of what "
            "it gives; pass dtype= to leave that out"
        )
        raise


def _shape(dims: Sequence[int], once: Sequence[int], extents: Sequence[int]) -> tuple[int, ...]:
    """The shape of a source's block, its dimensions in the order of the space."""
    return tuple(
        extents[dim] if dim in dims and dim not in once else 1
        for dim in range(min(dims, default=len(extents)), len(extents))
    )
