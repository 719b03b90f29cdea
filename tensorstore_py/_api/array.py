"""`ts.array`: an array in memory as a TensorStore, without a copy.

The `array` driver is found by name like any other; what is special is only that the spec which it
gets holds the user's own memory, so nothing has to be awaited and no Future is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._index import identity
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._spec.binding import bind
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py._spec.registry import drivers

__all__ = ["array"]


def array(
    array: object, dtype: DTypeLike | None = None, context: Context | None = None
) -> TensorStore:
    """A TensorStore of an array in memory; writes go through to it.

    Args:
        array: a NumPy array, whose memory is shared if it needs no conversion, or anything that
            NumPy makes an array of.
        dtype: element type; by default what NumPy finds, and `json` for Python objects.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        The open array; read-only if the NumPy array is.

    Raises:
        SpecError: no data type corresponds to the NumPy data type.
        ValueError, TypeError, OverflowError: an element cannot be converted.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> memory = np.zeros((2, 3), dtype="uint8")
        >>> ts.array(memory)[1, 1:] = 7
        >>> memory
        array([[0, 0, 0],
               [0, 7, 7]], dtype=uint8)
    """
    data_type = None if dtype is None else DType(dtype)
    memory = _as_memory(array, data_type)
    if data_type is None:
        data_type = _type_of(memory)
    found = drivers.get("array").parse_frozen({"array": memory, "dtype": data_type})  # type: ignore[attr-defined]
    assert isinstance(found, DriverSpec)
    model = bind(found, as_context(context))
    driver = run_inline(model.open())
    return TensorStore(driver, identity(driver.domain), driver.readable, driver.writable)


def _type_of(memory: np.ndarray[tuple[int, ...], Any]) -> DType:
    if not memory.dtype.hasobject:
        return DType(memory.dtype)
    text = memory.size and all(isinstance(element, str) for element in memory.flat)
    return DType("ustring" if text else "json")


def _as_memory(array: object, data_type: DType | None) -> np.ndarray[tuple[int, ...], Any]:
    if data_type is not None:
        wanted = data_type.array_dtype
        if isinstance(array, np.ndarray):
            return array.astype(wanted, copy=False)
        return np.array(array, dtype=wanted)
    memory: np.ndarray[tuple[int, ...], Any] = np.asarray(array)
    native = memory.dtype.newbyteorder("=")
    if memory.dtype.kind == "U" and not isinstance(array, np.ndarray):
        # Python's strings have no length of their own
        return memory.astype(object)
    return memory if memory.dtype == native else memory.astype(native)
