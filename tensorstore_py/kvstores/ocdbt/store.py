"""The ocdbt store: a versioned tree of keys in files of another store.

Each commit, of one write or of any number, makes a version, and older versions stay readable. What
it answers is what the database has at that time: whether its manifest was replaced is asked before
each answer that has to be current; nodes and values are in files that never change. All who open
one database through one cache pool share what is known of it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.ocdbt.btree import Value
from tensorstore_py.kvstores.ocdbt.commits import Change, Commits, generation_of
from tensorstore_py.kvstores.ocdbt.database import Database, tree_of
from tensorstore_py.kvstores.ocdbt.names import generation_named
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.tree import Tree, TreeReader
from tensorstore_py.kvstores.ocdbt.versions import Version
from tensorstore_py.plugin.kvstore import (
    ALL,
    UNKNOWN,
    WHOLE,
    AtomicBatch,
    Buffer,
    ByteRange,
    CachedRead,
    KeyRange,
    KvStore,
    ListEntry,
    RangeRead,
    ReadResult,
    TimestampedStorageGeneration,
    encode_key,
    holds,
)

__all__ = ["OcdbtStore", "VersionSpec"]


class VersionSpec(NamedTuple):
    """Which version is meant: the one of a generation or a name, or the latest one of a time.

    Attributes:
        generation: of the version; None for a time or a name.
        time_ns: when it was committed at the latest, in ns since 1970.
        text: as URLs have it.
        named: whether that is a name.
    """

    generation: int | None
    time_ns: int
    text: str
    named: bool = False

    def spec_json(self, include_defaults: bool) -> object:
        """As specs have it."""
        return self.text if self.generation is None else self.generation


class OcdbtStore(RangeRead, CachedRead, AtomicBatch, KvStore):
    """See the head of this file.

    Args:
        database: which.
        commits: who changes it.
        version: the one that is read; None for the latest.
    """

    def __init__(
        self, database: Database, commits: Commits, version: VersionSpec | None = None
    ) -> None:
        self._database = database
        self._commits = commits
        self._version = version
        self._found: Version | None = None
        self._reader = TreeReader(database.node)
        self.inline = database.inline
        self.width = database.data.store.width
        if database.manifests.store.identity is not None:
            at = "" if version is None else f"@{version.text}"
            self.identity = (
                f"{database.manifests.store.identity}|{database.manifests.root}|ocdbt{at}"
            )

    @property
    def database(self) -> Database:
        """Which database it is."""
        return self._database

    # ------------------------------------------------------------------------------------- reading

    async def _tree(self, since: float) -> tuple[Tree, float]:
        """The keys as they were at some time or later, and when that was."""
        if self._version is None:
            snapshot = await self._database.since(since)
            return snapshot.tree, snapshot.time
        if self._found is None:
            self._found = await self._sought(self._version)
        return tree_of(self._found), float("inf")

    async def _sought(self, wanted: VersionSpec) -> Version:
        generation, time_ns, text, named = wanted
        if named:
            generation = await generation_named(self._database.manifests, text)
        return await self._database.sought(generation, time_ns, text)

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        ranges = (byte_range,)
        return (await self._read(key, ranges, time.time(), if_equal, if_not_equal))[0]

    async def read_as_of(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float,
        *,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        return (await self._read(key, (byte_range,), staleness_bound, None, if_not_equal))[0]

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        return await self._read(key, ranges, time.time()) if ranges else []

    async def _read(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        since: float,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> list[ReadResult]:
        tree, now = await self._tree(since)
        value = await self._reader.find(tree, encode_key(key))
        generation = generation_of(value)
        stamp = TimestampedStorageGeneration(generation, now)
        if value is None:
            return [ReadResult("missing", b"", stamp.copy()) for _ in ranges]
        if generation == if_not_equal or not holds(if_equal, generation):
            return [ReadResult("unspecified", b"", stamp.copy()) for _ in ranges]
        found = []
        for byte_range in ranges:
            part = await self._part(value, byte_range)
            found.append(ReadResult("value", part, stamp.copy()))
        return found

    async def _part(self, value: Value, byte_range: ByteRange) -> Buffer:
        if isinstance(value, Reference):
            return await self._database.bytes_of(value, byte_range)
        start, stop = byte_range.resolve(len(value))
        return value[start:stop]

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        tree, _ = await self._tree(time.time())
        first, end = key_range.inclusive_min, key_range.exclusive_max
        if key_range.empty:
            return
        async for key, value in self._reader.items(tree, first, end):
            size = value.length if isinstance(value, Reference) else len(value)
            yield ListEntry(key.decode("utf-8", "surrogateescape"), size)

    # ------------------------------------------------------------------------------------- writing

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        name = encode_key(key)
        # A writer may go before its change is made, and change its memory.
        own = value if value is None or isinstance(value, bytes) else bytes(value)
        change = Change({name: own}, {} if if_equal is None else {name: if_equal})
        await self._make(change)
        generation = UNKNOWN if change.failed is not None else change.generations[name]
        return TimestampedStorageGeneration(generation, change.time)

    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        change = Change(
            {
                encode_key(key): None if value is None else bytes(value)
                for key, value in values.items()
            },
            {encode_key(key): generation for key, generation in conditions.items()},
        )
        await self._make(change)
        failed = change.failed
        return None if failed is None else failed.decode("utf-8", "surrogateescape")

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        await self._make(Change({}, {}, key_range))

    async def _make(self, change: Change) -> None:
        if self._version is not None:
            raise UnsupportedError(
                f'version "{self._version.text}" of the OCDBT database '
                f"{self._database.describe()} is read-only: open it without a version to write"
            )
        await self._commits.make(change)

    def describe_key(self, key: str) -> str:
        database = f"the OCDBT database {self._database.describe()}"
        return f"{super().describe_key(key)} in {database}" if key else database
