"""What a new target of `ts.map_blocks` is like: its form, and the data type of what is computed.

The target is like the sources in whatever was not asked to be otherwise. Chunks are those of the
first source that has the dimension; a new dimension is one chunk. The data type is found out by
calling the function once with a small block of ones (fewer functions fail on ones than on zeros).
That block has the full extent of dropped dimensions, and its halo, so only a function that relies
on the extent of its blocks can fail there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._compute.alignment import named
from tensorstore_py._compute.map_blocks_operation import made_of
from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._compute.alignment import Alignment, Frame
    from tensorstore_py._compute.block_function import BlockFunction
    from tensorstore_py._compute.map_blocks_options import Halo
    from tensorstore_py._conversion.target_metadata import Chunks, RequestedMetadata
    from tensorstore_py._interface.hierarchy import HierarchyFormat
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.schema import Schema

__all__ = ["data_type_of", "target_options"]


#: The block's extent, without its halo, along dimensions that are cut.
_EXTENT: Final = 8


async def data_type_of(
    function: BlockFunction,
    alignment: Alignment,
    halo: Sequence[Halo],
    types: Sequence[dtype],
) -> np.dtype[Any]:
    """The data type of what a function gives.

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


def target_options(
    sources: Sequence[TensorStore],
    alignment: Alignment,
    dtype: object,
    wanted: RequestedMetadata,
    form: HierarchyFormat | None,
    known: Schema | None,
) -> dict[str, object]:
    """The options of `ts.open` for a new target.

    Raises:
        SpecError, MismatchError: extents of chunks are wrong, or are given twice.
    """
    driver = None if form is None else form.driver
    codec = wanted.codec
    if codec is not None and driver is not None:
        codec = CodecSpec.like(codec, driver)
    layout: object = None
    if known is None or known.chunk_layout == ChunkLayout() or wanted.chunks or wanted.shards:
        layout = _layout(sources, alignment, wanted, form)
    options = {
        "dtype": dtype,
        "domain": IndexDomain(shape=alignment.made.shape, labels=alignment.made.labels),
        "chunk_layout": layout if wanted.chunk_layout is None else wanted.chunk_layout,
        "codec": codec,
        "fill_value": wanted.fill_value,
        "dimension_units": _units(sources, alignment),
    }
    return {name: value for name, value in options.items() if value is not None}


def _layout(
    sources: Sequence[TensorStore],
    alignment: Alignment,
    wanted: RequestedMetadata,
    form: HierarchyFormat | None,
) -> ChunkLayout | None:
    if wanted.chunk_layout is not None:
        if wanted.chunks is not None or wanted.shards is not None:
            raise SpecError("chunks and shards are part of it; give one or the other",
                            ("chunk_layout",))  # fmt: skip
        return wanted.chunk_layout
    layouts = [store.chunk_layout for store in sources]
    made = alignment.made
    read = _present([each.read_chunk.shape for each in layouts], alignment)
    write = _present([each.write_chunk.shape for each in layouts], alignment)
    if wanted.chunks is not None:
        read = write = _resolved("chunks", wanted.chunks, made, read)
    if wanted.shards is not None:
        write = _resolved("shards", wanted.shards, made, write)
    elif form is not None and form.zarr_format != 3:
        write = read
    if not all(read) or not all(write):
        return None
    return ChunkLayout({"read_chunk": {"shape": read}, "write_chunk": {"shape": write}})


def _present(shapes: Sequence[tuple[int | None, ...] | None], alignment: Alignment) -> list[int]:
    """The extent of chunks along each dimension that is made; 0: unknown."""
    found = []
    for dim, extent in zip(alignment.output, alignment.made.shape, strict=True):
        size = extent if dim is None else 0
        for shape, dims, once in zip(shapes, alignment.sources, alignment.once, strict=True):
            if shape is not None and not size and dim in dims and dim not in once:
                assert dim is not None
                size = shape[dims.index(dim)] or 0
        found.append(max(size, int(dim is None)))
    return found


def _resolved(name: str, wanted: Chunks, made: Frame, present: list[int]) -> list[int]:
    """The extent along each dimension; what is not given stays, or is all of it."""
    whole = [size or extent for size, extent in zip(present, made.shape, strict=True)]
    if isinstance(wanted, Mapping):
        given = named(dict[int | str, int](wanted.items()), made.labels, name)
        found = [given.get(dim, size) for dim, size in enumerate(whole)]
    else:
        found = [wanted] * len(whole) if isinstance(wanted, int) else [*wanted]
    if len(found) != len(whole):
        raise MismatchError(
            f"{name} has {len(found)} dimensions, but the target has {len(whole)}; give one number "
            "for all of them, or extents by dimension name"
        )
    if any(size < -1 or size == 0 for size in found):
        raise SpecError(f"expected positive extents, or -1 for all, but found {found}", (name,))
    return [max(1, extent) if size == -1 else size
            for size, extent in zip(found, made.shape, strict=True)]  # fmt: skip


def _units(sources: Sequence[TensorStore], alignment: Alignment) -> list[object] | None:
    """The units of dimensions that a source has."""
    found: list[object] = []
    for dim in alignment.output:
        units = [
            store.dimension_units[dims.index(dim)]
            for store, dims in zip(sources, alignment.sources, strict=True)
            if dim in dims
        ]
        found.append(next((unit for unit in units if unit is not None), None))
    return found if any(unit is not None for unit in found) else None
