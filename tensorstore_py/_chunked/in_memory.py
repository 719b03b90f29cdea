"""Reading from and writing to one NumPy array as if it were a chunked one with a single chunk.

For drivers whose data is in memory: the transform is applied by the same selection and plan as
for stored chunks, so indexing means the same everywhere. Nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.selection import select
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.new_array import new_array

if TYPE_CHECKING:
    from tensorstore_py._index import IndexTransform

__all__ = ["read_array", "write_array"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def read_array(array: Array, transform: IndexTransform, order: str) -> Array:
    """A fresh array of what `transform` selects.

    Args:
        array: zero-origin.
        transform: to positions in `array`, its bounds resolved and inside.
        order: memory order of the result, `"C"` or `"F"`.
    """
    out = new_array(transform.input_shape, array.dtype, order)
    if not out.size:
        return out
    selection = select(transform)
    view = selection.view(out)
    for step in make_plan(selection.axes, _one_cell(array)).steps():
        view[(..., *step.outside)] = array[step.inside]
    if not np.may_share_memory(view, out):
        selection.put(view, out)
    return out


def write_array(array: Array, transform: IndexTransform, source: Array) -> None:
    """Assign `source`, broadcast to the transform's input shape, to what `transform` selects.

    Args:
        array: zero-origin and writable.
        transform: to positions in `array`, its bounds resolved and inside.
        source: of the array's type.
    """
    selection = select(transform)
    view = selection.values(np.broadcast_to(source, transform.input_shape))
    if not view.size:
        return
    for step in make_plan(selection.axes, _one_cell(array)).steps():
        array[step.inside] = view[(..., *step.outside)]


def _one_cell(array: Array) -> tuple[RegularAxis, ...]:
    return tuple(RegularAxis(extent, max(1, extent)) for extent in array.shape)
