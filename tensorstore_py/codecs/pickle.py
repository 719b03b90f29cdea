"""Pickle: the elements of a chunk as whatever Python's own serialisation makes of the array.

Specification: https://numcodecs.readthedocs.io/en/stable/other/pickles.html
Names: `pickle` (zarr).
Example: `{"id": "pickle", "protocol": 5}`.
Limits: reading it runs whatever program the data contains, so that it is refused unless the spec
says `"allow_pickle": true`. Use `json2`, `msgpack2`, `vlen-utf8` or `vlen-bytes` for new arrays.
"""

from __future__ import annotations

import pickle
from typing import Annotated, ClassVar

import numpy as np

from tensorstore_py.errors import DataLossError
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

__all__ = ["Pickle", "PickleSpec"]


@codec("pickle", family="zarr")
class PickleSpec(ArrayToBytesSpec):
    """Asked: `pickle`.

    Attributes:
        protocol: the version of the notation.

    Example:
        >>> PickleSpec.parse({}).to_json(include_defaults=True), PickleSpec.runs_code
        ({'protocol': 5}, True)
    """

    runs_code: ClassVar[bool] = True

    protocol: Annotated[int, Level(0, 5)] = 5

    @property
    def object_type(self) -> str:
        return "object"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        return Pickle(chunk, self.protocol)


class Pickle(ArrayToBytes):
    """The bound codec; only for data that its user trusts.

    Args:
        chunk: what is stored.
        protocol: as in the spec.
    """

    def __init__(self, chunk: ChunkType, protocol: int) -> None:
        self._chunk = chunk
        self._protocol = protocol

    def encode(self, array: Array) -> bytes:
        return pickle.dumps(np.ascontiguousarray(array), protocol=self._protocol)

    def decode(self, data: Buffer) -> Array:
        try:
            found = pickle.loads(data)  # noqa: S301 - the user opted in
        except Exception as error:
            raise DataLossError(f"corrupt pickle: {error}") from error
        if not isinstance(found, np.ndarray) or found.dtype != self._chunk.dtype:
            raise DataLossError(f"a pickle holds no array of {self._chunk.dtype}")
        if found.size * self._chunk.dtype.itemsize != self._chunk.size_bytes:
            raise size_error(found.nbytes, self._chunk.size_bytes)
        return found.reshape(-1, order="A").reshape(self._chunk.shape)
