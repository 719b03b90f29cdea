"""`Source`: what `xr.open_dataset` was given, opened: the nodes of a group, and how to close them.

Everything that is opened from one source shares one `Context`, and so one cache pool. What the
caller opened stays open when a dataset is closed.

N5 has no groups here, but folders with `attributes.json`: an array is a document with `dimensions`;
everything else in documents are attributes. Names of dimensions are the member `axes`, which
TensorStore stores and reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import tensorstore_py as ts

__all__ = ["N5Node", "Node", "Source", "n5_nodes", "n5_store", "shared_context"]


_DOCUMENT = "attributes.json"
_ARRAYS_OWN = frozenset({
    "axes", "blockSize", "compression", "compressionType", "dataType", "dimensions",
})  # fmt: skip


class N5Node(NamedTuple):
    """A folder."""

    metadata: dict[str, Any]
    open: Callable[[], ts.Future[Any]]

    @property
    def kind(self) -> Literal["array", "group"]:
        """Which it is."""
        return "array" if "dimensions" in self.metadata else "group"

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""
        return {name: each for name, each in self.metadata.items() if name not in _ARRAYS_OWN}


def n5_store(given: object, group: str, context: ts.Context | None) -> ts.KvStore | None:
    """The store of a source that says that it is N5; None: it does not.

    A source says so by the driver of its spec, by `|n5:` in its URL, or by a name that ends in
    `.n5`.
    """
    where: object = None
    if isinstance(given, Mapping) and given.get("driver") == "n5":
        where = given["kvstore"]
    elif isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        if text.endswith("|n5:"):
            where = text.removesuffix("|n5:")
        elif text.rstrip("/").endswith(".n5"):
            where = text if "://" in text else Path(text).absolute()
    if where is None:
        return None
    store = ts.KvStore.open(where, context=context).result()
    if store.path and not store.path.endswith("/"):
        store.path += "/"
    if group.strip("/"):
        store.path += group.strip("/") + "/"
    return store


def n5_nodes(store: ts.KvStore, max_depth: int | None) -> dict[str, N5Node]:
    """The folders in a folder, by path, and itself at `""`: one listing, and one reading of each.

    The listing is of all keys, those of blocks included.

    Args:
        store: the store, at the folder.
        max_depth: 0 for the folder's own; None: all.

    Raises:
        NotFoundError: nothing is there.
        MismatchError: it is an array.
        DataLossError: a document is no JSON object; names its key.
    """
    found = {key.decode().removesuffix(_DOCUMENT).rstrip("/") for key in store.list().result()
             if key.decode().rpartition("/")[2] == _DOCUMENT}  # fmt: skip
    # Folders need no document: those above an array are groups, too.
    above = {path[:end] for path in found for end, each in enumerate(path) if each == "/"} - found
    paths = sorted(path for path in found if max_depth is None or path.count("/") <= max_depth)
    reads = {path: store.read(f"{path}/{_DOCUMENT}" if path else _DOCUMENT) for path in paths}
    nodes = {}
    for path, read in reads.items():
        metadata = _document(bytes(read.result().value), f"{store.url}{path}")
        nodes[path] = N5Node(metadata, partial(_open, store, path))
    if not nodes:
        raise ts.NotFoundError(f"no {_DOCUMENT} found in {store.url}, so there is no N5 container")
    root = nodes.setdefault("", N5Node({}, partial(_open, store, "")))
    if root.kind == "array":
        raise ts.MismatchError(
            f"an array, not a group, is at {store.url}; name the folder that it is in, or open the "
            "array alone with ts.open"
        )
    implied = {path: N5Node({}, partial(_open, store, path)) for path in sorted(above)}
    return {"": root, **(implied if max_depth is None else {}), **nodes}


def _document(value: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError as error:
        raise ts.DataLossError(f"Error reading {where}: {_DOCUMENT} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ts.DataLossError(f"Error reading {where}: {_DOCUMENT} is no object")
    return found


def _open(store: ts.KvStore, path: str) -> ts.Future[Any]:
    folder = store / f"{path}/" if path else store
    return ts.open({"driver": "n5", "kvstore": folder.spec(retain_context=True)})


#: How many names of what is there in the place of a group are told.
_SHOWN = 5


class Node(Protocol):
    """An array or a group with what is stored of it."""

    @property
    def kind(self) -> Literal["array", "group"]:
        """Which it is."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata document."""

    @property
    def open(self) -> Callable[[], ts.Future[Any]]:
        """Opens it."""


