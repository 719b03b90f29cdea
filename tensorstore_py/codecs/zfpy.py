"""ZFP: blocks of 4 by 4 (by 4 …) numbers, lossy within a bound or lossless, by zfpy.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/zfpy.html
Names: `zfpy` (zarr), `numcodecs.zfpy` (zarr3).
Example: `{"id": "zfpy", "mode": 4, "tolerance": 0.001}`.
Limits: needs the extra `zfpy`; 32- and 64-bit integers and floats in little endian order, one to
four dimensions. In Fortran order a chunk is stored as if it had one dimension.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Annotated

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    Level,
    codec,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NumcodecsZfpySpec", "Zfpy", "ZfpySpec"]

_TYPES = ("<i4", "<i8", "<f4", "<f8")
_RATE, _PRECISION, _ACCURACY = 2, 3, 4


@codec("zfpy", family="zarr")
class ZfpySpec(ArrayToBytesSpec):
    """Asked: `zfpy`.

    Attributes:
        mode: what bounds the loss: 2 the rate, 3 the precision, 4 the accuracy.
        tolerance: greatest error of a value, in mode 4; lossless if it is not positive.
        rate: bits a value, in mode 2.
        precision: bit planes, in mode 3.
        compression_kwargs: the same in the library's words; not read.

    Example:
        >>> ZfpySpec.parse({"tolerance": 0.5}).to_json()
        {'tolerance': 0.5}
    """

    mode: Annotated[int, Level(_RATE, _ACCURACY)] = _ACCURACY
    tolerance: int | float = -1
    rate: int | float = -1
    precision: int | float = -1
    compression_kwargs: dict[str, int | float] | None = None

    def bound(self) -> dict[str, float]:
        """What bounds the loss, as the library calls it."""
        if self.mode == _ACCURACY:
            return {"tolerance": self.tolerance}
        return {"rate": self.rate} if self.mode == _RATE else {"precision": self.precision}

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        if chunk.dtype.str not in _TYPES:
            raise SpecError(f"zfpy stores elements of {', '.join(_TYPES)}, not {chunk.dtype.str}")
        if not 1 <= len(chunk.shape) <= 4:
            raise SpecError(f"zfpy stores chunks of 1 to 4 dimensions, not {len(chunk.shape)}")
        return Zfpy(chunk, self.bound())


@codec("numcodecs.zfpy", family="zarr3")
class NumcodecsZfpySpec(ZfpySpec):
    """Asked: `numcodecs.zfpy`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsZfpySpec.codec_id
        'numcodecs.zfpy'
    """


class Zfpy(ArrayToBytes):
    """The bound codec.

    Args:
        chunk: what is stored.
        bound: what bounds the loss.

    Raises:
        UnsupportedError: the library is not installed.
    """

    def __init__(self, chunk: ChunkType, bound: dict[str, float]) -> None:
        self._library = _library()
        self._chunk = chunk
        self._bound = bound
        # Blocks are of four numbers in each dimension, and no number takes twice its bits.
        numbers = prod(-(-extent // 4) * 4 for extent in chunk.shape)
        self._most_bytes = 2 * numbers * chunk.dtype.itemsize + 1024

    def encode(self, array: Array) -> bytes:
        encoded: bytes = self._library.compress_numpy(
            np.ascontiguousarray(array), write_header=True, **self._bound
        )
        return encoded

    def decode(self, data: Buffer) -> Array:
        library, chunk = self._library, self._chunk
        try:
            header = library.header(bytes(data))
            shape = tuple(header[name] for name in ("nw", "nz", "ny", "nx") if header[name])
            found = np.dtype(header["type"])
            if found != chunk.dtype or prod(shape) * found.itemsize != chunk.size_bytes:
                raise DataLossError(
                    f"zfpy: the data holds {found} of shape {list(shape)}, expected {chunk.dtype} "
                    f"of shape {list(chunk.shape)}"
                )
            # The library reads on until it has all numbers: behind truncated data it finds zeros.
            padded = bytes(data).ljust(self._most_bytes, b"\0")
            decoded: Array = library.decompress_numpy(padded)
        except (ValueError, LookupError, TypeError, RuntimeError) as error:
            if isinstance(error, DataLossError):
                raise
            raise DataLossError(f"corrupt zfpy data: {error}") from error
        return decoded.reshape(chunk.shape)


@cache
def _library() -> ModuleType:
    try:
        import zfpy  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        raise UnsupportedError(
            'codec "zfpy" needs the package zfpy: pip install "tensorstore-py[codecs]"'
        ) from None
    library: ModuleType = zfpy
    return library
