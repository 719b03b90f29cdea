"""`ts.array`: an array in memory as a TensorStore, without a copy.

The `array` driver is found by name like any other; what is special is only that the spec which it
gets holds the user's own memory, so nothing has to be awaited and no Future is needed.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tensorstore_py._api.json_source import as_json_array
from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._api.source import as_array
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._index import identity
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._runtime.start import run_now
from tensorstore_py._spec.binding import bind
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py._spec.registry import drivers

__all__ = ["array", "in_memory_context"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def array(
    array: object,
    dtype: DTypeLike | None = None,
    *,
    context: Context | None = None,
    copy: bool | None = None,
    write: bool | None = None,
) -> TensorStore:
    """A TensorStore of an array in memory; writes go through to it.

    Args:
        array: a NumPy array, whose memory is shared if it needs no conversion, or anything that
            NumPy makes an array of. JSON elements are always copied.
        dtype: element type; by default what NumPy finds, and `json` for Python objects.
        context: shared resources; those of all arrays in memory by default.
        copy: True never shares memory, False always does; by default it is shared if it can be.
        write: True copies an array that is read-only, False makes a read-only store of any; by
            default the store can be written if the array can.

    Returns:
        The open array.

    Raises:
        SpecError: no data type corresponds to the NumPy data type.
        ValueError: memory can't be shared as `copy=False` asks.
        TypeError: an array whose values might not survive the conversion to `dtype`, or an element
            that has no JSON form.
        OverflowError: a number that `dtype` cannot hold.

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
        if data_type.name == "json":
            memory = as_json_array(memory)
    # JSON elements are converted, not only the array
    shared = data_type.name != "json" and (memory is array or memory.base is not None)
    if not shared and copy is False:
        raise _cannot_share(data_type, array)
    if shared and copy:
        memory = memory.copy("K")
    if write and not memory.flags.writeable:
        if copy is False:
            raise _cannot_share(data_type, array)
        memory = memory.copy("K")
    if write is False:
        memory = memory.view()
        memory.flags.writeable = False
    found = drivers.get("array").parse_frozen({"array": memory, "dtype": data_type})  # type: ignore[attr-defined]
    assert isinstance(found, DriverSpec)
    model = bind(found, in_memory_context() if context is None else as_context(context))
    driver = run_now(model.open)
    return TensorStore(driver, identity(driver.domain), driver.readable, driver.writable)


@cache
def in_memory_context() -> Context:
    """The context of everything in memory that is given none, so that it is one thing's."""
    return Context()


def _type_of(memory: Array) -> DType:
    if not memory.dtype.hasobject:
        return DType(memory.dtype)
    text = memory.size and all(isinstance(element, str) for element in memory.flat)
    return DType("ustring" if text else "json")


def _as_memory(array: object, data_type: DType | None) -> Array:
    if data_type is not None:
        return as_json_array(array) if data_type.name == "json" else as_array(array, data_type)
    memory: Array = np.asarray(array)
    native = memory.dtype.newbyteorder("=")
    if memory.dtype.kind == "U" and not isinstance(array, np.ndarray):
        # Python's strings have no length of their own
        return memory.astype(object)
    return memory if memory.dtype == native else memory.astype(native)


def _cannot_share(data_type: DType, array: object) -> ValueError:
    return ValueError(
        f"Unable to avoid copy while creating an array of {data_type.name} from "
        f"{type(array).__name__!r}; drop copy=False"
    )
