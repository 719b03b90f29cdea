"""Which directory of a checkpoint holds what: steps, items, trees of arrays, JSON.

A directory is looked at by the names in it, and what it is follows from these alone:

- a tree: `_METADATA`, an OCDBT database, databases of processes, or the legacy msgpack file;
- JSON: a file `metadata` or `metrics`;
- an array: its zarr document;
- else what is in its directories: the items of a composite checkpoint, or arrays of a tree whose
  `_METADATA` is gone.

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
from tensorstore_py.orbax.leaves import Keys, Leaf, Node, Place, flat_name, leaves_of, nest

__all__ = ["Directory", "Step", "find_steps", "found_tree", "is_tree"]

_STEP: Final = re.compile(r"(?:.*_)?(\d+)")
_UNFINISHED_STEP: Final = re.compile(r"(?:.*?_)?(\d+)\.orbax-checkpoint-tmp.*")
#: So deep items may be, and so many directories are looked at, to find what there is.
_DEPTH: Final = 4
_DIRECTORIES: Final = 20_000
_AT_A_TIME: Final = 16
#: What Orbax keeps B+tree nodes with, too.
_CACHE: Final = {"total_bytes_limit": 100_000_000}
#: Files that hold the JSON of an item.
_JSON: Final = frozenset({"metadata", "metrics"})
_ARRAYS: Final = {"zarr.json": "zarr3", ".zarray": "zarr"}
#: Of a store that cannot list: the files that tell what a directory is, and the directories that
#: items have unless users name them, each with files that one of a checkpoint has.
_FIRST_PROCESS: Final = f"{documents.PROCESS}0/{documents.MANIFEST}"
_FILES: Final = (
    documents.METADATA, documents.CHECKPOINT_METADATA, documents.STRINGS, documents.AGGREGATE,
    documents.MANIFEST, documents.COMMITTED, "process_0", _FIRST_PROCESS,
    "array_metadatas/process_0", *sorted(_JSON), *_ARRAYS,
)  # fmt: skip
_ITEMS: Final = ("default", "state", "params", "pytree", "items")
_MARKS: Final = (
    documents.METADATA, documents.MANIFEST, documents.AGGREGATE, _FIRST_PROCESS, *sorted(_JSON),
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


class Directory:
    """A directory of a store, looked at.

    Args:
        model: the bound spec of the store at it; its path ends in `/`, or is empty.
        context: the resources that it shares.
        budget: how many directories may still be looked at.
    """

    def __init__(
        self, model: KvStoreSpec, context: Context, budget: list[int] | None = None
    ) -> None:
        self.model = model
        self.context = context
        self._budget = [_DIRECTORIES] if budget is None else budget

    @cached_property
    def _store(self) -> KvStore:
        return KvStore.of(self.model, self.model.open())

    def below(self, name: str) -> Directory:
        """A directory in it."""
        return Directory(
            self.model.replace(path=f"{self.model.path}{name}/"), self.context, self._budget
        )

    def describe(self, name: str = "") -> str:
        """How to name it, or a file in it, to a person."""
        return self._store.store.describe_key(self.model.path + name)

    async def names(self) -> frozenset[str]:
        """What is in it; names of directories end in `/`.

        Of a store that cannot list: what Orbax may have put there.

        Raises NotFoundError: too many directories were looked at.
        """
        self._budget[0] -= 1
        if self._budget[0] < 0:
            raise NotFoundError(
                f"no Orbax checkpoint was found in {_DIRECTORIES:,} directories up to "
                f"{self.describe()}; name the directory of one checkpoint"
            )
        store, path = self._store.store, self.model.path

        async def listed() -> frozenset[str]:
            return frozenset([name async for name in list_directory(store, path)])

        try:
            return await within(False, store.inline, listed)
        except UnsupportedError:
            return await self._likely_names()

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
    by a file; what began, and has no such mark and no time of its end, is incomplete.
    """
    if await directory.read(documents.COMMITTED) is not None:
        return True
    if directory.model.driver in ("gcs", "gcs_grpc"):
        return False
    said = await directory.json(documents.CHECKPOINT_METADATA)
    return not isinstance(said, dict) or said.get("commit_timestamp_nsecs", True) is not None


# Trees.


def is_tree(names: frozenset[str]) -> bool:
    """Whether a directory with these names holds a tree of arrays itself."""
    marks = {documents.METADATA, documents.MANIFEST, documents.AGGREGATE}
    return bool(names & marks) or any(name.startswith(documents.PROCESS) for name in names)


async def found_tree(directory: Directory, names: frozenset[str], depth: int = 0) -> Node | None:
    """What a directory holds, as a tree; None: nothing of a checkpoint."""
    if is_tree(names):
        return await _tree(directory, names)
    for document in _JSON & names:
        return Leaf("value", value=await directory.json(document))
    for document, driver in _ARRAYS.items():
        if document in names:
            return Leaf("array", Place(directory.model, driver))
    return await _items(directory, names, depth)


async def _items(directory: Directory, names: frozenset[str], depth: int) -> Node | None:
    """What the directories in one hold."""
    if depth >= _DEPTH:
        return None
    found: dict[str, Node] = {}

    async def look(name: str) -> None:
        inner = directory.below(name)
        node = await found_tree(inner, await inner.names(), depth + 1)
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
    return nest(found)


def _place(
    directory: Directory, names: frozenset[str], document: documents.TreeDocument | None
) -> Place:
    """Where the arrays of a tree are.

    Raises DataLossError: its database is gone.
    """
    driver = "zarr3" if document is not None and document.zarr3 else "zarr"
    if documents.MANIFEST in names:
        return _held(directory.database(), driver)
    processes = sorted(
        name[:-1] for name in names if name.startswith(documents.PROCESS) and name[-1] == "/"
    )
    if processes:
        stores = [directory.database(name) for name in processes]
        return _held(stores[0] if len(stores) == 1 else directory.union(stores), driver)
    if document is not None and document.ocdbt and any(not each.empty for each in document.entries):
        raise DataLossError(
            f"{directory.describe(documents.METADATA)} says that the arrays are in an OCDBT "
            f"database, but {directory.describe(documents.MANIFEST)} is not there; "
            "copy the whole directory again"
        )
    return Place(directory.model, driver)


def _held(store: KvStoreSpec, driver: str) -> Place:
    return Place(store, driver, store.open())


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
    if "array_metadatas/" not in names:
        return {}
    inner = directory.below("array_metadatas")
    files = sorted(await inner.names())
    return documents.array_notes(await inner.json(files[0])) if files else {}


def _of_aggregate(value: object, place: Place) -> Node:
    """A tree of the msgpack file: values, and names of arrays."""
    if isinstance(value, dict) and value:
        return {str(key): _of_aggregate(below, place) for key, below in value.items()}
    if isinstance(value, list | tuple) and value:
        return [_of_aggregate(below, place) for below in value]
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
