"""From a complete `.zarray` document to what the engine runs: grid, codec chain, chunk names.

A chunk is seen with the inner dimensions of the field that is open behind its own. They are
always whole: one cell of the grid, and no part of a chunk's name.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from tensorstore_py.drivers.zarr.chain import bound_chain, inner_order
from tensorstore_py.drivers.zarr.compression import ZarrCodecSpec
from tensorstore_py.drivers.zarr.fill_value import field_fill_value
from tensorstore_py.drivers.zarr.metadata import ZarrMetadata
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    ArrayLayout,
    CodecSpec,
    ElementView,
    IndexDomain,
    OuterKeys,
    RegularAxis,
    SeparatedKeys,
    array_schema,
)

__all__ = ["DEFAULT_SEPARATOR", "array_layout"]

DEFAULT_SEPARATOR: Literal["."] = "."


def array_layout(
    metadata: ZarrMetadata,
    view: ElementView,
    *,
    separator: str | None = None,
    labels: tuple[str, ...] | None = None,
    run_code: bool = False,
) -> ArrayLayout:
    """The bound array.

    Args:
        metadata: the document.
        view: what is opened of each element.
        separator: between chunk indices if the document does not say.
        labels: of the dimensions; the document has none.
        run_code: allow codecs that run what the data contains.

    Raises:
        SpecError, UnsupportedError: a filter or compressor cannot be bound.
    """
    rank, inner = len(metadata.shape), view.inner_shape
    shape = (*metadata.shape, *inner)
    chunk_shape = (*metadata.chunks, *inner)
    domain = IndexDomain(
        shape=shape,
        implicit_upper_bounds=[True] * rank + [False] * len(inner),
        labels=_full(labels, rank, len(inner)),
    )
    fill = field_fill_value(view, metadata.fill_value)
    chain = bound_chain(metadata, view, fill, run_code=run_code)
    nothing = metadata.fill_value is None
    codec = ZarrCodecSpec(compressor=metadata.compressor, filters=metadata.filters)
    keys = SeparatedKeys(rank, metadata.separator or separator or DEFAULT_SEPARATOR)
    return ArrayLayout(
        data_type=view.data_type,
        domain=domain,
        grid=tuple(
            RegularAxis(extent, max(chunk, 1))
            for extent, chunk in zip(shape, chunk_shape, strict=True)
        ),
        chain=chain,
        keys=OuterKeys(keys, rank, len(inner)) if inner else keys,
        describe=partial(
            array_schema,
            data_type=view.data_type,
            domain=domain,
            read_chunk=chunk_shape,
            write_chunk=chunk_shape,
            inner_order=inner_order(metadata.order, rank, len(inner)),
            codec=CodecSpec(codec),
            fill_value=None if nothing else fill,
            units=None,
        ),
        always_store=nothing,
    )


def _full(labels: tuple[str, ...] | None, rank: int, inner_rank: int) -> tuple[str, ...] | None:
    """The labels of all dimensions; those inside an element may have been left out."""
    if labels is None or len(labels) == rank + inner_rank:
        return labels
    if len(labels) != rank:
        raise SpecError(
            f"there are {len(labels)} dimension labels, {list(labels)}, but {rank} dimensions",
            ("shape",),
        )
    return (*labels, *("",) * inner_rank)