class Source:
    """The nodes of a group.

    Args:
        given: a path, a URL, a spec, a `Group`, a `KvStore`.
        group: the path of the group within.
        consolidated: as for `Group.open`.
        zarr_format: as for `Group.open`.
        context: shared resources, or their JSON.
        cache_pool: bytes to keep of chunks that were decoded, for all variables together.
        max_depth: 0 for the group alone; None for all groups below it, too.

    Making it begins to open; `look` begins to look what is there, and `nodes` waits. So many
    sources are opened together.

    Raises:
        SpecError, TypeError: the arguments are wrong.
    """

    def __init__(
        self,
        given: object,
        *,
        group: str | None,
        consolidated: bool | None,
        zarr_format: Literal[2, 3] | None,
        context: ts.Context | Mapping[str, Any] | None,
        cache_pool: int | None,
        max_depth: int | None,
    ) -> None:
        if isinstance(given, ts.TensorStore | ts.Future):
            raise TypeError(
                f"a {type(given).__name__} is no group of arrays; pass the ts.Group, or the path "
                "or spec, of the group that the array is in"
            )
        #: Where it is, or None.
        self.url: str | None = None
        if isinstance(given, ts.Group) and (context is not None or cache_pool is not None):
            raise TypeError(
                "a ts.Group has the context that it was opened with; pass context= to "
                "ts.Group.open, or pass the group's spec, path or kvstore here"
            )
        self._owned: list[Callable[[], object]] = []
        shared = shared_context(context, cache_pool)
        if shared is not None and shared is not context:
            self._owned.append(shared.close)
        self._given = given
        self._path = (group or "").strip("/")
        self._max_depth = max_depth
        self._begun: list[ts.Future[ts.Group]] = []
        self._root: ts.Group | None = None
        self._looking: ts.Future[Any] | None = None
        self._found: Mapping[str, Node] | None = None
        store = n5_store(given, self._path, shared)
        if store is not None:
            self._owned.append(store.close)
            self._found, self.url = n5_nodes(store, max_depth), _url(store)
        elif isinstance(given, ts.Group) and consolidated in (None, given.consolidated):
            self._root = given
        else:
            # Consolidated metadata is stored with the outermost group, whichever is asked for; so
            # both are asked for at once.
            outermost = [""] if consolidated is not False else []
            inner = [self._path] if consolidated is not True else []
            options: dict[str, Any] = {"zarr_format": zarr_format, "context": shared}
            self._begun = [
                ts.Group.open(_local(given), path=path, consolidated=consolidated, **options)
                for path in dict.fromkeys(outermost + inner)
            ]

    def look(self) -> None:
        """Begin to look what is there.

        Raises:
            NotFoundError: nothing is there; says what was looked for.
            MismatchError: an array is there.
            DataLossError: a document is corrupt; names its key.
        """
        if self._looking is None and self._found is None:
            try:
                found = self._group()
            except ts.NotFoundError as error:
                raise ts.NotFoundError(
                    f"{str(error).partition('; to create')[0]}; {self._instead()}"
                ) from error
            self.url = _url(found)
            self._looking = found.nodes(self._max_depth)

    def _instead(self) -> str:
        """What is there in the place of a group, as far as that is told without much asking."""
        given = _local(self._given)
        if not isinstance(given, Path):
            return "name the folder that the group's metadata is in, and the group within by group="
        path = given / self._path
        if path.is_dir():
            names = sorted(each.name for each in path.iterdir())
            more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            return f"there are {', '.join(names[:_SHOWN])}{more}" if names else "it is empty"
        return "a file is there" if path.exists() else f'there is no folder "{path}"'

    def _group(self) -> ts.Group:
        """The group that is asked for: as consolidated metadata tells, or as it is stored."""
        if self._root is not None:
            return _inner(self._root, self._path)
        *outermost, last = self._begun
        for opening in outermost:
            try:
                root = opening.result()
            except ts.NotFoundError:
                continue
            self._owned.append(root.close)
            if root.consolidated and root.contains(self._path).result():
                return _inner(root, self._path)
        found = last.result()
        self._owned.append(found.close)
        return found if found.path == self._path else _inner(found, self._path)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """By path; `""` is the group itself. Waits; raises what `look` raises."""
        if self._found is None:
            self.look()
            assert self._looking is not None
            self._found = self._looking.result()
        return self._found

    def close(self) -> None:
        """Close what was opened here; what the caller opened stays open."""
        while self._owned:
            self._owned.pop()()


def _inner(root: ts.Group, path: str) -> ts.Group:
    """The group at a path.

    Raises:
        MismatchError: an array is there.
    """
    found = root.open(path).result() if path else root
    if isinstance(found, ts.TensorStore):
        raise ts.MismatchError(
            f'"{path}" is an array, not a group, in {_url(root) or root!r}; name the group that it '
            "is in, or open the array alone with ts.open"
        )
    assert isinstance(found, ts.Group)
    return found


def _local(given: object) -> object:
    """What `Group.open` takes: local paths are no text there, so that none is taken for a URL."""
    if isinstance(given, ts.Group):
        return given.kvstore
    if isinstance(given, os.PathLike):
        return Path(given).expanduser()
    if isinstance(given, str) and "://" not in given and given.lstrip()[:1] != "{":
        return Path(given).expanduser()
    return given


def shared_context(
    context: ts.Context | Mapping[str, Any] | None, cache_pool: int | None
) -> ts.Context | None:
    """The context that all variables share; None: nothing is said of it.

    Example:
        >>> shared_context(None, 1 << 20)["cache_pool"].to_json()
        {'total_bytes_limit': 1048576}
    """
    if isinstance(context, Mapping):
        context = ts.Context(dict(context))
    if cache_pool is None:
        return context
    return ts.Context({"cache_pool": {"total_bytes_limit": cache_pool}}, context)


def _url(place: ts.Group | ts.KvStore) -> str | None:
    try:
        return place.url
    except ts.UnsupportedError:
        return None
