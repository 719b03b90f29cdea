"""N5 as a source of variables: the format has no groups here, but folders with `attributes.json`.

An array is a document with `dimensions`; everything else in documents are attributes. Names of
dimensions are the member `axes`, which TensorStore stores and reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tensorstore_py as ts

__all__ = ["N5Node", "n5_nodes", "n5_store"]

_DOCUMENT = "attributes.json"
_ARRAYS_OWN = frozenset({
    "axes", "blockSize", "compression", "compressionType", "dataType", "dimensions",
})  # fmt: skip


class N5Node(NamedTuple):
    """A folder.

    Attributes:
        metadata: its document.
        open: opens it.
    """

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

    Args:
        given: the source.
        group: a path within.
        context: shared resources.
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
