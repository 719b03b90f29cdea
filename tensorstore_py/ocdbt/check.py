"""Checking a database: every node and value reached, and what nothing reaches.

Nodes are decoded from their files, which checks their checksums and their order, and compared with
what refers to them. Values have no checksum; their files are looked at, or the values read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final, Literal, NamedTuple

from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.progress import ProgressLike, Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import DataLossError, NotFoundError, TensorStoreError
from tensorstore_py.kvstores.ocdbt import versions as stored
from tensorstore_py.kvstores.ocdbt.btree import Leaf
from tensorstore_py.kvstores.ocdbt.database import Database
from tensorstore_py.kvstores.ocdbt.manifest import Manifest
from tensorstore_py.kvstores.ocdbt.names import NAMES, read_names
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.ocdbt.extents import Extents
from tensorstore_py.ocdbt.files import MANIFEST, Files, files_of
from tensorstore_py.ocdbt.history import Range, listed
from tensorstore_py.ocdbt.place import FoundDatabase, found_database
from tensorstore_py.ocdbt.report import CheckReport, Problem, UnreachedFile
from tensorstore_py.ocdbt.walk import Visit, trunk, walk
from tensorstore_py.plugin.kvstore import ByteRange, fan_out

__all__ = ["TreeCheck", "ValueCheck", "check", "is_whole", "older_version_nodes"]

#: How many problems, unreached files and lost keys are told; all are counted.
_PROBLEMS: Final = 1000
_UNREACHED: Final = 1000
_KEYS: Final = 5
#: How many values are read at a time, and of how many bytes each.
_READS: Final = 16
_PIECE: Final = 4 << 20


class _Lost:
    """Values of one file that cannot be read, for one reason."""

    def __init__(self, generation: int, reference: Reference) -> None:
        self.generation = generation
        self.begin, self.end = reference.offset, reference.offset
        self.count = 0
        self.keys: tuple[bytes, ...] = ()

    def add(self, key: bytes, reference: Reference) -> None:
        self.begin = min(self.begin, reference.offset)
        self.end = max(self.end, reference.offset + reference.length)
        self.count += 1
        if len(self.keys) < _KEYS:
            self.keys = (*self.keys, key)


class ValueCheck:
    """Whether values that leaves refer to are there.

    Args:
        database: which.
        files: what is there.
        reads: whether values are read from end to end.
    """

    def __init__(self, database: Database, files: Files, *, reads: bool) -> None:
        self._database = database
        self._sizes = dict(files.sizes)
        self._reads = reads

    async def faults(self, leaf: Leaf) -> dict[int, str]:
        """What is wrong with the value of each place of a leaf, if anything."""
        found: dict[int, str] = {}
        asked: list[int] = []
        for number, value in enumerate(leaf.values):
            if not isinstance(value, Reference):
                continue
            size = self._sizes.get(value.file.path)
            if size is None:
                found[number] = "is missing"
            elif 0 <= size < value.offset + value.length:
                found[number] = f"has {size:,} bytes"
            elif self._reads or size < 0:
                asked.append(number)

        async def ask(number: int) -> None:
            value = leaf.values[number]
            assert isinstance(value, Reference)
            try:
                for begin, end in self._pieces(value):
                    await self._database.bytes_of(value, ByteRange(begin, end))
            except TensorStoreError as error:
                found[number] = f"cannot be read: {error}"

        await fan_out(self._database.inline, asked, ask, count=len(asked), width=_READS)
        return found

    def _pieces(self, value: Reference) -> Iterator[tuple[int, int]]:
        if not self._reads:
            # The last byte is there if all are.
            yield max(0, value.length - 1), value.length
            return
        for begin in range(0, value.length, _PIECE):
            yield begin, min(begin + _PIECE, value.length)


async def older_version_nodes(
    database: Database, manifest: Manifest
) -> AsyncGenerator[tuple[stored.VersionSubtree, stored.VersionNode | DataLossError], None]:
    """The nodes of the tree of versions, newest first, or what is wrong with them."""
    waiting = list(manifest.subtrees)
    while waiting:
        subtree = waiting.pop()
        try:
            node = await database.subtree(subtree)
        except DataLossError as error:
            yield subtree, error
            continue
        yield subtree, node
        waiting += node.subtrees


async def is_whole(
    database: Database, version: stored.Version, most: int, values: ValueCheck
) -> bool:
    """Whether every key of a version can be read."""
    root = trunk(version)
    if root is None:
        return True
    async with aclosing(walk(database, [root], most, set())) as visits:
        async for _, node, error in visits:
            if error is not None:
                return False
            if isinstance(node, Leaf) and await values.faults(node):
                return False
    return True


class _Counts(NamedTuple):
    """What was read so far."""

    versions: int = 0
    nodes: int = 0
    node_bytes: int = 0
    values: int = 0
    value_bytes: int = 0


class TreeCheck:
    """The trees of versions, looked at one after the other, each node once.

    Args:
        database: which.
        files: what is there.
        manifest: of the database.
        reads: whether values are read.
        reporter: of the progress.

    Attributes:
        reached: which bytes of which file are needed.
        problems: the first ones.
        problem_count: how many there are.
    """

    def __init__(
        self, database: Database, files: Files, manifest: Manifest, reads: bool, reporter: Reporter
    ) -> None:
        self._database = database
        self._files = files
        self._manifest = manifest
        self._most = manifest.config.max_decoded_node_bytes
        self.values = ValueCheck(database, files, reads=reads)
        self._reads = reads
        self._reporter = reporter
        self._seen: set[Reference] = set()
        self._lost: dict[tuple[bytes, str], _Lost] = {}
        self.counts = _Counts()
        self.reached = Extents()
        self.problems: list[Problem] = []
        self.problem_count = 0

    def add(self, problem: Problem) -> None:
        """Something is wrong."""
        self.problem_count += 1
        if len(self.problems) < _PROBLEMS:
            self.problems.append(problem)

    async def version(self, version: stored.Version) -> None:
        """Look at all nodes of a version that were not looked at yet."""
        self.counts = self.counts._replace(versions=self.counts.versions + 1)
        root = trunk(version)
        if root is None:
            return
        async with aclosing(walk(self._database, [root], self._most, self._seen)) as visits:
            async for visit in visits:
                await self._visit(version.generation, visit)

    async def history(self, *, trees: bool) -> None:
        """Look at the tree of versions, and at their trees if so asked."""
        for version in self._manifest.versions[-2::-1] if trees else ():
            await self.version(version)
        async with aclosing(older_version_nodes(self._database, self._manifest)) as nodes:
            async for subtree, node in nodes:
                self.reached.add(subtree.reference)
                if isinstance(node, DataLossError):
                    self.add(_damaged("versions", subtree.reference, node, 0))
                    continue
                if trees:
                    for version in reversed(node.versions):
                        await self.version(version)

    async def _visit(self, generation: int, visit: Visit) -> None:
        (branch, _, _), node, error = visit
        reference = branch.reference
        self.reached.add(reference)
        counts = self.counts
        size = reference.length
        if error is not None:
            lost = branch.statistics.keys if node is None else 0
            keys = (branch.key,) if lost else ()
            self.add(_damaged("node", reference, error, generation, lost, keys))
        elif isinstance(node, Leaf):
            await self._leaf(generation, branch.prefix, node)
            counts = self.counts
            if self._reads:
                size += branch.statistics.value_bytes
        self.counts = counts._replace(
            nodes=counts.nodes + 1, node_bytes=counts.node_bytes + reference.length
        )
        self._reporter.more(1, size)
        self._reporter.advance(size, 1)

    async def _leaf(self, generation: int, prefix: bytes, leaf: Leaf) -> None:
        faults = await self.values.faults(leaf)
        count = size = 0
        for number, value in enumerate(leaf.values):
            if not isinstance(value, Reference):
                continue
            self.reached.add(value)
            count += 1
            size += value.length
            fault = faults.get(number)
            if fault is not None:
                key = value.file.path, fault
                lost = self._lost.get(key)
                if lost is None:
                    lost = self._lost[key] = _Lost(generation, value)
                lost.add(prefix + leaf.keys[number], value)
        self.counts = self.counts._replace(
            values=self.counts.values + count, value_bytes=self.counts.value_bytes + size
        )

    def finish(self) -> None:
        """Tell of values that cannot be read, by file and reason."""
        for (path, what), lost in self._lost.items():
            name = path.decode("utf-8", "surrogateescape")
            place = self._database.data.store.describe_key(self._database.data.root + name)
            needed = (
                "" if what == "is missing" else f", bytes {lost.begin} to {lost.end} are needed"
            )
            text = what if what.startswith("cannot") else f"{place} {what}{needed}"
            keys = lost.keys
            self.add(
                Problem(
                    "values", text, name, lost.begin, lost.end, lost.generation, lost.count, keys
                )
            )


def _damaged(
    kind: Literal["versions", "node"],
    reference: Reference,
    error: TensorStoreError,
    generation: int,
    lost: int = 0,
    keys: tuple[bytes, ...] = (),
) -> Problem:
    begin, end = reference.offset, reference.offset + reference.length
    name = reference.file.path.decode("utf-8", "surrogateescape")
    return Problem(kind, str(error), name, begin, end, generation, lost, keys)


async def _check_names(found: FoundDatabase, checked: TreeCheck) -> None:
    snapshot = await found.snapshot()
    try:
        names = await read_names(found.database.manifests)
        for name, generation in names.items():
            if await found.database.by_generation(snapshot, generation) is None:
                text = f'the name "{name}" is of version {generation}, which is not there'
                checked.add(Problem("name", text, NAMES, generation=generation))
    except DataLossError as error:
        checked.add(Problem("name", str(error), NAMES))


async def _newest_whole(found: FoundDatabase, manifest: Manifest, checked: TreeCheck) -> int:
    latest = manifest.latest
    if latest is None:
        return 0
    bad = {problem.generation for problem in checked.problems if problem.kind in ("node", "values")}
    if latest.generation not in bad:
        return latest.generation
    database, most = found.database, manifest.config.max_decoded_node_bytes
    older = Range(last=latest.generation - 1)
    try:
        async with aclosing(listed(database, manifest, older, newest_first=True)) as versions:
            async for version in versions:
                if await is_whole(database, version, most, checked.values):
                    return version.generation
    except DataLossError:
        return 0  # the tree of versions is damaged: what is older cannot be found by it
    return 0


async def run_check(
    found: FoundDatabase, *, every: bool, reads: bool, reporter: Reporter
) -> CheckReport:
    """Check a database; see `check`."""
    reporter.begin(0, 0)
    try:
        manifest = await found.manifest()
        # Listed after the manifest was read: what that needs was there by then.
        files = await files_of(found)
    except (DataLossError, NotFoundError) as error:
        files = await files_of(found)
        if isinstance(error, NotFoundError) and not files.own:
            raise
        return _without_manifest(found, files, error)
    database = found.database
    checked = TreeCheck(database, files, manifest, reads, reporter)
    latest = await found.version() if found.model.version is not None else manifest.latest
    if latest is not None:
        await checked.version(latest)
    await checked.history(trees=every)
    checked.finish()
    await _check_names(found, checked)
    whole = await _newest_whole(found, manifest, checked)
    unreached = [path for path in files.own if path not in checked.reached]
    dead = sum(max(0, files.sizes[path] - (checked.reached.covered(path))) for path in files.own)
    return CheckReport(
        found.title,
        0 if latest is None else latest.generation,
        checked.counts.versions,
        every,
        0 if latest is None else latest.statistics.keys,
        checked.counts.nodes,
        checked.counts.node_bytes,
        checked.counts.values,
        checked.counts.value_bytes,
        len(files.own),
        files.own_bytes,
        _told(unreached, files),
        len(unreached),
        dead,
        tuple(checked.problems),
        checked.problem_count,
        whole,
    )


def _told(paths: list[bytes], files: Files) -> tuple[UnreachedFile, ...]:
    return tuple(
        UnreachedFile(path.decode("utf-8", "surrogateescape"), files.sizes[path])
        for path in sorted(paths)[:_UNREACHED]
    )


def _without_manifest(found: FoundDatabase, files: Files, error: TensorStoreError) -> CheckReport:
    problem = Problem("manifest", f"{error}; ts.ocdbt.repair looks for what is left", MANIFEST)
    count, size = len(files.own), files.own_bytes
    told = _told(files.own, files)
    return CheckReport(
        found.title, 0, 0, False, 0, 0, 0, 0, 0, count, size, told, count, size, (problem,), 1, 0
    )


def check(
    where: object,
    *,
    all_versions: bool = False,
    read_values: bool = False,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[CheckReport]:
    """Check a database: every node and value of its latest version, and of older ones if asked.

    Checked are the checksums and the order of the manifest and of all nodes, what each node says of
    those below it (heights, bounds of keys, statistics), that the files of values are there and
    long enough, and which files, and bytes within files, nothing needs. The format has no checksums
    of values. Nothing is changed. What others commit meanwhile is not looked at; files that they
    are writing count as not reached.

    Args:
        where: as for `versions`; with a version, that one is checked in place of the latest.
        all_versions: check older versions, too; what versions share is read once.
        read_values: read all values from end to end.
        progress: called with a `Progress`, of nodes as chunks; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `CheckReport`, which tells what is wrong, and which keys are lost.

    Raises:
        SpecError: (at once) the place is wrong.
        NotFoundError: (by the Future) there is no database, nor what is left of one.
        UnsupportedError: (by the Future) the store cannot list its keys.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://db/|ocdbt:").result()
        >>> db["a"] = b"1" * 1000
        >>> db.base.delete_range(ts.KvStore.KeyRange()).result()
        >>> db.base["manifest.ocdbt"] = b"damaged"
        >>> print(ts.ocdbt.check(db.base).result().problem_count)
        1
    """
    found = found_database(where, context)
    reporter = Reporter(progress, "check")
    return reporter.until(
        found.begin(
            lambda: run_check(found, every=all_versions, reads=read_values, reporter=reporter)
        )
    )
