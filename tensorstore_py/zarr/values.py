"""What is written to an array, converted as NumPy's assignment and zarr-python do: `astype`.

`ts.TensorStore.write` refuses what might lose something. Here 1.7 in an array of integers is 1, and
text is cut to the length that there is, since programs for zarr-python rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812

__all__ = ["as_value"]

Array = np.ndarray[Any, np.dtype[Any]]


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
