"""Jenkins' lookup3: four bytes of checksum at the end, the one of HDF5's own metadata.

Specification: https://numcodecs.readthedocs.io/en/stable/checksum32.html
Names: `jenkins_lookup3` (zarr), `numcodecs.jenkins_lookup3` (zarr3).
Example: `{"id": "jenkins_lookup3", "initval": 0}`.
Limits: the library holds the interpreter lock while it works; prefer `crc32c` for new arrays.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.plugin import (
    BytesToBytes,
    BytesToBytesSpec,
    Checksum,
    ChunkType,
    Level,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JenkinsLookup3Spec", "NumcodecsJenkinsLookup3Spec"]


@codec("jenkins_lookup3", family="zarr")
class JenkinsLookup3Spec(BytesToBytesSpec):
    """Asked: `jenkins_lookup3`.

    Attributes:
        initval: what the hash starts from.
        prefix: bytes that are hashed in front of the data, as numbers; none by default.

    Example:
        >>> JenkinsLookup3Spec.parse({"prefix": None}).to_json(include_defaults=True)
        {'initval': 0}
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"prefix"})

    initval: Annotated[int, Level(0, 2**32 - 1)] = 0
    prefix: tuple[Annotated[int, Level(0, 255)], ...] | None = None

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        lookup3 = _library()
        prefix = np.array(self.prefix or (), np.uint8)

        def function(data: NDArray[np.uint8]) -> int:
            # The library wants memory that it could write to, and never does.
            return lookup3(np.concatenate((prefix, data)), self.initval)

        return Checksum("jenkins_lookup3", function, "end")


@codec("numcodecs.jenkins_lookup3", family="zarr3")
class NumcodecsJenkinsLookup3Spec(JenkinsLookup3Spec):
    """Asked: `numcodecs.jenkins_lookup3`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsJenkinsLookup3Spec.codec_id
        'numcodecs.jenkins_lookup3'
    """


@cache
def _library() -> Callable[[NDArray[np.uint8], int], int]:
    from numcodecs.jenkins import jenkins_lookup3  # noqa: PLC0415 - takes 60 ms

    function: Callable[[NDArray[np.uint8], int], int] = jenkins_lookup3
    return function
