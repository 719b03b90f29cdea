"""Per-thread scratch memory: decode buffers that are reused, so no chunk pays for fresh pages.

One buffer a thread, grown to the largest chunk seen, and one for a row of chunks. Buffers above
`KEEP_BYTES` are handed out fresh and not kept, so that one huge chunk does not pin its size for
good.
"""

from __future__ import annotations

from threading import local
from typing import Final

__all__ = ["KEEP_BYTES", "row_scratch", "scratch"]

KEEP_BYTES: Final = 64 * 2**20


class _Scratch(local):
    memory: memoryview = memoryview(bytearray())
    row: memoryview = memoryview(bytearray())


_mine = _Scratch()


def scratch(size: int) -> memoryview:
    """Writable memory of exactly `size` bytes, valid until the next call here.

    Example:
        >>> len(scratch(100))
        100
    """
    memory = _mine.memory
    if memory.nbytes < size:
        memory = memoryview(bytearray(size))
        if size <= KEEP_BYTES:
            _mine.memory = memory
    return memory[:size]


def row_scratch(size: int) -> memoryview:
    """As `scratch`, of other memory: a chunk can be decoded there and put down here."""
    memory = _mine.row
    if memory.nbytes < size:
        memory = memoryview(bytearray(size))
        if size <= KEEP_BYTES:
            _mine.row = memory
    return memory[:size]
