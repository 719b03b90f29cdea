"""`TensorStore`: a view of an open array. A driver, a transform, and what may be done with it.

Indexing composes transforms and touches no data. Reads and writes hand the transform to the
driver and return Futures; nothing here knows formats, stores or threads.

`NumpyView`, which is `store.np`, is the same view as NumPy has arrays: positions begin at 0
whatever the domain is, indexing reads at once, assignment (`assign`) converts, writes and waits. It
holds nothing but the TensorStore. Bounds are those that were known when the view was made, so what
it says of its shape stays true.
"""

from __future__ import annotations

from functools import partial
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tensorstore_py._api.array_protocols import ArrayComputing
from tensorstore_py._api.begin import as_batch, as_transaction, begin
from tensorstore_py._api.blocks import chunk_edges
from tensorstore_py._api.blockwise import (
    check_convertible,
    copy_array,
    read_blockwise,
    write_blockwise,
)
from tensorstore_py._api.describe import array_html, array_info, token_of
from tensorstore_py._api.handle import Handle
from tensorstore_py._api.options import updated
from tensorstore_py._api.resize import Append, Grow, ahead_of, matched, resize_request
from tensorstore_py._api.source import as_elements, as_source, as_value, taken
from tensorstore_py._api.view import View, view
from tensorstore_py._display.public_name import public
from tensorstore_py._index import d, inf, propagate_bounds
from tensorstore_py._index.positions import numpy_index
from tensorstore_py._interface.adapter import AdapterSpec, Opened
from tensorstore_py._interface.driver import BufferOwnership, StorageStatistics
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import Copying, Future, OnInterrupt, WriteFutures
from tensorstore_py._runtime.handle import stands_for
from tensorstore_py._runtime.progress import ProgressLike, Reporter
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py._spec.context import with_own_memory
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py._spec.registry import drivers
from tensorstore_py.errors import (
    FailedPreconditionError,
    IndexingError,
    PermissionDeniedError,
    SpecError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from tensorstore_py._api.attributes import Attributes
    from tensorstore_py._api.options import Options
    from tensorstore_py._display.info import Info
    from tensorstore_py._index import IndexDomain, IndexTransform
    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.dtype import DTypeLike


__all__ = ["NumpyView", "TensorStore", "as_spec", "assign"]

# Any: NumPy's own functions, as typed, take no array of an element type that is not known.
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
T = TypeVar("T")


@stands_for
@public
class TensorStore(Handle, ArrayComputing):
    """A view of an open array, made by `ts.open`.

    Indexing gives further views and reads nothing:

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
        >>> store = ts.open(spec, create=True, dtype="int32", shape=[100, 200]).result()
        >>> view = store[10:20, 5]
        >>> view.domain
        { [10, 20) }
        >>> view.write([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).result()
        >>> view[12:14].read().result()
        array([3, 4], dtype=int32)
    """

    __slots__ = ()
    # Unlike other things that are indexed lazily, it can be iterated.
    __iter__ = ArrayComputing.__iter__  # type: ignore[assignment]
    StorageStatistics: TypeAlias = StorageStatistics

    @property
    def base(self) -> TensorStore | None:
        """The array underneath, for drivers over arrays; None for arrays in a store."""
        base = self._driver.base
        if base is None:
            return None
        return TensorStore(
            base,
            self._driver.base_view(self._transform),
            self._readable and base.readable,
            self._writable and base.writable,
            self._life,
        )

    @property
    def info(self) -> Info:
        """What it is, in a few lines, of what is known here: nothing is read."""
        return array_info(self)

    def view(self, *, port: int = 0, height: int = 600) -> View:
        """Show it in a browser: slices along any two dimensions, by tiles that are read on demand.

        Args:
            port: at which the page is served, on this machine alone; by default any that is free.
            height: of the frame in a notebook, in pixels.

        Returns:
            The page: in a notebook it shows itself; elsewhere open its `url`.

        Raises:
            UnsupportedError: aiohttp is not installed.
            UnavailableError: the port cannot be had.

        Example:
            >>> import tensorstore_py as ts
            >>> with ts.array([[1, 2], [3, 4]]).view() as page:
            ...     page.url.startswith("http://127.0.0.1:")
            True
        """
        self._life.check()
        return view(self, port=port, height=height)

    # Reading and writing.

    def read(
        self,
        *,
        order: str = "C",
        batch: Batch | None = None,
        progress: ProgressLike = None,
    ) -> Future[Array]:
        """Read this view's elements.

        Args:
            order: memory order of the result, `"C"` or `"F"`.
            batch: read together with whatever else is in it, when it is submitted.
            progress: called with a `Progress` at the beginning and whenever some more is read, on
                any thread, once at a time; must not wait for anything. What it raises fails the
                operation. True: draws a bar, with tqdm or rich if one is installed.

        Returns:
            A Future of a fresh array of this view's shape.

        Raises:
            PermissionDeniedError: not opened for reading.
            TypeError: `order` is neither `"C"` nor `"F"`.
            FailedPreconditionError: the batch was submitted already, or the transaction is over.
            OutOfRangeError: (by the Future) the view reaches outside the array as it is now.
            DataLossError: (by the Future) a chunk is corrupt; names its key.
            NotFoundError: (by the Future) a chunk is missing, and the spec says
                `"fill_missing_data_reads": false`; names its key.
        """
        if order not in ("C", "F"):
            raise TypeError(f"`order` must be specified as 'C' or 'F', not {order!r}")
        if not self._readable:
            raise PermissionDeniedError("not opened for reading; open it with read=True")
        self._life.check()
        driver, reporter = self._driver, Reporter.of(progress, "read")
        if batch is None and driver.transaction is None and reporter is None:  # as nearly always
            body = driver.prepare_read(self._transform, order)
            return start(driver.inline, body, on_interrupt=OnInterrupt.CONTINUE_UNTIL_EXIT)
        if batch is not None:
            driver = driver.with_batch(as_batch(batch))
        body = partial(driver.read, self._transform, order)
        if reporter is not None:
            body = partial(read_blockwise, driver, self._transform, order, reporter)
        return self._begin(body, batch=batch, reporter=reporter)

    def _begin(
        self,
        body: Callable[[], Coroutine[Any, Any, T]],
        *,
        inline: bool | None = None,
        changes: bool = False,
        batch: Batch | None = None,
        reporter: Reporter | None = None,
    ) -> Future[T]:
        driver = self._driver
        if inline is None:
            inline = driver.inline
        future = begin(
            inline, body, driver.transaction, changes=changes, batch=batch, life=self._life
        )
        return future if reporter is None else reporter.until(future)

    def write(
        self,
        source: object,
        *,
        batch: Batch | None = None,
        can_reference_source_data_indefinitely: bool | None = None,
        progress: ProgressLike = None,
    ) -> WriteFutures:
        """Write this view's elements.

        Args:
            source: an array, number or nested list that broadcasts to this view's shape, or
                another TensorStore, which is copied block by block.
            batch: read a TensorStore that is the source together with whatever else is in it.
            can_reference_source_data_indefinitely: the source never changes: it is not copied
                where else it would be, and a store in memory may keep it as it is.
            progress: called as for `read`, whenever some more is stored.

        Returns:
            WriteFutures: `copy` is done when the source may change, `commit` when all is stored.
            The first one is at once for sources of up to 64 KiB, which are copied. In a
            transaction, both are done when all is staged, so that its reads see it.

        Raises:
            PermissionDeniedError: not opened for writing, or the source not for reading.
            FailedPreconditionError: the batch was submitted already, or the transaction is over.
            SpecError: a batch, and a source that is no TensorStore.
            TypeError: the source's values might not survive conversion to this array's type.
            OverflowError: a number that this array's type cannot hold.
            ValueError: the source has too many dimensions.
            MismatchError: the source's shape does not broadcast; by the Future, like a type that
                might not survive, if it is a TensorStore.
            OutOfRangeError: (by the Future) the view reaches outside the array as it is now.
            DataLossError: (by the Future) a chunk that is changed in part is corrupt; names its
                key.
        """
        if batch is not None:
            as_batch(batch)
            if not isinstance(source, TensorStore):
                raise SpecError(
                    "batch can only be specified when copying from a TensorStore source; "
                    "leave it out"
                )
        if not self._writable:
            raise PermissionDeniedError("not opened for writing; open it with write=True")
        reporter = Reporter.of(progress, "write")
        if isinstance(source, TensorStore):
            _check_readable(source)
            driver = self._driver
            copying: Copying | None = Copying()
            commit = self._begin(
                partial(self._copy, source, self._transform, reporter or Reporter(None)),
                inline=driver.inline and source._driver.inline,
                changes=True,
                reporter=reporter,
            )
        else:
            driver = self._driver
            lasting = bool(can_reference_source_data_indefinitely)
            array = as_source(source, driver.data_type, self.shape)
            array, copying = taken(source, array, lasting=lasting)
            ownership = BufferOwnership(lasting, None if copying is None else copying.done)
            if driver.transaction is not None:
                # A read in the transaction that begins after `copy` must see this write.
                ownership, copying = BufferOwnership(lasting), Copying()
            commit = self._begin_write(array, ownership, reporter)
        if copying is None:
            return WriteFutures(Future(None), commit)
        return copying.until(commit)

    @uninterrupted
    def _begin_write(
        self, array: Array, ownership: BufferOwnership, reporter: Reporter | None
    ) -> Future[None]:
        self._life.check()
        driver = self._driver
        if reporter is None:
            # Other writes count on this one from here on, so nothing may keep it from beginning.
            body = driver.prepare_write(self._transform, array, ownership)
        else:
            body = partial(write_blockwise, driver, self._transform, array, reporter)
        return self._begin(body, changes=True, reporter=reporter)

    async def _copy(self, source: TensorStore, to: IndexTransform, reporter: Reporter) -> None:
        await copy_array(source._driver, source._transform, self._driver, to, reporter)

    def __setitem__(self, index: object, source: object) -> None:
        """Write to `self[index]` and wait until it is stored."""
        self._assign_index(index, "default", source)

    def _assign(self, transform: IndexTransform, source: object) -> None:
        self._with_transform(transform).write(source).result()

    # As NumPy sees arrays.

    @property
    def np(self) -> NumpyView:
        """This view as NumPy has arrays: from position 0 on, read at once, written by assignment.

        Raises:
            IndexingError: the view is unbounded.

        Example:
            >>> import tensorstore_py as ts
            >>> ts.array([1, 2, 3, 4])[1:].np[-1]
            np.int64(4)
        """
        return NumpyView(self)

    def copy(self) -> NumpyView:
        """This view as `np` has it, to be read only. Nothing is copied, and nothing read.

        Libraries ask for a copy when they keep what they were given (`dask.array.from_array`), and
        then count from 0. For a copy in memory call `numpy.array(store)`.
        """
        return NumpyView(
            TensorStore(self._driver, self._transform, self._readable, False, self._life)
        )

    def _elements(self) -> Array:
        return self.read().result()

    def _rows(self) -> Iterator[Array]:
        return self.np._rows()

    def _store(self, elements: Array) -> None:
        self.write(elements).result()

    def astype(self, dtype: DTypeLike) -> TensorStore:
        """This view with its elements converted to another data type, both ways.

        Args:
            dtype: the data type to read and write as.

        Raises:
            SpecError: no such data type, or no conversion to or from it.

        Example:
            >>> import tensorstore_py as ts
            >>> ts.array([1.5, 2.5]).astype("int32").read().result()
            array([1, 2], dtype=int32)
        """
        spec = drivers.get("cast").parse_frozen(  # type: ignore[attr-defined]
            {"base": self._driver.spec().replace(transform=None), "dtype": DType(dtype)}
        )
        assert isinstance(spec, AdapterSpec)
        driver = spec.over(self._driver)
        return TensorStore(
            driver,
            self._transform,
            self._readable and driver.readable,
            self._writable and driver.writable,
            self._life,
        )

    # Bounds.

    def resolve(
        self, fix_resizable_bounds: bool = False, batch: Batch | None = None
    ) -> Future[TensorStore]:
        """This view with its implicit bounds as they are stored now.

        Args:
            fix_resizable_bounds: make those bounds explicit, so that later resizes don't matter.
            batch: begun with whatever else is in it, when it is submitted.

        Raises:
            FailedPreconditionError: the batch was submitted already, or the transaction is over.
            NotFoundError: (by the Future) the array was deleted; names its metadata's key.
            FailedPreconditionError: (by the Future) it was replaced by one of another type or rank.
            OutOfRangeError: (by the Future) the view's explicit bounds lie outside it now.
        """
        if batch is not None:
            as_batch(batch)

        async def body() -> TensorStore:
            domain = await self._driver.resolve()
            return self._resolved(domain, fix_resizable_bounds)

        return self._begin(body, batch=batch)

    def resize(
        self,
        inclusive_min: Sequence[int | None] | None = None,
        exclusive_max: Sequence[int | None] | None = None,
        resize_metadata_only: bool = False,
        resize_tied_bounds: bool = False,
        expand_only: bool = False,
        shrink_only: bool = False,
    ) -> Future[TensorStore]:
        """Change the array's bounds; chunks that fall outside are deleted.

        Args:
            inclusive_min: new lower bounds; None leaves one as it is.
            exclusive_max: new upper bounds; None leaves one as it is.
            resize_metadata_only: leave chunks outside where they are.
            resize_tied_bounds: allow bounds to change that this view does not show in full.
            expand_only: fail if a dimension would shrink.
            shrink_only: fail if a dimension would grow.

        Returns:
            A Future of this view with the new bounds.

        Raises:
            PermissionDeniedError: not opened for writing.
            ValueError: a list of bounds has the wrong length.
            FailedPreconditionError: a bound can't be changed through this view, or (by the Future)
                against `expand_only`, `shrink_only` or assumed metadata; names the dimension.
            OutOfRangeError: a lower bound above the upper, or (by the Future) a negative extent.
            UnsupportedError: (by the Future) a bound that the format cannot change.
            NotFoundError: (by the Future) the array was deleted.
        """
        if not self._writable:
            raise PermissionDeniedError("not opened for writing; open it with write=True")
        request = resize_request(
            self._transform,
            self._driver.domain,
            inclusive_min,
            exclusive_max,
            tied=resize_tied_bounds,
        )._replace(
            metadata_only=resize_metadata_only, expand_only=expand_only, shrink_only=shrink_only
        )

        async def body() -> TensorStore:
            await self._driver.resize(request)
            return self._resolved(self._driver.domain)

        return self._begin(body, changes=True)

    def append(
        self, data: object, axis: int | str = 0, *, grow: Grow = "before"
    ) -> Future[TensorStore]:
        """Grow one dimension by what `data` holds, and write it there.

        Any number of threads, processes and machines may append at once, where the store has
        conditional writes: each one's data gets positions of its own, in one piece, in the order in
        which they grew the array. The array grows first and is written then. So if a writer dies or
        fails in between, its positions stay and read as the fill value where nothing was written
        yet, or as what chunks hold that an earlier resize has cut; `resize` takes them away if no
        other append followed. In a transaction both are stored together or not at all, and not if
        others changed the size meanwhile.

        Args:
            data: an array or nested list with this view's number of dimensions, extents equal to
                this view's in all of them but `axis`; or another TensorStore, which is copied
                block by block, its dimensions matched by label if both have the same labels.
            axis: the dimension that grows, by index or label.
            grow: `"after"` writes first, outside of the bounds, and grows when all is stored: no
                reader and no crash ever sees rows of fill values. That is for a single appender;
                if others change the size meanwhile it is an error, and their data is kept. What a
                crash leaves outside of the bounds, the next append writes over.

        Returns:
            A Future of this view with the new positions, done when all is stored. It may show
            what others appended before, and does not show what they append later.

        Raises:
            PermissionDeniedError: not opened for writing, or the source not for reading.
            IndexingError: no such dimension.
            TypeError, OverflowError: the data does not fit this array's type, as by `write`.
            MismatchError: another number of dimensions, an array whose type might not survive, or
                (by the Future) a wrong extent; the array has not grown.
            FailedPreconditionError: the bound can't be changed through this view, as by `resize`,
                or (by the Future) the metadata is assumed.
            UnsupportedError: (by the Future) the driver cannot resize, or (at once) cannot write
                ahead of its bounds.
            AbortedError: (by the Future) with `grow="after"`: another writer changed the size
                meanwhile.

        Example:
            >>> import tensorstore_py as ts
            >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
            >>> store = ts.open(spec, create=True, dtype="int32", shape=[0, 2]).result()
            >>> store = store.append([[1, 2], [3, 4]]).result()
            >>> store.append([[5, 6]]).result().read().result().tolist()
            [[1, 2], [3, 4], [5, 6]]
        """
        if not self._writable:
            raise PermissionDeniedError("not opened for writing; open it with write=True")
        driver, view = self._driver, self._transform
        ahead = ahead_of(driver, grow)
        if ahead is not None:
            driver = driver.with_transaction(ahead)
        if isinstance(data, TensorStore):
            _check_readable(data)
            check_convertible(data._driver, driver)
            # Explicit bounds: the source may be this very array, which grows.
            source = data._resolved(data._driver.domain, fixed=True)
            source = source._with_transform(matched(source._transform, view))
            steps = Append(driver, view, axis, source.shape, ahead)
            inline = driver.inline and source._driver.inline

            async def write(slab: IndexTransform) -> None:
                await copy_array(source._driver, source._transform, driver, slab, Reporter(None))
        else:
            array = as_elements(data, driver.data_type, self.rank)
            steps = Append(driver, view, axis, array.shape, ahead)
            inline = driver.inline

            async def write(slab: IndexTransform) -> None:
                await driver.write(slab, array)

        async def body() -> TensorStore:
            await steps.run(write)
            return self._resolved(driver.domain)

        return self._begin(body, inline=inline, changes=True)

    def storage_statistics(
        self, *, query_not_stored: bool = False, query_fully_stored: bool = False
    ) -> Future[TensorStore.StorageStatistics]:
        """Whether nothing, or everything, of this view is stored; chunks are not read for it.

        Args:
            query_not_stored: ask for `not_stored`; else it is None.
            query_fully_stored: ask for `fully_stored`; else it is None.

        Raises:
            UnsupportedError: (by the Future) the driver knows nothing of the kind.
            OutOfRangeError: (by the Future) the view reaches outside the array as it is now.
            DataLossError: (by the Future) the index of a shard is corrupt; names its key.
        """
        return self._begin(
            partial(
                self._driver.storage_statistics,
                self._transform,
                not_stored=query_not_stored,
                fully_stored=query_fully_stored,
            )
        )

    def _resolved(self, domain: IndexDomain, fixed: bool = False) -> Self:
        """This view with its implicit bounds as they are in `domain`; explicit ones if fixed."""
        if fixed:
            bounds = domain.mark_bounds_implicit[False]
            return self._with_transform(propagate_bounds(bounds, self._transform))
        return self._with_transform(propagate_bounds(domain, self._transform))

    def with_transaction(self, transaction: Transaction | None) -> TensorStore:
        """This view, seen through a transaction: it reads what was written in it.

        Args:
            transaction: where writes go; None: straight to the store.

        Raises:
            FailedPreconditionError: the transaction is not open.
            UnsupportedError: the driver knows no transactions, such as one in memory.
            TypeError: it is no Transaction.

        Example:
            >>> import tensorstore_py as ts
            >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
            >>> store = ts.open(spec, create=True, dtype="int32", shape=[4]).result()
            >>> transaction = ts.Transaction()
            >>> store.with_transaction(transaction)[:2] = 5
            >>> store.read().result().tolist()
            [0, 0, 0, 0]
            >>> transaction.commit_sync()
            >>> store.read().result().tolist()
            [5, 5, 0, 0]
        """
        driver = self._driver.with_transaction(as_transaction(transaction))
        return TensorStore(driver, self._transform, self._readable, self._writable, self._life)

    def __dask_tokenize__(self) -> tuple[str, str]:
        # What stays the same as long as the same array is meant, in any process.
        return "tensorstore_py.TensorStore", token_of(self)

    def _repr_html_(self) -> str:
        return array_html(self, "TensorStore")

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, object]) -> TensorStore:
        # The same array in the same store, but whatever a cache pool holds is the copy's own.
        bound = self._bound_spec()
        apart = with_own_memory(bound)
        if apart is bound or self._driver.transaction is not None:
            return self
        asked: Options = {"open": True, "assume_cached_metadata": True}
        return _reopen(updated(apart, asked), self._readable, self._writable)

    def __reduce__(self) -> tuple[object, tuple[DriverSpec, bool, bool]]:
        if self._driver.transaction is not None:
            raise FailedPreconditionError(
                "an array seen through a transaction can't be pickled, since the transaction stays "
                "in this process; commit it, or pickle store.with_transaction(None)"
            )
        # The other process takes the metadata that is known here, as this handle would.
        asked: Options = {"open": True, "assume_cached_metadata": True}
        return _reopen, (updated(self._bound_spec(), asked), self._readable, self._writable)


