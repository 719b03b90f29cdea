"""`open`: a spec in any of its forms becomes a TensorStore, in a Future.

Forms and keywords are turned into one bound driver spec here, at once, so that what is wrong with
them is raised where the call is; everything that may wait is the driver's, in the Future.

Only an `open` that failed looks what else is at the place: another format, a group. Whatever the
store answers to that, the error of the `open` remains.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Unpack

from tensorstore_py._api.begin import as_batch, as_context, as_transaction, begin
from tensorstore_py._api.options import Options
from tensorstore_py._api.prepared import prepared
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.spec import ChunkedSpec
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py._interface.adapter import AdapterSpec
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._runtime.execution import Paced, run_now
from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.interpreter_lock import GrainEstimate
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.arguments import spelled_out
from tensorstore_py.errors import NotFoundError, PermissionDeniedError, SpecError, TensorStoreError

if TYPE_CHECKING:
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.context import Context


__all__ = ["found_instead", "open", "open_now", "opened"]


@spelled_out(Options)
def open(  # TensorStore's name
    spec: object,
    *,
    read: bool | None = None,
    write: bool | None = None,
    context: Context | None = None,
    transaction: Transaction | None = None,
    batch: Batch | None = None,
    **options: Unpack[Options],
) -> Future[TensorStore]:
    """Open or create an array.

    Args:
        spec: a JSON spec (a dict), JSON text, a `Spec`, a URL (`file:///data/a/|zarr3:`), or a
            local path as `os.PathLike`: a `.json` file is a spec file, a directory is opened as
            the array that it holds, and so is an open store: a `KvStore`, or a store object of
            zarr-python, icechunk, obstore or fsspec.
        read: open for reading. By default both, if the driver can.
        write: open for writing. By default both, if the driver can.
        context: shared resources; a fresh default `Context` if not given.
        transaction: in which the array is opened, created and written.
        batch: begun with whatever else is in it, when it is submitted.
        **options: open mode (`open`, `create`, `delete_existing`, `assume_metadata`,
            `assume_cached_metadata`, or `open_mode`), caching (`recheck_cached`,
            `recheck_cached_metadata`, `recheck_cached_data`), and constraints (`rank`, `dtype`,
            `domain`, `shape`, `chunk_layout`, `codec`, `fill_value`, `dimension_units`,
            `schema`, `kvstore`).

    Returns:
        A Future of the TensorStore: `.result()` in a script, `await` in any event loop.

    Raises:
        SpecError: (at once) the spec is wrong; names the JSON path and the nearest valid name.
        NotFoundError: (by the Future) nothing is there and `create` is off.
        AlreadyExistsError: (by the Future) something is there and `open` is off.
        MismatchError: (at once) keywords contradict the spec; (by the Future) what is there does.
        TypeError: (at once) a keyword that does not exist, or a context that is none.
        FailedPreconditionError: (at once) the transaction is not open, or the batch was submitted.
        UnsupportedError: (by the Future) the array needs a codec or a data type that is not here,
            or knows no transactions.
        DataLossError: (by the Future) the metadata document is corrupt; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
        >>> store = ts.open(spec, create=True, dtype="uint16", shape=[4, 6]).result()
        >>> store[1, 2:4] = 7
        >>> store[1].read().result()
        array([0, 0, 7, 7, 0, 0], dtype=uint16)
    """
    if batch is not None:
        as_batch(batch)
    within = as_transaction(transaction)
    found = prepared(spec, **options)
    shared = as_context(context)
    model = found.bound(shared)
    if context is None:
        life = Lifetime("TensorStore", shared.life.close)
    else:
        life = Lifetime("TensorStore")
        context.life.include(life)
    readable, writable = _access(read, write)
    if not writable and model.open_mode().create:
        raise SpecError('"create" needs write access: pass write=True, or leave out read and write')

    body = _Opening(model, within, (read, write), (readable, writable), life)
    return begin(model.inline, body, within, changes=True, batch=batch)


class _Opening(Paced[TensorStore]):
    """One `open`; thousands of them may wait to be begun."""

    __slots__ = ("_able", "_asked", "_life", "_model", "_transaction")

    def __init__(
        self,
        model: DriverSpec,
        transaction: Transaction | None,
        asked: tuple[bool | None, bool | None],
        able: tuple[bool, bool],
        life: Lifetime,
    ) -> None:
        super().__init__(_pace(type(model), model.open_mode().create, model.inline))
        self._model = model
        self._transaction = transaction
        self._asked = asked
        self._able = able
        self._life = life

    async def work(self) -> TensorStore:
        model, within = self._model, self._transaction
        try:
            driver = await (model.open() if within is None else model.open_within(within))
        except NotFoundError as error:
            raise await found_instead(model, error) from None
        _check_access(driver, *self._asked)
        return opened(driver, model, *self._able, self._life)


@cache
def _pace(*_: object) -> GrainEstimate:
    """How long it takes to open arrays of a kind: a class of specs, whether they create, a mode."""
    return GrainEstimate()


def open_now(
    model: DriverSpec,
    read: bool | None,
    write: bool | None,
    transaction: Transaction | None = None,
) -> TensorStore:
    """Open an array over open arrays, which takes no waiting; `read` and `write` as for `open`."""
    readable, writable = _access(read, write)
    driver = run_now(lambda: model.open_within(transaction))
    _check_access(driver, read, write)
    return opened(driver, model, readable, writable)


def _access(read: bool | None, write: bool | None) -> tuple[bool, bool]:
    """What is asked for explicitly, or both if nothing is."""
    if read or write:
        return bool(read), bool(write)
    return True, True


def _check_access(driver: Driver, read: bool | None, write: bool | None) -> None:
    """Refuse what is asked for by name and can't be had.

    Raises PermissionDeniedError: names what the driver cannot do.
    """
    for asked, able, what in ((read, driver.readable, "read"), (write, driver.writable, "written")):
        if asked and not able:
            raise PermissionDeniedError(f"this array of {driver.data_type.name} cannot be {what}")


def opened(
    driver: Driver,
    model: DriverSpec,
    readable: bool,
    writable: bool,
    life: Lifetime | None = None,
) -> TensorStore:
    """The handle of an array that was opened from a bound spec."""
    view = model.view_transform
    transform = _whole(driver, model) if view is None else view
    store = TensorStore(
        driver, transform, readable and driver.readable, writable and driver.writable, life
    )
    # Implicit bounds are those of today, and what lies outside explicit ones is an error now.
    return store if view is None else store._resolved(driver.domain)


def _whole(driver: Driver, model: DriverSpec) -> IndexTransform:
    """The view of everything; the spec may name dimensions that the stored array leaves unnamed."""
    whole = driver.whole
    asked = None if model.schema_ is None else model.schema_.domain
    if asked is None or not any(asked.labels):
        return whole
    stored = driver.domain.labels
    return whole.label[tuple(a or b for a, b in zip(stored, asked.labels, strict=True))]


async def found_instead(model: DriverSpec, error: NotFoundError) -> NotFoundError:
    """The error of an `open`, with what is there instead, if there is something."""
    while isinstance(model, AdapterSpec):
        model = model.base
    if not isinstance(model, ChunkedSpec) and model.driver != "auto":
        return error
    where = getattr(model, "kvstore", None)
    if not isinstance(where, KvStoreSpec):
        return error
    if where.path[-1:] not in ("", "/"):
        where = where.replace(path=f"{where.path}/")
    store = where.open()
    for key, what in _documents(model.driver):
        try:
            result = await store.read(where.path + key)
        except (TensorStoreError, OSError):
            return error
        if result.state == "value":
            problem = str(error).partition("; to create")[0]
            return NotFoundError(f"{problem}, but {key} is there: {what}")
    return error


def _documents(driver: str) -> list[tuple[str, str]]:
    """The keys of other formats below an array's path, and what to do where one is there."""
    found = []
    for cls in DriverSpec.detectable():
        if cls.driver != driver:
            found += [
                (key, f'name the driver "{cls.driver}", or "auto"') for key in cls.detected_by
            ]
    arrays = {key for key, _ in found}
    for form in formats():
        key = form.group_key
        if key not in arrays and key != form.array_key:
            found.append((key, "it is a group; open it with ts.Group.open"))
    return found
