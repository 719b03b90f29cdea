"""Memory for chunks: scratch buffers that are reused, and huge-page buffers.

A fresh page of 4 KiB costs more than to copy what is on it. So each thread decodes into one scratch
buffer, which grows to the largest chunk seen, and puts the chunks of a run down in another one, the
staging buffer. Buffers above `KEEP_BYTES` are not kept, so that one huge chunk does not pin its
size for good. Large `bytes` are made of fresh 4 KiB pages, too; NumPy asks the system for huge
pages where it has them, so values of `HUGE_PAGE_BYTES` and more live in arrays of NumPy.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tensorstore_py.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = [
    "HUGE_PAGE_BYTES",
    "KEEP_BYTES",
    "huge_page_buffer",
    "joined",
    "scratch",
    "staging_buffer",
]

KEEP_BYTES: Final = 64 * 2**20

#: From this size on NumPy asks for huge pages.
HUGE_PAGE_BYTES: Final = 2**22


class _Scratch(local):
    memory: memoryview = memoryview(bytearray())

    def of(self, size: int) -> memoryview:
        memory = self.memory
        if memory.nbytes < size:
            memory = _allocated(size)
            if size <= KEEP_BYTES:
                self.memory = memory
        return memory[:size]


def _allocated(size: int) -> memoryview:
    """Memory that costs nothing before it is written to, so that corrupt data costs nothing."""
    try:
        return np.empty(size, np.uint8).data
    except (MemoryError, ValueError, OverflowError):
        raise ResourceExhaustedError(
            f"a chunk takes {size} bytes of memory, which cannot be had; use smaller chunks"
        ) from None


_scratch = _Scratch()
_staging = _Scratch()


def scratch(size: int) -> memoryview:
    """Writable memory of exactly `size` bytes, valid until this thread's next call here.

    Raises:
        ResourceExhaustedError: the system has not so much.
    """
    return _scratch.of(size)


def staging_buffer(size: int) -> memoryview:
    """As `scratch`, of other memory: a chunk can be decoded there and put down here."""
    return _staging.of(size)


def huge_page_buffer(size: int) -> memoryview:
    """Fresh memory of so many bytes, to be written to; in huge pages where that pays."""
    return np.empty(size, np.uint8).data


def joined(parts: Sequence[Buffer]) -> Buffer:
    """One value from its parts; read-only."""
    size = sum(map(len, parts))
    if size < HUGE_PAGE_BYTES:
        return b"".join(parts)
    memory = huge_page_buffer(size)
    start = 0
    for part in parts:
        stop = start + len(part)
        memory[start:stop] = part
        start = stop
    return memory.toreadonly()
