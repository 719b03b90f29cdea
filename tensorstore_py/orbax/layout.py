"""Which directory of a checkpoint holds what: steps, items, trees of arrays, JSON.

A directory is looked at by the names in it, and what it is follows from these alone:

- a tree: `_METADATA`, an OCDBT database, databases of processes, or the legacy msgpack file;
- JSON: a file `data.json`, `metadata` or `metrics`, or the only one of an item that
  `_CHECKPOINT_METADATA` calls JSON; a text: `proto.pbtxt`;
- an array: its zarr document;
- else what is in its directories: the items of a composite checkpoint, or arrays of a tree whose
  `_METADATA` is gone. An item that is damaged is named, and does not hide the others.

None of that makes a checkpoint of directories without anything that only Orbax stores, such as a
hierarchy of zarr arrays.

What CheckpointManager writes into is a directory of directories whose names end in numbers. Of a
store that cannot list its keys, such as a web server, the names that Orbax gives are asked for.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from functools import cached_property
from itertools import count
from typing import Any, Final, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import parse_kvstore_spec
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._spec.context import Context, bind
from tensorstore_py.errors import DataLossError, NotFoundError, OutOfRangeError, UnsupportedError
from tensorstore_py.orbax import documents
from tensorstore_py.orbax.leaves import Keys, Leaf, Node, Place, flat_name, leaves_of, nest, shaped

__all__ = ["Directory", "Step", "find_steps", "found_tree", "is_tree"]

_STEP: Final = re.compile(r"(?:.*_)?(\d+)")
_UNFINISHED_STEP: Final = re.compile(r"(?:.*?_)?(\d+)\.orbax-checkpoint-tmp.*")
#: So deep items may be, and so many directories are looked at, to find what there is.
_DEPTH: Final = 4
_DIRECTORIES: Final = 20_000
_AT_A_TIME: Final = 16
#: What Orbax keeps B+tree nodes with, too.
_CACHE: Final = {"total_bytes_limit": 100_000_000}
#: Files that hold the JSON of an item, the first of them goes before the others; and what the
#: handlers are called that store it under another name.
_JSON: Final = ("data.json", "metadata", "metrics")
_JSON_HANDLERS: Final = ("JsonHandler", "JsonCheckpointHandler", "MetricsHandler")
#: The file of an item that is a text.
_TEXT: Final = "proto.pbtxt"
#: What only Orbax stores, of what is in a directory.
_OF_ORBAX: Final = frozenset({
    documents.METADATA, documents.CHECKPOINT_METADATA, documents.STRINGS, documents.MANIFEST,
    documents.AGGREGATE, documents.COMMITTED, documents.SHARDING, documents.ROOT,
    documents.MARK_OF_V1, f"{documents.NOTES}/",
})  # fmt: skip
_ARRAYS: Final = {"zarr.json": "zarr3", ".zarray": "zarr"}
#: Of a store that cannot list: the files that tell what a directory is, and the directories that
#: items have unless users name them, each with files that one of a checkpoint has.
_FIRST_PROCESS: Final = f"{documents.PROCESS}0/{documents.MANIFEST}"
_FILES: Final = (
    documents.METADATA, documents.CHECKPOINT_METADATA, documents.STRINGS, documents.AGGREGATE,
    documents.MANIFEST, documents.COMMITTED, "process_0", _FIRST_PROCESS,
    f"{documents.NOTES}/process_0", *_JSON, _TEXT, *_ARRAYS,
)  # fmt: skip
_ITEMS: Final = ("default", "state", "params", "pytree", "items")
_MARKS: Final = (
    documents.METADATA, documents.MANIFEST, documents.AGGREGATE, _FIRST_PROCESS, *_JSON, _TEXT,
)  # fmt: skip


class Step(NamedTuple):
    """A step of a CheckpointManager's directory.

    Attributes:
        number: of the step.
        name: of its directory.
        complete: whether all of it was written.
    """

    number: int
    name: str
    complete: bool


class _Search:
    """What is known of all directories that are looked at together.

    Attributes:
        left: how many may still be looked at.
        of_orbax: whether something was found that only Orbax stores.
    """

    def __init__(self) -> None:
        self.left = _DIRECTORIES
        self.of_orbax = False


class Directory:
    """A directory of a store, looked at.

    Args:
        model: the bound spec of the store at it; its path ends in `/`, or is empty.
        context: the resources that it shares.
        search: shared with those that are looked at together.
    """

    def __init__(self, model: KvStoreSpec, context: Context, search: _Search | None = None) -> None:
        self.model = model
        self.context = context
        self._search = _Search() if search is None else search

    @cached_property
    def _store(self) -> KvStore:
        return KvStore.of(self.model, self.model.open())

    def below(self, name: str) -> Directory:
        """A directory in it."""
        return Directory(
            self.model.replace(path=f"{self.model.path}{name}/"), self.context, self._search
        )

    @property
    def of_orbax(self) -> bool:
        """Whether what only Orbax stores was found, in it or in those looked at with it."""
        return self._search.of_orbax

    def found(self) -> None:
        """Something was found that only Orbax stores."""
        self._search.of_orbax = True

    def describe(self, name: str = "") -> str:
        """How to name it, or a file in it, to a person."""
        return self._store.store.describe_key(self.model.path + name)

    async def names(self) -> frozenset[str]:
        """What is in it; names of directories end in `/`.

        Of a store that cannot list: what Orbax may have put there.

        Raises NotFoundError: too many directories were looked at.
        """
        self._search.left -= 1
        if self._search.left < 0:
            raise NotFoundError(
                f"no Orbax checkpoint was found in {_DIRECTORIES:,} directories up to "
                f"{self.describe()}; name the directory of one checkpoint"
            )
        store, path = self._store.store, self.model.path

        async def listed() -> frozenset[str]:
            return frozenset([name async for name in list_directory(store, path)])

        try:
            names = await within(False, store.inline, listed)
        except UnsupportedError:
            names = await self._likely_names()
        if names & _OF_ORBAX or is_tree(names):
            self.found()
        return names

    async def _likely_names(self) -> frozenset[str]:
        files = [*_FILES, *(f"{item}/{mark}" for item in _ITEMS for mark in _MARKS)]
        found = []

        async def ask(name: str) -> None:
            if await self._has(name):
                found.append(name)

        await fan_out(False, files, ask, count=len(files), width=_AT_A_TIME)
        names = {name.partition("/")[0] + "/" if "/" in name else name for name in found}
        if _FIRST_PROCESS in found and documents.MANIFEST not in names:
            names.update([name async for name in self._processes()])
        return frozenset(names)

    async def _processes(self) -> AsyncIterator[str]:
        """Databases of the other processes, which are numbered."""
        for number in count(1):
            name = f"{documents.PROCESS}{number}/"
            if not await self._has(name + documents.MANIFEST):
                return
            yield name

    async def _has(self, name: str) -> bool:
        try:
            return (await self._store.read(name, byte_range=slice(0, 1))).state == "value"
        except OutOfRangeError:
            return True  # and it is empty

    async def read(self, name: str) -> bytes | None:
        """A file in it; None: there is none."""
        found = await self._store.read(name)
        return bytes(found.value) if found.state == "value" else None

    async def json(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        """A JSON file in it; None: there is none.

        Raises DataLossError: it is no JSON; names it.
        """
        text = await self.read(name)
        return None if text is None else documents.parse_json(text, self.describe(name))

    def database(self, name: str = "") -> KvStoreSpec:
        """The OCDBT database that it, or a directory in it, is."""
        base = self.below(name).model if name else self.model
        spec = {"driver": "ocdbt", "base": base, "cache_pool": _CACHE}
        return self._bound(spec)

    def union(self, stores: Iterable[KvStoreSpec]) -> KvStoreSpec:
        """Several stores read as one."""
        return self._bound({"driver": "union", "bases": list(stores)})

    def _bound(self, spec: object) -> KvStoreSpec:
        return bind(parse_kvstore_spec(spec), self.context)


# Steps.


async def find_steps(directory: Directory, names: frozenset[str]) -> list[Step]:
    """The steps of a CheckpointManager's directory, in order; those of several names by both."""
    found: list[Step] = []
    asked: list[tuple[int, str]] = []
    for name in sorted(names):
        plain = name.removesuffix("/")
        unfinished = _UNFINISHED_STEP.fullmatch(plain)
        if name == plain:
            continue
        if unfinished is not None:
            found.append(Step(int(unfinished[1]), plain, complete=False))
        elif (step := _STEP.fullmatch(plain)) is not None:
            asked.append((int(step[1]), plain))

    async def check(each: tuple[int, str]) -> None:
        number, name = each
        found.append(Step(number, name, await _is_complete(directory.below(name))))

    await fan_out(False, asked, check, count=len(asked), width=_AT_A_TIME)
    return sorted(found)


