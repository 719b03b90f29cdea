"""Checksums: four bytes beside the data that tell whether it is still what was written.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/ for `crc32c` of version
3, https://numcodecs.readthedocs.io/en/stable/checksum32.html for the others.
Example: `{"name": "crc32c"}`; in version 2 `{"id": "crc32c", "location": "start"}`, `{"id":
"adler32"}`, `{"id": "jenkins_lookup3", "initval": 0}`.
Limits: Adler-32 is weak for short data, Fletcher-32 does not tell 0x0000 from 0xffff, and the
library's lookup3 is slow: prefer `crc32c` for new arrays. All checksums are little-endian.
The invariant: bytes that fail the check never leave here.
"""

from __future__ import annotations

from abc import abstractmethod
from struct import pack, unpack_from
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self
from zlib import adler32, crc32

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    codec,
    crc32c,
    size_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "Adler32Spec",
    "Checksum",
    "Crc32Spec",
    "Crc32cSpec",
    "Fletcher32Spec",
    "JenkinsLookup3Spec",
]

Bytes = NDArray[np.uint8]
_SIZE = 4


class Checksum(BytesToBytes):
    """A bound checksum codec.

    Args:
        name: of the codec, for error messages.
        function: the checksum of an array of bytes.
        location: where the checksum stands.

    Example:
        >>> codec = Checksum("crc32", crc32, "start")
        >>> codec.encode(b"abc").hex()
        'c2412435616263'
        >>> bytes(codec.decode(codec.encode(b"abc")))
        b'abc'
    """

    def __init__(
        self, name: str, function: Callable[[Bytes], int], location: Literal["start", "end"]
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


class _AtEitherEndSpec(BytesToBytesSpec):
    """Asked: a checksum that may stand at either end.

    Attributes:
        title: its name in error messages.
        default_location: where it stands if nothing is said.
        location: where the checksum stands; at the start if nothing is said.
    """

    title: ClassVar[str]
    default_location: ClassVar[Literal["start", "end"]] = "start"

    location: Literal["start", "end"] | None = None

    def completed(self) -> Self:
        # Saying the default and saying nothing is the same, and so must compare.
        return self if self.location != self.default_location else self.replace(location=None)

    @abstractmethod
    def function(self) -> Callable[[Bytes], int]:
        """The checksum of an array of bytes."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Checksum(self.title, self.function(), self.location or self.default_location)


@codec("adler32", family="zarr")
@codec("numcodecs.adler32", family="zarr3")
class Adler32Spec(_AtEitherEndSpec):
    """Asked: `adler32`, the checksum of zlib."""

    title = "adler32"

    def function(self) -> Callable[[Bytes], int]:
        return lambda data: adler32(data.data)


@codec("crc32", family="zarr")
@codec("numcodecs.crc32", family="zarr3")
class Crc32Spec(_AtEitherEndSpec):
    """Asked: `crc32`, the checksum of gzip."""

    title = "crc32"

    def function(self) -> Callable[[Bytes], int]:
        return lambda data: crc32(data.data)


@codec("crc32c", family="zarr3", without=["location"])
@codec("crc32c", family="zarr")
@codec("numcodecs.crc32c", family="zarr3")
class Crc32cSpec(_AtEitherEndSpec):
    """Asked: `crc32c`.

    Attributes:
        location: where the checksum stands; at the end if nothing is said. Version 3 has it there.
    """

    title = "CRC-32C"
    default_location = "end"

    def function(self) -> Callable[[Bytes], int]:
        return lambda data: crc32c(data.data)


@codec("fletcher32", family="zarr")
@codec("numcodecs.fletcher32", family="zarr3")
class Fletcher32Spec(BytesToBytesSpec):
    """Asked: `fletcher32`, the checksum of HDF5 and netCDF-4. It has no members."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        from numcodecs import fletcher32  # noqa: PLC0415 - takes 60 ms

        library = fletcher32.Fletcher32()

        def function(data: Bytes) -> int:
            # The library has the checksum only behind a copy of the data, and none of no data.
            return int.from_bytes(library.encode(data)[-_SIZE:], "little") if len(data) else 0

        return Checksum("fletcher32", function, "end")


@codec("jenkins_lookup3", family="zarr")
@codec("numcodecs.jenkins_lookup3", family="zarr3")
class JenkinsLookup3Spec(BytesToBytesSpec):
    """Asked: `jenkins_lookup3`, the checksum of HDF5's own metadata.

    Attributes:
        initval: what the hash starts from.
        prefix: bytes that are hashed in front of the data, as numbers; none by default.
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"prefix"})

    initval: Annotated[int, Level(0, 2**32 - 1)] = 0
    prefix: tuple[Annotated[int, Level(0, 255)], ...] | None = None

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        from numcodecs import jenkins  # noqa: PLC0415 - takes 60 ms

        prefix = np.array(self.prefix or (), np.uint8)

        def function(data: Bytes) -> int:
            # The library wants memory that it could write to, and never does.
            found: int = jenkins.jenkins_lookup3(np.concatenate((prefix, data)), self.initval)
            return found

        return Checksum("jenkins_lookup3", function, "end")
