"""Per-thread scratch memory: decode buffers that are reused, so no chunk pays for fresh pages.

One buffer a thread, grown to the largest chunk seen, and one for a row of chunks. Buffers above
`KEEP_BYTES` are handed out fresh and not kept, so that one huge chunk does not pin its size for
good.
"""

from __future__ import annotations

from threading import local
from typing import Final

import numpy as np

from tensorstore_py.errors import ResourceExhaustedError

__all__ = ["KEEP_BYTES", "row_scratch", "scratch"]

KEEP_BYTES: Final = 64 * 2**20


class _Scratch(local):
    memory: memoryview = memoryview(bytearray())

    def of(self, size: int) -> memoryview:
        memory = self.memory
        if memory.nbytes < size:
            memory = _taken(size)
            if size <= KEEP_BYTES:
                self.memory = memory
        return memory[:size]


def _taken(size: int) -> memoryview:
    """Memory that costs nothing before it is written to, so that corrupt data costs nothing."""
    try:
        return np.empty(size, np.uint8).data
    except (MemoryError, ValueError, OverflowError):
        raise ResourceExhaustedError(
            f"a chunk takes {size} bytes of memory, which cannot be had; use smaller chunks"
        ) from None


_chunk = _Scratch()
_row = _Scratch()


def scratch(size: int) -> memoryview:
    """Writable memory of exactly `size` bytes, valid until this thread's next call here.

    Raises:
        ResourceExhaustedError: so much cannot be had.

    Example:
        >>> len(scratch(100))
        100
    """
    return _chunk.of(size)


def row_scratch(size: int) -> memoryview:
    """As `scratch`, of other memory: a chunk can be decoded there and put down here."""
    return _row.of(size)
