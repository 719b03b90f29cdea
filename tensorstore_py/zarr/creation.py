"""Creating and opening arrays by zarr-python's names and modes: thin functions over specs.

A mode becomes an open mode of `ts.open`, and a path a group's member, so that the groups above it
are made. Which version of the format is there is found out by looking for its documents.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, cast

import numpy as np

from tensorstore_py._api.group import Group
from tensorstore_py._api.open import open as open_spec
from tensorstore_py._hierarchy.path import normalised
from tensorstore_py._spec.arguments import spelled_out
from tensorstore_py.errors import MismatchError
from tensorstore_py.zarr.errors import NodeExistsError, NodeNotFoundError
from tensorstore_py.zarr.request import (
    ArrayArguments,
    arguments_of,
    check_names,
    named,
    request_for,
)
from tensorstore_py.zarr.storage import StoreLike, store_of
from tensorstore_py.zarr.zarr_array import Array

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._spec.context import Context
    from tensorstore_py.zarr.request import Request
    from tensorstore_py.zarr.store import Store


__all__ = [
    "Found",
    "Mode",
    "array",
    "as_format",
    "as_mode",
    "create",
    "create_array",
    "create_at",
    "describe",
    "empty",
    "empty_like",
    "find",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "open_array",
    "open_at",
    "open_like",
    "required",
    "zeros",
    "zeros_like",
]

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]
_MODES = ("r", "r+", "a", "w", "w-", "x")
_DRIVERS = {2: "zarr", 3: "zarr3"}


class Found(NamedTuple):
    """What is at a path."""

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
    """What is at a path, of that version if one is given; None if nothing is."""
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

    Raises:
        NodeExistsError: something is there, and `overwrite` is off.
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


# Any: whatever NumPy makes an array of.
ArrayLike: TypeAlias = Any


class CreateArguments(ArrayArguments, total=False):
    """All keyword arguments of `create`."""

    store: StoreLike
    path: str | None
    overwrite: bool
    read_only: bool
    cache_metadata: bool
    context: Context | None


@spelled_out(ArrayArguments)
def create(
    shape: int | tuple[int, ...],
    *,
    store: StoreLike = None,
    path: str | None = None,
    overwrite: bool = False,
    read_only: bool = False,
    cache_metadata: bool = True,
    context: Context | None = None,
    **arguments: Unpack[ArrayArguments],
) -> Array:
    """Create an array.

    Args:
        shape: how many elements there are along each dimension.
        store: where: a path, a URL, a dict of bytes, a `ts.KvStore` or its spec, a store of
            `ts.zarr`; new memory if left out.
        path: of the array in the store; groups above it are made.
        overwrite: delete whatever is there first.
        read_only: give back an array that refuses changes.
        cache_metadata: if False, the shape is asked for before each use.
        context: resources that are shared, such as a cache.
        **arguments: `chunks`: the shape of what is read at once: a number for all dimensions,
            None or -1 for a whole dimension, False for one chunk; chosen if left out. `shards`: the
            shape of what is stored under one key. `dtype`: whatever NumPy takes, `"f8"` if left
            out. `fill_value`: what was never written reads as. `compressor` (version 2) or
            `compressors`: codecs of `ts.zarr`, numcodecs or zarr-python, or their JSON; None for
            none. `filters`: what is done before. `serializer`, `codecs`: of version 3.
            `object_codec`: of objects in version 2. `order`: `"C"` or `"F"`. `zarr_format`: 2 or
            3; if left out, 2 where only
            version 2 has an argument, else 3. `dimension_separator`, `chunk_key_encoding`: names of
            chunks. `dimension_names`, `attributes`. `synchronizer`, `write_empty_chunks`, `config`,
            `meta_array`: accepted, and not needed.

    Raises:
        NodeExistsError: something is there.
        TypeError, ValueError: an argument is wrong; says what is right.

    Example:
        >>> import tensorstore_py as ts
        >>> plate = ts.zarr.create((96, 2048, 2048), chunks=(1, 512, 512), dtype="u2")
        >>> plate.nchunks, plate.cdata_shape, plate.compressors
        (1536, (96, 4, 4), (Zstd(level=0, checksum=False),))
    """
    where, arguments = store_of(store, mode="a", context=context), named(**arguments)
    _take_format(where, arguments)
    request = request_for(shape, arguments, separator=where.separator)
    return create_at(
        where,
        normalised(path or ""),
        request,
        overwrite=overwrite,
        read_only=read_only,
        cache_metadata=cache_metadata,
    )


def _take_format(store: Store, arguments: ArrayArguments) -> None:
    """Say which version a store that was named by an array's spec is of, unless that was said."""
    said = (arguments.get("zarr_format"), arguments.get("zarr_version"))
    if store.zarr_format is not None and said == (None, None):
        arguments["zarr_format"] = store.zarr_format


