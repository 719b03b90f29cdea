"""What may be written to an array, and how it becomes NumPy data of the array's type.

`as_source` is strict: arrays, and what turns itself into one, are converted where no value can
change (NumPy's rule "safe"); numbers, Python's or NumPy's, and lists are taken as literals of the
array's type, except that text is never cut. Elements of text and byte strings are checked one by
one: a number among them would only be found when the chunk is encoded. `as_value` converts as
NumPy's assignment and zarr-python do: 1.7 in an array of integers is 1.

In arrays of JSON values and of objects a list is an element as well as a dimension, so the target's
rank decides: lists are taken apart as deep as the target has dimensions, and as long as they are of
one length; what is below is elements. What comes out broadcasts to the target; nothing is written
here.
"""

from __future__ import annotations

from array import array
from math import prod
from typing import TYPE_CHECKING, Final, TypeGuard, cast

import numpy as np

from tensorstore_py._runtime.future import Copying
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py._spec.json_value import freeze, thaw
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "as_array",
    "as_elements",
    "as_json_array",
    "as_objects",
    "as_source",
    "as_value",
    "taken",
]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

#: Copying that much takes some microseconds, and lets the caller go on at once.
_SMALL_BYTES: Final = 2**16


def as_source(source: object, data_type: DType, shape: tuple[int, ...]) -> Array:
    """`source` as an array of a data type that broadcasts to `shape`.

    Raises:
        TypeError: an array whose values might not survive the conversion, or an element that is
            no text (or no bytes) where such is stored.
        OverflowError: a number that the type cannot hold, or text that is too long for it.
        ValueError: too many dimensions.
        MismatchError: extents that do not broadcast; names the dimension.
    """
    found = as_elements(source, data_type, len(shape))
    _check_shape(found.shape, shape)
    return found


def taken(source: object, array: Array, *, lasting: bool) -> tuple[Array, Copying | None]:
    """What of the caller's memory a write may read until it is done.

    Returns:
        What to write, and what is told when it was read; None: the caller can't change it.
    """
    if lasting or not _is_array(source):
        return array, None
    if isinstance(source, np.ndarray) and not np.may_share_memory(array, source):
        return array, None
    # Elements that are objects may be changed themselves.
    if array.nbytes <= _SMALL_BYTES and not array.dtype.hasobject:
        return array.copy(order="K"), None
    return array, Copying()


def as_elements(source: object, data_type: DType, rank: int) -> Array:
    """`source` as an array of a data type, whatever its shape; raises as `as_source`.

    Lists are taken apart to `rank` dimensions where a list may be an element.
    """
    if data_type.name == "json":
        return as_json_array(source, rank)
    if data_type.name == "object":
        return as_objects(source, rank)
    return as_array(source, data_type)


def as_array(source: object, data_type: DType) -> Array:
    """`source` as an array of a data type other than JSON, whatever its shape.

    Memory of the right type is not copied.

    Raises:
        TypeError, OverflowError: as `as_source`.
    """
    dtype = data_type.array_dtype
    if _is_number(source) and not np.can_cast(source.dtype, dtype, "safe"):
        source = source.item()
    if _is_array(source):
        found = np.asarray(source)
        if not np.can_cast(found.dtype, dtype, "safe"):
            raise TypeError(
                f"cannot write {found.dtype} data to an array of {dtype} without loss; "
                f"convert it first: source.astype({dtype.name!r})"
            )
        found = found.astype(dtype, copy=False)
    else:
        if dtype.kind in "US":
            _check_length(np.asarray(source), dtype)
        found = _as_literal(source, dtype)
    if dtype.hasobject:
        _check_elements(found, data_type)
    return found


