"""Fresh arrays of the sizes that specs and metadata state, which may be any.

The invariant: a size that no memory has ends in an error that names it, before anything is taken.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.codec import Array

__all__ = ["exhausted", "new_array"]


def new_array(shape: Sequence[int], dtype: np.dtype[np.generic], order: str = "C") -> Array:
    """An array whose elements are yet to be written.

    Args:
        shape: of the array.
        dtype: of its elements.
        order: in memory, `"C"` or `"F"`.

    Raises:
        ResourceExhaustedError: there is not so much memory.

    Example:
        >>> new_array((2, 3), np.dtype("u2"), "F").strides
        (2, 4)
        >>> new_array((2**40, 2**40), np.dtype("u2"))
        Traceback (most recent call last):
            ...
        tensorstore_py.errors.ResourceExhaustedError: an array of shape [1099511627776, \
1099511627776] and type uint16 takes 2417851639229258349412352 bytes of memory, which cannot be had
    """
    try:
        return np.empty(shape, dtype, order="F" if order == "F" else "C")
    except (MemoryError, ValueError):
        raise exhausted(shape, dtype) from None


def exhausted(shape: Sequence[int], dtype: np.dtype[np.generic]) -> ResourceExhaustedError:
    """The error for an array that does not fit in memory."""
    size = prod(shape) * dtype.itemsize
    return ResourceExhaustedError(
        f"an array of shape {list(shape)} and type {dtype} takes {size} bytes of memory, which "
        "cannot be had"
    )
