"""Zstandard, by numcodecs: one frame a chunk.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd
Example: `{"name": "zstd", "configuration": {"level": 3, "checksum": false}}`.
Limits: none. The frame's header states the decoded size, except in frames written by a streaming
encoder. It is compared with the size that the chunk must have, or could have at most, before the
library sees the data: the library checks everything else, the frame's own checksum included. Frames
without a stated size are decoded to memory of the size that there must or may be, and to no more.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Field,
    Level,
    SizedCodec,
    TooLargeError,
    codec,
    huge_page_buffer,
    share_numcodecs,
    size_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Zstd", "ZstdSpec"]

_DEFAULT_LEVEL = 3
_LIBRARY_LEVEL = Field(
    default=0, description="-131072 (fastest) to 22 (smallest); 0 leaves it to the library."
)
_MAGIC = b"\x28\xb5\x2f\xfd"
#: Decoded size of the largest block, and what the smallest one takes: one byte, repeated.
_LARGEST_BLOCK = 1 << 17
_SMALLEST_BLOCK = 4
#: How much memory a frame without a stated size gets at first.
_LEAST_ROOM = 1 << 20
_USUAL_RATIO = 16
#: How the library says that its memory was more than enough, and that it was too little.
_TOO_MUCH = re.compile(r", got (\d+)$")
_TOO_LITTLE = "too small"


@codec("zstd", family="zarr3")
@codec("zstd", family="zarr", level=1, states_checksum=False)
@codec("numcodecs.zstd", family="zarr3", level=_LIBRARY_LEVEL, states_checksum=False)
@codec("zstd", family="n5", level=_LIBRARY_LEVEL, without=["checksum"], states_checksum=False)
class ZstdSpec(BytesToBytesSpec):
    """Asked: `zstd`.

    Attributes:
        states_checksum: whether metadata says so where there is none. In version 2, zarr-python has
            this member and TensorStore has not; arrays of both must compare equal.
        level: -131072 (fastest) to 22 (smallest); 3 if nothing is asked.
        checksum: whether each frame carries a checksum; no if nothing is asked.

    Example:
        >>> ZstdSpec.parse({"level": 5}).to_json()
        {'level': 5}
    """

    states_checksum: ClassVar[bool] = True

    level: Annotated[int, Level(-131072, 22)] | None = None
    checksum: bool | None = None

    def completed(self) -> ZstdSpec:
        if self.checksum is False and not self.states_checksum:
            return self.replace(checksum=None)
        return self

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        if include_defaults and self.level is not None and self.states_checksum:
            json["checksum"] = bool(self.checksum)

    def resolved(self, chunk: ChunkType) -> ZstdSpec:
        if not self.states_checksum:
            return self
        level = _DEFAULT_LEVEL if self.level is None else self.level
        return self.replace(level=level, checksum=bool(self.checksum))

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        level = _DEFAULT_LEVEL if self.level is None else self.level
        return Zstd(level, bool(self.checksum))


class Zstd(SizedCodec):
    """The bound codec."""

    def __init__(self, level: int, checksum: bool) -> None:
        self._compress, decompress = _library()
        self._level = level
        self._checksum = checksum
        super().__init__("zstd", decompress)

    def encode(self, data: Buffer) -> bytes:
        return self._compress(data, self._level, self._checksum)

    def stated_size(self, data: Buffer) -> int | None:
        return stated_size(data)

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        if size is None:
            return self.decode_within(data, _credible_size(data))
        stated = stated_size(data)
        if stated is not None and stated != size:
            raise size_error(stated, size)
        out = huge_page_buffer(size)
        self.decode_into(data, out)
        return out

    def decode_within(self, data: Buffer, most: int) -> Buffer:
        stated = stated_size(data)
        if stated is not None and stated > most:
            raise TooLargeError(most)
        credible = min(most, _credible_size(data))
        if stated is not None:
            return self.decode(data, stated)
        room = max(_LEAST_ROOM, _USUAL_RATIO * len(data))
        while room <= credible:
            found = self._decoded_to(data, room)
            if found is not None:
                return found
            room *= 4
        found = self._decoded_to(data, credible)
        if found is None:
            raise TooLargeError(most)
        return found

    def _decoded_to(self, data: Buffer, most: int) -> Buffer | None:
        """What was decoded, if that is not more than `most` bytes."""
        # The library says how much it wrote only where that was not all of the memory.
        out = huge_page_buffer(most + 1)
        try:
            self._unpack(data, out)
        except (RuntimeError, ValueError) as error:
            found = _TOO_MUCH.search(str(error))
            if found is not None:
                return out[: int(found[1])]
            if _TOO_LITTLE in str(error):
                return None
            raise self.corrupt(error) from error
        return None


def _credible_size(data: Buffer) -> int:
    """How much so little data can stand for.

    Raises:
        DataLossError: less than the first frame says.
    """
    stated = stated_size(data) or 0
    most = (len(data) // _SMALLEST_BLOCK + 1) * _LARGEST_BLOCK
    if stated > most:
        raise DataLossError(
            f"corrupt zstd data: {len(data)} bytes cannot stand for {stated} bytes, as stated"
        )
    return most


def stated_size(data: Buffer) -> int | None:
    """The decoded size that the first frame states, or None.

    Raises:
        DataLossError: this is no zstd frame.

    Example:
        >>> stated_size(bytes.fromhex("28b52ffd2003190000616263"))
        3
    """
    if len(data) < 6 or data[:4] != _MAGIC:
        raise DataLossError("this is no zstd data: its first bytes are not those of a frame")
    descriptor = data[4]
    single_segment = descriptor & 0x20
    start = 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    if not width:
        return None
    size = int.from_bytes(data[start : start + width], "little")
    return size + 256 if width == 2 else size


@cache
def _library() -> tuple[Callable[[Buffer, int, bool], bytes], Callable[..., bytes]]:
    from numcodecs import zstd  # noqa: PLC0415 - takes 60 ms

    share_numcodecs()
    return zstd.compress, zstd.decompress
