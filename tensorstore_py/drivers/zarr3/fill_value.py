"""Fill values as metadata writes them, to one element and back.

Numbers are `number_json`'s business. Dates and time differences are the number of their units or
`"NaT"`, text is text, bytes are base64 (`r16` and the like: a list of numbers), a record is an
object of its fields. Both ways of writing bytes are read, and so is the base64 text of a whole
record, which is what zarr-python writes for `structured`. A value read and written again has the
same bits.
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Mapping
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    describe,
    dtype,
    parse_number,
)
from tensorstore_py.plugin.driver import (
    ElementView,
    freeze,
    normalised,
    number_to_json,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tensorstore_py.drivers.zarr3.data_type import StoredType

    Scalar = NDArray[np.generic]

__all__ = [
    "byte_permutation",
    "default_fill_value",
    "fill_value_to_json",
    "parse_fill_value",
    "same_bits",
    "seen_fill_value",
    "shows_bytes",
]

_NOT_A_TIME = -(2**63)


def parse_fill_value(json: object, stored: StoredType, endian: str = "little") -> Scalar:
    r"""The array of rank 0 for a `fill_value` member.

    Args:
        json: as in metadata.
        stored: the array's data type.
        endian: byte order of what is stored, which the base64 text of a record follows.

    Raises:
        SpecError: not a value of that type.

    Example:
        >>> from tensorstore_py.drivers.zarr3.data_type import StoredType
        >>> parse_fill_value("0x3f800000", StoredType.parse("float32"))
        array(1., dtype=float32)
        >>> parse_fill_value([1, 255], StoredType.parse("r16")).tobytes()
        b'\x01\xff'
    """
    target = stored.stored
    if stored.is_record:
        return _record(json, stored, endian)
    if target.kind == "O":
        return _object(_text(json) if stored.name == "string" else _bytes(json, None))
    if target.kind in "mM":
        return np.array(_time(json), np.int64).view(target).reshape(())
    if target.kind == "U":
        length = target.itemsize // 4
        text = _text(json)
        if len(text) > length:
            raise SpecError(f"expected at most {length} characters, but found {describe(json)}")
        return np.array(text, target)
    if target.kind == "S":
        # Text ends at its last non-null character: zarr-python writes no more.
        return _element(_bytes(json, target.itemsize).ljust(target.itemsize, b"\0"), target)
    if stored.is_raw:
        data = _bytes(json, target.itemsize)
        if len(data) != target.itemsize:
            raise SpecError(f"expected {target.itemsize} bytes, but found {len(data)}")
        return _element(data, target)
    return parse_number(json, dtype(target))


def fill_value_to_json(value: Scalar, stored: StoredType, endian: str = "little") -> object:
    """One element as metadata writes it; args as for `parse_fill_value`.

    Example:
        >>> from tensorstore_py.drivers.zarr3.data_type import StoredType
        >>> fill_value_to_json(np.array("NaT", "M8[s]"), StoredType.of(dtype("datetime64[s]")))
        'NaT'
    """
    kind = stored.stored.kind
    if stored.is_record:
        if stored.name == "structured":
            permutation = byte_permutation(stored, endian)
            data = value.tobytes()
            return _base64(data if permutation is None else bytes(data[i] for i in permutation))
        return {
            field.name: fill_value_to_json(value[field.name], field.type)  # type: ignore[call-overload]
            for field in stored.fields
        }
    if kind == "O":
        found: object = value[()]
        return _base64(found) if isinstance(found, bytes) else found
    if kind in "mM":
        return "NaT" if np.isnat(value) else int(value.view(np.int64))
    if kind == "U":
        return str(value)
    if kind == "S":
        # Without the nulls that fill it up, as zarr-python writes it.
        return _base64(bytes(value[()]))
    if stored.is_raw:
        data = value.tobytes()
        return _base64(data) if stored.name == "raw_bytes" else list(data)
    return number_to_json(value)


def default_fill_value(stored: StoredType) -> Scalar:
    """What new arrays are filled with if nothing is said: zero, no text, not a time.

    Example:
        >>> from tensorstore_py.drivers.zarr3.data_type import StoredType
        >>> default_fill_value(StoredType.parse("int8"))
        array(0, dtype=int8)
    """
    if stored.stored.kind == "O":
        return _object("" if stored.name == "string" else b"")
    if stored.stored.kind in "mM":
        return np.array(_NOT_A_TIME, np.int64).view(stored.stored).reshape(())
    return np.zeros((), stored.stored)


def seen_fill_value(
    stored: StoredType, view: ElementView, value: Scalar, endian: str = "little"
) -> Scalar:
    """What is opened of an element is filled with, as an array; read-only.

    Args:
        stored: the array's data type.
        view: what is opened.
        value: one whole element.
        endian: byte order of what is stored, which matters where the bytes are opened.

    Returns:
        An array of the view's inner shape; rank 0 where it has none.
    """
    if view.stored.hasobject:
        seen = value.copy()
    else:
        data = value.tobytes()
        permutation = byte_permutation(stored, endian) if shows_bytes(stored, view) else None
        if permutation is not None:
            data = bytes(data[i] for i in permutation)
        seen = np.array(normalised(view.of(data), view.native), copy=True)
    seen.flags.writeable = False
    return seen


def shows_bytes(stored: StoredType, view: ElementView) -> bool:
    """Whether a view shows the bytes of elements that are more than bytes."""
    return bool(view.data_type.name == "byte" and not view.name and not stored.is_raw)


def same_bits(mine: Scalar, theirs: Scalar) -> bool:
    """Whether two fill values are the same bit for bit; objects, if they are equal."""
    if mine.dtype.hasobject or theirs.dtype.hasobject:
        return bool(mine[()] == theirs[()])
    return mine.dtype == theirs.dtype and mine.tobytes() == theirs.tobytes()


def byte_permutation(stored: StoredType, endian: str) -> NDArray[np.intp] | None:
    """Where each byte of an element comes from if its numbers are turned; None if none moves.

    Args:
        stored: the data type.
        endian: the order to turn to, from this machine's (or back).
    """
    if endian == sys.byteorder:
        return None
    ends = accumulate(stored.units, initial=0)
    moved = list(
        chain.from_iterable(range(stop - 1, start - 1, -1) for start, stop in pairwise(ends))
    )
    return None if moved == sorted(moved) else np.array(moved, np.intp)


def _record(json: object, stored: StoredType, endian: str) -> Scalar:
    value: Scalar = np.zeros((), stored.stored)
    if isinstance(json, str):
        data = _bytes(json, None)
        if len(data) != stored.size_bytes:
            raise SpecError(
                f"expected {stored.size_bytes} bytes in base64, but found {describe(json)}"
            )
        permutation = byte_permutation(stored, endian)
        if permutation is not None:
            data = bytes(data[i] for i in permutation)
        return _element(data, stored.stored)
    if not isinstance(json, Mapping) and len(stored.fields) == 1:
        json = {stored.fields[0].name: json}
    if not isinstance(json, Mapping):
        raise SpecError(f"expected an object of all fields, but found {describe(json)}")
    names = [field.name for field in stored.fields]
    for name in json:
        if name not in names:
            raise SpecError(f"no such field (only {', '.join(names)})", (name,))
    for field in stored.fields:
        try:
            if field.name not in json:
                raise SpecError("the fill value of this field is missing")
            value[field.name] = parse_fill_value(json[field.name], field.type)  # type: ignore[index]
        except SpecError as error:
            raise error.inside(field.name) from None
    return value


def _object(value: object) -> Scalar:
    return np.fromiter([value], np.dtype(object)).reshape(())


def _element(data: bytes, target: np.dtype[np.generic]) -> Scalar:
    return np.frombuffer(data, target).reshape(()).copy()


def _text(json: object) -> str:
    if not isinstance(json, str):
        raise SpecError(f"expected a string, but found {describe(json)}")
    freeze(json)
    return json


def _time(json: object) -> int:
    if json == "NaT":
        return _NOT_A_TIME
    value = int(json) if isinstance(json, float) and json.is_integer() else json
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise SpecError(f'expected a whole number of units or "NaT", but found {describe(json)}')
    return value


def _bytes(json: object, most: int | None) -> bytes:
    """Bytes as base64 or as a list of numbers.

    Raises:
        SpecError: neither, or more than `most` bytes.
    """
    data = None
    if isinstance(json, str):
        try:
            data = base64.b64decode(json, validate=True)
        except (binascii.Error, ValueError):
            data = None
    elif isinstance(json, list | tuple) and all(_is_byte(item) for item in json):
        data = bytes(json)
    if data is None:
        raise SpecError(
            f"expected base64 text or a list of integers from 0 to 255, but found {describe(json)}"
        )
    if most is not None and len(data) > most:
        raise SpecError(f"expected at most {most} bytes, but found {len(data)}")
    return data


def _is_byte(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= 255


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
