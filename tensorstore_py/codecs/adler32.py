"""Adler-32: four bytes of checksum, the one of zlib.

Specification: https://numcodecs.readthedocs.io/en/stable/checksum32.html
Names: `adler32` (zarr), `numcodecs.adler32` (zarr3).
Example: `{"id": "adler32"}`.
Limits: weak for short data; prefer `crc32` or `crc32c` for new arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import adler32

from tensorstore_py.plugin import ChecksumSpec, codec

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Adler32Spec", "NumcodecsAdler32Spec"]


@codec("adler32", family="zarr")
class Adler32Spec(ChecksumSpec):
    """Asked: `adler32`.

    Attributes:
        location: where the checksum stands; at the start if nothing is said.

    Example:
        >>> Adler32Spec.parse({}).to_json()
        {}
    """

    def function(self) -> Callable[[NDArray[np.uint8]], int]:
        return lambda data: adler32(data.data)


@codec("numcodecs.adler32", family="zarr3")
class NumcodecsAdler32Spec(Adler32Spec):
    """Asked: `numcodecs.adler32`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsAdler32Spec.codec_id
        'numcodecs.adler32'
    """
