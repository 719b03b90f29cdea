"""`ts.virtual_chunked`: an array whose chunks are made by functions.

The spec is built here because functions have no JSON; all else is the engine's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._api.open import open_now
from tensorstore_py._api.options import updated
from tensorstore_py._chunked.virtual import VirtualChunkedSpec
from tensorstore_py._runtime.user_function import UserFunction
from tensorstore_py._spec.binding import bind
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._chunked.virtual import (
        VirtualChunkedReadParameters,
        VirtualChunkedWriteParameters,
    )
    from tensorstore_py._index import IndexDomain
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._runtime.future import FutureLike
    from tensorstore_py._spec.chunk_layout import ChunkLayout
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.dtype import DTypeLike
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

__all__ = ["virtual_chunked"]


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
