"""Fletcher-32: four bytes of checksum at the end, the one of HDF5 and netCDF-4.

Specification: https://numcodecs.readthedocs.io/en/stable/checksum32.html
Names: `fletcher32` (zarr), `numcodecs.fletcher32` (zarr3).
Example: `{"id": "fletcher32"}`.
Limits: it does not tell 0x0000 from 0xffff. It is NumPy arithmetic, because the library's own holds
the interpreter lock while it works.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.plugin import BytesToBytes, BytesToBytesSpec, Checksum, ChunkType, codec

__all__ = ["Fletcher32Spec", "NumcodecsFletcher32Spec", "fletcher32"]

_MODULUS = 65535
_BLOCK = 1 << 14
#: How often each word of a block counts in the second sum: the first one most.
_WEIGHTS: Final = np.arange(_BLOCK, 0, -1).astype(np.uint64)


@codec("fletcher32", family="zarr")
class Fletcher32Spec(BytesToBytesSpec):
    """Asked: `fletcher32`. It has no members.

    Example:
        >>> Fletcher32Spec().to_json()
        {}
    """

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Checksum("fletcher32", fletcher32, "end")


@codec("numcodecs.fletcher32", family="zarr3")
class NumcodecsFletcher32Spec(Fletcher32Spec):
    """Asked: `numcodecs.fletcher32`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsFletcher32Spec.codec_id
        'numcodecs.fletcher32'
    """


def fletcher32(data: NDArray[np.uint8]) -> int:
    """The checksum of bytes, taken as big-endian words of 16 bits.

    Example:
        >>> hex(fletcher32(np.frombuffer(b"abcdef", np.uint8)))
        '0x50562a2d'
    """
    words = data[: len(data) // 2 * 2].view(">u2")
    first = second = 0
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK].astype(np.uint64)
        second += first * len(block) + int(block @ _WEIGHTS[_BLOCK - len(block) :])
        first += int(block.sum())
    if len(data) % 2:
        first += int(data[-1]) << 8
        second += first
    return _folded(second) << 16 | _folded(first)


def _folded(total: int) -> int:
    """The sum with its carries added to it: 0 only if nothing was added at all."""
    return total and (total % _MODULUS or _MODULUS)
