"""A database as it is stored now: its manifest, looked up and kept, and its nodes and values.

A `Snapshot` is what was found by one look: the manifest, and the generation on whose condition it
is replaced. Nodes and values are in data files that never change; so they are read without asking
whether they are current, and nodes are kept by where they are. All who have a database open share
one such object.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from tensorstore_py.errors import DataLossError, NotFoundError, TensorStoreError
from tensorstore_py.kvstores.ocdbt.btree import Node, Value, decode_node
from tensorstore_py.kvstores.ocdbt.data_reads import AS_USUAL, Coalescing, DataReads, Extent
from tensorstore_py.kvstores.ocdbt.manifest import (
    Config,
    Manifest,
    ManifestKind,
    decode_manifest,
    encode_manifest,
)
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.tree import EMPTY, Tree
from tensorstore_py.kvstores.ocdbt.versions import (
    Version,
    VersionNode,
    VersionSubtree,
    decode_version_node,
)
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    KeyRange,
    KvStore,
    RetryPolicy,
    SingleFlights,
    counter,
    offload,
)

T = TypeVar("T")

__all__ = ["Database", "Place", "Snapshot", "tree_of"]

_CONFLICTS: Final = RetryPolicy()
_NUMBERED: Final = re.compile(r"manifest\.([0-9a-f]{16})")
#: How many numbered manifests stay, the latest included.
_KEPT: Final = 128
#: Nodes of the largest size that a configuration allows still have one entry too many now and then.
_SLACK: Final = 1 << 21


_UPDATES = counter(
    "/tensorstore/kvstore/ocdbt/manifest_updates", "manifests that replaced another one"
)
_LOST = counter(
    "/tensorstore/kvstore/ocdbt/manifest_update_errors", "manifests not stored: others were faster"
)


class Place(NamedTuple):
    """Keys of a store that begin alike."""

    store: KvStore
    root: str


class Snapshot:
    """See the head of this file.

    Args:
        manifest: what was found; None if there is no database.
        generation: of the value that a commit replaces.
        time: when that was last known to be current, in s since 1970.
        numbers: of the numbered manifests that are there.

    Attributes:
        tree: the keys of the latest version.
    """

    def __init__(
        self,
        manifest: Manifest | None,
        generation: bytes,
        time: float,
        numbers: tuple[int, ...] = (),
    ) -> None:
        self.manifest = manifest
        self.generation = generation
        self.time = time
        self.numbers = numbers
        latest = None if manifest is None else manifest.latest
        self.tree: Tree = EMPTY if latest is None else tree_of(latest)

    def follows(self, other: Snapshot) -> bool:
        """Whether it has later versions of the same database."""
        mine, its = self.manifest, other.manifest
        if mine is None or its is None or mine.config.uuid != its.config.uuid:
            return False
        return mine.latest is not None and (its.latest is None or mine.latest[:2] > its.latest[:2])


def tree_of(version: Version) -> Tree:
    """The keys of a version."""
    return Tree(version.root, version.height, version.statistics)


class Database:
    """See the head of this file.

    Args:
        data: where data files are.
        manifests: where manifests are.
        accepts: raises if a database must not have this configuration.
        recall: gives a node that is kept, or None.
        keep: keeps a node.
        coalescing: which reads of data files are made together.
    """

    def __init__(
        self,
        data: Place,
        manifests: Place,
        accepts: Callable[[Config], None],
        recall: Callable[[Reference], Node | None],
        keep: Callable[[Reference, Node], None],
        coalescing: Coalescing = AS_USUAL,
    ) -> None:
        self.data = data
        self.manifests = manifests
        self.inline = data.store.inline and manifests.store.inline
        self._accepts = accepts
        self._recall = recall
        self.keep = keep
        self._known: Snapshot | None = None
        self._looks = SingleFlights[Snapshot](inline=self.inline)
        self._loads = SingleFlights[Node](inline=self.inline)
        self._reads = DataReads(data.store, coalescing)

    def describe(self) -> str:
        """How to name the database to a person."""
        return self.manifests.store.describe_key(f"{self.manifests.root}manifest.ocdbt")

    # -------------------------------------------------------------------------------- the manifest

    async def latest(self) -> Snapshot:
        """What was found last; looked up if nothing ever was."""
        return self._known or await self.since(float("-inf"))

    async def since(self, time_s: float) -> Snapshot:
        """The database as it was at `time_s` or later, in s since 1970.

        Of any number who ask for it at a time one looks it up.

        Raises:
            DataLossError: its manifest is damaged; names it.
            FailedPreconditionError: its configuration is not what was asked for.
        """

        def kept() -> Snapshot | None:
            known = self._known
            return known if known is not None and known.time >= time_s else None

        async def look() -> Snapshot:
            return self.learn(await self._look_up(self._known))

        known = kept()
        if known is not None:
            return known
        return await self._looks.get(None, kept, look, lambda found: found.time >= time_s)

    def learn(self, snapshot: Snapshot) -> Snapshot:
        """Use a snapshot from now on, unless a later one is known."""
        known = self._known
        if known is None or known.time <= snapshot.time or snapshot.follows(known):
            self._known = snapshot
        return snapshot

    async def _look_up(self, known: Snapshot | None) -> Snapshot:
        """The database as it is now; the known snapshot again, if it is still current."""
        now = time.time()
        if known is not None and known.manifest is not None and known.numbers:
            return await self._look_up_numbered(known, known.manifest.config, now)
        store, root = self.manifests
        key = f"{root}manifest.ocdbt"
        before = None if known is None or known.manifest is None else known.generation
        result = await store.read(key, if_not_equal=before)
        if result.state == "missing":
            return Snapshot(None, NO_VALUE, now)
        if result.state == "unspecified":
            assert known is not None
            known.time = max(known.time, now)
            return known
        manifest = await self._decoded(key, result.value)
        self._accepts(manifest.config)
        if manifest.config.kind is ManifestKind.NUMBERED:
            return await self._look_up_numbered(None, manifest.config, now)
        return Snapshot(manifest, result.stamp.generation, now)

    async def _look_up_numbered(
        self, known: Snapshot | None, config: Config, now: float
    ) -> Snapshot:
        attempts = _CONFLICTS.begin("read", self.describe, inline=self.inline)
        store, root = self.manifests
        while True:
            numbers = await self._numbers()
            if not numbers:
                return Snapshot(Manifest(config, [], []), NO_VALUE, now)
            if known is not None and known.numbers and known.numbers[-1] == numbers[-1]:
                known.time, known.numbers = max(known.time, now), numbers
                return known
            key = f"{root}manifest.{numbers[-1]:016x}"
            result = await store.read(key)
            if result.state == "value":
                manifest = (await self._decoded(key, result.value))._replace(config=config)
                latest = manifest.latest
                if latest is None or latest.generation != numbers[-1]:
                    raise DataLossError(
                        f"{store.describe_key(key)}: corrupt manifest: its latest version is not "
                        f"the one of its number, {numbers[-1]}"
                    )
                return Snapshot(manifest, NO_VALUE, now, numbers)
            await attempts.lost()  # many commits later: it was removed meanwhile

    async def _numbers(self) -> tuple[int, ...]:
        store, root = self.manifests
        found = []
        async for entry in store.list(KeyRange.prefix(f"{root}manifest.")):
            name = _NUMBERED.fullmatch(entry.key[len(root) :])
            if name is not None:
                found.append(int(name[1], 16))
        return tuple(sorted(found))

    async def _decoded(self, key: str, value: Buffer) -> Manifest:
        try:
            return await offload(self.manifests.store.inline, lambda: decode_manifest(bytes(value)))
        except DataLossError as error:
            raise DataLossError(f"{self.manifests.store.describe_key(key)}: {error}") from error

    async def create(self, config: Config) -> Snapshot:
        """Store the first manifest, with an empty version, unless somebody else does."""
        store, root = self.manifests
        first = Version(1, time.time_ns(), EMPTY.height, EMPTY.root, EMPTY.statistics)
        manifest = Manifest(config, [first], [])
        sent = time.time()
        stamp = await store.write(
            f"{root}manifest.ocdbt", encode_manifest(manifest), if_equal=NO_VALUE
        )
        if stamp.generation == UNKNOWN:
            return await self.since(time.time())
        if config.kind is ManifestKind.NUMBERED:
            nothing = Snapshot(Manifest(config, [], []), NO_VALUE, sent)
            return await self.replace(nothing, manifest) or await self.since(time.time())
        return self.learn(Snapshot(manifest, stamp.generation, sent))

    async def replace(self, old: Snapshot, manifest: Manifest) -> Snapshot | None:
        """Store a manifest; None if the old one is not the latest any more."""
        if manifest.config.kind is ManifestKind.NUMBERED:
            return await self._add_numbered(old, manifest)
        store, root = self.manifests
        # Others may be next before the answer is here: it was current when it was sent.
        sent = time.time()
        stamp = await store.write(
            f"{root}manifest.ocdbt", encode_manifest(manifest), if_equal=old.generation
        )
        if stamp.generation == UNKNOWN:
            _LOST.note(1)
            return None
        _UPDATES.note(1)
        return self.learn(Snapshot(manifest, stamp.generation, sent))

    async def _add_numbered(self, old: Snapshot, manifest: Manifest) -> Snapshot | None:
        """Store the manifest of one more version; None if another one has its number."""
        store, root = self.manifests
        version = manifest.latest
        assert version is not None
        key = f"{root}manifest.{version.generation:016x}"
        single = manifest._replace(config=manifest.config._replace(kind=ManifestKind.SINGLE))
        sent = time.time()
        stamp = await store.write(key, encode_manifest(single), if_equal=NO_VALUE)
        if stamp.generation == UNKNOWN:
            _LOST.note(1)
            return None
        new = Snapshot(manifest, NO_VALUE, sent, (*old.numbers, version.generation))
        latest = await self._look_up_numbered(new, manifest.config, time.time())
        if latest is not new and await self.by_generation(latest, version.generation) != version:
            # There was one of that number, so long ago that it was removed since.
            await store.write(key, None, if_equal=stamp.generation)
            _LOST.note(1)
            return None
        _UPDATES.note(1)
        with suppress(TensorStoreError):  # the commit is done, and the next one removes them, too
            for number in latest.numbers[:-_KEPT]:
                await store.write(f"{root}manifest.{number:016x}", None)
        latest.numbers = latest.numbers[-_KEPT:]
        return self.learn(latest)

    # ---------------------------------------------------------------------------- nodes and values

    async def node(self, reference: Reference) -> Node:
        """A node of a tree of keys. Of any number who ask for it at a time one loads it.

        Raises:
            DataLossError: it is damaged or gone; names its file.
        """
        node = self._recall(reference)
        if node is not None:
            return node

        async def load() -> Node:
            most = await self._most_bytes()
            node = await self._decode(
                reference, lambda data: decode_node(data, reference.file.base, most)
            )
            self.keep(reference, node)
            return node

        return await self._loads.get(reference, lambda: self._recall(reference), load)

    async def nodes(self, references: Sequence[Reference]) -> list[Node]:
        """Several nodes; those that are side by side in a data file are loaded by one request.

        Raises:
            DataLossError: as for `node`.
        """
        if len(references) == 1:
            return [await self.node(references[0])]
        there = {reference: self._recall(reference) for reference in references}
        absent = [reference for reference, node in there.items() if node is None]
        if absent:
            most = await self._most_bytes()
            parts = await self.bytes_of_several([(reference, WHOLE) for reference in absent])

            def decode() -> None:
                for reference, data in zip(absent, parts, strict=True):
                    base = reference.file.base
                    node = self._decoded_from(
                        reference, data, partial(decode_node, base=base, most=most)
                    )
                    there[reference] = node
                    self.keep(reference, node)

            await offload(self.data.store.inline, decode)
        return [cast("Node", there[reference]) for reference in references]

    async def version_node(self, reference: Reference) -> VersionNode:
        """A node of the tree of versions.

        Raises:
            DataLossError: it is damaged or gone; names its file.
        """
        most = await self._most_bytes()
        return await self._decode(
            reference, lambda data: decode_version_node(data, reference.file.base, most)
        )

    async def _most_bytes(self) -> int:
        known = await self.latest()
        limit = 0 if known.manifest is None else known.manifest.config.max_decoded_node_bytes
        return limit + _SLACK

    async def _decode(self, reference: Reference, decode: Callable[[bytes], T]) -> T:
        data = await self.bytes_of(reference)
        return await offload(
            self.data.store.inline, lambda: self._decoded_from(reference, data, decode)
        )

    def _decoded_from(self, reference: Reference, data: Buffer, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(bytes(data))
        except DataLossError as error:
            raise DataLossError(f"{self.place_of(reference)}: {error}") from error

    def place_of(self, reference: Reference) -> str:
        """How to name what is referred to, to a person."""
        return self._reads.describe(self._extent(reference, 0, reference.length))

    def _extent(self, reference: Reference, start: int, stop: int) -> Extent:
        """A part of what is referred to."""
        key = self.data.root + reference.file.path.decode("utf-8", "surrogateescape")
        return Extent(key, reference.offset + start, reference.offset + stop)

    async def bytes_of(self, reference: Reference, byte_range: ByteRange | None = None) -> Buffer:
        """What is referred to, or a part of it.

        Raises:
            OutOfRangeError: the part reaches outside.
            DataLossError: the file is gone, or too short; names it.
        """
        (value,) = await self.bytes_of_several([(reference, byte_range or WHOLE)])
        return value

    async def bytes_of_several(self, wanted: Sequence[tuple[Value, ByteRange]]) -> list[Buffer]:
        """Values, or parts of them; those that are side by side in a data file by one request.

        Raises:
            OutOfRangeError, DataLossError: as for `bytes_of`.
        """
        found: list[Buffer] = [b""] * len(wanted)
        extents: dict[int, Extent] = {}
        for number, (value, byte_range) in enumerate(wanted):
            if not isinstance(value, Reference):
                start, stop = byte_range.resolve(len(value))
                found[number] = value[start:stop]
                continue
            start, stop = byte_range.resolve(value.length)
            if start < stop:
                extents[number] = self._extent(value, start, stop)
        if len(extents) == 1:
            ((number, extent),) = extents.items()
            found[number] = await self._reads.read(extent)
        elif extents:
            values = await self._reads.read_several(list(extents.values()))
            for number, part in zip(extents, values, strict=True):
                found[number] = part
        return found

    async def value_part(self, value: Value, byte_range: ByteRange) -> Buffer:
        """A value, or a part of it; small ones in data files may be read ahead.

        Raises:
            OutOfRangeError, DataLossError: as for `bytes_of`.
        """
        if not isinstance(value, Reference):
            start, stop = byte_range.resolve(len(value))
            return value[start:stop]
        start, stop = byte_range.resolve(value.length)
        if start == stop:
            return b""
        return await self._reads.read_value(self._extent(value, start, stop))

    # ----------------------------------------------------------------------------------- versions

    async def sought(self, generation: int | None, time_ns: int, said: str) -> Version:
        """A version that is asked for.

        Args:
            generation: of the version; None for the latest one of a time.
            time_ns: when it was committed at the latest, in ns since 1970.
            said: how messages name it.

        Raises:
            NotFoundError: there is none.
        """
        snapshot = await self.latest()
        for _ in range(2):
            found = (
                await self.by_time(snapshot, time_ns)
                if generation is None
                else await self.by_generation(snapshot, generation)
            )
            if found is not None:
                return found
            snapshot = await self.since(time.time())
        raise NotFoundError(f"{self.describe()}: there is no version {said}")

    async def by_generation(self, snapshot: Snapshot, generation: int) -> Version | None:
        """The version of that generation."""
        found = await self._latest_where(
            snapshot,
            lambda version: version.generation <= generation,
            lambda subtrees: (each for each in subtrees if each.generation >= generation),
        )
        return found if found is not None and found.generation == generation else None

    async def by_time(self, snapshot: Snapshot, time_ns: int) -> Version | None:
        """The latest version that was committed at that time, in ns since 1970, or before."""
        return await self._latest_where(
            snapshot,
            lambda version: version.time_ns <= time_ns,
            lambda subtrees: (each for each in reversed(subtrees) if each.time_ns <= time_ns),
        )

    async def _latest_where(
        self,
        snapshot: Snapshot,
        holds: Callable[[Version], bool],
        candidates: Callable[[list[VersionSubtree]], Iterator[VersionSubtree]],
    ) -> Version | None:
        """The latest version that `holds`, in the first of the `candidates` at each height."""
        manifest = snapshot.manifest
        if manifest is None:
            return None
        versions, subtrees = manifest.versions, manifest.subtrees
        while True:
            for version in reversed(versions):
                if holds(version):
                    return version
            subtree = next(candidates(subtrees), None)
            if subtree is None:
                return None
            node = await self.subtree(subtree)
            versions, subtrees = node.versions, node.subtrees

    async def subtree(self, subtree: VersionSubtree) -> VersionNode:
        node = await self.version_node(subtree.reference)
        last = node.generation
        if node.height != subtree.height or last != subtree.generation:
            raise DataLossError(
                f"{self.place_of(subtree.reference)}: the version tree node of height "
                f"{node.height} ends with generation {last}; what refers to it says height "
                f"{subtree.height} and generation {subtree.generation}"
            )
        return node
