"""What is stored as JSON of groups and arrays, in either version of Zarr, and where.

Names of keys are known only here. `Documents` reads and stores many documents at a time. `Forms`
has `ts.zarr` make the document of a new array, from zarr-python's words: variables of a Dataset are
mostly alike but for their names, shapes and attributes, so a document is made once for each kind of
array, in memory, and a shape put into it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import tensorstore_py as ts

__all__ = [
    "ABSENT",
    "DIMENSIONS",
    "Document",
    "Documents",
    "Form",
    "Forms",
    "Json",
    "Node",
    "Place",
    "as_place",
    "below",
    "parents",
    "serialised",
]


_FORMATS: Final[dict[object, int]] = {"zarr": 2, "zarr2": 2, "zarr3": 3}
#: Stores of which every change costs as much as the whole: their changes are made together.
_REWRITTEN: Final = "zip"


@dataclass(frozen=True)
class Place:
    """A place in a store.

    Attributes:
        kvstore: the directory of the outermost group, seen through the transaction if there is one.
        zarr_format: that was said with it; None: nothing was.
        context: what all arrays share.
        transaction: in which everything is written; None: there is none.
    """

    kvstore: ts.KvStore
    zarr_format: int | None
    context: ts.Context
    transaction: ts.Transaction | None

    @property
    def rewritten(self) -> bool:
        """Whether every change costs as much as the whole store."""
        return self.kvstore.spec().to_json().get("driver") == _REWRITTEN

    def with_transaction(self, transaction: ts.Transaction) -> Place:
        """The same place, seen through a transaction."""
        kvstore = self.kvstore.with_transaction(transaction)
        return Place(kvstore, self.zarr_format, self.context, transaction)

    def describe(self, path: str) -> str:
        """What to call a node in messages."""
        where = self.kvstore / path if path else self.kvstore
        try:
            return where.url
        except ts.UnsupportedError:
            return f'"/{path}"'


def as_place(
    target: object,
    *,
    zarr_format: int | None,
    context: ts.Context | None,
    transaction: ts.Transaction | None,
) -> Place:
    """The place that something says.

    Args:
        target: a local path, a URL, the JSON spec of a store or of an array's driver, a
            `ts.KvStore`, a group of `ts` or of `ts.zarr`, a store of `ts.zarr`, a dictionary of
            bytes, or whatever else `ts.KvStore.open` takes.
        zarr_format: 2, 3, or None for what the target says.
        context: shared resources.
        transaction: in which everything is written; by default the target's own.

    Raises:
        TypeError: it says no place.
        SpecError: something is wrong with a spec.
    """
    shared = ts.Context() if context is None else context
    said: int | None = None
    if isinstance(target, ts.zarr.Group):
        target = target.ts
    if isinstance(target, ts.Group):
        said, target = target.zarr_format, target.kvstore
    found = target if isinstance(target, ts.KvStore) else None
    if found is None:
        said, found = _opened(target, shared)
    if transaction is None:
        transaction = found.transaction
    elif found.transaction is not transaction:
        found = found.with_transaction(transaction)
    if found.path and not found.path.endswith("/"):
        found = found / "/"
    return Place(found, said if zarr_format is None else zarr_format, shared, transaction)


def _opened(target: object, context: ts.Context) -> tuple[int | None, ts.KvStore]:
    if _names_format(target):
        spec = ts.Spec(target)
        if spec.kvstore is None:
            raise TypeError(f"{target!r} names no store; it needs a kvstore")
        said = _FORMATS[spec.to_json()["driver"]]
        return said, ts.KvStore.open(spec.kvstore, context=context).result()
    if isinstance(target, ts.zarr.Store):
        return target.zarr_format, target.kvstore
    if isinstance(target, str | os.PathLike) and "://" not in str(target):
        whole = os.path.abspath(os.fspath(target))  # noqa: PTH100 - links stay as they are said
        if whole.endswith(".zip"):
            return None, ts.zarr.ZipStore(whole, context=context).kvstore
        return None, ts.zarr.LocalStore(whole, context=context).kvstore
    if isinstance(target, MutableMapping) and not isinstance(target.get("driver"), str):
        return None, ts.zarr.MemoryStore(target, context=context).kvstore
    return None, ts.KvStore.open(target, context=context).result()


def _names_format(target: object) -> bool:
    """Whether it is a spec, or a URL, that names the driver of an array and not only a store."""
    if isinstance(target, ts.Spec):
        return True
    if isinstance(target, str):
        return "://" in target and target.rpartition("|")[2].rstrip(":") in _FORMATS
    return isinstance(target, Mapping) and target.get("driver") in _FORMATS


def below(path: str, name: str) -> str:
    """The path of what has a name, or a path, in the node at a path.

    Example:
        >>> below("a", "b"), below("", "b"), below("a", "")
        ('a/b', 'b', 'a')
    """
    return f"{path}/{name}" if path and name else path or name


def parents(path: str) -> list[str]:
    """The paths of all nodes above one, the outermost first.

    Example:
        >>> parents("a/b/c"), parents("")
        (['', 'a', 'a/b'], [])
    """
    parts = path.split("/") if path else []
    return ["/".join(parts[:count]) for count in range(len(parts))]


#: JSON, as Python has it.
Json: TypeAlias = Any

#: The generation of what is not there.
ABSENT: Final = b"\x02"
#: Where version 2 keeps the names of dimensions, as xarray looks for them.
DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
_CONSOLIDATED: Final = ".zmetadata"


@dataclass(frozen=True)
class Document:
    """A stored document."""

    value: Json
    generation: bytes


@dataclass(frozen=True)
class Node:
    """What is stored of a node.

    Attributes:
        path: of the node.
        kind: what it is; None: nothing is there.
        zarr_format: of the node; None: nothing is there.
        documents: by the last part of their keys.
    """

    path: str
    kind: Literal["array", "group"] | None = None
    zarr_format: int | None = None
    documents: Mapping[str, Document] = field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, Json]:
        """Its attributes, those that mean something to a format included."""
        if self.zarr_format == 3:
            return dict(self.documents["zarr.json"].value.get("attributes") or {})
        found = self.documents.get(".zattrs")
        return {} if found is None else dict(found.value)

    @property
    def consolidated(self) -> bool:
        """Whether it has a copy of the documents below it."""
        if self.zarr_format == 3:
            return self.documents["zarr.json"].value.get("consolidated_metadata") is not None
        return _CONSOLIDATED in self.documents


@dataclass(frozen=True)
class Form:
    """A version of the format."""

    zarr_format: int

    @property
    def driver(self) -> str:
        """The driver of its arrays."""
        return "zarr3" if self.zarr_format == 3 else "zarr"

    @property
    def array_key(self) -> str:
        """The document that makes a node an array."""
        return "zarr.json" if self.zarr_format == 3 else ".zarray"

    @property
    def group_key(self) -> str:
        """The document that makes a node a group."""
        return "zarr.json" if self.zarr_format == 3 else ".zgroup"

    @property
    def consolidated_key(self) -> str:
        """The document that holds copies of all others."""
        return "zarr.json" if self.zarr_format == 3 else _CONSOLIDATED

    @property
    def keys(self) -> tuple[str, ...]:
        """All documents that a node may have."""
        if self.zarr_format == 3:
            return ("zarr.json",)
        return (".zarray", ".zgroup", ".zattrs", _CONSOLIDATED)

    def array(
        self, metadata: Json, dims: Sequence[str], attributes: Mapping[str, Json]
    ) -> dict[str, Json]:
        """The documents of an array, those first that do not make it one."""
        if self.zarr_format == 3:
            named = {"dimension_names": [*dims]} if dims else {}
            return {"zarr.json": {**metadata, **named, "attributes": {**attributes}}}
        return {".zattrs": {**attributes, DIMENSIONS: [*dims]}, ".zarray": metadata}

    def group(self, attributes: Mapping[str, Json]) -> dict[str, Json]:
        """The documents of a group, those first that do not make it one."""
        if self.zarr_format == 3:
            head = {"zarr_format": 3, "node_type": "group"}
            return {"zarr.json": {**head, "attributes": {**attributes}}}
        more = {".zattrs": {**attributes}} if attributes else {}
        return {**more, ".zgroup": {"zarr_format": 2}}

    def dims(self, node: Node) -> tuple[str, ...] | None:
        """The names of an array's dimensions; None: it has none."""
        if self.zarr_format == 3:
            document = node.documents["zarr.json"].value
            names = document.get("dimension_names") or []
            return tuple(names) if len(names) == len(document["shape"]) else None
        found = node.attributes.get(DIMENSIONS)
        return None if found is None else tuple(found)


