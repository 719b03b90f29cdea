"""`open_concatenated_zarrs`: many stores of one form as one dataset, concatenated without dask.

All stores are opened together, and each variable is one array over the arrays of all of them
(`ts.concat`), so a read asks only for the chunks that it wants, of the stores that have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import AbstractDataStore
from xarray.conventions import decode_cf_variable
from xarray.core.indexing import LazilyIndexedArray

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.engine import stored_groups
from tensorstore_py.integrations.xarray.lazy_array import LazyArray
from tensorstore_py.integrations.xarray.source import Source, shared_context

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from tensorstore_py.integrations.xarray.stored_group import StoredGroup, StoredVariable

__all__ = ["open_concatenated_zarrs"]

#: Attributes that say what stored elements mean.
_MEANING = (
    "units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned",
    "dtype",
)  # fmt: skip


def open_concatenated_zarrs(
    paths: Sequence[Any],
    concat_dim: str,
    *,
    context: ts.Context | Mapping[str, Any] | None = None,
    mask_and_scale: bool = True,
    group: str | None = None,
    consolidated: bool | None = None,
    drop_variables: str | Iterable[str] | None = None,
    **options: Any,
) -> xr.Dataset:
    """Open many stores as one dataset, concatenated along a dimension; without dask.

    Variables without the dimension, and attributes, are those of the first store. Coordinates whose
    units differ from store to store, as times often do, are decoded store by store.

    Args:
        paths: of the stores, in order; or whatever else the engine takes.
        concat_dim: the dimension.
        context: a `ts.Context` that all share, or its JSON.
        mask_and_scale: mask elements that equal the fill value, and scale and shift.
        group: the path of the group in each.
        consolidated: use consolidated metadata: by default if it is there; True: it must be.
        drop_variables: names of variables that are not opened.
        **options: further keywords of `xr.open_dataset`.

    Raises:
        ValueError: no paths, or no variable has the dimension.
        MismatchError: the variables of two stores do not fit; names the variable and the store.
        NotFoundError, UnsupportedError: as by the engine.

    Example:
        >>> import numpy as np
        >>> import xarray as xr
        >>> for number in range(3):
        ...     data = xr.Dataset({"a": ("x", np.full(2, number))})
        ...     _ = data.to_zarr(f"{number}.zarr", zarr_format=2)
        >>> open_concatenated_zarrs(["0.zarr", "1.zarr", "2.zarr"], "x")["a"].values
        array([0, 0, 1, 1, 2, 2])
    """
    if not paths:
        raise ValueError("no paths to concatenate")
    # One context for all, so that all share one pool and one set of connections.
    shared = shared_context(context, None) or ts.Context()
    dropped = {drop_variables} if isinstance(drop_variables, str) else {*(drop_variables or ())}
    sources = [
        Source(
            path,
            group=group,
            consolidated=consolidated,
            zarr_format=None,
            # A group that is open has its own, and is refused one that was asked for.
            context=None if context is None and isinstance(path, ts.Group) else shared,
            cache_pool=None,
            max_depth=0,
        )
        for path in paths
    ]
    try:
        ends = [source.close for source in sources]
        if shared is not context:
            ends.append(shared.close)
        joined = _Joined(_opened(sources, dropped), concat_dim, ends)
        found = xr.open_dataset(joined, engine="store", mask_and_scale=mask_and_scale, **options)
    except BaseException:
        for source in sources:
            source.close()
        raise
    return found


def _opened(sources: Sequence[Source], dropped: set[str]) -> list[StoredGroup]:
    """The group of each source, with its arrays open; each step is one of all together."""
    for source in sources:
        source.look()
    groups = [stored_groups(source, False, dropped, None)["/"] for source in sources]
    for group in groups:
        group.ready()
    return groups


class _Joined(AbstractDataStore):
    """The variables of all groups, concatenated."""

    def __init__(
        self, groups: Sequence[StoredGroup], dim: str, ends: Sequence[Callable[[], object]]
    ) -> None:
        self._groups = groups
        self._dim = dim
        self._ends = ends
        self._stores: list[ts.TensorStore] = []
        first = groups[0]
        if not any(dim in each.dims for each in first.stored.values()):
            dims = sorted({name for each in first.stored.values() for name in each.dims})
            raise ValueError(
                f'no variable has the dimension "{dim}", in {first.where}; there are {dims}'
            )

    def load(self) -> tuple[dict[Hashable, xr.Variable], dict[str, Any]]:
        """The variables, and the attributes of the first group."""
        first = self._groups[0]
        variables: dict[Hashable, xr.Variable] = {}
        for name, each in first.stored.items():
            if self._dim in each.dims:
                variables[name] = self._joined(name)
            else:
                each.fetch(times=True)
                variables[name] = each.variable(first.fills)
        return variables, first.attributes

    def close(self) -> None:
        """Close all of them."""
        for store in self._stores:
            store.close()
        for end in self._ends:
            end()

    def __reduce__(self) -> tuple[object, ...]:
        return _NothingOpen, ()

    def _joined(self, name: str) -> xr.Variable:
        parts = [self._part(group, name) for group in self._groups]
        variables = [part.variable(None) for part in parts]
        first, dims = variables[0], parts[0].dims
        if any(_meaning(each) != _meaning(first) for each in variables):
            if len(dims) > 1:
                self._refuse(name, variables)
            for part in parts:
                part.data.fetch()
            decoded = [decode_cf_variable(name, each) for each in variables]
            values = np.concatenate([each.values for each in decoded])
            return xr.Variable(dims, values, decoded[0].attrs, decoded[0].encoding)
        axis = dims.index(self._dim)
        store = ts.concat([part.data.store for part in parts], axis=axis)
        self._stores.append(store)
        data = LazyArray(store, parts[0].data.strings)
        if dims == (name,):
            data.fetch()
        return xr.Variable(dims, LazilyIndexedArray(data), first.attrs, first.encoding)

    def _part(self, group: StoredGroup, name: str) -> StoredVariable:
        """The variable of one group, which fits that of the first."""
        like, found = self._groups[0].stored[name], group.stored.get(name)
        if found is None:
            raise ts.MismatchError(
                f'variable "{name}" is in {self._groups[0].where}, but not in {group.where}; '
                f'pass drop_variables=["{name}"]'
            )
        stated = (found.dims, found.data.dtype, _but(found, self._dim))
        wanted = (like.dims, like.data.dtype, _but(like, self._dim))
        for what, mine, its in zip(("dimensions", "type", "sizes"), stated, wanted, strict=True):
            if mine != its:
                raise ts.MismatchError(
                    f'variable "{name}" has {what} {its} in {self._groups[0].where}, but {mine} in '
                    f"{group.where}, so the two are not concatenated; leave out that store, or "
                    f'pass drop_variables=["{name}"]'
                )
        return found

    def _refuse(self, name: str, variables: Sequence[xr.Variable]) -> None:
        first = _meaning(variables[0])
        for group, each in zip(self._groups, variables, strict=True):
            found = _meaning(each)
            if found != first:
                raise ts.MismatchError(
                    f'variable "{name}" is stored with {first} in {self._groups[0].where}, but '
                    f"with {found} in {group.where}, so the two are not decoded as one; use "
                    f'xr.open_mfdataset(paths, engine="tensorstore"), which decodes each, or '
                    f"decode_cf=False"
                )


def _meaning(variable: xr.Variable) -> str:
    """What says what stored elements mean, as text, since NaN differs from itself."""
    return str({name: variable.attrs[name] for name in _MEANING if name in variable.attrs})


def _but(variable: StoredVariable, dim: str) -> tuple[int, ...]:
    """The sizes along all dimensions but one."""
    sizes = zip(variable.dims, variable.data.shape, strict=True)
    return tuple(size for name, size in sizes if name != dim)


class _NothingOpen:
    """What a dataset that came from another process closes: arrays are opened there one by one."""

    def close(self) -> None:
        """Do nothing."""
