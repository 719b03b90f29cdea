"""Keys and values of a store object of zarr-python.

Such stores have no versions of their values, and no writes under a condition but "if there is
nothing". So a generation is made from a whole value; a part has none. Writers of this process
exclude each other at each key of an object, so that conditions hold among them; of what others
write between the look and the write, only the creation of the same key is noticed.

zarr-python runs all stores in one loop of its own, and what they open (sockets, locks) belongs
there. That loop has no public name: a store that zarr-python is asked to look into is told.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorstore_py.errors import (
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.plugin.http import CoalescedReads
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    AtomicUpdate,
    Buffer,
    ByteRange,
    DirectoryListing,
    ForeignErrors,
    KeyedLock,
    KeyRange,
    KvStore,
    ListEntry,
    ReadModifyWrite,
    ReadResult,
    TimestampedStorageGeneration,
    conditional_update,
    content_generation,
    fan_out,
    holds,
    in_other_loop,
    joined,
    offload,
)

if TYPE_CHECKING:
    from types import ModuleType

    from zarr.abc.store import Store


__all__ = [
    "ZarrStore",
    "opened",
    "zarr_abc",
    "zarr_loop",
]

#: What builtin errors mean here besides what they mean everywhere.
_ERRORS: Final[Mapping[str, type[TensorStoreError]]] = {
    "FileNotFoundError": NotFoundError,
    "ValueError": FailedPreconditionError,
}


#: The loop, and the process that it runs in.
_found: list[tuple[asyncio.AbstractEventLoop, int]] = []


def zarr_abc() -> ModuleType:
    """The module that says what a store of zarr-python is.

    Raises:
        UnsupportedError: zarr-python 3 is not installed.
    """
    try:
        return import_module("zarr.abc.store")
    except ImportError:
        raise UnsupportedError(
            "stores of zarr-python need version 3 of it: pip install 'tensorstore-py[zarr]'"
        ) from None


async def opened(store: Store) -> None:
    """Open a store object, where it is not open yet; some can do nothing before."""
    await import_module("zarr.storage").StorePath.open(store, "", mode=None)


async def zarr_loop() -> asyncio.AbstractEventLoop:
    """The loop, which starts when it is first asked for."""
    if _found:
        loop, process = _found[0]
        if process == os.getpid() and not loop.is_closed():
            return loop
    # zarr-python is asked on a thread that may wait for it.
    loop = await offload(False, _told_by_zarr)
    _found[:] = [(loop, os.getpid())]
    return loop


def _told_by_zarr() -> asyncio.AbstractEventLoop:
    told: list[asyncio.AbstractEventLoop] = []
    memory: Any = import_module("zarr.storage").MemoryStore

    class Listener(memory):  # type: ignore[misc]
        """An empty store that notes in which loop it is asked."""

        async def get(self, *arguments: object, **options: object) -> None:
            told.append(asyncio.get_running_loop())

    with suppress(FileNotFoundError):
        import_module("zarr").open_group(Listener(), mode="r", zarr_format=3)
    return told[0]


T = TypeVar("T")
Page = list[str]
Results = list[ReadResult]

_PAGE: Final = 1000
_BAD_KEY: Final = re.compile(r"(^|/)(\.{0,2})(/|$)")
#: Who writes in this process, by object and key.
_turns: Final = KeyedLock(inline=False)


class ZarrStore(CoalescedReads, DirectoryListing, AtomicUpdate, KvStore):
    """What an object has.

    Args:
        store: the object.
    """

    inline = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_open = False
        self._errors = ForeignErrors(_ERRORS)
        said = str(store)
        self._shown = said if "://" in said and "\n" not in said else type(store).__name__

    @property
    def writable(self) -> bool:
        return self._store.supports_writes and not self._store.read_only

    @property
    def listable(self) -> bool:
        return self._store.supports_listing

    def describe_key(self, key: str) -> str:
        return f'"{self._shown.rstrip("/")}/{key}"'

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
        conditional = if_equal not in (None, UNKNOWN) or if_not_equal not in (None, UNKNOWN)
        try:
            if not byte_range.is_whole and not conditional:
                return await self._read_part(key, byte_range)
            now = time.time()
            value = await self._get(key)
            found = ReadResult.of(
                value,
                content_generation(value),
                byte_range,
                if_equal=if_equal,
                if_not_equal=if_not_equal,
            )
            found.stamp.time = now
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            self._errors.raise_for(error, "read", self.describe_key(key))
        return found

    async def _read_part(self, key: str, byte_range: ByteRange) -> ReadResult:
        """A part, whose generation is not known."""
        stamp = TimestampedStorageGeneration.now(UNKNOWN)
        if byte_range.start != byte_range.stop:
            value = await self._get(key, byte_range)
            if value is not None and _is_all(value, byte_range):
                return ReadResult("value", value, stamp)
        # Such stores give less where there is less, and some nothing: the size tells.
        try:
            size = await self._call(lambda: self._store.getsize(key))
        except FileNotFoundError:
            stamp.generation = NO_VALUE
            return ReadResult("missing", b"", stamp)
        start, stop = byte_range.resolve(size)
        if start == stop:
            return ReadResult("value", b"", stamp)
        whole = await self.read(key)  # it was changed meanwhile
        return self._part_of(key, whole, byte_range)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        if any(each.is_whole for each in ranges):
            whole = await self.read(key)
            return [self._part_of(key, whole, each) for each in ranges]
        return await super().read_ranges(key, ranges)

    def _part_of(self, key: str, whole: ReadResult, byte_range: ByteRange) -> ReadResult:
        if whole.state != "value":
            return whole
        try:
            start, stop = byte_range.resolve(len(whole.value))
        except OutOfRangeError as error:
            self._errors.raise_for(error, "read", self.describe_key(key))
        return ReadResult("value", memoryview(whole.value)[start:stop], whole.stamp.copy())

    async def _get(self, key: str, byte_range: ByteRange = WHOLE) -> Buffer | None:
        wanted = _request(byte_range)
        prototype = _prototype()
        found = await self._call(lambda: self._store.get(key, prototype, wanted))
        return None if found is None else found.as_numpy_array().data.cast("B")

    # Listing.

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        self._check_able("supports_listing", "list its keys")
        if key_range.empty:
            return
        directory = key_range.common_prefix().rpartition("/")[0]
        keys = self._store.list_prefix(f"{directory}/" if directory else "")
        while page := await self._page(keys, directory):
            for key in page:
                if key in key_range:
                    yield ListEntry(key)

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        self._check_able("supports_listing", "list its keys")
        listing = self._store.list_dir(prefix.rstrip("/"))
        while page := await self._page(listing, prefix):
            ends = {name.strip("/"): "/" for name in page}

            async def look(name: str, ends: dict[str, str] = ends) -> None:
                if await self._call(lambda: self._store.exists(prefix + name)):
                    ends[name] = ""

            await fan_out(False, [*ends], look, count=len(ends), width=self.width)
            for name, end in ends.items():
                yield name + end

    async def _page(self, listing: AsyncIterator[str], directory: str) -> Page:
        async def collect() -> Page:
            found = []
            async for key in listing:
                found.append(key)
                if len(found) == _PAGE:
                    break
            return found

        try:
            return await self._call(collect)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            self._errors.raise_for(error, "list", self.describe_key(directory))

    # Writing.

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        _check_key(key)
        self._check_writable(key, value)
        condition = None if if_equal == UNKNOWN else if_equal
        data = None if value is None else bytes(value)
        try:
            async with _turns.acquire((id(self._store), key)):
                return await self._write(key, data, condition)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            action = "delete" if value is None else "write"
            self._errors.raise_for(error, action, self.describe_key(key))

    async def _write(
        self, key: str, value: bytes | None, condition: bytes | None
    ) -> TimestampedStorageGeneration:
        """Write while no other writer of this process does."""
        if condition == NO_VALUE and value is not None:
            if await self._exists(key):
                return TimestampedStorageGeneration.now(UNKNOWN)
            await self._set(key, value, create=True)
            created = await self._get(key) == value  # else another process was faster
            return TimestampedStorageGeneration.now(
                content_generation(value) if created else UNKNOWN
            )
        if condition is not None and not holds(condition, content_generation(await self._get(key))):
            return TimestampedStorageGeneration.now(UNKNOWN)
        if value is not None:
            await self._set(key, value)
        else:
            await self._delete(key)
        return TimestampedStorageGeneration.now(content_generation(value))

    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        if change.replaces:
            return await conditional_update(self, key, change)
        _check_key(key)
        async with _turns.acquire((id(self._store), key)):
            _, parts = await change.parts_in(self, key)
            value = None if parts is None else bytes(joined(parts))
            self._check_writable(key, value)
            try:
                return await self._write(key, value, None)
            except Exception as error:  # noqa: BLE001 - raised as one of ours
                self._errors.raise_for(error, "write", self.describe_key(key))

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        directory = key_range.common_prefix()
        self._check_writable(directory, None)
        if directory.endswith("/") and key_range == KeyRange.prefix(directory):
            try:
                await self._call(lambda: self._store.delete_dir(directory.rstrip("/")))
            except Exception as error:  # noqa: BLE001 - raised as one of ours
                self._errors.raise_for(error, "delete", self.describe_key(directory))
            return

        await super().delete_range(key_range)

    async def _exists(self, key: str) -> bool:
        return await self._call(lambda: self._store.exists(key))

    async def _delete(self, key: str) -> None:
        # icechunk has no chunks of an array without metadata, and misses that by a KeyError.
        with suppress(FileNotFoundError, KeyError):
            if await self._exists(key):  # of a directory, some would delete all
                await self._call(lambda: self._store.delete(key))

    async def _set(self, key: str, value: bytes, *, create: bool = False) -> None:
        buffer = _prototype().buffer.from_bytes(value)
        write = self._store.set_if_not_exists if create else self._store.set
        await self._call(lambda: write(key, buffer))

    # How.

    async def _call(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        loop = await zarr_loop()
        if not self._is_open:
            await in_other_loop(loop, lambda: opened(self._store))
            self._is_open = True
        return await in_other_loop(loop, begin)

    def _check_able(self, name: str, what: str) -> None:
        if not getattr(self._store, name):
            raise UnsupportedError(f"{type(self._store).__name__} cannot {what}; use another store")

    def _check_writable(self, key: str, value: Buffer | None) -> None:
        if self._store.read_only:
            raise PermissionDeniedError(
                f"cannot {'delete' if value is None else 'write'} {self.describe_key(key)}: the "
                f"{type(self._store).__name__} is read only; open it for writing"
            )
        self._check_able("supports_writes", "be written")
        if value is None:
            self._check_able("supports_deletes", "delete keys")


def _is_all(value: Buffer, byte_range: ByteRange) -> bool:
    """Whether what was read is what was asked for, as far as that can be told from it alone."""
    if byte_range.start < 0:
        return len(value) == -byte_range.start
    if byte_range.stop is None:
        return len(value) > 0
    return len(value) == byte_range.stop - byte_range.start


def _prototype() -> Any:  # noqa: ANN401 - a class of zarr-python
    from zarr.buffer import default_buffer_prototype  # noqa: PLC0415 - only who needs it pays for it

    return default_buffer_prototype()


def _request(byte_range: ByteRange) -> Any:  # noqa: ANN401 - a class of zarr-python
    """A range as zarr-python asks for it."""
    if byte_range.is_whole:
        return None
    requests = zarr_abc()
    if byte_range.start < 0:
        return requests.SuffixByteRequest(-byte_range.start)
    if byte_range.stop is None:
        return requests.OffsetByteRequest(byte_range.start)
    return requests.RangeByteRequest(byte_range.start, byte_range.stop)


def _check_key(key: str) -> None:
    """Make sure that stores take a key for what it is.

    Raises:
        SpecError: some would drop parts of it.
    """
    if _BAD_KEY.search(key) or "\0" in key:
        raise SpecError(
            f'a store of zarr-python cannot have the key "{key!a}": its parts must not be empty, '
            '"." or ".."; use another key'
        )
