"""What may be written to an array, and how it becomes NumPy data of the array's type.

Arrays, and whatever turns itself into one, are converted where no value can change (NumPy's rule
"safe"); numbers, Python's or NumPy's, and lists are taken as literals of the array's type, as
NumPy does with Python's, except that text is never cut. Elements of text and byte strings are
checked one by one: a number among them would only be found by whoever encodes the chunk. What
comes out broadcasts to the target; nothing is written here.
"""

from __future__ import annotations

from array import array
from typing import Final, TypeGuard

import numpy as np

from tensorstore_py._api.json_source import as_json_array
from tensorstore_py._api.object_source import as_objects
from tensorstore_py._runtime.write_futures import Copying
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.errors import MismatchError

__all__ = ["as_array", "as_elements", "as_source", "taken"]

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

    Args:
        source: as the caller gave it.
        array: what `as_source` made of it.
        lasting: the caller will not change it.

    Returns:
        What to write, and who is told when it was read; None: it is nobody else's as it is.
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
    """`source` as an array of a data type, whatever its shape.

    Args:
        source: an array, whatever turns itself into one, a literal, or nested lists of such.
        data_type: what it becomes.
        rank: how deep lists are taken apart where a list may be an element.

    Raises:
        TypeError, OverflowError: as `as_source`.
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
