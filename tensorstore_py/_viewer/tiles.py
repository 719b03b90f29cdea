"""Reading a tile: which elements of which level, bounded, and what the page gets of them.

A tile is addressed by integers: how many elements of level 0 a pixel stands for along each of the
two dimensions drawn (its steps), its row and column in the grid of tiles of these steps, and the
offsets along all other dimensions. Where the steps pass over whole chunks, each pixel would decode
one of its own; then a tile has fewer pixels, evenly spread, so that it never decodes more than
`_DECODED` bytes or so many chunks, and says that it is sampled.
"""

from __future__ import annotations

import json
import struct
from math import ceil, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from tensorstore_py._viewer.elements import Array, TileForm, as_text, tile_form
from tensorstore_py._viewer.levels import Level, Offsets, Picture
from tensorstore_py.errors import MismatchError, OutOfRangeError, SpecError

__all__ = ["TILE", "CellsRequest", "TileRequest", "read_cells", "read_tile"]

#: The pixels of a tile along each of its dimensions.
TILE: Final = 256

#: What a tile decodes at most: bytes, and chunks, of which each takes a request over a network.
_DECODED: Final = 2**26
_CHUNKS: Final = 1024
_REMOTE_CHUNKS: Final = 144
#: The elements of a table at most.
_CELLS: Final = 4096


class TileRequest(NamedTuple):
    """Which tile.

    Attributes:
        rows, columns: the dimensions drawn downwards and to the right; None: there is none.
        at: offsets along all dimensions; those along the dimensions drawn do not matter.
        steps: how many elements a pixel stands for, downwards and to the right.
        tile: its row and column.
        colour: the dimension whose first elements are red, green and blue; None: there is none.
        field, part: what is drawn of records and of complex numbers.
    """

    rows: int | None
    columns: int | None
    at: tuple[int, ...]
    steps: tuple[int, int] = (1, 1)
    tile: tuple[int, int] = (0, 0)
    colour: int | None = None
    field: str = ""
    part: str = ""


class CellsRequest(NamedTuple):
    """Which elements as text: `counts` from `at` on, downwards and to the right."""

    rows: int | None
    columns: int | None
    at: tuple[int, ...]
    counts: tuple[int, int]
    field: str = ""


async def read_tile(picture: Picture, asked: TileRequest) -> bytes:
    """A tile: the length of a JSON header in four bytes, the header, and the values.

    The header has `shape`, `type`, `level`, `sampled`, and `low` and `high` of the finite values.
    Values begin at a multiple of eight bytes, row after row, little-endian.

    Raises:
        OutOfRangeError: there is no such tile.
        MismatchError: elements of this type have no numbers.
        TensorStoreError: as by `TensorStore.read`.
    """
    _check(picture, (asked.rows, asked.columns, asked.colour), asked.at)
    form = tile_form(picture.dtype, asked.field, asked.part)
    if not form.wire:
        raise MismatchError(f"elements of type {picture.dtype} have no colours; look at the table")
    drawn = [
        (dim, step, tile)
        for dim, step, tile in zip(
            (asked.rows, asked.columns), asked.steps, asked.tile, strict=True
        )
        if dim is not None
    ]
    number, level = picture.coarsest({dim: step for dim, step, _ in drawn})
    chosen = {dim: _offsets(picture, dim, step, tile) for dim, step, tile in drawn}
    thinned = _thinned(level, chosen)
    if asked.colour is not None:
        thinned[asked.colour] = np.arange(min(4, picture.axes[asked.colour].size))
    elements = await _read(level, thinned, asked.at)
    order = [dim for dim in (asked.rows, asked.columns, asked.colour) if dim is not None]
    elements = _ordered(elements, order)
    sampled = any(len(thinned[dim]) < len(chosen[dim]) for dim in chosen)
    return _encoded(form, elements, asked, number, sampled)


async def read_cells(picture: Picture, asked: CellsRequest) -> list[list[str]]:
    """Elements of level 0 as text, as far as there are some.

    Raises:
        SpecError: too many are asked for.
        OutOfRangeError: the first one is not there.
    """
    counts = (max(1, asked.counts[0]), max(1, asked.counts[1]))
    if counts[0] * counts[1] > _CELLS:
        raise SpecError(f"at most {_CELLS} elements are shown as text at a time")
    for dim, offset in enumerate(asked.at):
        picture.check_offset(dim, offset)
    _check(picture, (asked.rows, asked.columns), asked.at)
    chosen: dict[int, Offsets] = {
        dim: np.arange(asked.at[dim], min(asked.at[dim] + count, picture.axes[dim].size))
        for dim, count in zip((asked.rows, asked.columns), counts, strict=True)
        if dim is not None
    }
    elements = await _read(picture.levels[0], chosen, asked.at)
    elements = _ordered(elements, [dim for dim in (asked.rows, asked.columns) if dim is not None])
    if asked.field:
        tile_form(picture.dtype, asked.field)
        elements = elements[asked.field]
    extent = [len(chosen[dim]) if dim is not None else 1 for dim in (asked.rows, asked.columns)]
    flat = elements.reshape((extent[0], extent[1], *elements.shape[len(chosen) :]))
    return [[as_text(flat[row, at]) for at in range(extent[1])] for row in range(extent[0])]


