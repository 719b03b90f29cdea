"""What is wanted of a chunk, given to those who want it: decoded, filled, or fetched in part.

Whoever wants it is an array and a `Cut`. Of chunks that are stored as they are, no more is fetched
than is wanted, where that is much less and the store can tell that the chunk is whole.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk, missing_chunk
from tensorstore_py._interface.byte_range import ByteRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.box import Cut
    from tensorstore_py._chunked.source import Cell
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["copy_wanted", "fetch_wanted", "fill_wanted"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Wanted = tuple[Array, "Cut"]

#: A part of a chunk is fetched instead of all of it if it is so many times smaller.
_MUCH_LESS: Final = 2


async def fetch_wanted(array: ChunkedArray, cell: Cell, wanted: Sequence[Wanted]) -> bool:
    """Fetch and copy no more of a chunk than is wanted, or a little more.

    Any positions of the first axis are a piece of such a chunk.

    Returns:
        Whether it was done; if not, all of the chunk is to be fetched.

    Raises:
        NotFoundError: the chunk is missing, and that is not allowed.
        DataLossError: what was fetched is corrupt; names the chunk.
    """
    chain = array.chain
    row_bytes = chain.row_bytes
    if row_bytes is None:
        return False
    size, pieces = chain.chunk.size_bytes, _pieces(wanted)
    if _MUCH_LESS * sum(high - low for low, high, _ in pieces) * row_bytes > size:
        return False
    ranges = [ByteRange(low * row_bytes, high * row_bytes) for low, high, _ in pieces]
    found = await array.source.parts(cell, ranges, row_bytes * chain.chunk.shape[0])
    if found is None:
        return False
    try:
        with array.limits.copying:
            for data, (low, high, parts) in zip(found, pieces, strict=True):
                if data is None:
                    fill_wanted(array, cell, parts)
                else:
                    _copy_rows(chain.decode_rows(data, high - low), low, parts)
    except CHUNK_FAILURES as error:
        raise corrupt_chunk(array, cell, error) from error
    return True


def _copy_rows(rows: Array, low: int, wanted: Iterable[Wanted]) -> None:
    """Copy what is wanted from a piece of a chunk that begins at `low` of its first axis."""
    for out, part in wanted:
        first, *others = part.inside
        start: int | slice
        if isinstance(first, int):
            start = first - low
        else:
            start = slice(first.start - low, first.stop - low)
        out[part.outside] = rows[(start, *others)]


def _pieces(parts: Iterable[Wanted]) -> list[tuple[int, int, list[Wanted]]]:
    """The parts of a chunk by where along its first axis they are; pieces do not touch."""
    placed = []
    for each in parts:
        first = each[1].inside[0]
        low, high = (first, first + 1) if isinstance(first, int) else (first.start, first.stop)
        placed.append((low, high, each))
    placed.sort(key=itemgetter(0))
    pieces: list[tuple[int, int, list[Wanted]]] = []
    for low, high, each in placed:
        if pieces and low <= pieces[-1][1]:
            start, stop, members = pieces[-1]
            members.append(each)
            pieces[-1] = (start, max(stop, high), members)
        else:
            pieces.append((low, high, [each]))
    return pieces


def copy_wanted(array: ChunkedArray, data: Buffer, wanted: Iterable[Wanted]) -> None:
    """Decode a chunk, and copy from it what is wanted."""
    with array.limits.copying:
        chunk = array.chain.decode_scratch(data)
        for out, part in wanted:
            out[part.outside] = chunk[part.inside]


def fill_wanted(array: ChunkedArray, cell: Cell, wanted: Iterable[Wanted]) -> None:
    """Give fill values where a chunk is missing.

    Raises:
        NotFoundError: that is not allowed.
    """
    if not array.fill_missing:
        raise missing_chunk(array, cell)
    chunk = array.chain.chunk
    value = chunk.fill_value
    for out, part in wanted:
        out[part.outside] = (
            np.broadcast_to(value, chunk.shape)[part.inside] if value.ndim else value
        )
