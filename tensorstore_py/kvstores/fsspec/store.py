"""Files as values.

fsspec tells what it knows of a file and the file's data by two requests, and has hardly any writes
under a condition. So a read looks first and reads then: what it found may be newer than its
generation, which at worst lets a condition fail; where a generation is asked for, it looks again
afterwards. Conditions of writes are refused, unless the file system decides them, or the user said
that no other process writes; then writers of this process exclude each other.

A generation is whatever a file system tells that changes with a file: an ETag, a version or a
checksum at best. Others only tell the time and the size, and two values of one size may have one
time: who relies on it has to make sure that they do not.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Literal

from tensorstore_py.errors import (
    AbortedError,
    SpecError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.kvstores.fsspec.files import Files
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
    RangeRead,
    ReadModifyWrite,
    ReadResult,
    RetryPolicy,
    TimestampedStorageGeneration,
    conditional_update,
    encode_key,
    holds,
    joined,
    read_coalesced,
)

__all__ = [
    "FsspecStore",
    "generation_of",
    "is_weak",
]

_STRONG: Final = (
    "ETag", "etag", "VersionId", "version_id", "generation", "metageneration", "content_md5",
    "md5Hash", "md5", "checksum", "sha", "blob_id",
)  # fmt: skip
_WEAK: Final = (
    "mtime", "LastModified", "last_modified", "lastModified", "updated", "modify", "modified",
    "modification_time", "modificationTime", "time", "last_write_time", "created", "ino", "size",
)  # fmt: skip


def generation_of(info: Mapping[str, object]) -> bytes:
    """Of a file.

    Example:
        >>> generation_of({"ETag": '"abc"', "size": 5}) == generation_of({"ETag": '"abc"'})
        True
        >>> generation_of({"mtime": 1.5, "size": 5}) == generation_of({"mtime": 1.5, "size": 6})
        False
    """
    names = _WEAK if is_weak(info) else _STRONG
    told = [(name, str(info[name])) for name in names if info.get(name) is not None]
    return blake2b(repr(told).encode(), digest_size=16).digest()


def is_weak(info: Mapping[str, object]) -> bool:
    """Whether two values of a file may have the same generation."""
    return not any(info.get(name) for name in _STRONG)


Results = list[ReadResult]

#: Their "create" is decided by the service.
_CREATES: Final = frozenset({"abfs", "abfss", "az", "gcs", "gs"})
_BAD_KEY: Final = re.compile(r"(^|/)(\.{0,2})(/|$)")
_ROUNDS: Final = 8
_PAGE: Final = 256
#: A value looks like the one before it until the clock of the file system moves on.
_LOOKS_THE_SAME: Final = RetryPolicy(attempts=200, fruitless=200, initial_s=0.002, longest_s=0.1)
#: Who writes in this process, by file; the one gate for threads, the other for tasks of the loop.
_turns: Final = {inline: KeyedLock(inline=inline) for inline in (False, True)}


class FsspecStore(RangeRead, DirectoryListing, AtomicUpdate, KvStore):
    """Files of a file system.

    Args:
        files: where.
        url: of their root, for messages.
        hidden: takes secrets out of what the library says.
        use_conditional_write: False: conditions are checked here, which is safe as long as no other
            process writes. None or True: the file system decides them, or they are refused.
        identity: see `KvStore`; by default what the URL says.
    """

    def __init__(
        self,
        files: Files,
        url: str,
        *,
        hidden: Callable[[str], str] = str,
        use_conditional_write: bool | None = None,
        identity: str | None = "",
    ) -> None:
        self.inline = files.inline
        self.identity = f"fsspec:{url}" if identity == "" else identity
        self._files = files
        self._url = url
        self._errors = ForeignErrors(hidden=hidden)
        # No other process writes what is in the memory of this one.
        self._alone = use_conditional_write is False or files.protocol == "memory"
        self._weak = True

    def describe_key(self, key: str) -> str:
        between = "" if self._url.endswith("/") and not self._url.endswith("://") else "/"
        return f'"{self._url}{between}{key}"'

    async def aclose(self) -> None:
        await self._files.aclose()

    # Reading.

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        results = await self._read(key, (byte_range,), if_equal, if_not_equal)
        return results[0]

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        return await self._read(key, ranges, None, None) if ranges else []

    async def _read(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        if_equal: bytes | None,
        if_not_equal: bytes | None,
    ) -> Results:
        _check_key(key)
        try:
            for _ in range(_ROUNDS):
                now = time.time()
                info = await self._files.info(key)
                generation = NO_VALUE if info is None else self._seen(info)
                stamp = TimestampedStorageGeneration(generation, now)
                if info is None:
                    return _without_value("missing", stamp, len(ranges))
                if not holds(if_equal, generation) or generation == if_not_equal:
                    return _without_value("unspecified", stamp, len(ranges))
                size = await self._size(key, info)
                spans = [ByteRange(*each.resolve(size)) for each in ranges]
                first = ranges[0]
                if len(ranges) == 1 and first.stop is None and first.start >= 0:
                    # To the end, wherever that is by now; if it is elsewhere, once more.
                    values = await self._fetch_rest(key, spans[0])
                else:
                    values = await self._fetch(key, spans)
                # A part may be one of a later value, but not if it was counted from the end.
                certain = len(ranges) == 1 and first.start >= 0 and if_equal in (None, UNKNOWN)
                if values is not None and (certain or await self._is_still(key, generation)):
                    return [ReadResult("value", value, stamp.copy()) for value in values]
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            self._errors.raise_for(error, "read", self.describe_key(key))
        raise AbortedError(
            f"cannot read {self.describe_key(key)}: it was replaced {_ROUNDS} times meanwhile; "
            "read it again when its writer is done"
        )

    async def _size(self, key: str, info: Mapping[str, object]) -> int:
        size = info.get("size")
        return size if isinstance(size, int) else len(await self._files.cat(key, None, None))

    async def _fetch(self, key: str, spans: Sequence[ByteRange]) -> list[Buffer] | None:
        """The bytes of spans; None if the file is not what it was."""

        async def fetch(wanted: ByteRange) -> ReadResult:
            assert wanted.stop is not None
            size = wanted.stop - wanted.start
            data = await self._files.cat(key, wanted.start, wanted.stop) if size else b""
            if len(data) != size:
                raise FileNotFoundError
            return ReadResult("value", data)

        try:
            found = await read_coalesced(fetch, spans, width=self.width, inline=self.inline)
        except FileNotFoundError:
            return None
        return [each.value for each in found]

    async def _fetch_rest(self, key: str, span: ByteRange) -> list[Buffer] | None:
        assert span.stop is not None
        if span.start == span.stop:
            return [b""]
        try:
            data = await self._files.cat(key, span.start, None)
        except FileNotFoundError:
            return None
        return [data] if len(data) == span.stop - span.start else None

    async def _is_still(self, key: str, generation: bytes) -> bool:
        info = await self._files.info(key)
        return info is not None and generation_of(info) == generation

    def _seen(self, info: Mapping[str, object]) -> bytes:
        self._weak = is_weak(info)
        return generation_of(info)

    # Listing.

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        if key_range.empty:
            return
        waiting = [key_range.common_prefix().rpartition("/")[0]]
        while waiting:
            directory = waiting.pop()
            for entry in await self._entries(directory):
                key = self._files.key(entry["name"])
                if entry["type"] != "directory":
                    if key in key_range:
                        size = entry.get("size")
                        yield ListEntry(key, size if isinstance(size, int) else -1)
                elif key and _overlap(key_range, KeyRange.prefix(f"{key.rstrip('/')}/")):
                    waiting.append(key.rstrip("/"))

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        for entry in await self._entries(prefix.rstrip("/")):
            key = self._files.key(entry["name"]).rstrip("/")
            yield key[len(prefix) :] + ("/" if entry["type"] == "directory" else "")

    async def _entries(self, directory: str) -> Sequence[Mapping[str, Any]]:
        try:
            return await self._files.entries(directory)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            self._errors.raise_for(error, "list", self.describe_key(directory))

    # Writing.

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        _check_key(key)
        condition = None if if_equal == UNKNOWN else if_equal
        try:
            if self._alone:
                async with self._turn(key):
                    return await self._replace(key, value, condition)
            if condition is None:
                return await self._put(key, value)
            if value is not None and condition == NO_VALUE and self._files.protocol in _CREATES:
                return await self._put(key, value, create=True)
        except Exception as error:  # noqa: BLE001 - raised as one of ours
            action = "delete" if value is None else "write"
            self._errors.raise_for(error, action, self.describe_key(key))
        raise UnsupportedError(
            f"cannot write {self.describe_key(key)} under a condition: fsspec has no such "
            f"writes, so that two writers could undo each other's work; if only one process writes,"
            f' say so by "use_conditional_write": false'
        )

    async def update(self, key: str, change: ReadModifyWrite) -> TimestampedStorageGeneration:
        if change.replaces or not self._alone:
            return await conditional_update(self, key, change)
        async with self._turn(key):
            # The only writer need not rely on generations.
            _, parts = await change.parts_in(self, key)
            value = None if parts is None else joined(parts)
            try:
                return await self._replace(key, value, None)
            except Exception as error:  # noqa: BLE001 - raised as one of ours
                self._errors.raise_for(error, "write", self.describe_key(key))

    def _turn(self, key: str) -> AbstractAsyncContextManager[None]:
        return _turns[self.inline].acquire((self._url, key))

    async def _replace(
        self, key: str, value: Buffer | None, condition: bytes | None
    ) -> TimestampedStorageGeneration:
        """Write while no other writer does; two values never have the same generation."""
        before = NO_VALUE
        if condition is not None or (self._weak and value is not None):
            info = await self._files.info(key)
            before = NO_VALUE if info is None else self._seen(info)
            if not holds(condition, before):
                return TimestampedStorageGeneration.now(UNKNOWN)
        where = partial(self.describe_key, key)
        attempts = _LOOKS_THE_SAME.begin("write", where, inline=self.inline)
        while True:
            stamp = await self._put(key, value)
            if stamp.generation != before or value is None:
                return stamp
            problem = UnavailableError(
                f"cannot tell the new value of {self.describe_key(key)} from the one before it: "
                f"the file system gave both one size and time in {attempts.failed + 1} attempts; "
                f"write again, or use a file system whose clock goes on",
                attempts.failed + 1,
            )
            await attempts.lost(error=problem)

    async def _put(
        self, key: str, value: Buffer | None, *, create: bool = False
    ) -> TimestampedStorageGeneration:
        if value is None:
            await self._files.remove(key)
            return TimestampedStorageGeneration.now(NO_VALUE)
        try:
            await self._files.pipe(key, value, create=create)
        except FileExistsError:
            if not create:
                raise
            return TimestampedStorageGeneration.now(UNKNOWN)
        info = await self._files.info(key)
        return TimestampedStorageGeneration.now(NO_VALUE if info is None else self._seen(info))


def _without_value(
    state: Literal["missing", "unspecified"], stamp: TimestampedStorageGeneration, count: int
) -> Results:
    return [ReadResult(state, b"", stamp.copy()) for _ in range(count)]


def _overlap(wanted: KeyRange, other: KeyRange) -> bool:
    low = max(wanted.inclusive_min, other.inclusive_min)
    ends = [each.exclusive_max for each in (wanted, other) if each.exclusive_max]
    return not ends or low < min(ends)


def _check_key(key: str) -> None:
    """Make sure that file systems take a key for what it is.

    Raises:
        SpecError: some would drop parts of it.
    """
    if _BAD_KEY.search(key) or "\0" in key or encode_key(key) != key.encode("utf-8", "replace"):
        raise SpecError(
            f'an fsspec store cannot have the key "{key!a}": its parts must not be empty, "." or '
            '"..", and it has to be text; use another key'
        )