async def _is_complete(directory: Directory) -> bool:
    """Whether a step was written to its end.

    Where a directory gets its name only then, that is all. Elsewhere, as on GCS, the end is marked
    by a file; what began, and has no such mark and no time of its end, is incomplete, and so is
    what has a damaged document of both.
    """
    if await directory.read(documents.COMMITTED) is not None:
        return True
    if directory.model.driver in ("gcs", "gcs_grpc"):
        return False
    try:
        said = await directory.json(documents.CHECKPOINT_METADATA)
    except DataLossError:
        return False
    return not isinstance(said, dict) or said.get("commit_timestamp_nsecs", True) is not None


# Trees.


def is_tree(names: frozenset[str]) -> bool:
    """Whether a directory with these names holds a tree of arrays itself."""
    marks = {documents.METADATA, documents.MANIFEST, documents.AGGREGATE}
    return bool(names & marks) or any(name.startswith(documents.PROCESS) for name in names)


async def found_tree(
    directory: Directory, names: frozenset[str], handlers: object = None, depth: int = 0
) -> Node | None:
    """What a directory holds, as a tree; None: nothing of a checkpoint.

    Args:
        directory: with these `names` in it.
        names: of what is in it.
        handlers: what `_CHECKPOINT_METADATA` says of who stored it, or its items.
        depth: how far below the one that a user names it is.

    Raises:
        DataLossError: it is a tree, or JSON, and damaged; names the file.
        UnsupportedError: msgpack is not installed.
    """
    if is_tree(names):
        return await _tree(directory, names)
    document = _json_name(names, handlers)
    if document is not None:
        directory.found()
        return Leaf("value", value=await directory.json(document))
    if _TEXT in names:
        directory.found()
        text = await directory.read(_TEXT) or b""
        return Leaf("value", value=text.decode("utf-8", "replace"))
    for document, driver in _ARRAYS.items():
        if document in names:
            return Leaf("array", Place(directory.model, driver))
    return await _items(directory, names, handlers, depth)


