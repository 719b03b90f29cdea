"""Adler-32: four bytes of checksum, the one of zlib.

Specification: https://numcodecs.readthedocs.io/en/stable/checksum32.html
Names: `adler32` (zarr), `numcodecs.adler32` (zarr3).
Example: `{"id": "adler32"}`.
Limits: weak for short data; prefer `crc32` or `crc32c` for new arrays.
"""

from __future__ import annotations

from typing import Annotated, Literal
from zlib import adler32

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

__all__ = ["Adler32Spec", "NumcodecsAdler32Spec"]

#: Saying the default and saying nothing is the same, and so must compare.
Location = Annotated[
    Literal["start", "end"] | None, AfterValidator(lambda at: None if at == "start" else at)
]


@codec("adler32", family="zarr")
class Adler32Spec(BytesToBytesSpec):
    """Asked: `adler32`.

    Attributes:
        location: where the checksum stands; at the start if nothing is said.

    Example:
        >>> Adler32Spec.parse({}).to_json()
        {}
    """

    location: Location = None

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return Checksum("adler32", _checksum, self.location or "start")


@codec("numcodecs.adler32", family="zarr3")
class NumcodecsAdler32Spec(Adler32Spec):
    """Asked: `numcodecs.adler32`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsAdler32Spec.codec_id
        'numcodecs.adler32'
    """


def _checksum(data: NDArray[np.uint8]) -> int:
    return adler32(data.data)
