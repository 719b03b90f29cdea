"""Opening whatever is there, and groups, by zarr-python's names: thin functions over `ts.Group`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tensorstore_py._api.group import Group as EngineGroup
from tensorstore_py._hierarchy.path import normalised
from tensorstore_py.errors import AlreadyExistsError, NotFoundError
from tensorstore_py.zarr.creation import (
    as_format,
    as_mode,
    describe,
    find,
    open_array,
    open_at,
    required,
)
from tensorstore_py.zarr.errors import NodeExistsError, NodeNotFoundError
from tensorstore_py.zarr.request import ArrayArguments
from tensorstore_py.zarr.storage import StoreLike, store_of
from tensorstore_py.zarr.zarr_group import Group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.group_nodes import Tree
    from tensorstore_py._spec.context import Context

# Any: an Array or a Group; only what is stored tells.
Node: TypeAlias = Any

#: Keyword arguments of both arrays and groups.
_OF_BOTH = ("attributes", "synchronizer", "cache_attrs")

__all__ = [
    "consolidate_metadata",
    "create_group",
    "group",
    "open",
    "open_consolidated",
    "open_group",
    "tree",
]


def open(
    store: StoreLike = None,
    mode: str | None = None,
    *,
    path: str | None = None,
    zarr_format: int | None = None,
    context: Context | None = None,
    **arguments: Any,
) -> Node:
    """Open the array or the group that is there, or create one.

    Args:
        store: as for `create`.
        mode: as for `open_array`; `"a"` if left out, `"r"` for a store that is read only.
        path: of the node in the store.
        zarr_format: 2 or 3; whichever is there if left out.
        context: as for `create`.
        **arguments: with `shape`, an array is created, and these are those of `create`; else a
            group is, and they are those of `open_group`.

    Raises:
        NodeNotFoundError: nothing is there, and it must.
        NodeExistsError: something is there, and may not.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.open("data.zarr", mode="w", shape=(4, 4), chunks=(2, 2), dtype="i4")
        >>> z[0] = 7
        >>> ts.zarr.open("data.zarr", mode="r")[0]
        array([7, 7, 7, 7], dtype=int32)
    """
    where = store_of(store, mode=mode, context=context)
    how, inner = as_mode(mode, where), normalised(path or "")
    asked = as_format(where.zarr_format if zarr_format is None else zarr_format)
    found = find(where, inner, asked) if how == "a" else None
    if how in ("r", "r+"):
        found = required(where, inner, asked, "array or group")
    if found is not None and found.kind == "array":
        read_only = how == "r" or where.read_only
        cached = arguments.get("cache_metadata", True)
        return open_at(where, inner, found, read_only=read_only, cache_metadata=cached)
    if arguments.get("shape") is not None:
        return open_array(where, mode, path=path, zarr_format=zarr_format, **arguments)
    arguments.pop("shape", None)
    for name in arguments:
        if name in ArrayArguments.__annotations__ and name not in _OF_BOTH:
            raise TypeError(f"{name!r} is for a new array: pass shape=, too")
    return open_group(where, mode, path=path, zarr_format=zarr_format, **arguments)


def open_group(
    store: StoreLike = None,
    mode: str | None = "a",
    *,
    path: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, object] | None = None,
    use_consolidated: bool | None = None,
    synchronizer: object = None,  # noqa: ARG001 - not needed
    cache_attrs: object = None,  # noqa: ARG001 - not needed
    context: Context | None = None,
) -> Group:
    """Open a group, or create it.

    Args:
        store: as for `create`.
        mode: as for `open_array`.
        path: of the group in the store; groups above it are made.
        zarr_format: 2 or 3; whichever is there if left out, and 3 if nothing is.
        attributes: of a new group.
        use_consolidated: use consolidated metadata: False: not; True: it must be there; if left
            out, if it is there.
        synchronizer: accepted, and not needed.
        cache_attrs: accepted, and not needed.
        context: as for `create`.

    Raises:
        NodeNotFoundError: nothing is there, and it must.
        NodeExistsError: something is there, and may not.
        MismatchError: an array is there.
    """
    where = store_of(store, mode=mode, context=context)
    how = as_mode(mode, where)
    creates = how not in ("r", "r+")
    if creates:
        where.check_writable()
    opened = EngineGroup.open(
        where.kvstore,
        path=path or "",
        open=how not in ("w", "w-"),
        create=creates,
        delete_existing=how == "w",
        zarr_format=as_format(where.zarr_format if zarr_format is None else zarr_format),
        attributes=attributes,
        consolidated=use_consolidated,
        context=where.context,
    )
    try:
        found = opened.result()
    except NotFoundError as error:
        if use_consolidated:
            raise
        place = describe(where, normalised(path or ""))
        raise NodeNotFoundError(
            f"no group found at {place}; pass mode='a' or 'w' to create one"
        ) from error
    except AlreadyExistsError as error:
        place = describe(where, normalised(path or ""))
        raise NodeExistsError(
            f"there is a Zarr array or group at {place}; open it with mode='a', or replace it with "
            "mode='w'"
        ) from error
    return Group(found, store=where, read_only=how == "r" or where.read_only)


def group(
    store: StoreLike = None,
    *,
    overwrite: bool = False,
    path: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, object] | None = None,
    synchronizer: object = None,  # noqa: ARG001 - not needed
    context: Context | None = None,
) -> Group:
    """The group at a place, created if it is not there; in new memory if no place is given.

    Args:
        store: as for `create`.
        overwrite: delete whatever is there first.
        path: of the group in the store.
        zarr_format: as for `open_group`.
        attributes: of a new group.
        synchronizer: accepted, and not needed.
        context: as for `create`.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.zarr.group().create_group("foo").name
        '/foo'
    """
    return open_group(
        store,
        "w" if overwrite else "a",
        path=path,
        zarr_format=zarr_format,
        attributes=attributes,
        context=context,
    )


def create_group(
    store: StoreLike = None,
    *,
    path: str | None = None,
    overwrite: bool = False,
    zarr_format: int | None = None,
    attributes: Mapping[str, object] | None = None,
    context: Context | None = None,
) -> Group:
    """Create a group, where there is none unless `overwrite` is given.

    Args are those of `group`.

    Raises:
        NodeExistsError: something is there.
    """
    return open_group(
        store,
        "w" if overwrite else "w-",
        path=path,
        zarr_format=zarr_format,
        attributes=attributes,
        context=context,
    )


def open_consolidated(store: StoreLike, mode: str = "r+", **arguments: Any) -> Group:
    """Open a group by its consolidated metadata, which must be there.

    Args:
        store: as for `create`.
        mode: `"r"` or `"r+"`.
        **arguments: those of `open_group`.

    Raises:
        NotFoundError: there is no group, or it has none.
        ValueError: another mode.
    """
    if mode not in ("r", "r+"):
        raise ValueError(f"consolidated metadata is opened with mode 'r' or 'r+', not {mode!r}")
    return open_group(store, mode, use_consolidated=True, **arguments)


def consolidate_metadata(
    store: StoreLike, path: str | None = None, *, zarr_format: int | None = None
) -> Group:
    """Store the metadata of all below a group in one document, and open it by that.

    Args:
        store: as for `create`.
        path: of the group in the store.
        zarr_format: 2 or 3; whichever is there if left out.

    Example:
        >>> import tensorstore_py as ts
        >>> root = ts.zarr.group("tree.zarr")
        >>> _ = root.zeros("a/b", shape=3)
        >>> ts.zarr.consolidate_metadata("tree.zarr").ts.consolidated
        True
    """
    opened = open_group(store, "r+", path=path, zarr_format=zarr_format, use_consolidated=False)
    return Group(opened.ts.consolidate().result(), store=opened.store)


def tree(grp: Group | EngineGroup, expand: bool | None = None, level: int | None = None) -> Tree:
    """A picture of what is in a group, as text and, in notebooks, as HTML.

    Args:
        grp: the group.
        expand: accepted; all is shown.
        level: how many levels; all by default.
    """
    found = grp if isinstance(grp, Group) else Group(grp)
    return found.tree(expand, level)
