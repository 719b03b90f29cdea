"""Repairing a database: the newest version that is whole becomes the latest one again.

Nothing is deleted, and no data file is changed: there is one version more, or a manifest again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    SpecError,
)
from tensorstore_py.kvstores.ocdbt.data_files import NewDataFiles
from tensorstore_py.kvstores.ocdbt.database import Snapshot
from tensorstore_py.kvstores.ocdbt.history import with_version
from tensorstore_py.kvstores.ocdbt.manifest import (
    Config,
    Manifest,
    ManifestKind,
    decode_manifest,
    encode_manifest,
)
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.spec import parse_version
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, encode_version_node
from tensorstore_py.ocdbt.check import ValueCheck, is_whole, older_version_nodes
from tensorstore_py.ocdbt.dump import location, parse_location
from tensorstore_py.ocdbt.evidence import Evidence, Root, evidence_in
from tensorstore_py.ocdbt.files import MANIFEST, Files, files_of
from tensorstore_py.ocdbt.place import FoundDatabase, found_database
from tensorstore_py.ocdbt.report import counted
from tensorstore_py.ocdbt.retention import manifest_of
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN

__all__ = ["RepairReport", "repair"]


class RepairReport(NamedTuple):
    """What a repair did, or would do.

    Attributes:
        place: of the database.
        dry_run: nothing was done.
        repaired: whether anything was, or would be, done.
        source: whose keys the latest version has now, in words.
        generation: of the latest version now.
        keys: how many it has.
        lost: what is not there any more, in words.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> print(ts.ocdbt.repair(db).result())
        memory://|ocdbt: is whole: nothing to repair
    """

    place: str
    dry_run: bool
    repaired: bool
    source: str
    generation: int
    keys: int
    lost: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return self._asdict()

    def __str__(self) -> str:
        if not self.repaired:
            return f"{self.place} is whole: nothing to repair"
        verb = "would be repaired, with" if self.dry_run else "is repaired:"
        keys = counted(self.keys, "key")
        lines = [f"{self.place} {verb} v{self.generation} the latest version, of {keys}"]
        lines.append(f"  from  {self.source}")
        lines += [f"  lost  {each}" for each in self.lost]
        return "\n".join(lines)


class _Repair:
    """One run."""

    def __init__(
        self, found: FoundDatabase, wanted: int | str | None, root: str | None, dry_run: bool
    ) -> None:
        self._found = found
        self._database = found.database
        self._wanted = None if wanted is None else parse_version(wanted)
        self._root = None if root is None else parse_location(root)[1]
        self._dry_run = dry_run
        self._lost: list[str] = []
        self._new = NewDataFiles(found.database.data.store, found.database.data.root, 0)

    async def run(self) -> RepairReport:
        try:
            snapshot = await self._found.snapshot()
            files = await files_of(self._found)
        except (DataLossError, NotFoundError) as error:
            files = await files_of(self._found)
            numbers = await self._numbers()
            if isinstance(error, NotFoundError) and not files.own and not numbers:
                raise
            self._lost.append(f"the manifest: {error}")
            if numbers:
                return await self._numbered(files, numbers)
            return await self._from_evidence(files)
        assert snapshot.manifest is not None
        latest = snapshot.manifest.latest
        if latest is None:
            raise NotFoundError(f"{self._database.describe()}: there is no version yet")
        source = await self._source(snapshot.manifest, files)
        if source.generation == latest.generation:
            return self._report(False, f"v{latest.generation}", latest)
        return await self._again(snapshot, source, latest.generation + 1)

    # ------------------------------------------------------------- a version is the latest again

    async def _source(self, manifest: Manifest, files: Files) -> Version:
        """The version to go back to: the one that was asked for, or the newest that is whole."""
        database, most = self._database, manifest.config.max_decoded_node_bytes
        values = ValueCheck(database, files, reads=False)
        if self._wanted is not None:
            version = await self._found.version(self._wanted)
            if not await is_whole(database, version, most, values):
                raise DataLossError(
                    f"{database.describe()}: version {version.generation} is damaged, too; see "
                    "ts.ocdbt.check"
                )
            return version
        async with aclosing(self._newest_first(manifest)) as versions:
            async for version in versions:
                if await is_whole(database, version, most, values):
                    return version
        raise DataLossError(f"{database.describe()}: no version is whole")

    async def _newest_first(self, manifest: Manifest) -> AsyncGenerator[Version, None]:
        for version in reversed(manifest.versions):
            yield version
        async with aclosing(older_version_nodes(self._database, manifest)) as nodes:
            async for _, node in nodes:
                if not isinstance(node, DataLossError):
                    for version in reversed(node.versions):
                        yield version

    async def _again(self, snapshot: Snapshot, source: Version, generation: int) -> RepairReport:
        """Commit the keys of a version up to a generation."""
        database, manifest = self._database, snapshot.manifest
        assert manifest is not None
        assert manifest.latest is not None
        older = manifest.latest.generation
        if source.generation < older and source.generation:
            self._lost.append(
                f"what was committed after v{source.generation}: these versions stay, damaged as "
                "they are"
            )
        for number in range(older + 1, generation + 1):
            manifest = await self._with(manifest, _like(source, number, manifest.latest))
        latest = manifest.latest
        assert latest is not None
        if not self._dry_run:
            await self._new.store()
            if await database.replace(snapshot, manifest) is None:
                raise AbortedError(
                    f"{database.describe()} was changed meanwhile: nothing was done; check it again"
                )
        return self._report(True, f"v{source.generation}", latest)

    async def _with(self, manifest: Manifest, version: Version) -> Manifest:
        try:
            return await with_version(manifest, version, self._database.subtree, self._add)
        except DataLossError:
            whole = []
            for subtree in manifest.subtrees:
                try:
                    await self._database.subtree(subtree)
                    whole.append(subtree)
                except DataLossError as error:
                    self._lost.append(
                        f"{counted(subtree.versions, 'older version')} up to "
                        f"v{subtree.generation}: {error}"
                    )
        rest = manifest._replace(subtrees=whole)
        return await with_version(rest, version, self._database.subtree, self._add)

    def _add(self, node: VersionNode) -> Reference:
        data = encode_version_node(node, 0)
        return self._new.append(self._found.prefixes.version_nodes, data)

    # ------------------------------------------------------------------------ numbered manifests

    async def _numbers(self) -> list[int]:
        return list(await self._database._numbers())

    async def _numbered(self, files: Files, numbers: list[int]) -> RepairReport:
        """The manifest is one of those with numbers; the newest one that can be read."""
        store, root = self._database.manifests
        manifest = None
        for number in reversed(numbers):
            key = f"{root}manifest.{number:016x}"
            result = await store.read(key)
            try:
                manifest = decode_manifest(bytes(result.value))
                break
            except DataLossError as error:
                self._lost.append(f"v{number}: {store.describe_key(key)}: {error}")
        if manifest is None or manifest.latest is None:
            return await self._from_evidence(files)
        config = manifest.config._replace(kind=ManifestKind.NUMBERED)
        manifest = manifest._replace(config=config)
        assert manifest.latest is not None
        await self._restore_config(config)
        source = await self._source(manifest, files)
        if manifest.latest.generation == numbers[-1] == source.generation:
            return self._report(True, f"v{source.generation}", source)
        snapshot = Snapshot(manifest, NO_VALUE, time.time(), tuple(numbers))
        return await self._again(snapshot, source, numbers[-1] + 1)

    async def _restore_config(self, config: Config) -> None:
        """Store the manifest that only has the configuration, if it is damaged or gone."""
        store, root = self._database.manifests
        result = await store.read(f"{root}{MANIFEST}")
        if result.state == "value":
            try:
                decode_manifest(bytes(result.value))
            except DataLossError:
                pass
            else:
                return
        if not self._dry_run:
            await self._write(Manifest(config, [], []), result.stamp.generation)

    async def _write(self, manifest: Manifest, generation: bytes) -> None:
        store, root = self._database.manifests
        stamp = await store.write(
            f"{root}{MANIFEST}", encode_manifest(manifest), if_equal=generation
        )
        if stamp.generation == UNKNOWN:
            raise AbortedError(
                f"{self._database.describe()} was changed meanwhile: nothing was done; check it "
                "again"
            )

    # ------------------------------------------------------------------------------- no manifest

    async def _from_evidence(self, files: Files) -> RepairReport:
        """A new manifest, of what data files tell."""
        store, root = self._database.manifests
        before = await store.read(f"{root}{MANIFEST}")
        evidence = await evidence_in(self._database, files)
        source, name = await self._evident(evidence, files)
        older = [evidence.versions[number] for number in sorted(evidence.versions)]
        previous = older[-1] if older else None
        latest = _like(source, 1 if previous is None else previous.generation + 1, previous)
        config = self._found.model.config.new()._replace(kind=ManifestKind.SINGLE)
        if evidence.arity_log2 is not None:
            config = config._replace(version_tree_arity_log2=evidence.arity_log2)
        manifest = manifest_of(config, [*older, latest], self._add)
        self._lost.append(
            "the configuration: the new one is the default, or what the spec says; and the "
            f"versions after v{latest.generation - 1} but for the latest"
        )
        if not self._dry_run:
            await self._new.store()
            await self._write(manifest, before.stamp.generation)
        return self._report(True, name, latest)

    async def _evident(self, evidence: Evidence, files: Files) -> tuple[Version, str]:
        """The version to go back to, and how to name it."""
        roots = evidence.roots
        if self._root is not None:
            roots = [each for each in roots if each.version.root == self._root]
            if not roots:
                raise NotFoundError(
                    f"{self._database.describe()}: there is no whole tree at "
                    f"{location('btreenode', self._root)}"
                )
        if len(roots) == 1:
            where = location("btreenode", roots[0].version.root)
            return roots[0].version, f"the tree at {where}, which nothing that is left follows"
        if roots:
            shown = "\n".join(f"  {_described(each)}" for each in roots[:50])
            raise FailedPreconditionError(
                f"{self._database.describe()}: it cannot be told which of these trees was the "
                f"latest version; say root=…, one of\n{shown}"
            )
        values = ValueCheck(self._database, files, reads=False)
        for number in sorted(evidence.versions, reverse=True):
            version = evidence.versions[number]
            if await is_whole(self._database, version, 2**32 - 1, values):
                return version, f"v{number}, as the tree of versions tells"
        raise DataLossError(
            f"{self._database.describe()}: {counted(evidence.nodes, 'node')} of it are left, but "
            "no whole tree"
        )

    def _report(self, repaired: bool, source: str, latest: Version) -> RepairReport:
        return RepairReport(
            self._found.title,
            self._dry_run,
            repaired,
            source,
            latest.generation,
            latest.statistics.keys,
            tuple(self._lost),
        )


def _like(source: Version, generation: int, previous: Version | None) -> Version:
    now = time.time_ns()
    if previous is not None:
        now = max(now, previous.time_ns + 1)
    return source._replace(generation=generation, time_ns=now)


def _described(root: Root) -> str:
    keys, tree_bytes, value_bytes = root.version.statistics
    return (
        f"{location('btreenode', root.version.root)} ({counted(keys, 'key')}, "
        f"{tree_bytes + value_bytes:,} bytes)"
    )


def repair(
    where: object,
    *,
    version: int | str | None = None,
    root: str | None = None,
    dry_run: bool = False,
    context: Context | None = None,
) -> Future[RepairReport]:
    """Make the newest version that is whole the latest one, as a new version; nothing is deleted.

    A numbered manifest that is damaged is followed by one that goes on from the newest that can be
    read. If there is no manifest at all, nodes are looked for in the data files: they tell of older
    versions, and which tree of keys was the latest, if only one can have been. That may be one
    whose commit never came to its end.

    Args:
        where: as for `versions`.
        version: the version to go back to, by generation, name or time, even if a newer one is
            whole.
        root: if the manifest is lost: which tree was the latest, one of those that the error names.
        dry_run: only find out what would be done.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `RepairReport`, which tells what is lost.

    Raises:
        SpecError: (at once) the place or an argument is wrong.
        NotFoundError: (by the Future) there is no database, or no such version or tree.
        DataLossError: (by the Future) nothing that is left is whole.
        FailedPreconditionError: (by the Future) it cannot be told which tree was the latest.
        AbortedError: (by the Future) somebody committed meanwhile.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> del db["a"]
        >>> report = ts.ocdbt.repair(db, version=2).result()
        >>> report.generation, db["a"]
        (4, b'1')
    """
    if version is not None and root is not None:
        raise SpecError("a version and a root are two answers to one question; give one of them")
    found = found_database(where, context)
    return found.begin(_Repair(found, version, root, dry_run).run)
