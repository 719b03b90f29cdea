"""CRC-32: four bytes of checksum, the one of zip and PNG.

Specification: https://numcodecs.readthedocs.io/en/stable/checksum32.html
Names: `crc32` (zarr), `numcodecs.crc32` (zarr3).
Example: `{"id": "crc32", "location": "end"}`.
Limits: none. `crc32c` is another polynomial, and another codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from tensorstore_py.plugin import ChecksumSpec, codec

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Crc32Spec", "NumcodecsCrc32Spec"]


@codec("crc32", family="zarr")
class Crc32Spec(ChecksumSpec):
    """Asked: `crc32`.

    Attributes:
        location: where the checksum stands; at the start if nothing is said.

    Example:
        >>> Crc32Spec.parse({"location": "end"}).to_json()
        {'location': 'end'}
    """

    def function(self) -> Callable[[NDArray[np.uint8]], int]:
        return lambda data: crc32(data.data)


@codec("numcodecs.crc32", family="zarr3")
class NumcodecsCrc32Spec(Crc32Spec):
    """Asked: `numcodecs.crc32`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsCrc32Spec.codec_id
        'numcodecs.crc32'
    """
