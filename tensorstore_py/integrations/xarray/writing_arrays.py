"""Values of variables on their way into arrays, in memory at once or block by block.

An array is written before its metadata document is stored: `ArrayTarget` knows what that will say.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import xarray as xr
from xarray.backends.common import ArrayWriter

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_documents import Form, Json, Place

__all__ = ["ArrayTarget", "Blocks", "UnderWay", "aligned", "open_assumed"]

#: What dask, or another library of chunked arrays, gives back for what is to be done later.
Delayed: TypeAlias = Any
Values: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

#: How many bytes of values that were loaded for it wait to be stored.
_WAITING_BYTES: Final = 2**28


def open_assumed(
    place: Place, form: Form, path: str, metadata: Json, *, write_empty: bool = False
) -> ts.TensorStore:
    """An array as if its metadata document were stored; nothing is asked for.

    Args:
        place: where the outermost group is.
        form: the version of the format.
        path: of the array.
        metadata: the document; its attributes and names of dimensions do not matter.
        write_empty: store chunks that hold nothing but the fill value, too.

    Raises:
        UnsupportedError, SpecError: the array has something that cannot be written here.
    """
    aside = ("attributes", "dimension_names")  # arrays of one kind are one document then
    wanted = {key: value for key, value in metadata.items() if key not in aside}
    spec: dict[str, Json] = {"driver": form.driver, "metadata": wanted}
    if write_empty:
        spec["store_data_equal_to_fill_value"] = True
    return ts.open(
        spec,
        kvstore=place.kvstore / f"{path}/",
        open=True,
        assume_metadata=True,
        context=place.context,
        transaction=place.transaction,
    ).result()


class ArrayTarget:
    """An array that blocks are written to, by NumPy's slices; it travels as a spec."""

    __slots__ = ("_opened", "_parts", "_rank", "_store", "dtype", "shape")

    def __init__(self, store: ts.TensorStore, rank: int) -> None:
        self._opened, self._rank = store, rank
        self._store = store
        self.dtype = np.dtype(store.dtype.numpy_dtype)
        self.shape: tuple[int, ...] = tuple(store.shape)[:rank]
        self._parts = store.rank > rank
        if self.dtype.kind in "SV" and not self.dtype.itemsize:
            self.dtype = np.dtype((self.dtype.type, 1))
        if self._parts:  # byte strings of one length, whose bytes are in one more dimension
            self.dtype = np.dtype((self.dtype.type, store.shape[-1]))

    def write(self, region: tuple[slice, ...], values: Values) -> ts.WriteFutures:
        """Write a block."""
        if self.dtype.hasobject and self.dtype.names is None:
            values = values.astype(object, copy=False)
        elif values.dtype != self.dtype:
            values = values.astype(self.dtype)
        if self._parts:
            single = np.dtype((self.dtype.type, 1))
            values = np.ascontiguousarray(values).reshape((*values.shape, 1)).view(single)
        return self._store[region].write(values) if region else self._store.write(values)

    def __setitem__(self, region: object, values: object) -> None:
        parts = region if isinstance(region, tuple) else (region,)
        self.write(parts, np.asarray(values)).result()

    def __reduce__(self) -> tuple[Callable[..., ArrayTarget], tuple[ts.TensorStore, int]]:
        return ArrayTarget, (self._opened, self._rank)

    def __dask_tokenize__(self) -> object:
        return uuid.uuid4().hex  # what is written now is not what was written before


class UnderWay:
    """Writes that were begun, of which so many at a time wait in memory."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[ArrayTarget, ts.WriteFutures, int]] = deque()
        self._bytes = 0

    def add(self, target: ArrayTarget, region: tuple[slice, ...], variable: xr.Variable) -> None:
        """Begin to write the values of a variable, which are loaded if they are not in memory."""
        while self._waiting and self._bytes > _WAITING_BYTES:
            self._wait()
        values = variable.to_numpy()
        self._waiting.append((target, target.write(region, values), values.nbytes))
        self._bytes += values.nbytes

    def wait(self, target: ArrayTarget) -> None:
        """Wait for what was begun, up to all that goes to a target.

        Raises:
            TensorStoreError: a write failed.
        """
        while any(each is target for each, _, _ in self._waiting):
            self._wait()

    def _wait(self) -> None:
        _, future, size = self._waiting.popleft()
        self._bytes -= size
        future.result()

    def drop(self) -> None:
        """Wait for all of them, whatever comes of it."""
        while self._waiting:
            try:
                self._wait()
            except Exception:  # noqa: BLE001, S112 - another error is on its way to the user
                continue


class Blocks:
    """Variables in blocks, of dask or another library, which are written where that computes."""

    def __init__(self) -> None:
        self._writer = ArrayWriter(lock=False)  # type: ignore[no-untyped-call]
        self.any = False

    def add(self, target: ArrayTarget, region: tuple[slice, ...], variable: xr.Variable) -> None:
        """Have a variable written."""
        self.any = True
        self._writer.add(variable.data, target, region)  # type: ignore[no-untyped-call]

    def write(self, *, compute: bool, options: Mapping[str, Any] | None) -> Delayed:
        """Write all of them, or say how.

        Args:
            compute: now; else what is given back does it.
            options: of the library's `store`.
        """
        return self._writer.sync(  # type: ignore[no-untyped-call]
            compute=compute, chunkmanager_store_kwargs=None if options is None else {**options}
        )


def aligned(
    variable: xr.Variable, cells: tuple[int, ...], region: tuple[slice, ...]
) -> xr.Variable:
    """A variable in blocks that end where cells of the array do, each cell in one block."""
    if variable.chunks is None:
        return variable
    chunks = {}
    for dim, sizes, cell, part in zip(variable.dims, variable.chunks, cells, region, strict=True):
        size, first = sum(sizes), -(part.start or 0) % cell
        step = max(1, max(sizes, default=1) // cell) * cell
        ends = sorted({*range(first, size, step), size} - {0})
        chunks[dim] = tuple(int(each) for each in np.diff([0, *ends])) or (0,)
    return variable.chunk(chunks)
