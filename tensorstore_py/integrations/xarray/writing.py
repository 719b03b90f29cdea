"""`to_zarr`: Datasets, DataArrays and trees of them written to Zarr, with xarray's meanings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_arrays import Delayed
from tensorstore_py.integrations.xarray.writing_documents import (
    Documents,
    Form,
    Node,
    Place,
    as_place,
    below,
    parents,
)
from tensorstore_py.integrations.xarray.writing_order import Writing
from tensorstore_py.integrations.xarray.writing_plan import Options, Planner, Region, stored_name

__all__ = ["to_zarr"]

#: What can be written.
Written: TypeAlias = "xr.Dataset | xr.DataArray | xr.DataTree"
Mode: TypeAlias = Literal["w", "w-", "a", "a-", "r+"]
Encoding: TypeAlias = Mapping[Any, Any]

_MODES: Final = ("w", "w-", "a", "a-", "r+")
#: What xarray calls a DataArray that has no name, or that of a coordinate; and where its name is.
_UNNAMED: Final = "__xarray_dataarray_variable__"
_NAME: Final = "__xarray_dataarray_name__"


class _Part(NamedTuple):
    """A Dataset, and the path of the group that it becomes."""

    path: str
    dataset: xr.Dataset
    encoding: Encoding


def to_zarr(
    obj: Written,
    target: object,
    *,
    mode: Mode | None = None,
    group: str | None = None,
    encoding: Encoding | None = None,
    append_dim: Hashable | None = None,
    region: Region | None = None,
    consolidated: bool | None = None,
    zarr_format: Literal[2, 3] | None = None,
    compute: bool = True,
    transaction: ts.Transaction | None = None,
    context: ts.Context | None = None,
    write_empty_chunks: bool | None = None,
    write_inherited_coords: bool = False,
    safe_chunks: bool = True,
    align_chunks: bool = False,
    chunkmanager_store_kwargs: Mapping[str, Any] | None = None,
) -> Delayed:
    """Write a Dataset, a DataArray or a DataTree to Zarr, as xarray's `to_zarr` does.

    Values are stored before the documents that make arrays of them, and consolidated metadata last.
    If something fails, what was made is deleted again.

    Args:
        obj: what to write.
        target: where: a local path (`.zip` is an archive), a URL, the JSON spec of a store, a
            `ts.KvStore`, a group of `ts` or `ts.zarr`, a store of `ts.zarr`.
        mode: `"w-"`: a new group; `"w"`: a new group, whatever is there is deleted; `"a"`: new
            variables are made, those that are there overwritten; `"a-"`: of those only the ones
            that grow; `"r+"`: only values are written, of variables that are there. By default
            `"a"` with `append_dim`, `"r+"` with `region`, else `"w-"`.
        group: path of a group in the target.
        encoding: how variables are stored, by name; of a tree by group and name. For each:
            `chunks`, `shards`, `compressors`, `filters`, `serializer`, `fill_value`,
            `chunk_key_encoding`, and xarray's `dtype`, `scale_factor`, `add_offset`, `_FillValue`,
            `units`, `calendar`, ….
        append_dim: the dimension along which to write behind what is there.
        region: write a part of what is there: a slice for each dimension, or `"auto"` for where
            the coordinates are. Many processes may write regions that share chunks.
        consolidated: store consolidated metadata; by default unless the mode is `"r+"`. If False,
            consolidated metadata that would not be true any more is deleted.
        zarr_format: 2 or 3; by default that of the target, or 3.
        compute: write chunked variables now; if False, give back what does it.
        transaction: write everything in it: nothing is seen before it is committed.
        context: shared resources; a fresh default `Context` if not given.
        write_empty_chunks: store chunks that hold nothing but the fill value, too.
        write_inherited_coords: of a tree: repeat coordinates in groups that inherit them.
        safe_chunks: accepted, and not needed: blocks may lie anywhere, nothing is lost.
        align_chunks: have blocks of chunked variables end where stored chunks do, which makes for
            fewer requests.
        chunkmanager_store_kwargs: passed on to the `store` of the library of chunked variables.

    Returns:
        None; with `compute=False` dask's `Delayed`.

    Raises:
        ValueError, TypeError, KeyError: it cannot be written so; names the variable and says why.
        AlreadyExistsError: (also a `FileExistsError`) a group is there, and the mode is `"w-"`.
        NotFoundError: (also a `FileNotFoundError`) no group is there, and the mode is `"r+"`.
        AbortedError: another writer changed an array that was to be made longer.

    Example:
        >>> import numpy as np
        >>> import xarray as xr
        >>> from tensorstore_py.integrations.xarray import to_zarr
        >>> day = xr.Dataset({"t2m": (("time", "x"), np.ones((2, 3)))}, coords={"time": [0, 1]})
        >>> to_zarr(day, "weather.zarr", mode="w")
        >>> to_zarr(day.assign_coords(time=[2, 3]), "weather.zarr", append_dim="time")
        >>> import tensorstore_py as ts
        >>> ts.zarr.open("weather.zarr")["t2m"].shape
        (4, 3)
    """
    del safe_chunks
    how = _mode(mode, append_dim, region)
    options = Options(how, append_dim, region, write_empty_chunks, align_chunks)
    parts = _parts(obj, encoding or {}, write_inherited_coords=write_inherited_coords)
    if len(parts) > 1 and append_dim is not None:
        raise ts.UnsupportedError(
            "append_dim= takes a Dataset, and not a tree; append to each group by itself: group="
        )
    if transaction is not None and not compute:
        raise ValueError(
            "compute=False writes later, when the transaction is over; leave out one of them"
        )
    place = as_place(target, zarr_format=zarr_format, context=context, transaction=transaction)
    if place.rewritten and place.transaction is None and compute:
        with ts.Transaction() as together:
            _write(
                parts, place.with_transaction(together), group, options, consolidated, compute, None
            )
        return None
    return _write(parts, place, group, options, consolidated, compute, chunkmanager_store_kwargs)


def _write(
    parts: list[_Part],
    place: Place,
    group: str | None,
    options: Options,
    consolidated: bool | None,
    compute: bool,
    store_options: Mapping[str, Any] | None,
) -> Delayed:
    path = "/".join(part for part in (group or "").split("/") if part)
    parts = [part._replace(path=below(path, part.path)) for part in parts]
    documents = Documents(place)
    asked = documents.ask([*parents(path), path], None if options.fresh else place.zarr_format)
    # Of a new tree that is all of the target nothing has to be known: the answers are not waited
    # for before all is planned.
    nodes = {} if options.fresh and not path else asked()
    form = Form(place.zarr_format or 3)
    if nodes:
        _check(place, options, nodes, path, consolidated)
        form = _form(place, options, nodes, path)
    known: dict[str, Node] = {}
    if nodes and not options.fresh and nodes[path].kind is not None:
        wanted = {
            below(part.path, name)
            for part in parts
            for name in ("", *(stored_name(name) for name in part.dataset.variables))
        }
        known = nodes = {**documents.look(wanted - {path}, form.zarr_format), **nodes}
    planner = Planner(documents, form, options)
    groups = [planner.plan(*part, known) for part in parts]
    if not nodes:
        nodes = asked()
        _check(place, options, nodes, path, consolidated)
    writing = Writing(documents, form, options, nodes, path, consolidated=consolidated)
    left = writing.write(groups, compute=compute, store_options=store_options)
    return _delayed(left) if not compute else None


def _delayed(left: Delayed) -> Delayed:
    """What writes blocks later, as one `Delayed` that gives None."""
    try:
        import dask  # noqa: PLC0415 - an extra that is needed for this alone
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'compute=False needs the package dask: pip install "tensorstore-py[dask]"',
            name=error.name,
        ) from error
    return dask.delayed(_done)(left)  # type: ignore[attr-defined]


def _done(_: object) -> None:
    """The end of what was computed later."""


def _mode(mode: str | None, append_dim: Hashable | None, region: object) -> str:
    if mode is None:
        mode = "r+" if region is not None else "w-"
        mode = mode if append_dim is None else "a"
    if mode not in _MODES:
        raise ValueError(
            "The only supported options for mode are "
            f"{', '.join(map(repr, _MODES))}, but mode={mode!r}"
        )
    if append_dim is not None and mode not in ("a", "a-"):
        raise ValueError(f"cannot set append_dim unless mode='a' or mode=None, but mode={mode!r}")
    if region is not None and mode not in ("a", "a-", "r+"):
        raise ValueError(
            "cannot set region unless mode='a', mode='a-', mode='r+' or mode=None, but "
            f"mode={mode!r}"
        )
    return mode


def _parts(obj: Written, encoding: Encoding, *, write_inherited_coords: bool) -> list[_Part]:
    if isinstance(obj, xr.DataTree):
        unknown = set(encoding) - set(obj.groups)
        if unknown:
            raise ValueError(
                f"unexpected encoding group name(s) provided: {sorted(map(str, unknown))}; groups "
                f"are {list(obj.groups)}"
            )
        parts = []
        for key, node in obj.subtree_with_keys:
            inherits = write_inherited_coords or node is obj
            path = "" if key == "." else key
            parts.append(
                _Part(path, node.to_dataset(inherit=inherits), encoding.get(node.path) or {})
            )
        return parts
    if isinstance(obj, xr.DataArray):
        return [_Part("", _as_dataset(obj), encoding)]
    if isinstance(obj, xr.Dataset):
        return [_Part("", obj, encoding)]
    raise TypeError(
        f"to_zarr writes a Dataset, a DataArray or a DataTree, not {type(obj).__name__}"
    )


def _as_dataset(array: xr.DataArray) -> xr.Dataset:
    if array.name is None:
        return array.to_dataset(name=_UNNAMED)
    if array.name in array.coords or array.name in array.dims:
        found = array.to_dataset(name=_UNNAMED)
        found.attrs[_NAME] = array.name
        return found
    return array.to_dataset()


def _form(place: Place, options: Options, nodes: Mapping[str, Node], path: str) -> Form:
    """The version of the format: that of the place, or of what is there, or the newest."""
    outer = nodes[""].zarr_format if path else None
    there = outer if options.fresh else nodes[path].zarr_format or outer
    return Form(place.zarr_format or there or 3)


def _check(
    place: Place,
    options: Options,
    nodes: Mapping[str, Node],
    path: str,
    consolidated: bool | None,
) -> None:
    """Refuse what does not fit what is there.

    Raises:
        NodeExistsError, NodeNotFoundError, MismatchError, ValueError: the mode does not, an array
            is where a group has to be, or there is no consolidated metadata to be used.
    """
    own, mode = nodes[path], options.mode
    if own.kind is not None and mode == "w-":
        raise ts.zarr.NodeExistsError(
            f"there is a Zarr {own.kind} at {place.describe(path)}; pass mode='a' to write into "
            "it, or mode='w' to replace it"
        )
    if own.kind is None and mode == "r+":
        raise ts.zarr.NodeNotFoundError(
            f"no group found at {place.describe(path)}; pass mode='w' or 'a' to make one"
        )
    for each in nodes.values():
        inside = each.path != path or mode != "w"
        if each.kind == "array" and inside and each.path in (*parents(path), path):
            raise ts.MismatchError(
                f"there is an array, not a group, at {place.describe(each.path)}; write to "
                "another path"
            )
    if mode == "r+" and consolidated and not nodes[""].consolidated:
        raise ValueError(
            f"there is no consolidated metadata at {place.describe('')}; leave out "
            "consolidated=True, or store some with mode='a'"
        )