@spelled_out(CreateArguments)
def empty(shape: int | tuple[int, ...], **arguments: Unpack[CreateArguments]) -> Array:
    """Create an array that says nothing of what was never written; it reads as zeros.

    Args are those of `create`.
    """
    arguments.setdefault("fill_value", None)
    return create(shape, **arguments)


@spelled_out(CreateArguments)
def zeros(shape: int | tuple[int, ...], **arguments: Unpack[CreateArguments]) -> Array:
    """Create an array of zeros, of which nothing is stored.

    Args are those of `create`.

    Example:
        >>> import tensorstore_py as ts
        >>> counts = ts.zarr.zeros((96, 24), chunks=(8, 24), dtype="u2")
        >>> counts[90:92, :3], counts.nchunks_initialized
        (array([[0, 0, 0],
               [0, 0, 0]], dtype=uint16), 0)
    """
    arguments.setdefault("fill_value", 0)
    return create(shape, **arguments)


@spelled_out(CreateArguments)
def ones(shape: int | tuple[int, ...], **arguments: Unpack[CreateArguments]) -> Array:
    """Create an array of ones, of which nothing is stored.

    Args are those of `create`.
    """
    arguments.setdefault("fill_value", 1)
    return create(shape, **arguments)


def full(shape: int | tuple[int, ...], fill_value: object, **arguments: Any) -> Array:
    """Create an array full of one value, of which nothing is stored.

    Args:
        shape: as for `create`.
        fill_value: the value.
        **arguments: those of `create`.
    """
    return create(shape, fill_value=fill_value, **arguments)


def array(data: ArrayLike, **arguments: Any) -> Array:
    """Create an array that holds some data.

    Args:
        data: whatever NumPy makes an array of; another Array is copied chunk by chunk, and its
            chunks are the usual ones.
        **arguments: those of `create`.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> ts.zarr.array(np.arange(6).reshape(2, 3), chunks=(1, 3))[1]
        array([3, 4, 5])
    """
    found, given = array_arguments(data, arguments)
    read_only = given.pop("read_only", False)
    made = create(tuple(found.shape), **given)
    made[...] = found
    made.read_only = made.read_only or read_only
    return made


