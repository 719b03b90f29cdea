"""What is written to an array, converted as NumPy's assignment and zarr-python do: `astype`.

`TensorStore.write` refuses what might lose something. Here 1.7 in an array of integers is 1, and
text is cut to the length that there is, since programs for NumPy and zarr-python rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorstore_py._api.handle import Handle
from tensorstore_py._index import d

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812

__all__ = ["as_value", "assign"]

Array = np.ndarray[Any, np.dtype[Any]]


def assign(target: TensorStore, value: object) -> None:
    """Write a value to an array, and wait until it is stored.

    Args:
        target: all of it is written.
        value: what `as_value` takes, if it broadcasts; or another TensorStore, whose elements are
            copied block by block, whatever their positions and labels are.

    Raises:
        ValueError, TypeError, OverflowError: it cannot be converted, or does not broadcast.
        PermissionDeniedError: the target is not opened for writing.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> memory = np.zeros(3, dtype="int32")
        >>> assign(ts.array(memory)[1:], 2.5)
        >>> memory
        array([0, 2, 2], dtype=int32)
    """
    if isinstance(value, Handle):
        source = cast("TensorStore", value)
        if source.dtype != target.dtype:
            source = source.astype(target.dtype)
        _from_zero(target).write(_from_zero(source)).result()
        return
    found = as_value(value, target.dtype)
    if isinstance(found, np.ndarray) and not found.dtype.hasobject:
        while found.ndim > target.rank and found.shape[0] == 1:
            found = found[0]
    target.write(found).result()


def _from_zero(store: TensorStore) -> TensorStore:
    """Without labels, and from position 0 on."""
    return store[d[:].label[("",) * store.rank].translate_to[0]] if store.rank else store


def as_value(value: object, data_type: DType) -> object:
    """A value as `TensorStore.write` takes it for an array of a type.

    Args:
        value: an array, nested lists, or a single one.
        data_type: the array's.

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
