"""Opening and creating arrays in a store, by zarr-python's modes.

A mode becomes an open mode of `ts.open`, and a path a group's member, so that the groups above it
are made. Which version of the format is there is found out by looking for its documents.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from tensorstore_py._api.group import Group
from tensorstore_py._api.open import open as open_spec
from tensorstore_py.errors import MismatchError
from tensorstore_py.zarr.errors import NodeExistsError, NodeNotFoundError
from tensorstore_py.zarr.zarr_array import Array

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py.zarr.request import Request
    from tensorstore_py.zarr.store import Store

__all__ = [
    "Found",
    "Mode",
    "as_format",
    "as_mode",
    "create_at",
    "describe",
    "find",
    "open_at",
    "required",
]

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]
_MODES = ("r", "r+", "a", "w", "w-", "x")
_DRIVERS = {2: "zarr", 3: "zarr3"}


class Found(NamedTuple):
    """What is at a path.

    Attributes:
        kind: `"array"` or `"group"`.
        zarr_format: 2 or 3.
    """

    kind: Literal["array", "group"]
    zarr_format: int


def as_mode(mode: object, store: Store) -> Mode:
    """A mode, or the usual one.

    Raises:
        ValueError: there is no such mode.
    """
    if mode is None:
        return "r" if store.read_only else "a"
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")
    return "w-" if mode == "x" else cast("Mode", mode)


def as_format(zarr_format: object) -> Literal[2, 3] | None:
    """A version, or None for whichever there is.

    Raises:
        ValueError: there is no such version.
    """
    if zarr_format is not None and zarr_format not in (2, 3):
        raise ValueError(f"zarr_format must be 2 or 3, not {zarr_format!r}")
    return zarr_format


def find(store: Store, path: str, zarr_format: int | None) -> Found | None:
    """What is at a path; None if nothing is.

    Args:
        store: where.
        path: in its one form.
        zarr_format: look for this version only.
    """
    where = store.at(path)
    if zarr_format != 2:
        document = where.read("zarr.json").result()
        if document.state == "value":
            kind = json.loads(bytes(document.value)).get("node_type")
            return Found("group" if kind == "group" else "array", 3)
    if zarr_format != 3:
        if where.read(".zarray").result().state == "value":
            return Found("array", 2)
        if where.read(".zgroup").result().state == "value":
            return Found("group", 2)
    return None


def required(store: Store, path: str, zarr_format: int | None, kind: str) -> Found:
    """What is at a path, where something must be.

    Raises:
        NodeNotFoundError: nothing is there.
    """
    found = find(store, path, zarr_format)
    if found is None:
        raise NodeNotFoundError(
            f"no {kind} found at {describe(store, path)}; pass mode='a' or 'w' to create one"
        )
    return found


def describe(store: Store, path: str) -> str:
    """How to name a node to a person."""
    where = store.at(path)
    return where.store.describe_key(where.path.rstrip("/"))


def open_at(
    store: Store,
    path: str,
    found: Found,
    *,
    read_only: bool,
    cache_metadata: bool = True,
) -> Array:
    """The array that was found at a path.

    Raises:
        MismatchError: a group is there.
    """
    if found.kind == "group":
        raise MismatchError(
            f"there is a group, not an array, at {describe(store, path)}; open it with open_group"
        )
    opened = open_spec(
        {"driver": _DRIVERS[found.zarr_format]},
        kvstore=store.at(path),
        context=store.context,
        open=True,
        read=True,
        write=not read_only,
    ).result()
    return Array(opened, store=store, path=path, read_only=read_only, cache_metadata=cache_metadata)


def create_at(
    store: Store,
    path: str,
    request: Request,
    *,
    overwrite: bool,
    read_only: bool = False,
    cache_metadata: bool = True,
) -> Array:
    """A new array at a path, with the groups above it.

    Args:
        store: where.
        path: in its one form.
        request: what it is to be.
        overwrite: delete whatever is there first.
        read_only: of the array that is given back.
        cache_metadata: of the array that is given back.

    Raises:
        NodeExistsError: something is there.
        PermissionError: the store is read only.
    """
    store.check_writable()
    if not overwrite:
        found = find(store, path, None)
        if found is not None:
            raise NodeExistsError(
                f"there is a Zarr {found.kind} at {describe(store, path)}; open it with mode='a', "
                "or replace it with overwrite=True or mode='w'"
            )
    opened = _made(store, path, request, overwrite)
    return Array(opened, store=store, path=path, read_only=read_only, cache_metadata=cache_metadata)


def _made(store: Store, path: str, request: Request, overwrite: bool) -> TensorStore:
    parent = path.rpartition("/")[0]
    if path:
        Group.open(
            store.kvstore,
            path=parent,
            open=True,
            create=True,
            zarr_format=request.zarr_format,
            consolidated=False,
            context=store.context,
        ).result()
    members, left = request.members, request.attributes
    if left and request.zarr_format == 3:
        metadata = {**cast("dict[str, object]", members["metadata"]), "attributes": left}
        members, left = {**members, "metadata": metadata}, {}
    opened = open_spec(
        members,
        kvstore=store.at(path),
        context=store.context,
        create=True,
        delete_existing=overwrite or None,
        **request.options,
    ).result()
    if left:
        opened.attrs.update(left).result()
    return opened
