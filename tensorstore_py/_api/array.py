"""Arrays that need no store: of memory (`ts.array`), and of functions (`ts.virtual_chunked`).

The specs are built here, because memory and functions have no JSON; all else is the drivers' and
the engine's. Nothing has to be awaited, so no Future is needed.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.open import open_now
from tensorstore_py._api.options import updated
from tensorstore_py._api.source import as_array, as_json_array
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.virtual import VirtualChunkedSpec
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._runtime.execution import run_now
from tensorstore_py._runtime.user_function import UserFunction
from tensorstore_py._spec.context import Context, bind
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py._spec.registry import drivers
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tensorstore_py._chunked.virtual import (
        VirtualChunkedReadParameters,
        VirtualChunkedWriteParameters,
    )
    from tensorstore_py._index import IndexDomain
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._runtime.future import FutureLike
    from tensorstore_py._spec.chunk_layout import ChunkLayout
    from tensorstore_py._spec.schema import Schema
    from tensorstore_py._spec.units import Unit

    Stamp = TimestampedStorageGeneration | None
    Chunk = NDArray[Any]
    ReadFunction = Callable[
        [IndexDomain, Chunk, VirtualChunkedReadParameters], "FutureLike[Stamp] | Stamp"
    ]
    WriteFunction = Callable[
        [IndexDomain, Chunk, VirtualChunkedWriteParameters], "FutureLike[Stamp] | Stamp"
    ]


__all__ = ["array", "in_memory_context", "virtual_chunked"]

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
    return TensorStore(driver, driver.whole, driver.readable, driver.writable)


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


def virtual_chunked(
    read_function: ReadFunction | None = None,
    write_function: WriteFunction | None = None,
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    rank: int | None = None,
    dtype: DTypeLike | None = None,
    domain: IndexDomain | None = None,
    shape: Sequence[int] | None = None,
    chunk_layout: ChunkLayout | None = None,
    dimension_units: Sequence[Unit | str | float | None] | None = None,
    schema: Schema | None = None,
    context: Context | None = None,
    transaction: None = None,
) -> TensorStore:
    """An array whose chunks are made, and taken, by functions.

    Args:
        read_function: called with the domain of a chunk, an array of its shape to be filled, and
            parameters. It may be a coroutine function or return a Future. What it returns may tell
            the chunk's generation, and when that was current; None says that it never changes.
        write_function: called with the domain of a chunk, an array that it must not change, and
            parameters; otherwise as above. Of a chunk that is written in part, all is handed over.
        loop: the event loop on which coroutines run; by default the running one, if any.
        rank: number of dimensions, if neither `shape` nor `domain` tells.
        dtype: element type.
        domain: bounds and labels; without limits by default.
        shape: extents, as another way to give the domain.
        chunk_layout: size and order of chunks, and where their grid begins; by default about a
            million elements, from the domain's origin.
        dimension_units: units of the dimensions.
        schema: all of these in one.
        context: whose `cache_pool` keeps chunks; a fresh default `Context` if not given.
        transaction: must be None: functions cannot take back what they did.

    Returns:
        The open array, for reading, writing, or both, as there are functions.

    Raises:
        SpecError: no function, no data type or no rank is given.
        MismatchError: constraints contradict each other.
        TypeError: a function that cannot be called.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> def read(domain, chunk, parameters):
        ...     rows, columns = np.indices(domain.shape)
        ...     chunk[...] = 10 * (domain.origin[0] + rows) + domain.origin[1] + columns
        >>> store = ts.virtual_chunked(read, dtype="int64", shape=[3, 4])
        >>> store[1:, 2:].read().result()
        array([[12, 13],
               [22, 23]])
    """
    if transaction is not None:
        raise UnsupportedError(
            "an array of functions cannot be used in a transaction; pass transaction=None"
        )
    if read_function is None and write_function is None:
        raise SpecError("give a read_function, a write_function, or both")
    for function in (read_function, write_function):
        if function is not None and not callable(function):
            raise TypeError(f"a function is expected, but found {function!r}")
    if loop is None:
        loop = asyncio._get_running_loop()
    model = VirtualChunkedSpec().replace(
        read_function=None if read_function is None else UserFunction(read_function, loop),
        write_function=None if write_function is None else UserFunction(write_function, loop),
    )
    constrained = updated(
        model,
        {
            "rank": rank,
            "dtype": dtype,
            "domain": domain,
            "shape": shape,
            "chunk_layout": chunk_layout,
            "dimension_units": dimension_units,
            "schema": schema,
        },
    )
    return open_now(bind(constrained.checked(), as_context(context)), None, None)
