"""`ts.zarr.Array`: a Zarr array with zarr-python's face, over a `TensorStore`, which is its `ts`.

Calls wait and give NumPy arrays. Nothing is kept but the handle and what its metadata say: what is
read, written and resized is the TensorStore's. Positions begin at 0, as in every Zarr array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorstore_py._api.describe import array_html
from tensorstore_py._api.open import open as open_spec
from tensorstore_py._api.source import as_value
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.zarr.described import Described
from tensorstore_py.zarr.element import as_element
from tensorstore_py.zarr.form import Form, form_of, whole_elements
from tensorstore_py.zarr.request import arguments_of, as_shape, request_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py.zarr.request import ArrayArguments
    from tensorstore_py.zarr.store import Store

__all__ = ["Array"]

# Any: whichever type the elements are of.
Elements = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


class Array(Described):
    """A Zarr array as zarr-python has it: synchronous, and indexed as NumPy arrays are.

    Made by `ts.zarr.open`, `create` and the like, or of a `TensorStore`:

    Args:
        ts: an open array of driver `zarr` or `zarr3`.
        store: that it is in; by default that of the TensorStore.
        path: of the array in the store.
        read_only: refuse changes.
        cache_metadata: if False, the shape is asked for before each use, in case others resize it.
        is_view: another reading of an array's bytes, which cannot be resized.

    Attributes:
        ts: the `TensorStore`: everything asynchronous, lazy views, transactions.
        path: of the array in its store; `""` if it is all of it.
        read_only: whether changes are refused.
        is_view: whether it is another reading of an array's bytes.

    Raises:
        UnsupportedError: it is no Zarr array, or one with chunks of different sizes.
        TypeError: it is no TensorStore.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.zeros((4, 6), chunks=(2, 3), dtype="i4")
        >>> z[1, -2:] = [7, 8]
        >>> z[:2, 3:99]
        array([[0, 0, 0],
               [0, 7, 8]], dtype=int32)
        >>> z
        <Array memory:// shape=(4, 6) dtype=int32>
    """

    __slots__ = ("_cached", "_form", "_fresh", "_store", "_ts", "is_view", "path", "read_only")
    # So that `numpy_array == array` asks this class first.
    __array_priority__ = 10

    def __init__(
        self,
        ts: TensorStore,
        *,
        store: Store | None = None,
        path: str = "",
        read_only: bool = False,
        cache_metadata: bool = True,
        is_view: bool = False,
    ) -> None:
        if not isinstance(ts, TensorStore):
            raise TypeError(
                f"an Array is made of a TensorStore, not of {type(ts).__name__}; to open what is "
                "in a store call ts.zarr.open_array(store, path=…)"
            )
        self._ts = whole_elements(ts)
        self._form: Form = form_of(self._ts)
        self._store = store
        self._cached = cache_metadata
        self.path = path
        self.read_only = read_only or not ts.writable
        self.is_view = is_view

    # What it is.

    @property
    def ts(self) -> TensorStore:
        """The `TensorStore`, with the bounds that are known here."""
        if not self._cached:
            self._ts = self._ts.resolve().result()
        return self._ts

    @property
    def store(self) -> Store:
        """The store that the array is in."""
        return self.own_store if self._store is None else self._store

    @property
    def form(self) -> Form:
        """How the array is laid out."""
        return self._form

    # As a sequence, and as an array of NumPy's.

    def _numpy_dtype(self) -> np.dtype[Any]:
        return self.dtype

    def _elements(self) -> Elements:
        return np.asarray(self[...])

    def _rows(self) -> Iterator[Elements]:
        return self._slabs(0, len(self))

    def __dask_tokenize__(self) -> tuple[str, object]:
        return "tensorstore_py.zarr.Array", self.ts.__dask_tokenize__()

    def _slabs(self, low: int, high: int) -> Iterator[Elements]:
        """A part of the first dimension, one row of chunks in memory at a time."""
        size = self._form.grid[0]
        while low < high:
            stop = min(high, (low // size + 1) * size)
            yield self[low:stop]
            low = stop

    def islice(self, start: int | None = None, end: int | None = None) -> Iterator[Any]:
        """Iterate over a part of the first dimension.

        Args:
            start: the first position; negative ones count from the end.
            end: the first position behind it.

        Example:
            >>> import tensorstore_py as ts
            >>> list(map(int, ts.zarr.array([1, 2, 3, 4], chunks=3).islice(1, -1)))
            [2, 3]
        """
        low, high, _ = slice(start, end).indices(len(self))
        return (row for slab in self._slabs(low, high) for row in slab)

    def astype(self, dtype: object) -> Array:
        """This array, read as another type.

        Args:
            dtype: whatever NumPy takes.

        Example:
            >>> import tensorstore_py as ts
            >>> ts.zarr.array([1, 2], dtype="i4").astype("f8")[:]
            array([1., 2.])
        """
        seen = self.ts.astype(as_element(dtype).engine_type)
        return Array(seen, store=self._store, path=self.path, read_only=True, is_view=True)

    # Changing it.

    def resize(self, *shape: object) -> None:
        """Change the shape; chunks that fall outside are deleted.

        Args:
            *shape: the extents, one by one or as a sequence.

        Raises:
            PermissionError: it is a view.
            ReadOnlyError: it is read only.
            ValueError: another number of dimensions.
        """
        self._check_own()
        extents = as_shape(shape[0] if len(shape) == 1 else shape)
        if len(extents) != self.ndim:
            raise ValueError(f"the array has {self.ndim} dimensions, but shape {extents} has not")
        self._ts = self.ts.resize(exclusive_max=extents).result()

    def append(self, data: object, axis: int = 0) -> Shape:
        """Grow one dimension by what the data has, and write it there.

        Any number of threads and processes may append at once.

        Args:
            data: an array, or another Array, which is copied chunk by chunk.
            axis: the dimension that grows.

        Returns:
            The new shape.

        Raises:
            PermissionError: it is a view.
            ValueError: the data does not fit.
        """
        self._check_own()
        if isinstance(data, Array):
            data = data.ts
        if not isinstance(data, TensorStore):
            data = as_value(np.asarray(data) if isinstance(data, list) else data, self._ts.dtype)
        self._ts = self.ts.append(data, axis).result()
        return self.shape

    def _check_own(self) -> None:
        if self.is_view:
            raise PermissionError("not permitted for views")
        self.check_writable()

    def view(
        self,
        shape: object = None,
        chunks: object = None,
        dtype: object = None,
        fill_value: object = None,
        filters: object = None,
        read_only: bool | None = None,
        synchronizer: object = None,
    ) -> Array:
        """The same stored bytes, read as if the metadata were different.

        Args:
            shape: another one.
            chunks: of another shape.
            dtype: another one, for elements of another meaning.
            fill_value: another one.
            filters: other ones; `[]` for none.
            read_only: refuse changes.
            synchronizer: accepted, and not needed.

        Example:
            >>> import numpy as np
            >>> import tensorstore_py as ts
            >>> seconds = ts.zarr.array(np.array([0, 90, 3600]), chunks=2)
            >>> seconds.view(dtype="timedelta64[s]")[1:]
            array([  90, 3600], dtype='timedelta64[s]')
            >>> seconds.view(dtype="i4", shape=6, chunks=4)[:4]
            array([ 0,  0, 90,  0], dtype=int32)
        """
        changes = {
            "dtype": dtype, "chunks": chunks, "filters": filters, "fill_value": fill_value
        }  # fmt: skip
        seen = _reinterpreted(self._ts, self._form, shape, changes)
        return Array(
            seen,
            store=self._store,
            path=self.path,
            read_only=self.read_only if read_only is None else read_only,
            is_view=True,
        )

    def with_transaction(self, transaction: Transaction | None) -> Array:
        """This array, seen through a transaction: it reads what was written in it.

        Args:
            transaction: where writes go; None: straight to the store.

        Example:
            >>> import tensorstore_py as ts
            >>> z = ts.zarr.zeros(4, dtype="i4")
            >>> with ts.Transaction() as transaction:
            ...     z.with_transaction(transaction)[:2] = 5
            ...     print(z[:])
            [0 0 0 0]
            >>> z[:]
            array([5, 5, 0, 0], dtype=int32)
        """
        seen = self._ts.with_transaction(transaction)
        return _again(seen, self._store, self.path, self.read_only, self._cached, self.is_view)

    # As a value.

    def __eq__(self, other: object) -> bool:
        """Whether it is the same stored array, seen alike; its elements are not compared."""
        if not isinstance(other, Array):
            return NotImplemented
        return (
            self.own_store == other.own_store
            and self.metadata == other.metadata
            and self.read_only == other.read_only
        )

    __hash__ = None  # type: ignore[assignment]  # what it equals changes

    def __reduce__(self) -> tuple[Callable[..., Array], tuple[object, ...]]:
        return _again, (
            self._ts, self._store, self.path, self.read_only, self._cached, self.is_view
        )  # fmt: skip

    def _repr_html_(self) -> str:
        mode = "read" if self.read_only else "read, write"
        return array_html(
            self.ts, "zarr.Array", [("Mode", mode), ("Zarr format", self.zarr_format)]
        )

    def __repr__(self) -> str:
        return f"<Array {self.own_store.url} shape={self._ts.shape} dtype={self.dtype}>"


def _again(
    ts: TensorStore,
    store: Store | None,
    path: str,
    read_only: bool,
    cache_metadata: bool,
    is_view: bool,
) -> Array:
    return Array(
        ts,
        store=store,
        path=path,
        read_only=read_only,
        cache_metadata=cache_metadata,
        is_view=is_view,
    )


def _reinterpreted(
    store: TensorStore, form: Form, shape: object, changes: Mapping[str, object]
) -> TensorStore:
    """An array over the same stored bytes, opened with metadata that are assumed, not stored.

    Whether the bytes make sense so is the caller's affair. Raises as `create`.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    fill = None if store.fill_value is None else store.fill_value[()]
    arguments = {**arguments_of(form, fill), **given}
    if "dtype" in given and "fill_value" not in given:
        arguments["fill_value"] = _converted(fill, given["dtype"])
    if "dtype" in given and form.serializer is not None:
        arguments["serializer"] = "auto"
    request = request_for(
        store.shape if shape is None else shape, cast("ArrayArguments", arguments)
    )
    return open_spec(
        request.members,
        kvstore=store.kvstore,
        open=True,
        assume_metadata=True,
        read=True,
        write=store.writable or None,
        transaction=store.transaction,
        **request.options,
    ).result()


def _converted(fill_value: object, dtype: object) -> object:
    """A fill value in another type; None if it has none there."""
    try:
        return np.array(fill_value).astype(dtype)[()]  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return None
