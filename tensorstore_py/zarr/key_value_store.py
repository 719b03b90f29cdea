"""`KeyValueStore`: a store of this package by the names of `zarr.abc.store.Store`.

Importing this imports zarr-python. Each method is one operation of the `ts.KvStore`, awaited
in whichever event loop calls, which is zarr-python's own as a rule. The operations themselves run
where the store's always do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.buffer import default_buffer_prototype

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._interface import kvstore as promise
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py._spec.held import json_of_object, kvstore_object
from tensorstore_py.errors import OutOfRangeError, UnsupportedError
from tensorstore_py.zarr.errors import ReadOnlyError
from tensorstore_py.zarr.storage import store_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
    from typing import Any

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.future import Future
    from tensorstore_py.zarr.storage import StoreLike


__all__ = ["InlineKeyValueStore", "KeyValueStore", "key_value_store"]

T = TypeVar("T")


class KeyValueStore(Store):
    """A store of this package for zarr-python 3, made by `ts.zarr.as_store`.

    Args:
        store: as for `as_store`.
        read_only: as for `as_store`.
        transaction: as for `as_store`.

    Attributes:
        kvstore: the `ts.KvStore`.
    """

    def __init__(
        self,
        store: StoreLike,
        *,
        read_only: bool | None = None,
        transaction: Transaction | None = None,
    ) -> None:
        self._store = store_of(store)
        self.kvstore = self._store.kvstore
        if transaction is not None:
            self.kvstore = self.kvstore.with_transaction(transaction)
        self._writable = _is_writable(self.kvstore)
        self._listable = _is_listable(self.kvstore)
        if read_only is None:
            read_only = self._store.read_only or not self._writable
        super().__init__(read_only=read_only)

    def with_read_only(self, read_only: bool = False) -> KeyValueStore:
        """The same store, for reading only or not."""
        return type(self)(self._store, read_only=read_only, transaction=self.kvstore.transaction)

    # What it can.

    @property
    def supports_writes(self) -> bool:
        """Whether the store can be changed at all."""
        return self._writable

    @property
    def supports_deletes(self) -> bool:
        """Whether keys can be deleted."""
        return self._writable

    @property
    def supports_listing(self) -> bool:
        """Whether its keys can be listed."""
        return self._listable

    # Reading.

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """A value or a part of it; None if there is none. One request.

        Raises:
            TypeError: the range is no byte request of zarr-python.
        """
        value = await self._read(key, byte_range)
        return None if value is None else prototype.buffer.from_bytes(value)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Several values or parts of them, at the same time."""
        asked = [self.get(key, prototype, byte_range) for key, byte_range in key_ranges]
        return await asyncio.gather(*asked)

    async def exists(self, key: str) -> bool:
        """Whether there is a value."""
        result = await self.kvstore.read(key, byte_range=slice(0, 0))
        return result.state == "value"

    async def getsize(self, key: str) -> int:
        """How many bytes a value has; it is not read if the store lists sizes.

        Raises:
            FileNotFoundError: there is none.
        """
        whole = encode_key(self.kvstore.path + key)
        sizes = await self._begin(lambda: self._sizes(KeyRange(whole, whole + b"\0")))
        if not sizes:
            raise FileNotFoundError(key)
        return sum(sizes)

    async def getsize_prefix(self, prefix: str) -> int:
        """How many bytes the values below a path have together; one listing."""
        wanted = KeyRange.prefix(self.kvstore.path + _directory(prefix))
        return sum(await self._begin(lambda: self._sizes(wanted)))

    def _read(self, key: str, byte_range: ByteRequest | None) -> Future[bytes | None]:
        whole, wanted = self.kvstore.path + key, _as_range(byte_range)
        store = self.kvstore.store

        async def body() -> bytes | None:
            try:
                result = await store.read(whole, wanted)
            except OutOfRangeError:
                # zarr-python asks for more than there is, and takes what is there.
                result = await _read_rest(store, whole, wanted.start)
            return bytes(result.value) if result.state == "value" else None

        return self._begin(body)

    async def _sizes(self, wanted: KeyRange) -> list[int]:
        store = self.kvstore.store
        if not self._listable:
            result = await store.read(wanted.inclusive_min.decode())
            return [len(result.value)] if result.state == "value" else []
        return [
            len((await store.read(entry.key)).value) if entry.size < 0 else entry.size
            async for entry in store.list(wanted)
        ]

    # Listing.

    def list(self) -> AsyncIterator[str]:
        """All keys."""
        return self.list_prefix("")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin with a text; a page of them is held at a time."""
        wanted = KeyRange.prefix(prefix)
        keys = self.kvstore.keys(KvStore.KeyRange(wanted.inclusive_min, wanted.exclusive_max))
        async for key in keys:
            yield key.decode("utf-8", "surrogateescape")

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names right below a path, each once."""
        whole = self.kvstore.path + _directory(prefix)
        store = self.kvstore.store

        async def body() -> set[str]:
            return {name.rstrip("/") async for name in list_directory(store, whole)}

        for name in sorted(await self._begin(body)):
            yield name

    # Writing.

    async def set(self, key: str, value: Buffer) -> None:
        """Store a value.

        Raises:
            ReadOnlyError: the store is only to be read.
            TypeError: the value is no buffer of zarr-python.
        """
        await self._write(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Store a value unless there is one: the store decides, if it can.

        A store without conditional writes is asked first, and written then, as zarr-python does.
        """
        try:
            await self._write(key, value, if_equal=NO_VALUE)
        except UnsupportedError:
            if not await self.exists(key):
                await self._write(key, value)

    async def delete(self, key: str) -> None:
        """Delete a value, if there is one.

        Raises:
            ReadOnlyError: the store is only to be read.
        """
        await self._write(key, None)

    async def delete_dir(self, prefix: str) -> None:
        """Delete whatever is below a path.

        Raises:
            ReadOnlyError: the store is only to be read.
            UnsupportedError: the store cannot list its keys.
        """
        self._check()
        wanted = KeyRange.prefix(_directory(prefix))
        await self.kvstore.delete_range(
            KvStore.KeyRange(wanted.inclusive_min, wanted.exclusive_max)
        )

    async def clear(self) -> None:
        """Delete everything.

        Raises:
            ReadOnlyError, UnsupportedError: as for `delete_dir`.
        """
        await self.delete_dir("")

    def _write(
        self, key: str, value: Buffer | None, *, if_equal: bytes = UNKNOWN
    ) -> Future[TimestampedStorageGeneration]:
        self._check()
        if value is not None and not hasattr(value, "to_bytes"):
            raise TypeError(f"value must be a zarr Buffer, not {type(value).__name__}")
        data = None if value is None else value.to_bytes()
        return self.kvstore.write(key, data, if_equal=if_equal)

    def _check(self) -> None:
        if self.read_only:
            raise ReadOnlyError(
                "store was opened in read-only mode and does not support writing; "
                "use store.with_read_only(False)"
            )

    def _begin(self, body: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        return self.kvstore._begin(body)

    # As a value.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyValueStore):
            return NotImplemented
        return (
            self._store == other._store
            and self.read_only == other.read_only
            and self.kvstore.transaction is other.kvstore.transaction
        )

    def __hash__(self) -> int:
        return hash((KeyValueStore, self._store))

    def __reduce__(self) -> tuple[Callable[..., KeyValueStore], tuple[object, ...]]:
        if self.kvstore.transaction is not None:
            raise UnsupportedError(
                f"{self!r} writes into a transaction, which cannot leave its process; commit it, "
                "or send a store that is outside it"
            )
        return _made_again, (self._store, self.read_only)

    def __str__(self) -> str:
        return self._url().rstrip("/")

    def __repr__(self) -> str:
        return f"ts.zarr.as_store({self._url()!r})"

    def _url(self) -> str:
        """The URL, or what is nearest to one."""
        try:
            return self.kvstore.url
        except UnsupportedError:
            return self.kvstore.store.describe_key(self.kvstore.path).strip('"')


class InlineKeyValueStore(KeyValueStore):
    """One whose operations never wait for a network, so that the calling thread may do them.

    These are the names of `zarr.abc.store.SupportsSyncStore`.
    """

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """`get`, done when it returns."""
        value = self._read(key, byte_range).result()
        made = default_buffer_prototype() if prototype is None else prototype
        return None if value is None else made.buffer.from_bytes(value)

    def set_sync(self, key: str, value: Buffer) -> None:
        """`set`, done when it returns."""
        self._write(key, value).result()

    def delete_sync(self, key: str) -> None:
        """`delete`, done when it returns."""
        self._write(key, None).result()


@kvstore_object("tensorstore_py.zarr.key_value_store", "KeyValueStore")
def _of_store(store: KeyValueStore) -> object:
    """It stands for what it is over, of which zarr-python need not know."""
    return json_of_object(store._store if store.kvstore.transaction is None else store.kvstore)


def key_value_store(
    store: StoreLike, *, read_only: bool | None = None, transaction: Transaction | None = None
) -> KeyValueStore:
    """The `KeyValueStore` of a store, inline if that is."""
    found = store_of(store)
    kind = InlineKeyValueStore if found.kvstore.store.inline else KeyValueStore
    return kind(found, read_only=read_only, transaction=transaction)


def _made_again(store: StoreLike, read_only: bool) -> KeyValueStore:
    return key_value_store(store, read_only=read_only)


def _is_writable(kvstore: KvStore | None) -> bool:
    """Whether a store, and what it is in, can be written at all."""
    while kvstore is not None:
        store = _plain(kvstore)
        if not store.writable:
            return False
        kvstore = kvstore.base
    return True


def _is_listable(kvstore: KvStore) -> bool:
    """Whether the keys of a store can be listed at all."""
    store = _plain(kvstore)
    return store.listable


def _plain(kvstore: KvStore) -> promise.KvStore:
    store = kvstore.store
    return store.base if isinstance(store, Overlay) else store


def _directory(path: str) -> str:
    return f"{path.rstrip('/')}/" if path.rstrip("/") else ""


def _as_range(request: ByteRequest | None) -> ByteRange:
    """What of a value zarr-python wants.

    Raises:
        TypeError: it is none of its byte requests.
    """
    if request is None:
        return WHOLE
    if isinstance(request, RangeByteRequest):
        return ByteRange(request.start, max(request.start, request.end))
    if isinstance(request, OffsetByteRequest):
        return ByteRange(request.offset)
    if isinstance(request, SuffixByteRequest):
        return ByteRange(-request.suffix) if request.suffix else ByteRange(0, 0)
    raise TypeError(f"Unexpected byte_range, got {request!r}: use a ByteRequest of zarr.abc.store")


async def _read_rest(store: promise.KvStore, key: str, start: int) -> promise.ReadResult:
    """What there is of a value from a position on; all of it if that is counted from the end."""
    try:
        return await store.read(key, ByteRange(max(0, start)))
    except OutOfRangeError:
        return promise.ReadResult("value")