def _as_literal(source: object, dtype: np.dtype[np.generic]) -> Array:
    try:
        return np.asarray(source, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        for kind in (OverflowError, TypeError):
            if isinstance(error, kind):
                raise kind(_unfit(source, dtype, error)) from None
        raise ValueError(_unfit(source, dtype, error)) from None


def _unfit(source: object, dtype: np.dtype[np.generic], error: Exception) -> str:
    return f"cannot write {source!r:.60} to an array of {dtype}: {error}"


def _check_length(source: Array, dtype: np.dtype[np.generic]) -> None:
    """NumPy would cut text that is too long without a word."""
    longest = source.astype(dtype.kind).itemsize
    if longest > dtype.itemsize:
        width = 4 if dtype.kind == "U" else 1
        raise OverflowError(
            f"text of length {longest // width} does not fit {dtype.itemsize // width} "
            f"{'characters' if width == 4 else 'bytes'}; cut it first"
        )


_ELEMENTS: dict[str, type] = {"ustring": str, "string": bytes}


def _check_elements(source: Array, data_type: DType) -> None:
    wanted = _ELEMENTS.get(data_type.name)
    if wanted is None:
        return
    for element in source.flat:
        if not isinstance(element, wanted):
            raise TypeError(
                f"{data_type.name} arrays hold {wanted.__name__} elements, but found {element!r}"
            )


def _is_number(source: object) -> TypeGuard[np.generic]:
    """Whether it is a scalar of NumPy, or of a type registered with NumPy, that is a number."""
    return isinstance(source, np.generic) and not isinstance(
        source, np.flexible | np.datetime64 | np.timedelta64 | np.object_
    )


def _is_array(source: object) -> bool:
    """Whether it has an element type of its own."""
    if isinstance(source, np.ndarray | memoryview | array):
        return True
    return hasattr(source, "__array_interface__") or hasattr(source, "__array__")


def _check_shape(found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if len(found) > len(wanted):
        raise ValueError(
            f"source has {len(found)} dimensions, shape {list(found)}, but the target has "
            f"{len(wanted)}, shape {list(wanted)}"
        )
    skipped = len(wanted) - len(found)
    for dim, extent in enumerate(found):
        if extent not in (1, wanted[dim + skipped]):
            raise MismatchError(
                f"Error aligning dimensions: source dimension {dim} has extent {extent}, but "
                f"target dimension {dim + skipped} has extent {wanted[dim + skipped]}"
            )


def as_json_array(source: object, rank: int | None = None) -> Array:
    """`source` as an array of JSON values, which are plain JSON: nothing is kept by reference.

    Lists are taken apart to at most `rank` dimensions; None for as many as there are.

    Raises TypeError: an element has no JSON form, such as bytes; OverflowError: a number that 64
        bits cannot hold.

    Example:
        >>> as_json_array([[1, 2], [3, 4]], 1).tolist()
        [[1, 2], [3, 4]]
        >>> as_json_array([[1, 2], [3, 4]], 1).shape, as_json_array([[1, 2], [3, 4]], 2).shape
        ((2,), (2, 2))
    """
    if _is_array(source) and not isinstance(source, array):  # Python's `array` is one element
        found = np.asarray(source)
        if rank != 0:
            return _filled(found.shape, map(_plain_json, found.flat))
        source = found.tolist()
    shape, elements = _taken_apart(source, rank, _length_of_list)
    return _filled(shape, map(_plain_json, elements))


def as_objects(source: object, rank: int) -> Array:
    """`source` as an array of at most `rank` dimensions of objects, kept as they are.

    Example:
        >>> as_objects([[1, 2], [3]], 1).tolist()
        [[1, 2], [3]]
        >>> as_objects(np.arange(3), 0).item()
        array([0, 1, 2])
    """
    if isinstance(source, np.ndarray) and source.dtype.hasobject and source.ndim <= rank:
        return source
    return _filled(*_taken_apart(source, rank, _length_of_list_or_array))


def _taken_apart(
    source: object, rank: int | None, length_of: Callable[[object], int | None]
) -> tuple[tuple[int, ...], Sequence[object]]:
    """The shape and the elements of nested lists, as deep as all of one depth are of one length."""
    elements: Sequence[object] = [source]
    shape: tuple[int, ...] = ()
    while rank is None or len(shape) < rank:
        lengths = {length_of(each) for each in elements}
        length = lengths.pop() if len(lengths) == 1 else None
        if length is None:
            break
        shape = (*shape, length)
        elements = [inner for element in elements for inner in cast("Sequence[object]", element)]
    return shape, elements


def _length_of_list(element: object) -> int | None:
    return len(element) if isinstance(element, list | tuple) else None


def _length_of_list_or_array(element: object) -> int | None:
    if isinstance(element, np.ndarray):
        return len(element) if element.ndim else None
    return _length_of_list(element)


def _plain_json(element: object) -> object:
    return thaw(freeze(element, objects=False))


def _filled(shape: tuple[int, ...], elements: Iterable[object]) -> Array:
    flat = np.empty(prod(shape), object)
    for place, element in enumerate(elements):
        flat[place] = element  # one by one: NumPy would take a list apart
    return flat.reshape(shape)


def as_value(value: object, data_type: DType) -> object:
    """A value as `TensorStore.write` takes it, converted as NumPy's assignment does.

    Raises:
        ValueError, TypeError, OverflowError: it cannot be converted.

    Example:
        >>> from tensorstore_py import dtype
        >>> as_value([1.7, 2.2], dtype("int32"))
        array([1, 2], dtype=int32)
    """
    dtype = data_type.array_dtype
    if dtype.hasobject and dtype.names is None:
        if isinstance(value, np.ndarray) and value.dtype.kind in "UST":
            return value.astype(object)
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value if value.dtype == dtype else np.asarray(value).astype(dtype, copy=False)
    if hasattr(value, "__array__"):
        return np.asarray(value).astype(dtype, copy=False)
    if dtype.names is not None:
        return np.array(value, dtype=dtype)
    if isinstance(value, list | tuple):
        return np.asarray(value).astype(dtype, copy=False)
    return np.array(value, dtype=dtype)
