"""Fill values: arrays that are broadcast to a chunk, from and to JSON and through transforms.

Dimensions are aligned at the end, as in NumPy; leading dimensions of extent 1 are not kept, and
neither is what `numpy.broadcast_to` merely repeats. Arrays handed out are read-only. Through a
transform, an axis of extent 1 follows anything; one that varies needs to know where in the domain
it lies.

In JSON a date is ISO 8601 text, a time difference a whole number of its units, both may be `"NaT"`;
text is text; bytes are text if they are ASCII throughout and base64 after `base64:` otherwise; a
record is an object of its fields. A format's own notation is that format's matter.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.json_value import describe, freeze, thaw
from tensorstore_py._spec.model import integral
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tensorstore_py._index import IndexDomain, IndexTransform

__all__ = [
    "FillValue",
    "array_from_json",
    "check_broadcast",
    "element_from_json",
    "fill_value_from_json",
    "fill_value_like",
    "fill_value_to_input",
    "fill_value_to_json",
    "fill_value_to_output",
    "parametric_from_json",
    "parametric_to_json",
    "reduced",
    "same_fill_value",
]

NumpyType = np.dtype[np.generic]
Array = np.ndarray[tuple[int, ...], NumpyType]
_BASE64 = "base64:"


def parametric_from_json(
    json: object, numpy_type: NumpyType, read: Callable[[object, NumpyType], object]
) -> object:
    """The element for frozen JSON, as something that can be assigned to an array of `numpy_type`.

    The type is of kind `m`, `M`, `U`, `S` or `V`; `read` is for a record's fields of other kinds.

    Raises SpecError: of a wrong type, too long, or a field is missing or unknown.
    """
    kind = numpy_type.kind
    if kind in "mM":
        return _time(json, numpy_type)
    if kind == "U":
        if not isinstance(json, str) or len(json) > numpy_type.itemsize // 4:
            raise SpecError(
                f"expected text of at most {numpy_type.itemsize // 4} characters, "
                f"but found {describe(json)}"
            )
        return json
    if numpy_type.names is not None:
        return _record(json, numpy_type, read)
    if numpy_type.itemsize == 0 or kind not in "SV":
        raise SpecError(f"no JSON form of {numpy_type} values is known here")
    return _bytes(json, numpy_type)


def _time(json: object, numpy_type: NumpyType) -> object:
    if isinstance(json, bool) or not isinstance(json, int | str):
        raise SpecError(f'expected a whole number, "NaT" or a date, but found {describe(json)}')
    try:
        if isinstance(json, str) and json.lstrip("-").isdigit() and numpy_type.kind == "m":
            json = int(json)
        if isinstance(json, int):
            return np.array(json, np.int64).view(numpy_type)[()]
        return np.array(json, numpy_type)[()]
    except (ValueError, OverflowError) as error:
        raise SpecError(f"{describe(json)} is no {numpy_type}: {error}") from None


def _bytes(json: object, numpy_type: NumpyType) -> object:
    size = numpy_type.itemsize
    if not isinstance(json, str):
        raise SpecError(f"expected text or base64 text, but found {describe(json)}")
    try:
        if json.startswith(_BASE64):
            data = base64.b64decode(json[len(_BASE64) :], validate=True)
        else:
            data = json.encode("ascii")
    except (UnicodeEncodeError, binascii.Error):
        raise SpecError(
            f'{describe(json)} is neither ASCII text nor "{_BASE64}" and base64 text'
        ) from None
    if len(data) > size:
        raise SpecError(f"expected at most {size} bytes, but found {len(data)}: {describe(json)}")
    return np.array(data.ljust(size, b"\0"), f"S{size}").view(numpy_type)[()]


def _record(
    json: object, numpy_type: NumpyType, read: Callable[[object, NumpyType], object]
) -> object:
    assert numpy_type.names is not None
    assert numpy_type.fields is not None
    if not isinstance(json, dict):
        raise SpecError(
            f"expected an object with the fields {list(numpy_type.names)}, "
            f"but found {describe(json)}"
        )
    for name in json:
        if name not in numpy_type.names:
            raise SpecError(f"no such field; there are {list(numpy_type.names)}", (name,))
    out = np.zeros((), numpy_type)
    for name in numpy_type.names:
        if name not in json:
            raise SpecError(f'the field "{name}" is missing')
        inner = numpy_type.fields[name][0]
        try:
            _assign(_record_field(out, name), json[name], inner.base, inner.shape, read)
        except SpecError as error:
            raise error.inside(name) from None
    return out[()]


def _assign(
    out: Array,
    json: object,
    numpy_type: NumpyType,
    shape: tuple[int, ...],
    read: Callable[[object, NumpyType], object],
) -> None:
    if not shape:
        if _is_parametric(numpy_type):
            out[...] = parametric_from_json(json, numpy_type, read)  # type: ignore[assignment]
        else:
            out[...] = read(json, numpy_type)  # type: ignore[assignment]
        return
    if not isinstance(json, tuple) or len(json) != shape[0]:
        raise SpecError(f"expected an array of {shape[0]} elements, but found {describe(json)}")
    for position, item in enumerate(json):
        try:
            _assign(
                out[position : position + 1].reshape(shape[1:]), item, numpy_type, shape[1:], read
            )
        except SpecError as error:
            raise error.inside(position) from None


def parametric_to_json(array: Array, write: Callable[[np.generic], object]) -> object:
    """The JSON of one element, an array of rank 0; the inverse of `parametric_from_json`."""
    numpy_type = array.dtype
    kind = numpy_type.kind
    if kind in "MU":
        return str(array)
    if kind == "m":
        return "NaT" if np.isnat(array) else int(array.view(np.int64))
    if numpy_type.names is not None:
        return {
            name: _record_field_to_json(_record_field(array, name), write)
            for name in numpy_type.names
        }
    data = array.tobytes()
    text = data.rstrip(b"\0")
    if text.isascii() and all(byte >= 32 for byte in text) and not text.startswith(b"base64:"):
        return text.decode("ascii")
    return _BASE64 + base64.b64encode(data).decode("ascii")


def _record_field_to_json(array: Array, write: Callable[[np.generic], object]) -> object:
    if array.ndim:
        return [_record_field_to_json(array[place, ...], write) for place in range(len(array))]
    if _is_parametric(array.dtype):
        return parametric_to_json(array, write)
    return write(_scalar(array))


def _record_field(array: Array, name: str) -> Array:
    """A view of one field."""
    return cast("np.ndarray[tuple[int, ...], np.dtype[np.void]]", array)[name]


def _scalar(array: Array) -> np.generic:
    return cast("np.generic", array[()])


def _is_parametric(numpy_type: NumpyType) -> bool:
    return numpy_type.kind in "mMUSV" and numpy_type.isbuiltin != 2


FillValue: TypeAlias = "NDArray[np.generic]"

_INTEGER = re.compile(r"\s*[-+]?[0-9]+\s*")
_FLOAT = re.compile(
    r"\s*[-+]?(nan|inf|infinity|[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?|[0-9]+\.)\s*", re.IGNORECASE
)
_BITS = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4}


def fill_value_like(value: object, data_type: dtype | None) -> FillValue:
    """A user's scalar, array or nested sequences as a fill value; None: NumPy's choice of type.

    Raises ValueError, TypeError, OverflowError: it cannot be converted.
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
    """The fill value for JSON (an element or nested arrays); None keeps JSON values.

    Raises SpecError: ragged, out of range, of a wrong type, or of a type without JSON form.
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

    Raises SpecError: single characters and bytes have no JSON form.
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

    Raises MismatchError: it does not broadcast to the domain's shape.
    """
    extents = array.shape[::-1]
    targets = domain.shape[::-1]
    for position, extent in enumerate(extents):
        if extent != 1 and (position >= len(targets) or targets[position] != extent):
            raise MismatchError(
                f"Cannot broadcast array of shape {list(array.shape)} to target shape "
                f"{list(domain.shape)}"
            )


