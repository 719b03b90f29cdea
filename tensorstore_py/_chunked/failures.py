"""What is said of a chunk that cannot be read: its key, and what is wrong with it.

The invariant: whatever goes wrong with one chunk, its bytes or the memory for what they stand for,
the error is of this package, and names the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.new_array import exhausted
from tensorstore_py.errors import (
    DataLossError,
    NotFoundError,
    ResourceExhaustedError,
    TensorStoreError,
)

if TYPE_CHECKING:
    from tensorstore_py._chunked.array import ChunkedArray
    from tensorstore_py._chunked.source import Cell

__all__ = ["CHUNK_FAILURES", "corrupt_chunk", "missing_chunk"]

#: What may be wrong with one chunk: its bytes, or that there is no memory for what they say.
CHUNK_FAILURES: Final = (DataLossError, MemoryError)


def corrupt_chunk(array: ChunkedArray, cell: Cell, error: Exception) -> TensorStoreError:
    """The codec's complaint, or that memory is out, with the key in front.

    Args:
        array: what is read.
        cell: the chunk.
        error: one of `CHUNK_FAILURES`.
    """
    kind = DataLossError if isinstance(error, DataLossError) else ResourceExhaustedError
    if not isinstance(error, TensorStoreError):
        chunk = array.chain.chunk
        error = exhausted(chunk.shape, chunk.dtype)
    return kind(f"Error reading {array.source.describe(cell)}: {error}")


def missing_chunk(array: ChunkedArray, cell: Cell) -> NotFoundError:
    """What is said of a chunk that is missing, where it must not be."""
    return NotFoundError(
        f"chunk {cell} stored at {array.source.describe(cell)} is missing; "
        'with "fill_missing_data_reads": true it would read as the fill value'
    )
