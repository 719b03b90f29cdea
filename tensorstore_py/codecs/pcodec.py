"""Pcodec: numbers by their distribution, lossless, by pcodec.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/pcodec.html
Names: `pcodec` (zarr), `numcodecs.pcodec` (zarr3).
Example: `{"id": "pcodec", "level": 8, "mode_spec": "auto", "delta_spec": "auto"}`.
Limits: needs the extra `pcodec`; integers of 2 to 8 bytes and floats of 2, 4 and 8, in little
endian order.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

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
    size_error,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NumcodecsPcodecSpec", "Pcodec", "PcodecSpec"]

_TYPES = ("<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")


@codec("pcodec", family="zarr")
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
        if chunk.dtype.str not in _TYPES:
            raise SpecError(f"pcodec stores elements of {', '.join(_TYPES)}, not {chunk.dtype.str}")
        order = self.delta_encoding_order
        if order is not None and self.delta_spec not in ("auto", "try_consecutive"):
            raise SpecError(
                'only possible with "delta_spec": "try_consecutive"', ("delta_encoding_order",)
            )
        return Pcodec(self, chunk)


@codec("numcodecs.pcodec", family="zarr3")
class NumcodecsPcodecSpec(PcodecSpec):
    """Asked: `numcodecs.pcodec`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsPcodecSpec.codec_id
        'numcodecs.pcodec'
    """


class Pcodec(ArrayToBytes):
    """The bound codec.

    Args:
        spec: what was asked.
        chunk: what is stored.

    Raises:
        UnsupportedError: the library is not installed.
    """

    def __init__(self, spec: PcodecSpec, chunk: ChunkType) -> None:
        self._library = _library()
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


@cache
def _library() -> ModuleType:
    try:
        import pcodec  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        raise UnsupportedError(
            'codec "pcodec" needs the package pcodec: pip install "tensorstore-py[codecs]"'
        ) from None
    library: ModuleType = pcodec
    return library
