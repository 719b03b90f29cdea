"""A checksum of four bytes beside the data: at its start or at its end, little-endian.

A codec brings the function, this class the rest: that the checksum is verified before anything is
handed on, and that nothing is copied when reading. The invariant: bytes that fail the check never
leave here.
"""

from __future__ import annotations

from abc import abstractmethod
from struct import pack, unpack_from
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from tensorstore_py._interface.codec import BytesToBytes, BytesToBytesSpec, size_error
from tensorstore_py._spec.model import model_validator
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import NDArray

    from tensorstore_py._interface.codec import ChunkType
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["Checksum", "ChecksumSpec"]

_SIZE = 4


class ChecksumSpec(BytesToBytesSpec):
    """Asked: a checksum that may stand at either end.

    Attributes:
        usual: where it stands if nothing is said.
        location: where it stands.
    """

    usual: ClassVar[Literal["start", "end"]] = "start"

    location: Literal["start", "end"] | None = None

    @model_validator(mode="after")
    def _plain(self) -> Self:
        # Saying the default and saying nothing is the same, and so must compare.
        return self.replace(location=None) if self.location == self.usual else self

    @abstractmethod
    def function(self) -> Callable[[NDArray[np.uint8]], int]:
        """The checksum of an array of bytes."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        name = self.codec_id.removeprefix("numcodecs.")
        return Checksum(name, self.function(), self.location or self.usual)


class Checksum(BytesToBytes):
    """A bound checksum codec.

    Args:
        name: of the codec, for error messages.
        function: the checksum of an array of bytes.
        location: where the checksum stands.

    Example:
        >>> from zlib import crc32
        >>> codec = Checksum("crc32", crc32, "start")
        >>> codec.encode(b"abc").hex()
        'c2412435616263'
        >>> bytes(codec.decode(codec.encode(b"abc")))
        b'abc'
    """

    def __init__(
        self,
        name: str,
        function: Callable[[NDArray[np.uint8]], int],
        location: Literal["start", "end"],
    ) -> None:
        self._name = name
        self._function = function
        self._at_start = location == "start"

    def encode(self, data: Buffer) -> bytes:
        checksum = pack("<I", self._function(np.frombuffer(data, np.uint8)))
        return b"".join((checksum, data) if self._at_start else (data, checksum))

    def decode(self, data: Buffer, size: int | None = None) -> memoryview:
        found = len(data) - _SIZE
        if found < 0:
            raise DataLossError(f"{len(data)} bytes are too few to hold a {self._name} checksum")
        if size is not None and found != size:
            raise size_error(found, size)
        start = _SIZE if self._at_start else 0
        (stored,) = unpack_from("<I", data, 0 if self._at_start else found)
        computed = self._function(np.frombuffer(data, np.uint8, found, start))
        if stored != computed:
            raise DataLossError(
                f"{self._name} mismatch: stored {stored:#010x}, computed {computed:#010x}"
            )
        return memoryview(data)[start : start + found]

    def decode_into(self, data: Buffer, out: memoryview[Any]) -> None:
        out[:] = self.decode(data, out.nbytes)

    def encoded_size(self, size: int | None) -> int | None:
        return None if size is None else size + _SIZE