def _check_readable(source: TensorStore) -> None:
    source._life.check()
    if not source._readable:
        raise PermissionDeniedError("the source is not opened for reading; open it with read=True")


def as_spec(store: TensorStore) -> Opened:
    """An open array as a layer or a base for a driver over others.

    Raises FailedPreconditionError: it was closed.
    """
    store._life.check()
    return Opened(
        handle=store._driver,
        transform=store._transform,
        readable=store._readable,
        writable=store._writable,
    )


def _reopen(model: DriverSpec, readable: bool, writable: bool) -> TensorStore:
    driver = start(model.inline, model.open).result()
    assert model.transform is not None
    return TensorStore(driver, model.transform, readable, writable)._resolved(driver.domain)


# Any: an array of elements of whichever type, or a single one.
Elements: TypeAlias = Any
Shape = tuple[int, ...]

#: What an iteration reads at once: chunks until they are worth a read, and no more than that,
#: however large they are.
_LEAST_BYTES: Final = 2**22
_MOST_BYTES: Final = 2**26

#: NumPy's methods that give something new. `copy` is none of them: a library that asks for one to
#: keep it (dask) should not read everything.
# fmt: off
_METHODS: Final = frozenset((
    "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress", "conj",
    "conjugate", "cumprod", "cumsum", "diagonal", "dot", "flatten", "item", "nonzero", "prod",
    "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "swapaxes", "take",
    "tobytes", "tofile", "tolist", "trace", "var",
))
# fmt: on


