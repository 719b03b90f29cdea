"""Fill values: arrays that are broadcast to a chunk, from and to JSON and through transforms.

Dimensions are aligned at the end, as in NumPy; leading dimensions of extent 1 are not kept, and
neither is what `numpy.broadcast_to` merely repeats. Arrays handed out are read-only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.element_json import parametric_from_json, parametric_to_json
from tensorstore_py._spec.json_value import describe, freeze, thaw
from tensorstore_py._spec.model import integral
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tensorstore_py._index import IndexDomain

__all__ = [
    "FillValue",
    "array_from_json",
    "check_broadcast",
    "element_from_json",
    "fill_value_from_json",
    "fill_value_like",
    "fill_value_to_json",
    "reduced",
    "same_fill_value",
]

FillValue: TypeAlias = "NDArray[np.generic]"

_INTEGER = re.compile(r"\s*[-+]?[0-9]+\s*")
_FLOAT = re.compile(
    r"\s*[-+]?(nan|inf|infinity|[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?|[0-9]+\.)\s*", re.IGNORECASE
)
_BITS = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4}


def fill_value_like(value: object, data_type: dtype | None) -> FillValue:
    """The fill value for whatever a user passes.

    Args:
        value: a scalar, an array or nested sequences.
        data_type: convert to it; None: whatever NumPy makes of it.

    Raises:
        ValueError, TypeError, OverflowError: it cannot be converted.
    """
    if data_type is None:
        array: FillValue = np.asarray(value)
        if array.dtype.kind == "O":
            return reduced(_objects(array, "json"))
        if array.dtype.kind in "US":
            raise SpecError(f"fill_value: {value!r} has no data type of its own; state the dtype")
        return reduced(array.astype(dtype(array.dtype).array_dtype, copy=False))
    if data_type.kind == "O":
        return reduced(_objects(np.array(value, dtype=object), data_type.name))
    if data_type.is_record and isinstance(value, Mapping):
        return fill_value_from_json(freeze(value), data_type)
    return reduced(data_type.array(value))


def _objects(array: FillValue, name: str) -> FillValue:
    expected: dict[str, type] = {"string": bytes, "ustring": str}
    out = np.empty(array.shape, dtype=object)
    for place in np.ndindex(array.shape):
        item: object = array[place]
        if name == "json":
            item = thaw(freeze(item))
        elif name in expected and not isinstance(item, expected[name]):
            raise TypeError(
                f"fill_value: expected {expected[name].__name__} elements for {name}, "
                f"but found {item!r}"
            )
        out[place] = item
    return out


def reduced(array: FillValue) -> FillValue:
    """The array without what broadcasting gives back anyway; read-only."""
    keep = tuple(
        slice(0, 1) if stride == 0 and extent else slice(None)
        for stride, extent in zip(array.strides, array.shape, strict=True)
    )
    array = array[(*keep, ...)]
    while array.ndim and array.shape[0] == 1:
        array = array[0:1].reshape(array.shape[1:])
    reduced = np.array(array, copy=True)
    reduced.flags.writeable = False
    return reduced


def fill_value_from_json(json: object, data_type: dtype | None) -> FillValue:
    """The fill value for JSON: an element or nested arrays of them.

    Args:
        json: as `freeze` gives it.
        data_type: element type; None keeps JSON values.

    Raises:
        SpecError: ragged, out of range, of a wrong type, or of a type without JSON form.
    """
    return reduced(array_from_json(json, data_type or dtype("json")))


def array_from_json(json: object, data_type: dtype) -> NDArray[np.generic]:
    """An array for nested lists of elements.

    Args:
        json: as `freeze` gives it.
        data_type: element type.

    Raises:
        SpecError: ragged, out of range, of a wrong type, or of a type without JSON form.
    """
    shape = _shape(json)
    array = np.empty(shape, dtype=data_type.array_dtype)
    for place, item in _elements(json, shape, ()):
        try:
            array[place] = element_from_json(item, data_type)
        except SpecError as error:
            raise error.inside(*place) from None
    return array


def _shape(json: object) -> tuple[int, ...]:
    shape = []
    while isinstance(json, tuple):
        shape.append(len(json))
        if not json:
            break
        json = json[0]
    return tuple(shape)


def _elements(
    json: object, shape: Sequence[int], place: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], object]]:
    if not shape:
        if isinstance(json, tuple):
            raise SpecError("expected an element, but found an array: nested unevenly", place)
        yield place, json
        return
    if not isinstance(json, tuple) or len(json) != shape[0]:
        raise SpecError(
            f"expected an array of {shape[0]} elements as before, but found {describe(json)}", place
        )
    for position, item in enumerate(json):
        yield from _elements(item, shape[1:], (*place, position))


def element_from_json(json: object, data_type: dtype) -> object:
    """One element, as something that can be assigned to an array of the type.

    Args:
        json: as `freeze` gives it.
        data_type: the element's type.

    Raises:
        SpecError: out of range, of a wrong type, or of a type without JSON form.
    """
    kind = data_type.kind
    if data_type.name == "json":
        return thaw(json)
    if kind in "iu":
        return _integer(json, data_type)
    if kind == "f":
        return _float(json, data_type)
    if kind == "b":
        if json in ("true", "false"):
            return json == "true"
        if not isinstance(json, bool):
            raise SpecError(f"expected true or false, but found {describe(json)}")
        return json
    if kind == "O" and data_type.name != "object":
        if not isinstance(json, str):
            raise SpecError(f"expected a string, but found {describe(json)}")
        return json.encode() if data_type.name == "string" else json
    if kind in "mMU" or (kind in "SV" and data_type.name not in ("char", "byte")):
        return parametric_from_json(json, data_type.array_dtype, _field)
    raise SpecError(f"no JSON form of {data_type.name} values is known here")


def _field(json: object, numpy_type: np.dtype[np.generic]) -> object:
    if numpy_type.kind == "c":
        parts = json if isinstance(json, tuple) and len(json) == 2 else (json, 0)
        real, imaginary = (_float(part, dtype("float64")) for part in parts)
        return np.array(real) + 1j * np.array(imaginary)
    return element_from_json(json, dtype(numpy_type))


def _integer(json: object, data_type: dtype) -> int:
    bits = _BITS.get(data_type.name, data_type.itemsize * 8)
    low, high = (
        (0, 2**bits - 1) if data_type.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    value = integral(json)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SpecError(f"expected an integer from {low} to {high}, but found {describe(json)}")
    return value


def _float(json: object, data_type: dtype) -> object:
    if isinstance(json, str) and _FLOAT.fullmatch(json):
        json = float(json)
    if isinstance(json, bool) or not isinstance(json, int | float):
        raise SpecError(f'expected a number, "NaN" or "Infinity", but found {describe(json)}')
    with np.errstate(over="ignore", invalid="ignore"):
        return np.float64(json).astype(data_type.numpy_dtype)


def fill_value_to_json(array: FillValue) -> object:
    """An element or nested lists; NaN and infinities stay floats.

    Raises:
        SpecError: single characters and bytes have no JSON form.
    """
    kind = array.dtype.kind if array.dtype.kind not in "SV" else dtype(array.dtype).kind
    if kind in "mMUSV" and array.dtype.itemsize > 1:
        return _nested(array)
    if kind in "SV":
        name = dtype(array.dtype).name
        raise SpecError(f"no JSON form of {name} values is known here", ("fill_value",))
    return _to_json(array.tolist() if array.dtype.kind in "biufcO" else _plain(array))


def _nested(array: FillValue) -> object:
    if array.ndim:
        return [_nested(inner) for inner in array]
    return parametric_to_json(array, _field_to_json)


def _field_to_json(value: np.generic) -> object:
    return fill_value_to_json(np.asarray(value))


def _plain(array: FillValue) -> object:
    kind = dtype(array.dtype).kind
    wide: NDArray[np.generic] = array.astype(np.int64 if kind in "iu" else np.float64)
    return wide.tolist()


def _to_json(value: object) -> object:
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        return [_to_json(inner) for inner in value]
    return value


def same_fill_value(mine: FillValue | None, theirs: FillValue | None) -> bool:
    """Whether type, shape and values agree; NaN is equal to itself."""
    if mine is None or theirs is None:
        return mine is theirs
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return False
    if mine.dtype.fields is not None:
        return bool((mine == theirs).all()) or mine.tobytes() == theirs.tobytes()
    # NaN and NaT, of whatever type, are what differs from itself
    return bool(((mine == theirs) | ((mine != mine) & (theirs != theirs))).all())  # noqa: PLR0124


def check_broadcast(array: FillValue, domain: IndexDomain) -> None:
    """Check that a fill value fits a domain.

    Raises:
        MismatchError: it does not broadcast to the domain's shape.
    """
    extents = array.shape[::-1]
    targets = domain.shape[::-1]
    for position, extent in enumerate(extents):
        if extent != 1 and (position >= len(targets) or targets[position] != extent):
            raise MismatchError(
                f"Cannot broadcast array of shape {list(array.shape)} to target shape "
                f"{list(domain.shape)}"
            )
