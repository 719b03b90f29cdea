"""Changing a database: whatever waits becomes one new version.

Values and new nodes are written to new data files, and then the manifest is replaced on the
condition that it is still the one that the change was made to. If another process was first, the
change is made again to what that one stored; values that are stored already stay where they are.
"""

from __future__ import annotations

import time
from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from operator import itemgetter
from typing import Final, TypeVar

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.kvstores.ocdbt.btree import LONGEST_KEY, Node, Value, encode_node
from tensorstore_py.kvstores.ocdbt.data_files import DataFilePrefixes, NewDataFiles
from tensorstore_py.kvstores.ocdbt.database import Database, Snapshot
from tensorstore_py.kvstores.ocdbt.history import with_version
from tensorstore_py.kvstores.ocdbt.manifest import Config, Manifest, ManifestKind
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.tree import Tree, TreeReader
from tensorstore_py.kvstores.ocdbt.tree_changes import Edits, TreeWriter
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, encode_version_node
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    Buffer,
    GroupCommit,
    KeyRange,
    PendingChange,
    RetryPolicy,
    ThreadLimiter,
    content_generation,
    holds,
    offload,
)

__all__ = ["Change", "Commits", "Given", "generation_of"]

#: How many times as long as an attempt takes the wait after it is at most. Who has the latest
#: version at hand is faster than who lost: those that waited longer would lose again and again.
_LONGEST_WAIT: Final = 8
_CONFLICTS: Final = RetryPolicy()

#: Less than so many entries are done at once, wherever that is.
_FEW: Final = 500

T = TypeVar("T")

#: A value that is to be stored.
Given = Value | tuple[Buffer, ...]


def generation_of(value: Value | None) -> bytes:
    """The generation of what a leaf has for a key."""
    if value is None:
        return NO_VALUE
    if isinstance(value, Reference):
        base, name = value.file
        said = f"{value.offset},{value.length},{len(base)},".encode()
        return b"@" + blake2b(said + base + name, digest_size=16).digest()
    return content_generation(value)


class Change(PendingChange):
    """What a writer wants: all of it at once, or nothing.

    Args:
        given: by key, in pieces of memory that never change, or as leaves have it; None deletes.
        conditions: generations that must be the stored ones.
        removed: a range to delete.

    Attributes:
        values: as leaves have them, once large ones have a place in a data file.
        failed: a key whose condition did not hold; then nothing of it was done.
        time: when that was current, in s since 1970.
    """

    def __init__(
        self,
        given: Mapping[bytes, Given | None],
        conditions: Mapping[bytes, bytes],
        removed: KeyRange | None = None,
    ) -> None:
        super().__init__()
        longest = max(map(len, given), default=0)
        if longest > LONGEST_KEY:
            raise SpecError(
                f"a key of {longest} bytes cannot be stored in an OCDBT database, whose keys "
                f"have {LONGEST_KEY} bytes at most"
            )
        self.given = given
        self.values: dict[bytes, Value | None] | None = None
        self.conditions = conditions
        self.removed = removed
        self.failed: bytes | None = None
        self.time = 0.0

    def generation(self, key: bytes) -> bytes:
        """Of what was stored at a key; `UNKNOWN` if nothing was."""
        if self.failed is not None or self.values is None:
            return UNKNOWN
        return generation_of(self.values[key])


class _Draft:
    """What several changes amount to, made to one tree in their order."""

    def __init__(self, reader: TreeReader, tree: Tree, place: Callable[[Given], Value]) -> None:
        self._reader = reader
        self._tree = tree
        self._place = place
        self._points: dict[bytes, Value | None] = {}
        self._removed: list[tuple[bytes, bytes]] = []

    async def apply(self, change: Change) -> None:
        change.failed = None
        for key, generation in change.conditions.items():
            if not holds(generation, generation_of(await self._current(key))):
                change.failed = key
                return
        if change.removed is not None and not change.removed.empty:
            self._remove(change.removed.inclusive_min, change.removed.exclusive_max)
        if change.values is None:
            change.values = {
                key: None if value is None else self._place(value)
                for key, value in change.given.items()
            }
        self._points.update(change.values)

    async def _current(self, key: bytes) -> Value | None:
        if key in self._points:
            return self._points[key]
        if _covered(self._removed, key):
            return None
        return await self._reader.find(self._tree, key)

    def _remove(self, low: bytes, high: bytes) -> None:
        for key in [key for key in self._points if low <= key and (not high or key < high)]:
            del self._points[key]
        apart = []
        for other_low, other_high in self._removed:
            if (high and other_low > high) or (other_high and low > other_high):
                apart.append((other_low, other_high))
            else:
                low = min(low, other_low)
                high = max(high, other_high) if high and other_high else b""
        insort(apart, (low, high))
        self._removed = apart

    @property
    def size(self) -> int:
        """How many keys are set or removed."""
        return len(self._points)

    def edits(self) -> Edits:
        keys = sorted(self._points)
        return Edits(self._removed, keys, list(map(self._points.__getitem__, keys)))