class Documents:
    """The documents of a tree."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._kvstore = place.kvstore
        self._begun: list[ts.Future[ts.KvStore.TimestampedStorageGeneration]] = []

    def look(self, paths: Iterable[str], zarr_format: int | None) -> dict[str, Node]:
        """What is at some paths, asked for at once; see `ask`."""
        return self.ask(paths, zarr_format)()

    def ask(self, paths: Iterable[str], zarr_format: int | None) -> Callable[[], dict[str, Node]]:
        """Begin to ask what is at some paths.

        Args:
            paths: of nodes.
            zarr_format: look for this version only.

        Returns:
            What waits for the answers; it raises `DataLossError` for a document that is no JSON.
        """
        forms = [Form(version) for version in (3, 2) if zarr_format in (None, version)]
        keys = [key for form in forms for key in form.keys]
        asked = {path: [(key, self.read(below(path, key))) for key in keys] for path in paths}

        def answers() -> dict[str, Node]:
            nodes = {}
            for path, begun in asked.items():
                found = {key: self._parsed(below(path, key), answer) for key, answer in begun}
                nodes[path] = _node(path, {key: each for key, each in found.items() if each})
            return nodes

        return answers

    def read(self, key: str) -> ts.Future[ts.KvStore.ReadResult]:
        """Ask for a document."""
        return self._kvstore.read(key)

    def _parsed(self, key: str, answer: ts.Future[ts.KvStore.ReadResult]) -> Document | None:
        result = answer.result()
        if result.state == "missing":
            return None
        try:
            value = json.loads(bytes(result.value))
        except ValueError as error:
            raise ts.DataLossError(f"Error reading {self.place.describe(key)}: {error}") from error
        return Document(value, result.stamp.generation)

    def store(
        self, key: str, value: Json, *, condition: bytes | None = None
    ) -> ts.Future[ts.KvStore.TimestampedStorageGeneration]:
        """Store a document; the answer's generation is empty if the condition did not hold."""
        future = self._kvstore.write(key, serialised(value), if_equal=condition)
        self._begun.append(future)
        return future

    def settle(self) -> None:
        """Wait for all that are being stored, whatever comes of it: none is stored after this."""
        while self._begun:
            with suppress(Exception):  # an error is on its way to the user
                self._begun.pop().result()

    def store_all(self, documents: Mapping[str, tuple[Json, bytes | None]]) -> None:
        """Store documents, each on its condition, at once, and wait for them.

        Raises:
            AbortedError: another writer changed one since it was read; names it.
        """
        under_way = {
            key: self.store(key, value, condition=condition)
            for key, (value, condition) in documents.items()
        }
        self.check(under_way)

    def check(
        self, under_way: Mapping[str, ts.Future[ts.KvStore.TimestampedStorageGeneration]]
    ) -> None:
        """Wait for documents that are being stored.

        Raises:
            AbortedError: another writer changed one since it was read; names it.
        """
        for key, future in under_way.items():
            if future.result().generation == b"":
                raise ts.AbortedError(
                    f"Error writing {self.place.describe(key)}: it was changed by somebody else "
                    "since it was read; read again, and write what is still to be written"
                )

    def take_back(self, key: str, generation: bytes) -> None:
        """Delete a document if it is still the one that was stored."""
        self._kvstore.write(key, None, if_equal=generation).result()

    def delete(self, *keys: str) -> None:
        """Delete some keys at once."""
        for future in [self._kvstore.write(key, None) for key in keys]:
            future.result()

    def delete_below(self, *paths: str) -> None:
        """Delete whatever is in the nodes at some paths, at once."""
        prefixes = [f"{path}/" if path else "" for path in paths]
        ranges = [ts.KvStore.KeyRange(each, _after(each)) for each in prefixes]
        for future in [self._kvstore.delete_range(each) for each in ranges]:
            future.result()