def fill_value_to_input(
    array: FillValue, transform: IndexTransform, domain: IndexDomain | None
) -> FillValue:
    """The fill value as seen through a transform.

    Raises MismatchError: without `domain`, part of an array of unknown place is selected.
    """
    if array.ndim == 0:
        return array
    rank = transform.input_rank
    missing = transform.output_rank - array.ndim
    terms: list[NDArray[np.int64]] = []
    for axis, extent in enumerate(array.shape):
        each = transform.maps[axis + missing]
        zero = np.zeros((1,) * rank, dtype=np.int64)
        if extent == 1:
            terms.append(zero)
            continue
        if domain is None:
            terms.append(_whole_axis(transform, axis + missing, extent))
            continue
        start = domain.inclusive_min[axis + missing]
        if each.index_array is not None:
            assert each.stride is not None
            terms.append(each.offset - start + each.stride * each.index_array)
        elif each.input_dimension is not None:
            assert each.stride is not None
            dim = each.input_dimension
            lower, count = transform.input_origin[dim], transform.input_shape[dim]
            steps = each.offset - start + each.stride * np.arange(lower, lower + count)
            terms.append(_along(steps, dim, rank))
        else:
            terms.append(zero + (each.offset - start))
    return reduced(array[tuple(terms)])


def _along(values: NDArray[np.int64], dim: int, rank: int) -> NDArray[np.int64]:
    return values.reshape([-1 if axis == dim else 1 for axis in range(rank)])


