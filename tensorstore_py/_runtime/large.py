"""Large values: where the memory costs more than what is put in it.

A fresh page of 4 KiB costs more than to copy what is on it, and large `bytes` are made of fresh
ones. NumPy asks for large pages where the system has them, so what is this long lives in an array
of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = ["LARGE_BYTES", "joined", "large_memory"]

#: NumPy's own limit for asking.
LARGE_BYTES: Final = 2**22


def large_memory(size: int) -> memoryview:
    """Fresh memory of so many bytes, to be written to.

    Example:
        >>> large_memory(2**22).nbytes
        4194304
    """
    return np.empty(size, np.uint8).data


def joined(parts: Sequence[Buffer]) -> Buffer:
    """One value from its parts; read-only.

    Example:
        >>> joined([b"a", memoryview(b"bc")])
        b'abc'
    """
    size = sum(map(len, parts))
    if size < LARGE_BYTES:
        return b"".join(parts)
    memory = large_memory(size)
    start = 0
    for part in parts:
        stop = start + len(part)
        memory[start:stop] = part
        start = stop
    return memory.toreadonly()