def _covered(ranges: list[tuple[bytes, bytes]], key: bytes) -> bool:
    place = bisect_right(ranges, key, key=itemgetter(0)) - 1
    return place >= 0 and (not ranges[place][1] or key < ranges[place][1])


def _patience(took_s: float) -> RetryPolicy:
    """How attempts are made again of which the first one took so long."""
    longest = max(_CONFLICTS.initial_s, min(_CONFLICTS.longest_s, _LONGEST_WAIT * took_s))
    return replace(_CONFLICTS, longest_s=longest)


class Commits(GroupCommit[Change]):
    """All writers of one database in this process.

    Args:
        database: which.
        new_config: gives the configuration of a database that is not there yet.
        prefixes: of new data files.
        target_bytes: of a data file.
        places: each holds one while it computes.
        assumes: whether data files are written before the first manifest is.
    """

    def __init__(
        self,
        database: Database,
        new_config: Callable[[], Config],
        prefixes: DataFilePrefixes,
        target_bytes: int,
        places: ThreadLimiter,
        *,
        assumes: bool = False,
    ) -> None:
        self._database = database
        self._new_config = new_config
        self._prefixes = prefixes
        self._target = target_bytes
        self._places = places
        self._assumes = assumes
        self._at_once = 0  # entries since others on the loop had their turn
        super().__init__(inline=database.inline)

    async def commit(self, batch: list[Change]) -> None:
        """Make changes in their order, as one version."""
        database = self._database
        began = time.time()
        known = await database.latest()
        attempts = None
        files = NewDataFiles(database.data.store, database.data.root, self._target)
        while True:
            manifest = known.manifest or Manifest(self._new_config(), [], [])
            numbered = manifest.config.kind is ManifestKind.NUMBERED
            if known.manifest is None and (numbered or not self._assumes):
                known = await database.create(manifest.config)
                manifest = known.manifest or manifest
            place = partial(self._place, files, manifest.config.max_inline_value_bytes)
            draft = _Draft(TreeReader(database.node), known.tree, place)
            try:
                for change in batch:
                    await draft.apply(change)
                edits = draft.edits()
                if edits and (known.time >= began or not any(change.failed for change in batch)):
                    new = await self._store(known, manifest, edits, files)
                    # That nothing changes is only so of the database as it is now.
                    if new is not None and (new is not known or known.time >= began):
                        break
                    if new is None:
                        attempts = attempts or _patience(time.time() - began).begin(
                            "change", database.describe, inline=database.inline
                        )
                        await attempts.lost((known.generation, known.numbers[-1:]))
                elif known.time >= began:
                    break
            except DataLossError:
                # Of what was known long ago, files may have been removed since, with its versions.
                if known.time >= began:
                    raise
            began = time.time()
            known = await database.since(began)
        now = time.time()
        for change in batch:
            change.time = now

    async def _compute(self, entries: int, function: Callable[[], T]) -> T:
        """Run a function of so many entries, and not on the loop if that takes long."""
        self._at_once += entries
        if self._at_once < _FEW:
            return function()
        self._at_once = 0

        def hold() -> T:
            with self._places:
                return function()

        return await offload(self._inline, hold)

    def _place(self, files: NewDataFiles, most_inline: int, value: Given) -> Value:
        """A value as a leaf has it: itself, or where it is going to be."""
        if isinstance(value, bytes):
            if len(value) <= most_inline:
                return value
            return files.append(self._prefixes.values, value)
        if isinstance(value, Reference):
            return value
        if sum(map(len, value)) <= most_inline:
            return b"".join(value)
        return files.append(self._prefixes.values, *value)

    async def _store(
        self, known: Snapshot, manifest: Manifest, edits: Edits, files: NewDataFiles
    ) -> Snapshot | None:
        """One more version; `known` itself if nothing changes, None if it was replaced."""
        database, config = self._database, manifest.config
        fresh: dict[Reference, Node] = {}

        async def load(references: Sequence[Reference]) -> list[Node]:
            # What is new is only looked at again by itself, as the root.
            new = fresh.get(references[0])
            return await database.nodes(references) if new is None else [new]

        def add(node: Node) -> Reference:
            data = encode_node(node, config.zstd_level)
            reference = files.append(self._prefixes.btree_nodes, data)
            fresh[reference] = node
            return reference

        def add_version_node(node: VersionNode) -> Reference:
            data = encode_version_node(node, config.zstd_level)
            return files.append(self._prefixes.version_nodes, data)

        writer = TreeWriter(load, add, config.max_decoded_node_bytes, self._compute)
        tree = await writer.changed(known.tree, edits)
        latest = manifest.latest
        if tree == known.tree and latest is not None:
            return known
        now = time.time_ns()
        version = Version(
            1 if latest is None else latest.generation + 1,
            now if latest is None else max(now, latest.time_ns + 1),
            tree.height,
            tree.root,
            tree.statistics,
        )
        after = await with_version(manifest, version, database.subtree, add_version_node)
        await files.store()
        for reference, node in fresh.items():
            database.keep(reference, node)
        return await database.replace(known, after)
