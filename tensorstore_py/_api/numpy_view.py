"""`NumpyView`: an open array seen the NumPy way, as `store.np` gives it.

Positions begin at 0 whatever the domain is, indexing reads at once, assignment writes and waits.
What is read, written and refused is the TensorStore's; nothing is kept here but the handle. Bounds
are those that were known when the view was made, so what it says of its shape stays true.
"""

from __future__ import annotations

from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tensorstore_py._api.array_protocols import ArrayComputing
from tensorstore_py._api.assignment import assign
from tensorstore_py._api.blocks import chunk_edges
from tensorstore_py._index import d, inf
from tensorstore_py._index.positions import numpy_index
from tensorstore_py.errors import IndexingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._api.attributes import Attributes
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["NumpyView"]

# Any: whichever type the elements are of, or a single one.
Array = np.ndarray[Any, np.dtype[Any]]
Elements: TypeAlias = Any
Shape = tuple[int, ...]

#: What is read at once when somebody iterates: chunks until they are worth a read, and no more
#: than that, however large they are.
_LEAST_BYTES: Final = 2**22
_MOST_BYTES: Final = 2**26

#: NumPy's methods that give something new. `copy` is none of them: whoever asks for one in order to
#: keep it (dask) should not read everything.
# fmt: off
_METHODS: Final = frozenset((
    "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress", "conj",
    "conjugate", "cumprod", "cumsum", "diagonal", "dot", "flatten", "item", "nonzero", "prod",
    "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "swapaxes", "take",
    "tobytes", "tofile", "tolist", "trace", "var",
))
# fmt: on


