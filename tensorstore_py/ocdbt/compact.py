"""Compacting a database: fewer versions, fewer files, beside readers and writers.

What stays is written first, then the manifest is replaced on the condition that it is still the one
that was read, and files are deleted last: so at any point there is a database with all that it
should have. If others commit meanwhile, what they committed is kept, and the rest is not done anew.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Final, NamedTuple

from tensorstore_py._display.info import human_size
from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.progress import ProgressLike, Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
)
from tensorstore_py.kvstores.ocdbt.btree import Leaf
from tensorstore_py.kvstores.ocdbt.database import Snapshot
from tensorstore_py.kvstores.ocdbt.manifest import Manifest, ManifestKind
from tensorstore_py.kvstores.ocdbt.names import read_names
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.versions import Version
from tensorstore_py.ocdbt.check import older_version_nodes
from tensorstore_py.ocdbt.extents import Extents
from tensorstore_py.ocdbt.files import MANIFEST, Files, files_of
from tensorstore_py.ocdbt.garbage import delete_due, noticed
from tensorstore_py.ocdbt.history import Range, listed, time_of
from tensorstore_py.ocdbt.moving import Mover
from tensorstore_py.ocdbt.place import FoundDatabase, found_database
from tensorstore_py.ocdbt.report import counted
from tensorstore_py.ocdbt.retention import Retention, manifest_of, with_last_of_groups
from tensorstore_py.ocdbt.walk import trunk, walk
from tensorstore_py.plugin.kvstore import RetryPolicy

__all__ = ["CompactReport", "compact"]

_CONFLICTS: Final = RetryPolicy()
_DAY_S: Final = 86400.0


class CompactReport(NamedTuple):
    """What a compaction did, or would do.

    Attributes:
        place: of the database.
        dry_run: nothing was done.
        versions_before: how many versions there were.
        versions: how many there are.
        kept_for_format: how many of these nobody asked for: the last ones of their groups, without
            which TensorStore could not read the tree of versions.
        left_files: how many data files were mostly dead, and are not needed any more.
        moved_bytes: what was needed of them, and was written anew, with the nodes above.
        waiting_files: how many data files nothing needs, but wait for the end of the grace.
        waiting_bytes: of these.
        deleted_files: how many were deleted.
        deleted_bytes: of these.
        due: when a further run can delete the first of those that wait, in s since 1970; None:
            none waits.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> for number in range(5):
        ...     db["a"] = b"%d" % number * 200
        >>> report = ts.ocdbt.compact(db, keep_last=1, grace=0).result()
        >>> report.versions_before, report.versions, report.deleted_files
        (6, 1, 4)
    """

    place: str
    dry_run: bool
    versions_before: int
    versions: int
    kept_for_format: int
    left_files: int
    moved_bytes: int
    waiting_files: int
    waiting_bytes: int
    deleted_files: int
    deleted_bytes: int
    due: float | None

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return self._asdict()

    def __str__(self) -> str:
        would = "would be " * self.dry_run
        extra = f", {self.kept_for_format:,} of them for the format" * bool(self.kept_for_format)
        moved = f"{human_size(self.moved_bytes)} {would}moved"
        lines = [
            f"{self.place} {would}compacted",
            f"  versions  {self.versions:,} of {self.versions_before:,} kept{extra}",
            f"  left      {counted(self.left_files, 'mostly dead file')}, {moved}",
            f"  deleted   {counted(self.deleted_files, 'file')}, {human_size(self.deleted_bytes)}",
            f"  waiting   {counted(self.waiting_files, 'file')}, {human_size(self.waiting_bytes)}",
        ]
        if self.due is not None and not self.dry_run:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.due))
            lines[-1] += f"; compact again after {when} to delete them"
        return "\n".join(lines)


class _Request(NamedTuple):
    """What is asked for."""

    retention: Retention
    live_below: float
    grace_s: float
    dry_run: bool


class _Plan(NamedTuple):
    """Which versions a manifest has, and which are to stay."""

    versions: list[Version]
    kept: list[Version]
    for_format: int

    @property
    def dropped(self) -> set[int]:
        return {each.generation for each in self.versions} - {each.generation for each in self.kept}


class _Compaction:
    """One run."""

    def __init__(self, found: FoundDatabase, request: _Request, reporter: Reporter) -> None:
        self._found = found
        self._database = found.database
        self._request = request
        self._reporter = reporter

    async def run(self) -> CompactReport:
        await _check_alone(self._found)
        # Listed before anything is read: what is written from here on is nobody's garbage.
        files = await files_of(self._found)
        self._reporter.begin(0, 0)
        snapshot = await self._found.snapshot()
        plan = await self._plan(snapshot)
        reached = await self._reached(snapshot, plan.kept, history=not plan.dropped)
        leaving = self._leaving(files, reached)
        if self._request.dry_run:
            return await self._foretold(files, plan, reached, leaving)
        assert snapshot.manifest is not None
        config = snapshot.manifest.config
        mover = Mover(self._database, config, self._found.prefixes, frozenset(leaving))
        if plan.dropped or leaving:
            plan = await self._commit(snapshot, plan, mover)
            now = await self._found.snapshot()
            versions = [each async for each in self._versions(now)]
            reached = await self._reached(now, versions, history=True)
        unreached = _names([path for path in files.own if path not in reached])
        deleted = await delete_due(
            self._database.manifests, self._database.data, unreached, self._request.grace_s
        )
        return await self._report(files, plan, leaving, mover.moved_bytes, unreached, deleted)

    async def _versions(self, snapshot: Snapshot) -> AsyncGenerator[Version, None]:
        manifest = snapshot.manifest
        assert manifest is not None
        async with aclosing(
            listed(self._database, manifest, Range(), newest_first=False)
        ) as versions:
            async for version in versions:
                yield version

    async def _plan(self, snapshot: Snapshot, also: dict[int, Version] | None = None) -> _Plan:
        """Which versions are to stay; `also`: versions that are to be there again."""
        assert snapshot.manifest is not None
        versions = [each async for each in self._versions(snapshot)]
        known = {each.generation for each in versions}
        versions += [each for number, each in (also or {}).items() if number not in known]
        versions.sort()
        if not versions:
            return _Plan([], [], 0)
        names = await read_names(self._database.manifests)
        wanted = self._request.retention.kept(versions, names.values())
        wanted |= {*(also or {})}
        config = snapshot.manifest.config
        latest = versions[-1].generation + (config.kind is ManifestKind.NUMBERED)
        kept = with_last_of_groups(wanted, latest, config.version_tree_arity_log2)
        stay = [each for each in versions if each.generation in kept]
        return _Plan(versions, stay, sum(each.generation not in wanted for each in stay))

    async def _reached(
        self, snapshot: Snapshot, versions: list[Version], *, history: bool
    ) -> Extents:
        """What some versions need; with `history` also what the tree of versions needs.

        Raises:
            DataLossError: something is damaged; names it.
        """
        manifest = snapshot.manifest
        assert manifest is not None
        reached, seen = Extents(), set[Reference]()
        most = manifest.config.max_decoded_node_bytes
        roots = [root for each in reversed(versions) if (root := trunk(each)) is not None]
        async with aclosing(walk(self._database, roots, most, seen)) as visits:
            async for (branch, _, _), node, error in visits:
                if error is not None:
                    raise DataLossError(
                        f"{error}; nothing was changed: see ts.ocdbt.check"
                    ) from error
                reached.add(branch.reference)
                if isinstance(node, Leaf):
                    for value in node.values:
                        if isinstance(value, Reference):
                            reached.add(value)
                self._reporter.more(1)
                self._reporter.advance(0, 1)
        if history:
            async with aclosing(older_version_nodes(self._database, manifest)) as nodes:
                async for subtree, found in nodes:
                    if isinstance(found, DataLossError):
                        raise found
                    reached.add(subtree.reference)
        return reached

    def _leaving(self, files: Files, reached: Extents) -> list[bytes]:
        part = self._request.live_below
        return [
            path
            for path in files.own
            if path in reached and reached.covered(path) < part * files.sizes[path]
        ]

    async def _commit(self, snapshot: Snapshot, plan: _Plan, mover: Mover) -> _Plan:
        """Store a manifest of the versions that stay, whatever others commit meanwhile."""
        database = self._database
        attempts = _CONFLICTS.begin("compact", database.describe, inline=database.inline)
        also: dict[int, Version] = {}
        while True:
            manifest = snapshot.manifest
            assert manifest is not None
            moved = await mover.versions(plan.kept)
            after = manifest_of(manifest.config, _ending(manifest, moved), mover.add_version_node)
            await mover.store()
            stored = await database.replace(snapshot, after)
            if stored is not None:
                dropped = {each.generation: each for each in plan.versions}
                # A version may have got its name just before it was dropped.
                names = await read_names(database.manifests)
                also = {
                    number: dropped[number] for number in names.values() if number in plan.dropped
                }
                if not also:
                    return plan
            else:
                await attempts.lost(snapshot.generation)
            snapshot = await self._found.snapshot()
            plan = await self._plan(snapshot, also)

    async def _foretold(
        self, files: Files, plan: _Plan, reached: Extents, leaving: list[bytes]
    ) -> CompactReport:
        known = await noticed(self._database.manifests)
        unreached = _names([path for path in files.own if path not in reached])
        now = time.time()
        due = [path for path in unreached if known.get(path, now) + self._request.grace_s <= now]
        size = sum(reached.covered(path) for path in leaving)
        return await self._report(files, plan, leaving, size, unreached + _names(leaving), due)

    async def _report(
        self,
        files: Files,
        plan: _Plan,
        leaving: list[bytes],
        moved: int,
        unreached: list[str],
        deleted: list[str],
    ) -> CompactReport:
        known = await noticed(self._database.manifests)
        gone = set(deleted)
        waiting = [path for path in unreached if path not in gone]
        times = [known[path] for path in waiting if path in known]
        return CompactReport(
            self._found.title,
            self._request.dry_run,
            len(plan.versions),
            len(plan.kept),
            plan.for_format,
            len(leaving),
            moved,
            len(waiting),
            _size(files, waiting),
            len(deleted),
            _size(files, deleted),
            min(times) + self._request.grace_s if times else None,
        )


def _ending(manifest: Manifest, versions: list[Version]) -> list[Version]:
    """Versions, and one more if a manifest can only be followed by one of a higher generation."""
    if manifest.config.kind is not ManifestKind.NUMBERED or not versions:
        return versions
    latest = versions[-1]
    now = max(time.time_ns(), latest.time_ns + 1)
    return [*versions, latest._replace(generation=latest.generation + 1, time_ns=now)]


def _names(paths: list[bytes]) -> list[str]:
    return [path.decode("utf-8", "surrogateescape") for path in paths]


def _size(files: Files, paths: list[str]) -> int:
    return sum(max(0, files.sizes[path.encode("utf-8", "surrogateescape")]) for path in paths)


async def _check_alone(found: FoundDatabase) -> None:
    """Refuse a database within the directory of another one, which may refer to its files."""
    store, root = found.database.data
    parts = root.split("/")[:-1]
    for depth in range(len(parts)):
        above = "".join(f"{part}/" for part in parts[:depth])
        try:
            result = await store.read(f"{above}{MANIFEST}")
        except (OutOfRangeError, PermissionDeniedError):
            continue
        if result.state == "value":
            raise FailedPreconditionError(
                f"{found.database.describe()} is in the directory of another database, "
                f"{store.describe_key(above + MANIFEST)}, which may refer to its files, as a "
                "checkpoint that was merged does: compact that one"
            )


def compact(
    where: object,
    *,
    keep_last: int | None = None,
    keep_since: datetime | str | None = None,
    live_below: float = 0.5,
    grace: float = _DAY_S,
    dry_run: bool = False,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[CompactReport]:
    """Remove old versions of a database, and the files that nothing needs; others may go on.

    Versions keep their generations and times. Kept are all versions, or, if one of these is said,
    those of `keep_last` and `keep_since`, those with a name, and the latest one; and with a version
    the last one of its group of 16, which the format needs (`kept_for_format`). What is still
    needed of mostly dead files moves to new ones.

    A file is deleted by a run that finds that nothing needs it, if an earlier run found so at least
    the `grace` before. So until then readers of versions that were removed go on, and so do
    writers, whose new files nothing needs until their commit. The default is a day: no commit, nor
    a reader of a removed version, may take longer. A grace of 0 deletes at once: only if nobody
    else uses the database. A process that is killed at any point leaves a whole database.

    Args:
        where: as for `versions`.
        keep_last: so many of the latest versions.
        keep_since: the versions that were committed then or later: a `datetime` with a time zone,
            or text such as `"2025-01-01T00:00:00Z"`.
        live_below: what is needed of a file moves if it is less than this part of the file; 0:
            nothing moves, versions are removed by reference only.
        grace: for how long a file must have been unreached before it is deleted, in s.
        dry_run: only find out what would be done.
        progress: called with a `Progress`, of nodes as chunks; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `CompactReport`.

    Raises:
        SpecError: (at once) the place or an argument is wrong.
        NotFoundError: (by the Future) there is no database.
        DataLossError: (by the Future) something is damaged, names it; nothing was changed.
        FailedPreconditionError: (by the Future) the database is in the directory of another one.
        AbortedError: (by the Future) others kept committing.
        UnsupportedError: (by the Future) the store cannot list its keys.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"], db["b"] = b"1" * 5000, b"2" * 5000
        >>> del db["a"]
        >>> print(ts.ocdbt.compact(db, keep_last=1, dry_run=True).result())
        memory://|ocdbt: would be compacted
          versions  1 of 4 kept
          left      0 mostly dead files, 0 B would be moved
          deleted   0 files, 0 B
          waiting   1 file, 5.0 KiB
    """
    for member, value in (("keep_last", keep_last), ("grace", grace), ("live_below", live_below)):
        if value is not None and value < 0:
            raise SpecError(f"expected 0 or more, not {value!r}", (member,))
    if live_below > 1:
        raise SpecError(f"expected a part from 0 to 1, not {live_below!r}", ("live_below",))
    since = None if keep_since is None else time_of(keep_since, "keep_since")
    found = found_database(where, context)
    reporter = Reporter(progress, "compact")
    request = _Request(Retention(keep_last, since), live_below, float(grace), dry_run)
    return reporter.until(found.begin(_Compaction(found, request, reporter).run))