def _whole_axis(transform: IndexTransform, output_dim: int, extent: int) -> NDArray[np.int64]:
    """Positions along an axis whose bounds are unknown: all of them, or an error."""
    each = transform.maps[output_dim]
    dim = each.input_dimension
    if dim is None or each.stride not in (1, -1):
        raise MismatchError(
            f"fill_value varies along dimension {output_dim}, whose bounds are unknown; "
            f"give the domain before indexing"
        )
    lower, upper = transform.input_inclusive_min[dim], transform.input_inclusive_max[dim]
    bounded = lower != -INFINITY and upper != INFINITY
    if bounded and transform.input_shape[dim] != extent:
        raise MismatchError(
            f"Cannot broadcast array of shape [{extent}] to target shape "
            f"[{transform.input_shape[dim]}]"
        )
    positions = np.arange(extent, dtype=np.int64)[:: each.stride]
    return _along(positions, dim, transform.input_rank)


def fill_value_to_output(array: FillValue, transform: IndexTransform) -> FillValue:
    """The fill value of a transform's output space, given that of its input space.

    Raises MismatchError: an axis that varies has no output dimension of unit stride.
    """
    if array.ndim == 0:
        return array
    missing = transform.input_rank - array.ndim
    shape, strides = [], []
    used = set()
    flips: list[slice] = []
    for each in transform.maps:
        axis = -1 if each.input_dimension is None else each.input_dimension - missing
        if axis < 0 or array.shape[axis] == 1:
            shape.append(1)
            strides.append(0)
            flips.append(slice(None))
            continue
        if each.stride not in (1, -1) or axis in used:
            raise MismatchError("fill_value varies along a dimension that is strided or diagonal")
        used.add(axis)
        shape.append(array.shape[axis])
        strides.append(array.strides[axis])
        flips.append(slice(None, None, each.stride))
    lost = [a for a, extent in enumerate(array.shape) if extent != 1 and a not in used]
    if lost:
        raise MismatchError(
            f"fill_value varies along input dimension {lost[0] + missing}, "
            f"which no output dimension follows"
        )
    return reduced(as_strided(array, shape, strides, writeable=False)[tuple(flips)])
