"""dask arrays of stored arrays, and stored arrays of dask arrays.

`da.from_array(store)` and `da.store(x, store, lock=False)` of dask itself work, too. These two know
more of what is stored: which chunks go together, what to do with text, and how to make an array.
What travels to other threads and processes is a spec; elements are read and written where they are
worked on.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

import tensorstore_py as ts

try:
    import dask
    import dask.array as da
    from dask.delayed import delayed
    from dask.utils import parse_bytes
except ImportError as error:
    raise ImportError(
        'this takes the library dask: pip install "tensorstore-py[dask]"', name=error.name
    ) from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dask.delayed import Delayed

__all__ = ["from_dask", "to_dask"]

Extents = tuple[int, ...]
#: As dask takes them, and dimensions by their labels.
Chunks: TypeAlias = (
    "str | int | Sequence[int | str | Extents] | Mapping[int | str, int | str | Extents] | None"
)


def to_dask(
    source: object,
    chunks: Chunks = "auto",
    *,
    name: str | bool | None = None,
    inline_array: bool = False,
) -> da.Array:
    """A dask array of a stored array, of which nothing is read yet.

    Args:
        source: an open array or a view of one, of any origin, its `np`, a `ts.zarr.Array`, or what
            `ts.open` takes.
        chunks: `"auto"`: as many stored chunks together as dask's option `array.chunk-size` allows,
            whole shards unless they are larger than that; None: one for each chunk, or shard; else
            what dask takes, or a mapping by labels of dimensions.
        name: of the dask array. By default it says which elements are meant, and is the same in
            all processes, but says nothing of what they are: where results are kept under a name
            (`persist` with `distributed`), say False after others have changed the array.
        inline_array: put the handle into each task, instead of into one that all others need.

    Raises:
        SpecError, NotFoundError: as by `ts.open`.
        ValueError: chunks that do not add up, or a label that there is not.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> x = to_dask(ts.array(np.arange(12).reshape(3, 4))[1:], chunks=(1, 2))
        >>> x.sum(axis=0).compute()
        array([12, 14, 16, 18])
    """
    store = _opened(source)
    view = (ts.open(source).result() if store is None else store).np
    cut = _normalized(_by_dimension(chunks, view), view)
    return da.from_array(view, cut, name=name, inline_array=inline_array)


@overload
def from_dask(
    x: da.Array,
    target: object,
    *,
    compute: Literal[True] = ...,
    align: bool = ...,
    **options: Any,
) -> ts.TensorStore: ...


@overload
def from_dask(
    x: da.Array,
    target: object,
    *,
    compute: Literal[False],
    align: bool = ...,
    **options: Any,
) -> Delayed: ...


def from_dask(
    x: da.Array,
    target: object,
    *,
    compute: bool = True,
    align: bool = True,
    **options: Any,
) -> ts.TensorStore | Delayed:
    """Store a dask array.

    Chunks of the two need not agree: a stored chunk that several tasks write to is changed on
    condition that no other writer did meanwhile, so none of it is lost, without a lock.

    Args:
        x: the elements.
        target: an open array or a view of one, of any origin, its `np`, a `ts.zarr.Array`, or what
            `ts.open` takes, with options.
        compute: False: nothing is computed before the result is.
        align: move borders of dask's chunks to those of stored chunks (or shards) where that takes
            no more memory, so that each is written once; False: take them as they are.
        **options: of `ts.open`. With `create=True`, the shape, the type and the chunks that are not
            said are those of the dask array.

    Returns:
        The open array, when all is stored; with `compute=False` a `Delayed` of it.

    Raises:
        MismatchError: another shape, or one that dask does not know.
        TypeError: elements that might not survive the conversion.
        SpecError, NotFoundError, AlreadyExistsError: as by `ts.open`.

    Example:
        >>> import dask.array as da
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
        >>> store = from_dask(da.arange(10, chunks=4), spec, create=True)
        >>> store.chunk_layout.write_chunk.shape, store[7:].read().result()
        ((4,), array([7, 8, 9]))
    """
    if any(isinstance(extent, float) for extent in x.shape):
        raise ts.MismatchError(
            f"dask does not know the shape {x.shape} before it computes; call "
            "x.compute_chunk_sizes() first"
        )
    store = _opened(target)
    if store is None:
        if options.get("create"):
            options = {**_form(x), **options}
        store = ts.open(target, **options).result()
    elif options:
        raise TypeError(f"options of ts.open for an array that is open: {sorted(options)}")
    view = store.np
    _check(x, view)
    if align:
        x = _aligned(x, view)
    stored = da.store(x, view, lock=False, compute=compute)
    if compute:
        return store
    return delayed(_first, pure=False)(store, stored.to_delayed().ravel().tolist())


def _first(store: ts.TensorStore, *stored: object) -> ts.TensorStore:
    return store


def _opened(source: object) -> ts.TensorStore | None:
    """What is open already, as a TensorStore."""
    if isinstance(source, ts.NumpyView | ts.zarr.Array):
        return source.ts
    return source if isinstance(source, ts.TensorStore) else None


def _by_dimension(chunks: Any, view: ts.NumpyView) -> Any:  # noqa: ANN401 - what dask takes
    """Chunks by labels as chunks by position."""
    if not isinstance(chunks, dict):
        return chunks
    labels = view.ts.domain.labels
    found = {}
    for key, extents in chunks.items():
        if isinstance(key, str) and key not in labels:
            raise ValueError(f"there is no dimension {key!r}; there are {list(labels)}")
        found[labels.index(key) if isinstance(key, str) else key] = extents
    return found


def _stored(view: ts.NumpyView) -> tuple[int | Extents, ...] | None:
    """The chunks that are stored under one key each; None: there are none."""
    return view.shards or view.chunks


def _normalized(chunks: Any, view: ts.NumpyView) -> tuple[Extents, ...]:  # noqa: ANN401
    stored = _stored(view)
    if chunks is None:
        chunks = stored or view.shape
    elif isinstance(chunks, str) and chunks == "auto":
        # Of objects dask cannot tell how large they are.
        limit = 0 if view.dtype.hasobject else parse_bytes(dask.config.get("array.chunk-size"))
        if _bytes(stored, view) > limit:
            stored = view.chunks
        if _bytes(stored, view) > limit:
            chunks = stored or view.shape
    found: tuple[Extents, ...] = da.core.normalize_chunks(
        chunks, view.shape, dtype=view.dtype, previous_chunks=stored
    )
    return found


def _bytes(chunks: tuple[int | Extents, ...] | None, view: ts.NumpyView) -> int:
    """How large the largest chunk is in memory; 0 if there are none."""
    if chunks is None:
        return int(view.dtype.hasobject)
    return view.itemsize * prod(each if isinstance(each, int) else max(each) for each in chunks)


def _form(x: da.Array) -> dict[str, object]:
    """What an array for a dask array is like, where nothing else is said."""
    chunks = tuple(max(1, int(extent)) for extent in x.chunksize)
    return {
        "dtype": x.dtype,
        "shape": x.shape,
        "chunk_layout": ts.ChunkLayout(write_chunk_shape_soft_constraint=chunks),
    }


def _check(x: da.Array, view: ts.NumpyView) -> None:
    if x.shape != view.shape:
        raise ts.MismatchError(
            f"cannot store a dask array of shape {x.shape} in an array of shape {view.shape}"
        )
    if not np.can_cast(x.dtype, view.dtype, "safe"):
        raise TypeError(
            f"cannot store {x.dtype} elements in an array of {view.dtype} without loss; convert "
            f"them first: x.astype({view.dtype.name!r})"
        )


def _aligned(x: da.Array, view: ts.NumpyView) -> da.Array:
    """The dask array with borders where those of stored chunks are, where its chunks are larger."""
    stored = _stored(view)
    if stored is None:
        return x
    grid = da.core.normalize_chunks(stored, view.shape)
    return x.rechunk(tuple(map(_moved, x.chunks, grid)))


def _moved(chunks: Extents, grid: Extents) -> Extents:
    """The extents with each border moved back to the last one of the grid, if that is a way."""
    borders = set(accumulate(grid))
    ends = list(accumulate(chunks))
    if borders.issuperset(ends) or max(grid) > max(chunks):
        return chunks
    last, found = 0, []
    low = 0
    for border in sorted(borders):
        if border - low > max(chunks) and last > low:
            found.append(last - low)
            low = last
        last = border
    found.append(last - low)
    return tuple(found)
