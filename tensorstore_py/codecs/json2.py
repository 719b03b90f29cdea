"""JSON: the elements of a chunk as one JSON array, with their type and shape behind them.

Specification: https://numcodecs.readthedocs.io/en/stable/other/json.html
Names: `json2` (zarr).
Example: `{"id": "json2", "encoding": "utf-8", "strict": true}`.
Limits: what JSON can say; members of objects come back sorted unless `sort_keys` is false. It is a
way to store Python objects that runs nothing when it is read.
"""

from __future__ import annotations

import json
from typing import ClassVar, Self

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    codec,
    listed_elements,
    model_validator,
)

__all__ = ["Json2", "Json2Spec"]


@codec("json2", family="zarr")
class Json2Spec(ArrayToBytesSpec):
    """Asked: `json2`.

    Attributes:
        encoding: of the text.
        skipkeys: leave out members whose name is no string, instead of refusing them.
        ensure_ascii: write other characters as escapes.
        check_circular: look for objects that contain themselves.
        allow_nan: write NaN and the infinities by name.
        sort_keys: sort the members of objects.
        indent: spaces, or the text, to indent by; on one line by default.
        separators: between elements, and behind a member's name.
        strict: refuse control characters inside strings.

    Example:
        >>> Json2Spec.parse({"indent": None}).object_type
        'json'
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"indent", "separators"})

    encoding: str = "utf-8"
    skipkeys: bool = False
    ensure_ascii: bool = True
    check_circular: bool = True
    allow_nan: bool = True
    sort_keys: bool = True
    indent: int | str | None = None
    separators: tuple[str, str] | None = None
    strict: bool = True

    @property
    def object_type(self) -> str:
        return "json"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        # Specs that mean the same must be equal.
        default = (",", ":") if self.indent is None else (", ", ": ")
        return self if self.separators is not None else self.replace(separators=default)

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError) as error:
            raise SpecError(f"no such text encoding: {error}", ("encoding",)) from None
        return Json2(self, chunk)


class Json2(ArrayToBytes):
    """The bound codec.

    Args:
        spec: what was asked.
        chunk: what is stored.
    """

    def __init__(self, spec: Json2Spec, chunk: ChunkType) -> None:
        self._chunk = chunk
        self._encoding = spec.encoding
        self._encoder = json.JSONEncoder(
            skipkeys=spec.skipkeys,
            ensure_ascii=spec.ensure_ascii,
            check_circular=spec.check_circular,
            allow_nan=spec.allow_nan,
            sort_keys=spec.sort_keys,
            indent=spec.indent,
            separators=spec.separators,
        )
        self._decoder = json.JSONDecoder(strict=spec.strict)

    def encode(self, array: Array) -> bytes:
        elements: list[object] = np.atleast_1d(array).tolist()
        elements += [self._chunk.dtype.str, list(array.shape)]
        return self._encoder.encode(elements).encode(self._encoding)

    def decode(self, data: Buffer) -> Array:
        try:
            stored = self._decoder.decode(str(data, self._encoding))
        except (ValueError, RecursionError) as error:
            raise DataLossError(f"corrupt json2 data: {error}") from error
        return listed_elements("json2", stored, self._chunk)