@public
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
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements; `object` for text and byte strings of any length."""
        return self.ts.dtype.array_dtype

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
        options.setdefault("copy", False)  # what was read is a copy already
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


def assign(target: TensorStore, value: object) -> None:
    """Write to all of an array, and wait until it is stored.

    The value is what `as_value` takes, if it broadcasts; or another TensorStore, whose elements are
    copied block by block, whatever their positions and labels are.

    Raises:
        ValueError, TypeError, OverflowError: it cannot be converted, or does not broadcast.
        PermissionDeniedError: the target is not opened for writing.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> memory = np.zeros(3, dtype="int32")
        >>> assign(ts.array(memory)[1:], 2.5)
        >>> memory
        array([0, 2, 2], dtype=int32)
    """
    if isinstance(value, TensorStore):
        source = value
        if source.dtype != target.dtype:
            source = source.astype(target.dtype)
        _from_zero(target).write(_from_zero(source)).result()
        return
    found = as_value(value, target.dtype)
    if isinstance(found, np.ndarray) and not found.dtype.hasobject:
        while found.ndim > target.rank and found.shape[0] == 1:
            found = found[0]
    target.write(found).result()


def _from_zero(store: TensorStore) -> TensorStore:
    """Without labels, and from position 0 on."""
    return store[d[:].label[("",) * store.rank].translate_to[0]] if store.rank else store