class NumpyView(ArrayComputing, NDArrayOperatorsMixin):
    """An open array as NumPy sees arrays: made by `store.np`.

    Positions count from 0, or from the end if they are negative; slices reach as far as there is
    something; arrays of integers and Booleans, `...` and `None` mean what they mean in NumPy. What
    is indexed is read, or written by assignment, which converts like NumPy's. Operators and NumPy's
    functions read everything and give arrays in memory.

    Args:
        store: an open array, or a view of one.

    Attributes:
        ts: the `TensorStore`, from position 0 on, with explicit bounds: everything lazy and
            asynchronous.

    Raises:
        IndexingError: the view is unbounded.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> store = ts.array(np.arange(12).reshape(3, 4))[1:, 1:]
        >>> store.origin
        (1, 1)
        >>> store.np[0, -2:]
        array([6, 7])
        >>> store.np[:, 0] = [50, 90]
        >>> store.np[:99, [0, 2]]
        array([[50,  7],
               [90, 11]])
        >>> store.np
        <NumpyView shape=(2, 3) dtype=int64>
    """

    __slots__ = ("ts",)

    def __init__(self, store: TensorStore) -> None:
        domain = store.domain
        if -inf in domain.inclusive_min or inf in domain.exclusive_max:
            raise IndexingError(
                f"NumPy has no arrays without bounds, but the domain is {domain}; choose a part of "
                "it first"
            )
        self.ts = store[d[:].mark_bounds_implicit[False].translate_to[0]] if store.rank else store

    # What it is.

    @property
    def shape(self) -> Shape:
        """Number of positions along each dimension."""
        return self.ts.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.ts.rank

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.ts.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements; `object` for text and byte strings of any length."""
        return self.ts.dtype.array_dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int | Shape, ...] | None:
        """The shape of what is read at once; None if the array has no chunks.

        Along a dimension where chunks differ, or the view begins inside one, each of their extents
        in a tuple, as dask has them.
        """
        return self._grid("read_chunk")

    @property
    def shards(self) -> tuple[int | Shape, ...] | None:
        """Like `chunks` what is stored under one key, if that is more than a chunk; else None."""
        layout = self.ts.chunk_layout
        if layout.write_chunk.shape == layout.read_chunk.shape:
            return None
        return self._grid("write_chunk")

    @property
    def attrs(self) -> Attributes:
        """The array's attributes; UnsupportedError if its format has none."""
        return self.ts.attrs

    # Reading and writing.

    def __getitem__(self, item: Any) -> Elements:  # noqa: ANN401 - as NumPy's
        """The elements of a selection, as an array; one element by itself.

        Args:
            item: integers, slices, an ellipsis, `None`, arrays of integers or Booleans; or one or
                several names of fields.

        Raises:
            IndexError: it is none of that, or lies outside.
        """
        if self._names_fields(item):
            return self._elements()[item]
        found = self.ts[numpy_index(item, self.shape)].read().result()
        if found.ndim or _has_ellipsis(item):
            return found
        return found[()]

    def __setitem__(self, item: Any, value: object) -> None:  # noqa: ANN401 - as NumPy's
        """Write to a selection, and wait until it is stored.

        Args:
            item: as for reading, but without names.
            value: what broadcasts to what is selected, converted as by `astype`; or another view or
                `TensorStore`, which is copied block by block.

        Raises:
            IndexError: as for reading.
            PermissionDeniedError: not opened for writing.
        """
        if self._names_fields(item):
            raise IndexingError(
                f"{item!r} selects a field, which can't be written by itself here; open the array "
                "with field= in its spec, or assign whole records"
            )
        target = self.ts[numpy_index(item, self.shape)]
        assign(target, value.ts if isinstance(value, NumpyView) else value)

    def _names_fields(self, item: object) -> bool:
        if self.dtype.names is None:
            return False
        names = item if isinstance(item, list) and item else [item]
        return all(isinstance(name, str) for name in names)

    def astype(self, dtype: Any, *rest: Any, **options: Any) -> Array:  # noqa: ANN401 - as NumPy's
        """All elements, in memory, converted to another type; arguments as of NumPy's method."""
        options.setdefault("copy", False)  # what is read is nobody else's
        return self._elements().astype(dtype, *rest, **options)

    def transpose(self, *axes: Any) -> NumpyView:
        """This view with its dimensions in another order; reads nothing.

        Args:
            *axes: the order, one by one or as a sequence; reversed by default.
        """
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return NumpyView(self.ts.transpose(order))

    @property
    def T(self) -> NumpyView:  # noqa: N802 - NumPy's name
        """This view with its dimensions reversed; reads nothing."""
        return NumpyView(self.ts.T)

    # How the protocols read and write.

    def _numpy_dtype(self) -> np.dtype[Any]:
        return self.dtype

    def _elements(self) -> Array:
        return self.ts.read().result()

    def _store(self, elements: Array) -> None:
        self[...] = elements

    def _rows(self) -> Iterator[Array]:
        row = max(1, prod(self.shape[1:]) * self.itemsize)
        longest = max(1, _MOST_BYTES // row)
        low = 0
        for high in self._row_ends():
            if (high - low) * row < _LEAST_BYTES and high < self.shape[0]:
                continue
            while low < high:
                stop = min(high, low + longest)
                yield self.ts[low:stop].read().result()
                low = stop

    def _row_ends(self) -> Iterator[int]:
        extent, chunks = self.shape[0], self.chunks
        first = extent if chunks is None else chunks[0]
        if isinstance(first, tuple):
            yield from np.cumsum(first).tolist()
            return
        yield from range(first, extent, max(1, first))
        yield extent

    def _grid(self, kind: str) -> tuple[int | Shape, ...] | None:
        layout = self.ts.chunk_layout
        sizes: Sequence[int | None] = getattr(layout, kind).shape or (None,) * self.ndim
        origins = layout.grid_origin or (None,) * self.ndim
        driver, view = self.ts._driver, self.ts._transform
        edges: list[Sequence[int] | None] | None = None
        found: list[int | Shape] = []
        chunked = False
        for dim, (extent, size, origin) in enumerate(zip(self.shape, sizes, origins, strict=True)):
            if size and (origin or 0) % size == 0:
                found.append(size)
                chunked = True
                continue
            if edges is None:
                edges = chunk_edges(driver, view, getattr(driver.schema.chunk_layout, kind).shape)
            cuts = edges[dim]
            chunked = chunked or cuts is not None
            found.append(_as_extents(extent, cuts or ()))
        return tuple(found) if chunked else None

    def __reduce__(self) -> tuple[type[NumpyView], tuple[TensorStore]]:
        return NumpyView, (self.ts,)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - one of NumPy's methods
        """NumPy's methods that compute something, on elements that are read when it is called."""
        if name not in _METHODS:
            raise AttributeError(
                f"a NumpyView has no attribute {name!r}; if an array in memory has, read it first: "
                "view[...]"
            )

        def method(*arguments: Any, **options: Any) -> Elements:
            return getattr(self._elements(), name)(*arguments, **options)

        return method

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_METHODS]

    def __dask_tokenize__(self) -> tuple[str, object]:
        return "tensorstore_py.NumpyView", self.ts.__dask_tokenize__()

    def __repr__(self) -> str:
        return f"<NumpyView shape={self.shape} dtype={self.dtype}>"


def _has_ellipsis(item: object) -> bool:
    terms = item if isinstance(item, tuple) else (item,)
    return any(isinstance(term, EllipsisType) for term in terms)


def _as_extents(extent: int, edges: Sequence[int]) -> int | Shape:
    """How far it is from edge to edge; one number if that says it."""
    ends = sorted({extent, *(edge for edge in edges if 0 < edge < extent)})
    found = [high - low for low, high in zip([0, *ends], ends, strict=False)]
    if len(set(found[:-1])) <= 1 and found[-1] <= found[0]:
        return max(1, found[0])
    return tuple(found)
