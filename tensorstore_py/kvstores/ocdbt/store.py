"""The ocdbt store: a versioned tree of keys in files of another store.

Each commit, of one write or of any number, makes a version, and older versions stay readable. What
it answers is what the database has at that time: whether its manifest was replaced is asked before
each answer that has to be current; nodes and values are in files that never change. All who open
one database through one cache pool share what is known of it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, NamedTuple
from weakref import ReferenceType, ref

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.ocdbt.btree import LONGEST_KEY
from tensorstore_py.kvstores.ocdbt.commits import Change, Commits, Given, generation_of
from tensorstore_py.kvstores.ocdbt.copies import CopiedValue, path_between
from tensorstore_py.kvstores.ocdbt.database import Database, tree_of
from tensorstore_py.kvstores.ocdbt.names import generation_named
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.tree import Tree, TreeReader
from tensorstore_py.kvstores.ocdbt.versions import Version
from tensorstore_py.plugin.kvstore import (
    ALL,
    WHOLE,
    Buffer,
    BulkListing,
    BulkRead,
    ByteRange,
    GroupedWrite,
    KeyRange,
    KvStore,
    ListEntry,
    RangeReadAsOf,
    ReadResult,
    ReferenceCopy,
    Registered,
    SegmentedWrite,
    StoredValue,
    TimestampedStorageGeneration,
    encode_key,
    holds,
)

__all__ = ["OcdbtStore", "SharedDatabase", "VersionSpec"]

#: How many keys of a listing are made at a time.
_PAGE: Final = 1000


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


class SharedDatabase:
    """What all stores of one database share: what is known of it, and who waits to change it."""

    def __init__(self, database: Database, commits: Commits) -> None:
        self.database = database
        self.commits = commits
        # Weak, since a store has this; one of a version remembers which one that is.
        self._latest: ReferenceType[OcdbtStore] | None = None

    def store(self, version: VersionSpec | None = None) -> OcdbtStore:
        """The store of a version; that of the latest is one for all who have it open."""
        if version is not None:
            return OcdbtStore(self, version)
        found = None if self._latest is None else self._latest()
        if found is None:
            found = OcdbtStore(self)
            self._latest = ref(found)
        return found


class OcdbtStore(
    RangeReadAsOf,
    BulkRead,
    BulkListing,
    SegmentedWrite,
    GroupedWrite,
    ReferenceCopy,
    KvStore,
):
    """See the head of this file.

    Args:
        shared: the database.
        version: the one that is read; None for the latest.
    """

    def __init__(self, shared: SharedDatabase, version: VersionSpec | None = None) -> None:
        self._shared = shared  # as long as one store has it, others find it
        self._database = database = shared.database
        self._commits = shared.commits
        self._version = version
        self._found: Version | None = None
        self._reader = TreeReader(database.node, inline=database.inline)
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

    async def read_ranges_as_of(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> list[ReadResult]:
        tree, now = await self._tree(staleness_bound)
        value = await self._reader.find(tree, encode_key(key))
        generation = generation_of(value)

        def stamp() -> TimestampedStorageGeneration:
            return TimestampedStorageGeneration(generation, now)

        if value is None:
            return [ReadResult("missing", b"", stamp()) for _ in ranges]
        if generation == if_not_equal or not holds(if_equal, generation):
            return [ReadResult("unspecified", b"", stamp()) for _ in ranges]
        if len(ranges) == 1:
            return [ReadResult("value", await self._database.value_part(value, ranges[0]), stamp())]
        wanted = [(value, byte_range) for byte_range in ranges]
        parts = await self._database.bytes_of_several(wanted)
        return [ReadResult("value", part, stamp()) for part in parts]

    async def read_values(self, keys: Sequence[str], room: memoryview) -> list[Buffer | None]:
        tree, _ = await self._tree(time.time())
        names = [encode_key(key) for key in keys]
        there = await self._reader.find_several(tree, names)
        wanted = [(there[name], WHOLE) for name in names if name in there]
        values = iter(await self._database.bytes_of_several(wanted))
        return [next(values) if name in there else None for name in names]

    async def read_parts(
        self, key: str, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        tree, _ = await self._tree(time.time())
        value = await self._reader.find(tree, encode_key(key))
        if value is None:
            return [None] * len(ranges)
        if size != (value.length if isinstance(value, Reference) else len(value)):
            return None
        return await self._database.bytes_of_several([(value, wanted) for wanted in ranges])

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        tree, _ = await self._tree(time.time())
        first, end = key_range.inclusive_min, key_range.exclusive_max
        if key_range.empty:
            return
        async for prefix, leaf, low, high in self._reader.leaves(tree, first, end):
            for key, size in zip(leaf.keys[low:high], leaf.sizes(low, high), strict=True):
                yield ListEntry((prefix + key).decode("utf-8", "surrogateescape"), size)

    async def list_keys(self, key_range: KeyRange, skipped: int) -> AsyncIterator[Sequence[bytes]]:
        tree, _ = await self._tree(time.time())
        if key_range.empty:
            return
        first, end = key_range.inclusive_min, key_range.exclusive_max
        async for stretch in self._reader.leaves(tree, first, end):
            for low in range(stretch.low, stretch.high, _PAGE):
                yield stretch.keys(low, min(low + _PAGE, stretch.high), skipped)

    # ------------------------------------------------------------------------------------- writing

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        # A writer may go before its change is made, and change its memory.
        own = value if value is None or isinstance(value, bytes) else bytes(value)
        return await self._write(key, own, if_equal)

    async def write_segments(
        self,
        key: str,
        segments: Sequence[Buffer],
        *,
        if_equal: bytes | None = None,
        owned: bool = False,
    ) -> TimestampedStorageGeneration:
        pieces = (each if owned or isinstance(each, bytes) else bytes(each) for each in segments)
        return await self._write(key, tuple(pieces), if_equal)

    async def _write(
        self, key: str, value: Given | None, if_equal: bytes | None
    ) -> TimestampedStorageGeneration:
        name = encode_key(key)
        change = _one(name, value, if_equal)
        await self._make(change)
        return TimestampedStorageGeneration(change.generation(name), change.time)

    def register_write(
        self, key: str, value: bytes | None, if_equal: bytes | None
    ) -> Registered[TimestampedStorageGeneration] | None:
        name = encode_key(key)
        if self._version is not None or len(name) > LONGEST_KEY:
            return None
        change = _one(name, value, if_equal)
        self._commits.add(change)
        return Registered(
            self._commits,
            change,
            lambda: TimestampedStorageGeneration(change.generation(name), change.time),
        )

    async def values_of(
        self, source: KvStore, key_range: KeyRange, staleness_bound: float | None
    ) -> Mapping[str, StoredValue] | None:
        if not isinstance(source, OcdbtStore):
            return None
        between = path_between(self._database, source._database)
        if between is None:
            return None
        found: dict[str, StoredValue] = {}
        if key_range.empty:
            return found
        tree, _ = await source._tree(time.time() if staleness_bound is None else staleness_bound)
        first, end = key_range.inclusive_min, key_range.exclusive_max
        database = self._database
        async for stretch in source._reader.leaves(tree, first, end):
            keys = stretch.keys(stretch.low, stretch.high, 0)
            for key, value in zip(keys, stretch.values(), strict=True):
                found[key.decode("utf-8", "surrogateescape")] = CopiedValue(
                    database, value, between
                )
        return found

    async def write_batch(
        self, values: Mapping[str, Buffer | StoredValue | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        change = Change(
            {encode_key(key): _given(value) for key, value in values.items()},
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


def _one(name: bytes, value: Given | None, if_equal: bytes | None) -> Change:
    return Change({name: value}, {} if if_equal is None else {name: if_equal})


def _given(value: Buffer | StoredValue | None) -> Given | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, CopiedValue):
        return value.value
    assert not isinstance(value, StoredValue)  # `values_of` gives no others
    return (value,)
