"""The versions of a database: listed lazily, opened, named.

A listing walks the tree of versions from either end, and holds what a few of its nodes have.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._display.info import human_size
from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import NotFoundError, SpecError
from tensorstore_py.kvstores.ocdbt import versions as stored
from tensorstore_py.kvstores.ocdbt.database import Database
from tensorstore_py.kvstores.ocdbt.manifest import Manifest
from tensorstore_py.kvstores.ocdbt.names import change_names, check_name, read_names
from tensorstore_py.kvstores.ocdbt.spec import parse_version
from tensorstore_py.ocdbt.place import FoundDatabase, found_database
from tensorstore_py.plugin.kvstore import fan_out

__all__ = [
    "Range",
    "Version",
    "Versions",
    "listed",
    "name",
    "names",
    "open",
    "text_time",
    "time_of",
    "unname",
    "versions",
]

_PAGE: Final = 1000
#: How many nodes of the tree of versions are read at a time.
_AHEAD: Final = 32
_NO_END: Final = 2**64


def text_time(time_ns: int) -> str:
    """A time as specs have it.

    Example:
        >>> text_time(1_000_000_001)
        '1970-01-01T00:00:01.000000001Z'
    """
    seconds, rest = divmod(time_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


class Version(NamedTuple):
    """A version of a database.

    Attributes:
        generation: 1 for the first one; of later ones higher.
        time_ns: when it was committed, in ns since 1970.
        keys: how many it has.
        value_bytes: of the values that are not in the tree itself.
        node_bytes: of the nodes of the tree.
        height: of the tree.
        names: that were given to it.

    Example:
        >>> print(Version(3, 0, 1000, 2**30, 4096, 0, ("released",)))
        v3  1970-01-01T00:00:00.000Z  1,000 keys  1.0 GiB values  4.0 KiB nodes  released
    """

    generation: int
    time_ns: int
    keys: int
    value_bytes: int
    node_bytes: int
    height: int
    names: tuple[str, ...] = ()

    @property
    def time(self) -> datetime:
        """When it was committed, in UTC, to the microsecond."""
        return datetime.fromtimestamp(self.time_ns // 10**9, UTC).replace(
            microsecond=self.time_ns % 10**9 // 1000
        )

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        found = {**self._asdict(), "time": text_time(self.time_ns), "names": list(self.names)}
        del found["time_ns"]
        return found

    def __str__(self) -> str:
        named = f"  {', '.join(self.names)}" if self.names else ""
        count = "1 key" if self.keys == 1 else f"{self.keys:,} keys"
        return (
            f"v{self.generation}  {text_time(self.time_ns)[:-7]}Z  {count}  "
            f"{human_size(self.value_bytes)} values  {human_size(self.node_bytes)} nodes{named}"
        )


class Range(NamedTuple):
    """Which versions are meant: ends included.

    Attributes:
        first: the lowest generation.
        last: the highest generation.
        since: the earliest time, in ns since 1970.
        until: the latest time.
    """

    first: int = 0
    last: int = _NO_END
    since: int = 0
    until: int = _NO_END

    def has(self, version: stored.Version) -> bool:
        """Whether a version is meant."""
        return (
            self.first <= version.generation <= self.last
            and self.since <= version.time_ns <= self.until
        )

    def may_have(
        self, subtree: stored.VersionSubtree, following_ns: int | None, arity_log2: int
    ) -> bool:
        """Whether a subtree may have some; `following_ns` is when what follows it begins."""
        bits = arity_log2 * (subtree.height + 1)
        lowest = ((subtree.generation - 1) >> bits << bits) + 1
        return (
            subtree.generation >= self.first
            and lowest <= self.last
            and subtree.time_ns <= self.until
            and (following_ns is None or following_ns >= self.since)
        )


_Entry = stored.Version | stored.VersionSubtree


async def listed(
    database: Database, manifest: Manifest, wanted: Range, *, newest_first: bool
) -> AsyncGenerator[stored.Version, None]:
    """The versions of a range, in order.

    Raises:
        DataLossError: a node of the tree of versions is damaged; names its file.
    """
    arity_log2 = manifest.config.version_tree_arity_log2

    def chosen(entries: list[_Entry], following_ns: int | None) -> list[_Entry]:
        found: list[_Entry] = []
        times = [*(entry.time_ns for entry in entries[1:]), following_ns]
        for entry, following in zip(entries, times, strict=True):
            if isinstance(entry, stored.Version):
                inside = wanted.has(entry)
            else:
                inside = wanted.may_have(entry, following, arity_log2)
            if inside:
                found.append(entry)
        return found if newest_first else found[::-1]

    waiting = chosen([*manifest.subtrees, *manifest.versions], None)
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, stored.Version):
            yield entry
            continue
        subtrees = [entry]
        while waiting and len(subtrees) < _AHEAD:
            following = waiting[-1]
            if isinstance(following, stored.Version) or following.height != entry.height:
                break
            subtrees.append(following)
            waiting.pop()
        nodes: dict[int, list[_Entry]] = {}

        async def load(
            number: int,
            subtrees: list[stored.VersionSubtree] = subtrees,
            nodes: dict[int, list[_Entry]] = nodes,
        ) -> None:
            node = await database.subtree(subtrees[number])
            nodes[number] = [*node.versions, *node.subtrees]

        await fan_out(
            database.inline, range(len(subtrees)), load, count=len(subtrees), width=_AHEAD
        )
        for number in reversed(range(len(subtrees))):
            waiting += chosen(nodes[number], None)


class Versions:
    """Versions of a database: `for`, `async for`, or all at once with `.result()` or `await`.

    Each loop is a listing of its own.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> [each.generation for each in ts.ocdbt.versions(db)]
        [2, 1]
    """

    def __init__(self, found: FoundDatabase, wanted: Range, newest_first: bool) -> None:
        self._found = found
        self._wanted = wanted
        self._newest_first = newest_first

    async def _listing(self) -> AsyncGenerator[Version, None]:
        database = self._found.database
        manifest = await self._found.manifest()
        named = await _names_by_generation(database)
        async with aclosing(
            listed(database, manifest, self._wanted, newest_first=self._newest_first)
        ) as found:
            async for version in found:
                yield _public(version, named)

    def result(self) -> list[Version]:
        """All of them."""
        return self._found.begin(self._collect).result()

    def __await__(self) -> Generator[object, None, list[Version]]:
        return self._found.begin(self._collect).__await__()

    async def _collect(self) -> list[Version]:
        return [each async for each in self._listing()]

    def __iter__(self) -> Iterator[Version]:
        listing = self._listing()
        try:
            while page := self._found.begin(lambda: _next_page(listing)).result():
                yield from page
        finally:
            # The garbage collector may end it, on any thread: none may wait.
            self._found.begin(listing.aclose)

    async def __aiter__(self) -> AsyncIterator[Version]:
        listing = self._listing()
        try:
            while page := await self._found.begin(lambda: _next_page(listing)):
                for each in page:
                    yield each
        finally:
            await self._found.begin(listing.aclose)


async def _next_page(listing: AsyncIterator[Version]) -> list[Version]:
    page = []
    async for each in listing:
        page.append(each)
        if len(page) == _PAGE:
            break
    return page


async def _names_by_generation(database: Database) -> dict[int, tuple[str, ...]]:
    named: dict[int, tuple[str, ...]] = {}
    for each, generation in (await read_names(database.manifests)).items():
        named[generation] = (*named.get(generation, ()), each)
    return named


def _public(version: stored.Version, named: dict[int, tuple[str, ...]]) -> Version:
    keys, node_bytes, value_bytes = version.statistics
    return Version(
        version.generation,
        version.time_ns,
        keys,
        value_bytes,
        node_bytes,
        version.height,
        named.get(version.generation, ()),
    )


def time_of(given: object, member: str) -> int:
    """A time in ns since 1970, of a `datetime`, or of text such as `"2025-01-01T00:00:00Z"`.

    Raises:
        SpecError: it is neither.
    """
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise SpecError("this time has no time zone; say which, for example UTC", (member,))
        apart = given - datetime(1970, 1, 1, tzinfo=UTC)
        return ((apart.days * 86400 + apart.seconds) * 10**6 + apart.microseconds) * 1000
    if isinstance(given, str):
        try:
            wanted = parse_version(given)
        except SpecError as error:
            raise error.inside(member) from None
        if not wanted.named:
            return wanted.time_ns
    raise SpecError(
        f'expected a datetime or a time such as "2025-01-01T00:00:00Z", not {given!r:.60}',
        (member,),
    )


def versions(
    where: object,
    *,
    first: int | None = None,
    last: int | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    newest_first: bool = True,
    context: Context | None = None,
) -> Versions:
    """The versions of a database, while they are listed: for more of them than memory holds.

    Args:
        where: a `KvStore`, a spec, a URL or a local path (`os.PathLike`), of an OCDBT database, or
            of the directory that has its manifest.
        first: the lowest generation.
        last: the highest generation.
        since: only what was committed then or later: a `datetime` with a time zone, or text such as
            `"2025-01-01T00:00:00Z"`.
        until: only what was committed then or before.
        newest_first: False: the oldest one first.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        What `for` and `async for` go through, and `.result()` and `await` give all of.

    Raises:
        SpecError: (at once) the place or a time is wrong.
        NotFoundError: (in the loop) there is no database.
        DataLossError: (in the loop) the manifest or a node is damaged; names the file.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> db["b"] = b"2"
        >>> [(each.generation, each.keys) for each in ts.ocdbt.versions(db, first=2)]
        [(3, 2), (2, 1)]
    """
    wanted = Range(
        0 if first is None else first,
        _NO_END if last is None else last,
        0 if since is None else time_of(since, "since"),
        _NO_END if until is None else time_of(until, "until"),
    )
    return Versions(found_database(where, context), wanted, newest_first)


def open(
    where: object, version: int | str | None = None, *, context: Context | None = None
) -> Future[KvStore]:
    """Open a version of a database as a store.

    Args:
        where: as for `versions`.
        version: its generation, its name, or a time such as `"2025-01-01T00:00:00Z"`: the latest
            one that was committed by then. None: the latest one, which can be written, too.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: (at once) the place or the version is wrong.
        NotFoundError: (by the Future) there is no such database or version.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> ts.ocdbt.name(db, "first").result()
        {'first': 2}
        >>> db["a"] = b"2"
        >>> ts.ocdbt.open(db, "first").result()["a"], ts.ocdbt.open(db, 2).result()["a"]
        (b'1', b'1')
    """
    found = found_database(where, context)
    store = found.at(version)

    async def body() -> KvStore:
        assert store.model.driver == "ocdbt"
        await FoundDatabase(store.model, found.database).version()  # type: ignore[arg-type]
        return store

    return found.begin(body)


def names(where: object, *, context: Context | None = None) -> Future[dict[str, int]]:
    """The names of versions, and the generation of each.

    Args:
        where: as for `versions`.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        NotFoundError: (by the Future) there is no database.
        DataLossError: (by the Future) the document of names is damaged; names it.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> ts.ocdbt.names(db).result()
        {}
    """
    found = found_database(where, context)

    async def body() -> dict[str, int]:
        named = await read_names(found.database.manifests)
        if not named:
            await found.snapshot()  # a mistyped place is no database without names
        return named

    return found.begin(body)


def name(
    where: object,
    name: str,
    version: int | str | None = None,
    *,
    context: Context | None = None,
) -> Future[dict[str, int]]:
    """Give a version a name, by which it can be opened, and which `compact` keeps it for.

    Names are in a document of their own beside the manifest; TensorStore does not know them.

    Args:
        where: as for `versions`.
        name: letters, digits, `_`, `-` and `.`; another version that has it loses it.
        version: as for `open`.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of all names, and the generation of each.

    Raises:
        SpecError: (at once) the place, the name or the version is wrong.
        NotFoundError: (by the Future) there is no such version.
        AbortedError: (by the Future) others kept changing the document.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> ts.ocdbt.name(db, "released").result()
        {'released': 2}
        >>> ts.KvStore.open(db.base.url + "|ocdbt:@released/", context=None).result().url
        'memory://|ocdbt:@released/'
    """
    found = found_database(where, context)
    checked = check_name(name)
    wanted = None if version is None else parse_version(version)

    async def body() -> dict[str, int]:
        meant = await found.version(wanted)
        after = await change_names(found.database.manifests, {checked: meant.generation})
        # Whoever removes versions looks at the names after that; so either it sees this one, or
        # the version is gone by now.
        snapshot = await found.snapshot()
        if await found.database.by_generation(snapshot, meant.generation) is None:
            await change_names(found.database.manifests, {checked: None})
            raise NotFoundError(
                f"{found.database.describe()}: version {meant.generation} was removed meanwhile"
            )
        return after

    return found.begin(body)


def unname(where: object, name: str, *, context: Context | None = None) -> Future[dict[str, int]]:
    """Take a name away; the version stays.

    Args:
        where: as for `versions`.
        name: which; nothing happens if no version has it.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of all names that are left.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> _ = ts.ocdbt.name(db, "old").result()
        >>> ts.ocdbt.unname(db, "old").result()
        {}
    """
    found = found_database(where, context)
    checked = check_name(name)
    return found.begin(lambda: change_names(found.database.manifests, {checked: None}))
