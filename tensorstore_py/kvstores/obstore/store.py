"""Objects as the library reads, writes and lists them.

Sockets, retries and credentials are the library's. A write under a condition is one that the
service decides, or it is refused. A conditional *delete* looks first, since the library has none.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import (
    DataLossError,
    OutOfRangeError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.kvstores.obstore.clients import ObstoreClients, check_process
from tensorstore_py.kvstores.obstore.protocol import (
    KINDS,
    generation_of,
    get_options,
    says_missing,
    says_unable,
)
from tensorstore_py.plugin.http import CoalescedReads
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    DirectoryListing,
    ForeignErrors,
    KeyedLock,
    KeyRange,
    KvStore,
    ListEntry,
    ReadResult,
    ServerCopy,
    TimestampedStorageGeneration,
    holds,
    offload,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObstoreStore"]


_PAGE: Final = 1000
_BAD_KEY: Final = re.compile(r"(^|/)(\.{0,2})(/|$)")
#: Who checks a condition here and then writes, key by key.
_turns: Final = KeyedLock(inline=False)


class ObstoreStore(CoalescedReads, DirectoryListing, ServerCopy, KvStore):
    """Objects below a URL.

    Args:
        clients: where the library's client comes from.
        url: of the bucket or container.
        use_conditional_write: False: a condition is checked here, before an unconditional write,
            which is safe for one writing process at a time.
        is_held: the client is an object of the user's, of which the URL does not say all.
    """

    inline = False

    def __init__(
        self,
        clients: ObstoreClients,
        url: str,
        *,
        use_conditional_write: bool | None = None,
        is_held: bool = False,
    ) -> None:
        self._clients = clients
        self._url = url
        self._errors = ForeignErrors(KINDS, clients.config.hidden)
        self._service_decides = use_conditional_write is not False
        self.identity = None if is_held or url.startswith("memory:") else f"obstore:{url}"

    def describe_key(self, key: str) -> str:
        between = "" if self._url.endswith("/") else "/"
        return f'"{self._url}{between}{key}"'

    # Reading.

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        _check_key(key)
        if byte_range.start == byte_range.stop:
            return await self._look(key, byte_range, if_equal, if_not_equal)
        options = get_options(byte_range, if_equal, if_not_equal)
        now = time.time()
        try:
            client = await self._client()
            found = await client.get_async(key, options=options)
            meta = found.meta
            generation = generation_of(meta)
            stamp = TimestampedStorageGeneration(generation, now)
            if not holds(if_equal, generation) or generation == if_not_equal:
                return ReadResult("unspecified", b"", stamp)
            span = byte_range.resolve(meta["size"])
            value = memoryview(await found.bytes_async())
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            unread = _without_value(error, if_not_equal, now)
            if unread is not None:
                return unread
            if "range" in options and not isinstance(error, TensorStoreError):
                # Nothing is left there, or there is no such part: each service says that otherwise.
                looked = await self._look(key, byte_range, if_equal, if_not_equal)
                if looked.state != "value" or byte_range.stop is None:
                    return looked
            self._errors.raise_for(error, "read", self.describe_key(key))
        if tuple(found.range) != span or value.nbytes != span[1] - span[0]:
            raise DataLossError(
                f"Error reading {self.describe_key(key)}: asked for bytes {span[0]} to {span[1]}, "
                f"got {value.nbytes} bytes of {tuple(found.range)}"
            )
        return ReadResult("value", value, stamp)

    async def _look(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """What a read of no bytes finds.

        Raises:
            OutOfRangeError: the range reaches outside the value.
        """
        now = time.time()
        try:
            meta = await (await self._client()).head_async(key)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            if says_missing(error):
                return ReadResult("missing", b"", TimestampedStorageGeneration(NO_VALUE, now))
            self._errors.raise_for(error, "read", self.describe_key(key))
        stamp = TimestampedStorageGeneration(generation_of(meta), now)
        if not holds(if_equal, stamp.generation) or stamp.generation == if_not_equal:
            return ReadResult("unspecified", b"", stamp)
        try:
            start, stop = byte_range.resolve(meta["size"])
        except OutOfRangeError as error:
            self._errors.raise_for(error, "read", self.describe_key(key))
        if start < stop and not byte_range.is_whole:  # it has grown since
            return await self.read(key, byte_range, if_equal=stamp.generation)
        return ReadResult("value", b"", stamp)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        if key_range.empty:
            return
        directory = key_range.common_prefix().rpartition("/")[0]
        try:
            pages = (await self._client()).list(directory or None, chunk_size=_PAGE)
            async for page in pages:
                for meta in page:
                    if meta["path"] in key_range:
                        yield ListEntry(meta["path"], meta["size"])
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            if not says_missing(error):
                self._errors.raise_for(error, "list", self.describe_key(directory))

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        try:
            client = await self._client()
            found = await client.list_with_delimiter_async(prefix.rstrip("/") or None)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            if says_missing(error):
                return
            self._errors.raise_for(error, "list", self.describe_key(prefix))
        for path in found["common_prefixes"]:
            yield path[len(prefix) :].rstrip("/") + "/"
        for meta in found["objects"]:
            yield meta["path"][len(prefix) :]

    # Writing.

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        _check_key(key)
        condition = None if if_equal == UNKNOWN else if_equal
        if condition is None and self._service_decides:
            return await self._store(key, value, None)
        if value is not None and self._service_decides:
            return await self._store(key, value, condition)
        async with _turns.acquire((self._url, key)):
            if condition is not None:
                present = await self._look(key)
                if present.stamp.generation != condition:
                    return TimestampedStorageGeneration.now(UNKNOWN)
            return await self._store(key, value, None)

    async def _store(
        self, key: str, value: Buffer | None, condition: bytes | None
    ) -> TimestampedStorageGeneration:
        action = "delete" if value is None else "write"
        try:
            client = await self._client()
            if value is None:
                await client.delete_async(key)
                return TimestampedStorageGeneration.now(NO_VALUE)
            flat = _flat(value, is_kept=self._url.startswith("memory:"))
            if condition is None:
                told = await client.put_async(key, flat, mode="overwrite")
            else:
                conditions = self._clients.conditions(self._url)
                found = await conditions.put(
                    client, key, flat, condition, lambda: self._generation(key)
                )
                if found is None:
                    return TimestampedStorageGeneration.now(UNKNOWN)
                told = found
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            if value is None and says_missing(error):
                return TimestampedStorageGeneration.now(NO_VALUE)
            if condition is not None and says_unable(error):
                raise UnsupportedError(
                    f"cannot write {self.describe_key(key)} under a condition: the service has no "
                    f"conditional writes to rely on, and two writers could undo each other's work; "
                    f'if there is only one, say so by "use_conditional_write": false'
                ) from self._errors.cause(error)
            self._errors.raise_for(error, action, self.describe_key(key))
        if told["e_tag"] is None and told["version"] is None:
            return (await self._look(key)).stamp
        return TimestampedStorageGeneration.now(generation_of(told))

    async def _generation(self, key: str) -> bytes:
        return (await self._look(key)).stamp.generation

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        keys = []
        async for entry in self.list(key_range):
            keys.append(entry.key)
            if len(keys) == _PAGE:
                await self._delete_all(keys)
                keys = []
        await self._delete_all(keys)

    async def _delete_all(self, keys: Sequence[str]) -> None:
        try:
            await (await self._client()).delete_async(keys)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            if not says_missing(error):
                self._errors.raise_for(error, "delete", self.describe_key(keys[0]))
            for key in keys:  # another process deleted one of them meanwhile
                await self._store(key, None, None)

    async def copy_to(self, key: str, target: KvStore, target_key: str) -> bool:
        if not isinstance(target, ObstoreStore) or target.home != self.home:
            return False
        _check_key(target_key)
        try:
            await (await self._client()).copy_async(key, target_key)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            if not says_missing(error):
                self._errors.raise_for(error, "copy", self.describe_key(key))
        return True

    @property
    def home(self) -> tuple[object, str]:
        """Equal for stores that one client serves."""
        return self._clients, self._url

    async def _client(self) -> ObjectStore:
        check_process(self._url)
        made = self._clients.made.get(self._url)
        if made is None:  # loading the library takes a while, which would hold the loop up
            made = await offload(False, lambda: self._clients.open(self._url))
        return made


def _without_value(error: Exception, if_not_equal: bytes | None, now: float) -> ReadResult | None:
    """What a read that failed found; None if it found out nothing."""
    if says_missing(error):
        return ReadResult("missing", b"", TimestampedStorageGeneration(NO_VALUE, now))
    kind = type(error).__name__
    if kind == "NotModifiedError" and if_not_equal is not None:
        return ReadResult("unspecified", b"", TimestampedStorageGeneration(if_not_equal, now))
    if kind == "PreconditionError":
        return ReadResult("unspecified", b"", TimestampedStorageGeneration(UNKNOWN, now))
    return None


def _check_key(key: str) -> None:
    """Make sure that the library takes a key for what it is.

    Raises:
        SpecError: it would drop parts of it, or refuses it.
    """
    if _BAD_KEY.search(key) or not key.isprintable():
        raise SpecError(
            f'obstore cannot have the key "{key!s}": its parts must not be empty, ".", ".." or '
            "have control characters; use another key"
        )


def _flat(value: Buffer, *, is_kept: bool) -> Buffer:
    """The bytes of any buffer; the library takes no others."""
    if is_kept or isinstance(value, bytes):
        return bytes(value)
    view = memoryview(value)
    return view if view.ndim == 1 and view.format == "B" else view.cast("B")