def array_arguments(data: ArrayLike, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Data as an array, and the arguments of `create` for one that holds it."""
    found = data if hasattr(data, "shape") and hasattr(data, "dtype") else np.asanyarray(data)
    usual: dict[str, Any] = {"dtype": _dtype_of(found)}
    if found.dtype == object and not isinstance(found, Array):
        usual["dtype"] = _text_or_bytes(found)
    chunks = _chunks_of(found)
    if chunks is not None:
        usual["chunks"] = chunks
    return found, {**usual, **arguments}


def _dtype_of(data: ArrayLike) -> object:
    if isinstance(data, Array):
        return data.form.element
    return getattr(data.dtype, "numpy_dtype", data.dtype)


def _chunks_of(data: ArrayLike) -> object:
    """The shape of the chunks of something that has some."""
    chunks = getattr(data, "chunks", None)
    regular = isinstance(chunks, tuple) and all(isinstance(size, int) for size in chunks)
    return chunks if regular else None


def _text_or_bytes(data: ArrayLike) -> object:
    """The type of objects that are all text, or all byte strings."""
    kinds = {type(each) for each in np.asarray(data, object).flat}
    if kinds and all(issubclass(each, str) for each in kinds):
        return str
    return bytes if kinds and all(issubclass(each, bytes) for each in kinds) else object


def create_array(
    store: StoreLike = None,
    *,
    name: str | None = None,
    shape: int | tuple[int, ...] | None = None,
    data: ArrayLike = None,
    write_data: bool = True,
    **arguments: Any,
) -> Array:
    """Create an array, as zarr-python 3 has it.

    Args:
        store: as for `create`.
        name: of the array in the store.
        shape: as for `create`; not with `data`.
        data: what it is to hold.
        write_data: if False, it only has the shape and the type of the data.
        **arguments: those of `create`.

    Raises:
        ValueError: neither a shape nor data are given, or both.
    """
    if (shape is None) == (data is None):
        raise ValueError("pass either shape= (and dtype=) or data=")
    given = {"store": store, "path": name, **arguments}
    if data is None:
        return create(cast("tuple[int, ...]", shape), **given)
    if write_data:
        return array(data, **given)
    found = np.asanyarray(data)
    return create(found.shape, **{"dtype": found.dtype, **given})


@spelled_out(ArrayArguments)
def open_array(
    store: StoreLike = None,
    mode: str | None = None,
    *,
    shape: int | tuple[int, ...] | None = None,
    path: str | None = None,
    cache_metadata: bool = True,
    context: Context | None = None,
    **arguments: Unpack[ArrayArguments],
) -> Array:
    """Open an array, or create it.

    Args:
        store: as for `create`.
        mode: `"r"`: read only, it must be there; `"r+"`: it must be there; `"a"`: created if it is
            not there; `"w"`: created, and whatever is there is deleted; `"w-"` or `"x"`: created,
            and nothing may be there.
        shape: of a new array.
        path: of the array in the store.
        cache_metadata: as for `create`.
        context: as for `create`.
        **arguments: those of `create`, for a new array.

    Raises:
        NodeNotFoundError: nothing is there, and it must.
        NodeExistsError: something is there, and may not.
        MismatchError: a group is there.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.open_array(
        ...     "example.zarr", mode="w", shape=(4, 4), chunks=(2, 2), dtype="i4"
        ... )
        >>> z[:] = 42
        >>> ts.zarr.open_array("example.zarr", mode="r")[0]
        array([42, 42, 42, 42], dtype=int32)
    """
    check_names(arguments)
    where, arguments = store_of(store, mode=mode, context=context), named(**arguments)
    how, inner = as_mode(mode, where), normalised(path or "")
    _take_format(where, arguments)
    asked = as_format(arguments.get("zarr_format", arguments.get("zarr_version")))
    found = find(where, inner, asked) if how == "a" else None
    if how in ("r", "r+"):
        found = required(where, inner, asked, "array")
    if found is not None:
        return open_at(
            where,
            inner,
            found,
            read_only=how == "r" or where.read_only,
            cache_metadata=cache_metadata,
        )
    if shape is None:
        raise ValueError(f"mode={how!r} creates an array here, which needs a shape: pass shape=")
    request = request_for(shape, arguments, separator=where.separator)
    return create_at(where, inner, request, overwrite=how == "w", cache_metadata=cache_metadata)


def like(a: ArrayLike, arguments: dict[str, Any]) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The shape and the arguments for an array like another one, but for `arguments`.

    Of an Array everything is taken over, of others the type and the chunks.
    """
    found = a if hasattr(a, "shape") and hasattr(a, "dtype") else np.asanyarray(a)
    if isinstance(found, Array):
        usual = arguments_of(found.form, found.fill_value)
        other = arguments.get("zarr_format")
        if other is not None and other != found.zarr_format:
            kept = ("chunks", "dtype", "filters", "compressors", "order", "fill_value")
            usual = {name: usual[name] for name in kept}
    else:
        usual = {"dtype": _dtype_of(found)}
        chunks = _chunks_of(found)
        if chunks is not None:
            usual["chunks"] = chunks
    if "compressor" in arguments:
        usual.pop("compressors", None)
    shape = arguments.pop("shape", None)
    return (tuple(found.shape) if shape is None else shape), {**usual, **arguments}


def empty_like(a: ArrayLike, **arguments: Any) -> Array:
    """`empty` of the shape, the type and the layout of another array."""
    shape, given = like(a, {"fill_value": None, **arguments})
    return create(shape, **given)


def zeros_like(a: ArrayLike, **arguments: Any) -> Array:
    """`zeros` of the shape, the type and the layout of another array."""
    shape, given = like(a, {"fill_value": 0, **arguments})
    return create(shape, **given)


def ones_like(a: ArrayLike, **arguments: Any) -> Array:
    """`ones` of the shape, the type and the layout of another array."""
    shape, given = like(a, {"fill_value": 1, **arguments})
    return create(shape, **given)


def full_like(a: ArrayLike, fill_value: object = None, **arguments: Any) -> Array:
    """`full` of the shape, the type and the layout of another array.

    Args:
        a: the other array.
        fill_value: the value; that of the other array if left out.
        **arguments: what is to be different.
    """
    different = {} if fill_value is None else {"fill_value": fill_value}
    shape, given = like(a, {**different, **arguments})
    return create(shape, **given)


def open_like(a: ArrayLike, path: StoreLike, **arguments: Any) -> Array:
    """`open_array` in a store, with the shape, the type and the layout of another array.

    Args:
        a: the other array.
        path: the store.
        **arguments: those of `open_array`.
    """
    shape, given = like(a, arguments)
    return open_array(path, shape=shape, **given)
