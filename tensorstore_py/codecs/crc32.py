"""CRC-32: four bytes of checksum, the one of zip and PNG.

Specification: https://numcodecs.readthedocs.io/en/stable/checksum32.html
Names: `crc32` (zarr), `numcodecs.crc32` (zarr3).
Example: `{"id": "crc32", "location": "end"}`.
Limits: none. `crc32c` is another polynomial, and another codec.
"""

from __future__ import annotations

from typing import Annotated, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.plugin import (
    AfterValidator,
    BytesToBytes,
    BytesToBytesSpec,
    Checksum,
    ChunkType,
    codec,
)

__all__ = ["Crc32Spec", "NumcodecsCrc32Spec"]

#: Saying the default and saying nothing is the same, and so must compare.
Location = Annotated[
    Literal["start", "end"] | None, AfterValidator(lambda at: None if at == "start" else at)
]


@codec("crc32", family="zarr")
class Crc32Spec(BytesToBytesSpec):
    """Asked: `crc32`.

    Attributes:
        location: where the checksum stands; at the start if nothing is said.

    Example:
        >>> Crc32Spec.parse({"location": "end"}).to_json()
        {'location': 'end'}
    """

    location: Location = None

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Checksum("crc32", _checksum, self.location or "start")


@codec("numcodecs.crc32", family="zarr3")
class NumcodecsCrc32Spec(Crc32Spec):
    """Asked: `numcodecs.crc32`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsCrc32Spec.codec_id
        'numcodecs.crc32'
    """


def _checksum(data: NDArray[np.uint8]) -> int:
    return crc32(data.data)