def _json_name(names: frozenset[str], handler: object) -> str | None:
    """The file that holds the JSON of an item; None: it is none."""
    for known in _JSON:
        if known in names:
            return known
    if not isinstance(handler, str) or handler.rpartition(".")[2] not in _JSON_HANDLERS:
        return None
    files = [name for name in names - _OF_ORBAX if not name.endswith("/")]
    return files[0] if len(files) == 1 else None


async def _items(
    directory: Directory, names: frozenset[str], handlers: object, depth: int
) -> Node | None:
    """What the directories in one hold."""
    if depth >= _DEPTH:
        return None
    found: dict[str, Node] = {}
    of_each = handlers if isinstance(handlers, dict) else {}

    async def look(name: str) -> None:
        inner = directory.below(name)
        below = await inner.names()
        node: Node | None
        try:
            node = await found_tree(inner, below, of_each.get(name), depth + 1)
        except (DataLossError, UnsupportedError) as error:
            node = Leaf("damaged", value=error)
        if node is not None:
            found[name] = node

    inner = sorted(
        name[:-1] for name in names if name.endswith("/") and documents.UNFINISHED not in name
    )
    await fan_out(False, inner, look, count=len(inner), width=_AT_A_TIME)
    if not found:
        return None
    arrays = {n: leaf for n, leaf in found.items() if isinstance(leaf, Leaf) and leaf.place}
    if len(arrays) < len(found):
        return {name: found[name] for name in sorted(found)}
    return nest(_split(sorted(arrays.items())))


def _split(named: Iterable[tuple[str, Leaf]]) -> list[tuple[Keys, Leaf]]:
    """Names of which only dots tell the keys; one that is a leaf and more stays a whole name."""
    split = [(name, tuple(name.split(".")), leaf) for name, leaf in named]
    inner = {keys[:size] for _, keys, _ in split for size in range(1, len(keys))}
    taken = {keys for _, keys, _ in split}
    return [
        ((name,) if any(keys[:n] in taken for n in range(1, len(keys))) or keys in inner else keys,
         leaf)
        for name, keys, leaf in split
    ]  # fmt: skip