def _check(picture: Picture, dims: tuple[int | None, ...], at: tuple[int, ...]) -> None:
    if len(at) != picture.rank:
        raise SpecError(f"expected {picture.rank} offsets, but found {len(at)}")
    drawn = [dim for dim in dims if dim is not None]
    if len(set(drawn)) != len(drawn) or any(not 0 <= dim < picture.rank for dim in drawn):
        raise SpecError(f"of {picture.rank} there are no such dimensions: {drawn}")
    for dim, offset in enumerate(at):
        if dim not in drawn:
            picture.check_offset(dim, offset)


def _offsets(picture: Picture, dim: int, step: int, tile: int) -> Offsets:
    """The offsets of a tile's pixels along a dimension."""
    size = picture.axes[dim].size
    start = tile * TILE * step
    if step < 1 or tile < 0 or start >= size:
        raise OutOfRangeError(f"dimension {dim} of {size} elements has no tile {tile} of {step}")
    return np.arange(start, min(start + TILE * step, size), step, dtype=np.int64)


def _thinned(level: Level, chosen: dict[int, Offsets]) -> dict[int, Offsets]:
    """The offsets that are read: fewer, if that many would decode too much."""
    touched: dict[int, int] = {}
    for dim, offsets in chosen.items():
        size, origin = level.grid(dim, shards=False)
        cells = (level.positions(dim, offsets) - origin) // (size or 2**62)
        touched[dim] = len(np.unique(cells))
    chunk = [
        size or extent
        for size, extent in zip(
            level.store.chunk_layout.read_chunk.shape or level.store.shape,
            level.store.shape,
            strict=True,
        )
    ]
    bytes_ = max(1, np.prod(chunk, dtype=float) * level.store.dtype.itemsize)
    chunks = _CHUNKS if level.store._driver.inline else _REMOTE_CHUNKS
    most = max(1.0, min(chunks, _DECODED / bytes_))
    total = float(np.prod(list(touched.values()), dtype=float))
    if total <= most:
        return dict(chosen)
    found = dict(chosen)
    # The dimension that touches fewer chunks first: what it leaves is for the other.
    left, dims = most, sorted(touched, key=lambda dim: touched[dim])
    for number, dim in enumerate(dims):
        share = left if number == len(dims) - 1 else sqrt(left)
        count = max(1, min(touched[dim], int(share)))
        if count < touched[dim]:
            found[dim] = _spread(chosen[dim], count)
        left /= count
    return found


def _spread(offsets: Offsets, count: int) -> Offsets:
    """So many of them, at the middles of equal parts."""
    at = ((np.arange(count) + 0.5) * len(offsets) / count).astype(np.int64)
    return offsets[at]


async def _read(level: Level, chosen: dict[int, Offsets], at: tuple[int, ...]) -> Array:
    """The elements, of the dimensions chosen in their order."""
    terms: list[Any] = []
    for dim, offset in enumerate(at):
        if dim not in chosen:
            terms.append(int(level.positions(dim, np.array([offset]))[0]))
            continue
        terms.append(_term(level.positions(dim, chosen[dim])))
    return await level.store.oindex[tuple(terms)].read()


def _term(positions: Offsets) -> object:
    """A slice, if they are evenly spaced; else themselves."""
    if len(positions) == 1:
        return slice(int(positions[0]), int(positions[0]) + 1)
    steps = np.diff(positions)
    if steps[0] > 0 and (steps == steps[0]).all():
        return slice(int(positions[0]), int(positions[-1]) + 1, int(steps[0]))
    return positions


def _ordered(elements: Array, dims: list[int]) -> Array:
    """The elements with their dimensions in the order of `dims`, of which they are."""
    by_number = sorted(dims)
    return elements.transpose([by_number.index(dim) for dim in dims])


def _encoded(
    form: TileForm, elements: Array, asked: TileRequest, level: int, sampled: bool
) -> bytes:
    numbers = form.numbers(elements, asked.field, asked.part)
    shape = list(numbers.shape)
    extent = [
        shape.pop(0) if asked.rows is not None else 1,
        shape.pop(0) if asked.columns is not None else 1,
        *shape,
    ]
    low, high = _bounds(numbers)
    header = json.dumps({
        "shape": extent, "type": form.wire, "level": level, "sampled": sampled,
        "low": low, "high": high,
    }).encode()  # fmt: skip
    header += b" " * (ceil((4 + len(header)) / 8) * 8 - 4 - len(header))
    return struct.pack("<I", len(header)) + header + numbers.tobytes()


def _bounds(numbers: Array) -> tuple[float | None, float | None]:
    """The least and the greatest finite value; None: there is none."""
    if numbers.dtype.kind == "f":
        finite = np.isfinite(numbers)
        if not finite.all():
            numbers = numbers[finite]
    if not numbers.size:
        return None, None
    return float(numbers.min()), float(numbers.max())
