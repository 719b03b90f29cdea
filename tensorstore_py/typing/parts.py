"""Parts of specs as TypedDicts: schemas, chunk layouts, resources.

Written by scripts/typed_specs.py, from the models that check specs.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.units import UnitLike

__all__ = ["ChunkLayoutSpec", "GridSpec", "ResourceSpec", "SchemaSpec"]


#: A context resource: a reference, or what it is.
ResourceSpec: TypeAlias = str | bool | int | float | Mapping[str, object] | Sequence[object] | None


class GridSpec(TypedDict, total=False):
    """Shape of chunks."""

    shape: Sequence[int | None] | None
    shape_soft_constraint: Sequence[int | None] | None
    aspect_ratio: Sequence[float | None] | None
    aspect_ratio_soft_constraint: Sequence[float | None] | None
    elements: int | None
    elements_soft_constraint: int | None


class ChunkLayoutSpec(TypedDict, total=False):
    """How an array is cut into chunks, and how they are ordered."""

    rank: int
    grid_origin: Sequence[int | None] | None
    grid_origin_soft_constraint: Sequence[int | None] | None
    inner_order: Sequence[int]
    inner_order_soft_constraint: Sequence[int]
    chunk: GridSpec | ChunkLayout.Grid
    write_chunk: GridSpec | ChunkLayout.Grid
    read_chunk: GridSpec | ChunkLayout.Grid
    codec_chunk: GridSpec | ChunkLayout.Grid


class SchemaSpec(TypedDict, total=False):
    """Constraints on an array's form."""

    rank: int
    dtype: DTypeLike
    domain: IndexDomain | Mapping[str, object]
    chunk_layout: ChunkLayoutSpec | ChunkLayout
    codec: CodecSpec | Mapping[str, object]
    fill_value: object
    dimension_units: "Sequence[UnitLike|None]"
