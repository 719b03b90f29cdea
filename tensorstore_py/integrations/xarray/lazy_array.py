"""`LazyArray`: an open array as xarray indexes it, read when its values are wanted.

xarray's three kinds of indexers become views of the array, so only the chunks that are wanted are
read. What was asked for ahead of time (`fetch`) is taken from there.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import tensorstore_py as ts

__all__ = ["PARKS", "LazyArray", "indexed"]

#: A position, a range or several positions along one dimension.
_Term: TypeAlias = "int | slice | np.ndarray[Any, Any]"
_Ranges: TypeAlias = tuple[range, ...]


#: Whether a coroutine that reads is run by hand, outside of any event loop (see `Begun`).
PARKS: ContextVar[bool] = ContextVar("PARKS", default=False)


class _Parked:
    """Waits for a read without an event loop: it gives way once, and then waits for the result."""

    def __init__(self, begun: ts.Future[Any]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[None, None, Any]:
        yield
        return self._begun.result()


class LazyArray(BackendArray):
    """An open array.

    It pickles with the array, so that another process opens it without reading metadata again.

    Args:
        store: the array.
        strings: the NumPy type that its elements have for xarray, if that is another one:
            `StringDType` for text of any length, `S` for bytes that are a further dimension of the
            array.

    Example:
        >>> import tensorstore_py as ts
        >>> from xarray.core.indexing import BasicIndexer
        >>> array = LazyArray(ts.array([[1, 2], [3, 4]]))
        >>> array.shape, array[BasicIndexer((slice(None, None, -1), 0))]
        ((2, 2), array([3, 1]))
    """

    __slots__ = ("_ahead", "_spread", "dtype", "shape", "store", "strings")

    def __init__(self, store: ts.TensorStore, strings: np.dtype[Any] | None = None) -> None:
        self.store = store
        self.strings = strings
        self._ahead: dict[_Ranges, ts.Future[Any]] = {}
        self._spread = strings is not None and strings.kind == "S"
        self.dtype = store.dtype.numpy_dtype if strings is None else strings
        self.shape = store.shape[:-1] if self._spread else store.shape

    def __reduce__(self) -> tuple[object, ...]:
        return LazyArray, (self.store, self.strings)

    # What is read before it is asked for.

    def fetch(self) -> None:
        """Begin to read all of it; the next read of all takes it, other reads take parts of it."""
        self._begin_ahead(self._all())

    def fetch_ends(self) -> None:
        """Begin to read the first and the last element, by which xarray judges times."""
        for place in (0, -1):
            self._begin_ahead(tuple(range(size)[place:][:1] for size in self.shape))

    def _begin_ahead(self, ranges: _Ranges) -> None:
        if all(len(each) for each in ranges):
            view = self.store[tuple(slice(each.start, each.stop) for each in ranges)]
            self._ahead[ranges] = view.read()

    def _all(self) -> _Ranges:
        return tuple(range(size) for size in self.shape)

    # As xarray asks.

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:  # noqa: ANN401 - as xarray's
        """The values at an indexer of xarray's."""
        begun, done = self._begin(key)
        return done(begun.result())

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:  # noqa: ANN401 - as above
        """The same, while others run on the event loop."""
        begun, done = self._begin(key)
        return done(await (_Parked(begun) if PARKS.get() else begun))

    def _begin(self, key: indexing.ExplicitIndexer) -> tuple[ts.Future[Any], Callable[[Any], Any]]:
        """What is read for an indexer, and what makes of it what xarray wants."""
        ranges = self._ranges(key)
        begun = None if ranges is None else self._ahead.pop(ranges, None)
        if begun is not None:
            kept = [isinstance(term, slice) for term in key.tuple]
            shape = [len(each) for each, keep in zip(ranges or (), kept, strict=True) if keep]
            return begun, lambda found: self._values(found).reshape(shape)
        whole = self._ahead.get(self._all())
        if whole is not None:
            return whole, lambda found: indexed(self._values(found), key)
        return self._view(key).read(), self._values

    def _ranges(self, key: indexing.ExplicitIndexer) -> _Ranges | None:
        """The box that an indexer says; None: it says none."""
        if not isinstance(key, indexing.BasicIndexer) or not self._ahead:
            return None
        ranges = []
        for term, size in zip(key.tuple, self.shape, strict=True):
            found = range(size)[term]
            ranges.append(found if isinstance(found, range) else range(found, found + 1))
        return tuple(ranges)

    def _view(self, key: indexing.ExplicitIndexer) -> ts.TensorStore:
        asked = tuple(_term(term, size) for term, size in zip(key.tuple, self.shape, strict=True))
        if isinstance(key, indexing.VectorizedIndexer):
            return self.store.vindex[asked]
        if isinstance(key, indexing.OuterIndexer):
            return self.store.oindex[asked]
        return self.store[asked]

    def _values(self, found: Any) -> Any:  # noqa: ANN401 - as above
        """What was read, in the type that xarray is told."""
        if self.dtype.kind == "T":
            return np.asarray(found).astype(self.dtype)
        if self._spread:
            return np.ascontiguousarray(found).view(self.dtype)[..., 0]
        return np.asarray(found)

    # Writing, where nothing is between a variable and its array (see `open_zarr`).

    def __setitem__(self, key: indexing.ExplicitIndexer, value: object) -> None:
        found = np.asarray(value, self.dtype)  # as NumPy assigns
        if self.dtype.kind == "T":
            found = found.astype(object)
        elif self._spread:
            found = np.ascontiguousarray(found)[..., np.newaxis].view("S1")
        self._view(key).write(found).result()

    @property
    def oindex(self) -> LazyArray:
        """Itself: an indexer says of which kind it is."""
        return self

    vindex = oindex


def indexed(values: Any, key: indexing.ExplicitIndexer) -> Any:  # noqa: ANN401 - as above
    """What an indexer of xarray's takes from values in memory."""
    indexable = indexing.as_indexable(values)  # type: ignore[no-untyped-call]
    return indexing.apply_indexer(indexable, key)


def _term(term: _Term, size: int) -> _Term:
    """A term in the library's meaning: no position counts from the end, no range goes beyond it."""
    if isinstance(term, slice):
        found = range(size)[term]
        if not found:
            return slice(0, 0)
        return slice(found.start, found.stop, found.step)
    if isinstance(term, np.ndarray):
        return np.where(term < 0, term + size, term)
    return int(term) + size if term < 0 else int(term)
