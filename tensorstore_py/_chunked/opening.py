"""Opening a chunked array: read its metadata, or create it, or assume it.

Creation is one conditional write of the metadata document, so of any number of processes that
create the same array one succeeds and the others find it. Nothing else is written.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._chunked.cache import needed_since
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._chunked.metadata import MetadataFile
from tensorstore_py._chunked.metadata_cache import MetadataState
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py.errors import AlreadyExistsError, MismatchError, NotFoundError

if TYPE_CHECKING:
    from tensorstore_py._chunked.spec import ChunkedSpec
    from tensorstore_py._interface.kvstore import ReadResult
    from tensorstore_py._interface.transaction import Transaction

__all__ = ["open_chunked"]

M = TypeVar("M")


async def open_chunked(
    spec: ChunkedSpec[M],
    transaction: Transaction | None = None,
    document: ReadResult | None = None,
) -> ChunkedDriver[M]:
    """The open array for a bound spec, as its open mode says.

    Args:
        spec: what is asked for.
        transaction: in which it is opened, and created.
        document: its metadata document, if it was read already.

    Raises:
        NotFoundError: nothing is there and `create` is off.
        AlreadyExistsError: something is there and `open` is off.
        MismatchError: what is there contradicts the spec.
        DataLossError, UnsupportedError: its metadata document is corrupt, or asks for what is not
            here; names its key.
        SpecError: flags of the open mode exclude each other, or the array can't be created from
            what the spec says.
    """
    mode = spec.check_open_mode()
    store_spec = spec.store_spec()
    store = store_spec.open()
    if mode.assume_metadata or mode.assume_cached_metadata:
        file = MetadataFile(spec, store, store_spec.path)
        metadata = spec.new_metadata()
        state = MetadataState(metadata, spec.layout(metadata), UNKNOWN, time.time())
        return ChunkedDriver(spec, file, state, assumed=mode.assume_metadata).within(transaction)
    file = MetadataFile(spec, store, store_spec.path, spec.metadata_pool)
    if transaction is not None:
        file = file.within(transaction)
        store = file.store
    since = needed_since(spec.recheck_cached_metadata, time.time())
    if mode.delete_existing:
        await store.delete_range(KeyRange.prefix(store_spec.path))
        file.learn(file.known, None)
    found: MetadataState[M] | None = None
    if document is not None:
        # Of a tree there may be thousands, none of which waits for anything else.
        found = await offload(store.inline, partial(file.take, document))
    elif mode.open:
        found = await file.current(since)
    if found is None and mode.create:
        found = await _create(spec, file, may_exist=mode.open)
    elif found is not None:
        _check(spec, file, found)
    if found is None:
        raise NotFoundError(
            f'Error opening "{spec.driver}" driver: metadata at {file.describe()} does not exist; '
            "to create the array pass create=True (with dtype and shape, or metadata)"
        )
    return ChunkedDriver(spec, file, found, transaction=transaction)


async def _create(
    spec: ChunkedSpec[M], file: MetadataFile[M], *, may_exist: bool
) -> MetadataState[M]:
    metadata = spec.new_metadata()
    before = file.known
    created = await file.write(metadata, if_equal=NO_VALUE)
    if created is not None:
        file.learn(before, created)
        return created
    found = await file.current(time.time()) if may_exist else None
    if found is None:
        raise AlreadyExistsError(
            f'Error creating "{spec.driver}" array: metadata at {file.describe()} already exists; '
            "pass open=True to open it if it exists, or delete_existing=True to replace it"
        )
    _check(spec, file, found)
    return found


def _check(spec: ChunkedSpec[M], file: MetadataFile[M], found: MetadataState[M]) -> None:
    """Compare what is stored with what was asked.

    Raises:
        MismatchError: names the key, the member, what is stored and what was asked.
    """
    try:
        spec.check_metadata(found.metadata)
    except MismatchError as error:
        raise MismatchError(
            f'Error opening "{spec.driver}" driver: metadata at {file.describe()} does not match '
            f"the spec: {error}"
        ) from error
