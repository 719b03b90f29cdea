"""Compressors of numbers: pcodec, by their distribution, and ZFP, in blocks of 4 by 4 (by 4 …).

Specification: https://numcodecs.readthedocs.io/en/stable/compress/pcodec.html and
https://numcodecs.readthedocs.io/en/stable/compress/zfpy.html
Example: `{"id": "pcodec", "level": 8, "mode_spec": "auto", "delta_spec": "auto"}`,
`{"id": "zfpy", "mode": 4, "tolerance": 0.001}`.
Limits: both need the extra `codecs`, and take numbers in little endian order: pcodec, which loses
nothing, integers of 2 to 8 bytes and floats of 2, 4 and 8; ZFP, lossy within a bound or lossless,
those of 4 and 8 bytes in one to four dimensions. In Fortran order ZFP gets a chunk as if it had one
dimension. numcodecs' own decoders take whatever memory the data asks for; these do not.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    Level,
    codec,
    size_error,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Pcodec", "PcodecSpec", "Zfpy", "ZfpySpec"]

_PCODEC_TYPES = ("<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_ZFPY_TYPES = ("<i4", "<i8", "<f4", "<f8")
_RATE, _PRECISION, _ACCURACY = 2, 3, 4


@codec("pcodec", family="zarr")
@codec("numcodecs.pcodec", family="zarr3")
class PcodecSpec(ArrayToBytesSpec):
    """Asked: `pcodec`.

    Attributes:
        level: 0 (fast) to 12 (small).
        mode_spec: whether structure in the numbers is looked for.
        delta_spec: which differences are stored instead of the numbers.
        paging_spec: how the chunk is cut; there is one way.
        delta_encoding_order: how often differences are taken, with "try_consecutive".
        equal_pages_up_to: the most numbers on a page.

    Example:
        >>> PcodecSpec.parse({"level": 4, "delta_encoding_order": None}).to_json()
        {'level': 4}
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"delta_encoding_order"})

    level: Annotated[int, Level(0, 12)] = 8
    mode_spec: Literal["auto", "classic"] = "auto"
    delta_spec: Literal["auto", "none", "try_consecutive", "try_lookback"] = "auto"
    paging_spec: Literal["equal_pages_up_to"] = "equal_pages_up_to"
    delta_encoding_order: Annotated[int, Level(0, 7)] | None = None
    equal_pages_up_to: Annotated[int, Level(1, 2**31 - 1)] = 262144

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        if chunk.dtype.str not in _PCODEC_TYPES:
            raise SpecError(
                f"pcodec stores elements of {', '.join(_PCODEC_TYPES)}, not {chunk.dtype.str}"
            )
        order = self.delta_encoding_order
        if order is not None and self.delta_spec not in ("auto", "try_consecutive"):
            raise SpecError(
                'only possible with "delta_spec": "try_consecutive"', ("delta_encoding_order",)
            )
        return Pcodec(self, chunk)


class Pcodec(ArrayToBytes):
    """The bound codec.

    Raises:
        UnsupportedError: the library is not installed.
    """

    def __init__(self, spec: PcodecSpec, chunk: ChunkType) -> None:
        self._library = _library("pcodec")
        self._spec = spec
        self._chunk = chunk
        self._count = chunk.size_bytes // chunk.dtype.itemsize

    def encode(self, array: Array) -> bytes:
        library, spec = self._library, self._spec
        order = spec.delta_encoding_order
        consecutive = order is not None or spec.delta_spec == "try_consecutive"
        name: str = "try_consecutive" if consecutive else spec.delta_spec
        if name == "none" and hasattr(library.DeltaSpec, "no_op"):
            name = "no_op"  # its name from version 1.0 on
        delta = getattr(library.DeltaSpec, name)
        config = library.ChunkConfig(
            compression_level=spec.level,
            delta_spec=delta(order) if consecutive else delta(),
            mode_spec=getattr(library.ModeSpec, spec.mode_spec)(),
            paging_spec=library.PagingSpec.equal_pages_up_to(spec.equal_pages_up_to),
        )
        encoded: bytes = library.standalone.simple_compress(array.ravel(), config)
        return encoded

    def decode(self, data: Buffer) -> Array:
        out: Array = np.empty(self._chunk.shape, self._chunk.dtype)
        self.decode_into(data, out)
        return out

    def decode_into(self, data: Buffer, out: Array) -> None:
        # One number more than there must be, so that data with too many is found out.
        memory = np.empty(self._count + 1, self._chunk.dtype)
        try:
            progress = self._library.standalone.simple_decompress_into(bytes(data), memory)
        except (RuntimeError, TypeError, ValueError) as error:
            raise DataLossError(f"corrupt pcodec data: {error}") from error
        if progress.n_processed != self._count or not progress.finished:
            size = self._chunk.dtype.itemsize
            raise size_error(progress.n_processed * size, self._count * size)
        out[...] = memory[:-1].reshape(self._chunk.shape)


@codec("zfpy", family="zarr")
@codec("numcodecs.zfpy", family="zarr3")
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
        if chunk.dtype.str not in _ZFPY_TYPES:
            raise SpecError(
                f"zfpy stores elements of {', '.join(_ZFPY_TYPES)}, not {chunk.dtype.str}"
            )
        if not 1 <= len(chunk.shape) <= 4:
            raise SpecError(f"zfpy stores chunks of 1 to 4 dimensions, not {len(chunk.shape)}")
        return Zfpy(chunk, self.bound())


class Zfpy(ArrayToBytes):
    """The bound codec; `bound` is what bounds the loss.

    Raises:
        UnsupportedError: the library is not installed.
    """

    def __init__(self, chunk: ChunkType, bound: dict[str, float]) -> None:
        self._library = _library("zfpy")
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
def _library(name: str) -> ModuleType:
    try:
        return import_module(name)  # at first use
    except ImportError:
        raise UnsupportedError(
            f'codec "{name}" needs the package {name}: pip install "tensorstore-py[codecs]"'
        ) from None
