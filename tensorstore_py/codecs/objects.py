"""Python objects as JSON, as MessagePack, or as a pickle.

Specification: https://numcodecs.readthedocs.io/en/stable/other/json.html,
https://numcodecs.readthedocs.io/en/stable/other/msgpacks.html and
https://numcodecs.readthedocs.io/en/stable/other/pickles.html
Example: `{"id": "json2", "encoding": "utf-8", "strict": true}`, `{"id": "msgpack2", "use_bin_type":
true, "use_single_float": false, "raw": false}`, `{"id": "pickle", "protocol": 5}`.
Limits: JSON and MessagePack hold a list of the elements with their type and shape behind them:
`[…elements, "|O", [2, 3]]`. Reading them runs nothing, and what the list says of itself is only
compared with the chunk, never believed, so that a list that lies allocates nothing. Members of JSON
objects come back sorted unless `sort_keys` is false; MessagePack needs the extra `codecs`, and
tuples come back as lists. Reading a pickle runs whatever program the data contains, so that it is
refused unless the spec says `"allow_pickle": true`.
"""

from __future__ import annotations

import json
import pickle
from functools import cache
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToBytes,
    ArrayToBytesSpec,
    Buffer,
    ChunkType,
    Level,
    codec,
    size_error,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Json2Spec", "MsgPack2Spec", "PickleSpec", "listed_elements"]


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

    def completed(self) -> Self:
        default = (",", ":") if self.indent is None else (", ", ": ")
        return self if self.separators is not None else self.replace(separators=default)

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError) as error:
            raise SpecError(f"no such text encoding: {error}", ("encoding",)) from None
        return _Json2(self, chunk)


class _Json2(ArrayToBytes):
    """The bound codec `json2`."""

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
        return self._encoder.encode(_list_of(array, self._chunk)).encode(self._encoding)

    def decode(self, data: Buffer) -> Array:
        try:
            stored = self._decoder.decode(str(data, self._encoding))
        except (ValueError, RecursionError) as error:
            raise DataLossError(f"corrupt json2 data: {error}") from error
        return listed_elements("json2", stored, self._chunk)


@codec("msgpack2", family="zarr")
class MsgPack2Spec(ArrayToBytesSpec):
    """Asked: `msgpack2`.

    Attributes:
        use_single_float: store floats in single precision.
        use_bin_type: tell bytes from text.
        raw: read text as bytes.
    """

    use_single_float: bool = False
    use_bin_type: bool = True
    raw: bool = False

    @property
    def object_type(self) -> str:
        return "json"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        return _MsgPack2(self, chunk)


class _MsgPack2(ArrayToBytes):
    """The bound codec `msgpack2`."""

    def __init__(self, spec: MsgPack2Spec, chunk: ChunkType) -> None:
        self._library = _msgpack()
        self._spec = spec
        self._chunk = chunk

    def encode(self, array: Array) -> bytes:
        packed: bytes = self._library.packb(
            _list_of(array, self._chunk),
            use_bin_type=self._spec.use_bin_type,
            use_single_float=self._spec.use_single_float,
        )
        return packed

    def decode(self, data: Buffer) -> Array:
        try:
            stored = self._library.unpackb(data, raw=self._spec.raw, strict_map_key=False)
        except (ValueError, self._library.UnpackException, RecursionError, TypeError) as error:
            raise DataLossError(f"corrupt msgpack2 data: {error}") from error
        return listed_elements("msgpack2", stored, self._chunk)


@cache
def _msgpack() -> ModuleType:
    try:
        import msgpack  # noqa: PLC0415 - optional, and at first use
    except ImportError:
        raise UnsupportedError(
            'codec "msgpack2" needs the package msgpack: pip install "tensorstore-py[codecs]"'
        ) from None
    library: ModuleType = msgpack
    return library


def _list_of(array: Array, chunk: ChunkType) -> list[object]:
    elements: list[object] = np.atleast_1d(array).tolist()
    return [*elements, chunk.dtype.str, list(array.shape)]


def listed_elements(codec: str, stored: object, chunk: ChunkType) -> Array:
    """The elements as an array of the chunk's shape and type.

    Args:
        codec: its name, for error messages.
        stored: elements nested by the dimensions of the stated shape, the type, the shape.
        chunk: what must come out; its dimensions may be other ones of the same product.

    Raises:
        DataLossError: the list is of another form, type or size, or an element does not fit.

    Example:
        >>> chunk = ChunkType((2,), np.dtype(object), np.array(None))
        >>> listed_elements("json2", [[1], "a", "|O", [2]], chunk)
        array([list([1]), 'a'], dtype=object)
    """
    if not isinstance(stored, list) or len(stored) < 2:
        raise DataLossError(f"{codec}: the data is no list of elements, their type and their shape")
    *elements, kind, shape = stored
    if kind not in (chunk.dtype.str, chunk.dtype.str.encode()):
        raise DataLossError(f"{codec}: the data holds elements of {kind!r}, expected {chunk.dtype}")
    is_shape = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    if not is_shape or prod(shape) != prod(chunk.shape):
        raise DataLossError(f"{codec}: the data has shape {shape!r}, expected {list(chunk.shape)}")
    flat: list[object] = [elements]
    for extent in shape or [1]:
        if not all(isinstance(inner, list) and len(inner) == extent for inner in flat):
            raise DataLossError(f"{codec}: the elements are not nested as the data's shape says")
        flat = list(chain.from_iterable(flat))  # type: ignore[arg-type]  # lists, all of them
    try:
        array = np.fromiter(flat, chunk.dtype, len(flat))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataLossError(f"{codec}: an element is no {chunk.dtype}: {error}") from error
    return array.reshape(chunk.shape)


@codec("pickle", family="zarr")
class PickleSpec(ArrayToBytesSpec):
    """Asked: `pickle`.

    Attributes:
        protocol: the version of the notation.
    """

    runs_code: ClassVar[bool] = True

    protocol: Annotated[int, Level(0, 5)] = 5

    @property
    def object_type(self) -> str:
        return "object"

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        return _Pickle(chunk, self.protocol)


class _Pickle(ArrayToBytes):
    """The bound codec `pickle`; only for data that its user trusts."""

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