async def _tree(directory: Directory, names: frozenset[str]) -> Node:
    """A tree of arrays, as `_METADATA`, the msgpack file or the store tells it."""
    text = await directory.read(documents.METADATA) if documents.METADATA in names else None
    where = directory.describe(documents.METADATA)
    document = None if text is None else documents.parse_tree(text, where)
    place = _place(directory, names, document)
    aggregate: Node | None = None
    if documents.AGGREGATE in names:
        data = await directory.read(documents.AGGREGATE) or b""
        known = documents.parse_aggregate(data, directory.describe(documents.AGGREGATE))
        aggregate = _of_aggregate(known, place)
    if document is None:
        return await _walked(place) if aggregate is None else aggregate
    strings = await directory.json(documents.STRINGS) if documents.STRINGS in names else None
    notes = await _notes(directory, names)
    stored = {} if aggregate is None else dict(leaves_of(aggregate))
    by_name = {flat_name(keys): leaf for keys, leaf in stored.items()}
    found = []
    for entry in document.entries:
        leaf = by_name.get(flat_name(entry.keys))
        if leaf is None or leaf.kind != "value":
            leaf = _leaf(entry, place, strings, notes)
        found.append((entry.keys, leaf))
    return shaped(nest(found), document.pattern)


def _place(
    directory: Directory, names: frozenset[str], document: documents.TreeDocument | None
) -> Place:
    """Where the arrays of a tree are.

    Raises DataLossError: its database is gone.
    """
    driver = "zarr3" if document is not None and document.zarr3 else "zarr"
    every = document is not None and document.every_chunk
    if documents.MANIFEST in names:
        return _held(directory.database(), driver, every)
    processes = sorted(
        name[:-1] for name in names if name.startswith(documents.PROCESS) and name[-1] == "/"
    )
    if processes:
        stores = [directory.database(name) for name in processes]
        return _held(stores[0] if len(stores) == 1 else directory.union(stores), driver, every)
    if document is not None and document.ocdbt and any(not each.empty for each in document.entries):
        raise DataLossError(
            f"{directory.describe(documents.METADATA)} says that the arrays are in an OCDBT "
            f"database, but {directory.describe(documents.MANIFEST)} is not there; "
            "copy the whole directory again"
        )
    return Place(directory.model, driver, every_chunk=every)


def _held(store: KvStoreSpec, driver: str, every_chunk: bool) -> Place:
    return Place(store, driver, store.open(), every_chunk)


def _leaf(
    entry: documents.Entry,
    place: Place,
    strings: object,
    notes: dict[str, tuple[tuple[int, ...] | None, object]],
) -> Leaf:
    param = flat_name(entry.keys)
    if entry.empty:
        return Leaf("value", value=entry.value)
    if entry.value_type == "string":
        return Leaf("value", param=param, value=documents.text_of(strings, param))
    shape, note = notes.get(param, (None, None))
    if entry.value_type == "scalar":
        return Leaf("scalar", place, param, shape=())
    return Leaf("array", place, param, shape=entry.shape if shape is None else shape, note=note)


async def _notes(
    directory: Directory, names: frozenset[str]
) -> dict[str, tuple[tuple[int, ...] | None, object]]:
    """Metadata of arrays; every process writes that of all of them."""
    if f"{documents.NOTES}/" not in names:
        return {}
    inner = directory.below(documents.NOTES)
    files = sorted(await inner.names())
    return documents.array_notes(await inner.json(files[0])) if files else {}


def _of_aggregate(value: object, place: Place) -> Node:
    """A tree of the msgpack file: values, and names of arrays."""
    if isinstance(value, dict) and value:
        return {str(key): _of_aggregate(below, place) for key, below in value.items()}
    if isinstance(value, list | tuple) and value:
        return type(value)(_of_aggregate(below, place) for below in value)
    param = documents.placeholder(value)
    return Leaf("value", value=value) if param is None else Leaf("array", place, param)


async def _walked(place: Place) -> Node:
    """The arrays that a database has, where nothing else tells."""
    store = KvStore.of(place.store, place.store.open())
    found: dict[str, Leaf] = {}
    for key in await store.list():
        name, _, document = key.decode("utf-8", "surrogateescape").rpartition("/")
        driver = _ARRAYS.get(document)
        if driver is not None:
            found[name] = Leaf("array", place._replace(driver=driver), name)
    return nest(_split(sorted(found.items())))