def serialised(value: Json) -> bytes:
    """The bytes of a document; NaN and infinities in attributes are bare, as the ecosystem has it.

    Example:
        >>> serialised({"a": [1, float("nan")]})
        b'{"a":[1,NaN]}'
    """
    return json.dumps(value, separators=(",", ":")).encode()


def _after(prefix: str) -> str:
    """The first key behind those with a prefix."""
    return prefix[:-1] + "0" if prefix else ""  # "0" comes right after "/"


def _node(path: str, found: Mapping[str, Document]) -> Node:
    document = found.get("zarr.json")
    if document is not None:
        kind: Literal["array", "group"]
        kind = "group" if document.value.get("node_type") == "group" else "array"
        return Node(path, kind, 3, {"zarr.json": document})
    if ".zarray" in found:
        return Node(path, "array", 2, found)
    return Node(path, "group", 2, found) if ".zgroup" in found else Node(path)


Shape = tuple[int, ...]


class Forms:
    """Documents of new arrays."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._group: ts.zarr.Group | None = None
        self._known: dict[str, Json] = {}

    def metadata(self, shape: Shape, arguments: Mapping[str, Any]) -> Json:
        """The document of an array, without attributes and names of dimensions.

        Raises:
            TypeError, ValueError: an argument is wrong; says what is right.
        """
        # A chunk shape that the engine chooses depends on the array's.
        chosen = shape if arguments.get("chunks") is None else len(shape)
        dtype = arguments["dtype"]
        kind = repr((chosen, sorted(arguments.items()), getattr(dtype, "metadata", None)))
        if kind not in self._known:
            self._known[kind] = self._made(shape, arguments)
        return {**self._known[kind], "shape": [*shape]}

    def _made(self, shape: Shape, arguments: Mapping[str, Any]) -> Json:
        if self._group is None:
            store = ts.zarr.MemoryStore()
            self._group = ts.zarr.group(store=store, zarr_format=self._form.zarr_format)
        name = f"a{len(self._known)}"
        self._group.create(name, shape, **arguments)
        return json.loads(self._group.store[f"{name}/{self._form.array_key}"])
