"""MessagePack: the elements of a chunk as one packed array, with their type and shape behind them.

Specification: https://numcodecs.readthedocs.io/en/stable/other/msgpacks.html
Names: `msgpack2` (zarr).
Example: `{"id": "msgpack2", "use_bin_type": true, "use_single_float": false, "raw": false}`.
Limits: needs the extra `msgpack`. Tuples come back as lists. It is a way to store Python objects
that runs nothing when it is read.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import DataLossError, UnsupportedError
from tensorstore_py.plugin import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    codec,
    listed_elements,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["MsgPack2", "MsgPack2Spec"]


@codec("msgpack2", family="zarr")
class MsgPack2Spec(ArrayToBytesSpec):
    """Asked: `msgpack2`.

    Attributes:
        use_single_float: store floats in single precision.
        use_bin_type: tell bytes from text.
        raw: read text as bytes.

    Example:
        >>> MsgPack2Spec.parse({}).to_json(include_defaults=True)
        {'raw': False, 'use_bin_type': True, 'use_single_float': False}
    """

    use_single_float: bool = False
    use_bin_type: bool = True
    raw: bool = False

    @property
    def object_type(self) -> str:
        return "json"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        return MsgPack2(self, chunk)


class MsgPack2(ArrayToBytes):
    """The bound codec.

    Args:
        spec: what was asked.
        chunk: what is stored.

    Raises:
        UnsupportedError: the library is not installed.
    """

    def __init__(self, spec: MsgPack2Spec, chunk: ChunkType) -> None:
        self._library = _library()
        self._spec = spec
        self._chunk = chunk

    def encode(self, array: Array) -> bytes:
        elements: list[object] = np.atleast_1d(array).tolist()
        elements += [self._chunk.dtype.str, list(array.shape)]
        packed: bytes = self._library.packb(
            elements,
            use_bin_type=self._spec.use_bin_type,
            use_single_float=self._spec.use_single_float,
        )
        return packed

    def decode(self, data: Buffer) -> Array:
        try:
            stored = self._library.unpackb(data, raw=self._spec.raw, strict_map_key=False)
        except (ValueError, self._library.UnpackException, RecursionError, TypeError) as error:
            raise DataLossError(f"corrupt msgpack2 data: {error}") from error
        return listed_elements("msgpack2", stored, self._chunk)


@cache
def _library() -> ModuleType:
    try:
        import msgpack  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        raise UnsupportedError(
            'codec "msgpack2" needs the package msgpack: pip install "tensorstore-py[codecs]"'
        ) from None
    library: ModuleType = msgpack
    return library
