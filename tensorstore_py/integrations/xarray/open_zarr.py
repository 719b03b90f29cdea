"""`open_zarr`, with the name and the arguments that `xarray_tensorstore` has.

Programs that used that change one import. Fill values, scales and offsets of any kind are decoded,
and what the engine takes is taken here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr
from xarray.core import indexing

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.engine import TensorStoreBackendEntrypoint
from tensorstore_py.integrations.xarray.lazy_array import LazyArray

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["open_zarr"]


def open_zarr(
    path: Any,  # noqa: ANN401 - whatever the engine takes
    *,
    context: ts.Context | Mapping[str, Any] | None = None,
    mask_and_scale: bool = True,
    write: bool = False,
    consolidated: bool | None = None,
    **options: Any,
) -> xr.Dataset:
    """Open a dataset without dask.

    `read` begins to read all variables of it at once.

    Args:
        path: a path, a URL, a spec, a `ts.Group`, a `ts.KvStore`.
        context: a `ts.Context` that all variables share, or its JSON.
        mask_and_scale: mask elements that equal the fill value, and scale and shift.
        write: store what is assigned to elements of variables, at once.
        consolidated: use consolidated metadata: by default if it is there; True: it must be.
        **options: further keywords of `xr.open_dataset`, and of the engine.

    Raises:
        PermissionDeniedError: (when elements are assigned) the variable is decoded, so its elements
            are not those that are stored; open it with `mask_and_scale=False` or `decode_cf=False`.
        NotFoundError, MismatchError, UnsupportedError: as by the engine.

    Example:
        >>> import numpy as np
        >>> import xarray as xr
        >>> xr.Dataset({"a": ("x", np.arange(3.0))}).to_zarr("a.zarr", zarr_format=2)
        <xarray.backends.zarr.ZarrStore object at ...>
        >>> dataset = open_zarr("a.zarr", mask_and_scale=False, write=True)
        >>> dataset["a"][1] = 7
        >>> open_zarr("a.zarr")["a"].values
        array([0., 7., 2.])
    """
    found = xr.open_dataset(
        path,
        engine=TensorStoreBackendEntrypoint,
        context=context,
        mask_and_scale=mask_and_scale,
        consolidated=consolidated,
        cache=not write,
        **options,
    )
    if not write:
        return found
    data = {name: _writable(str(name), each.variable) for name, each in found.data_vars.items()}
    writing = found.copy(data=data)
    writing.set_close(found.close)
    return writing


def _writable(name: str, variable: xr.Variable) -> Any:  # noqa: ANN401 - what xarray holds
    """The data of a variable, whose elements are stored when they are assigned."""
    data = variable._data
    while isinstance(data, indexing.CopyOnWriteArray | indexing.MemoryCachedArray):
        data = data.array
    stored = isinstance(data, indexing.LazilyIndexedArray) and isinstance(data.array, LazyArray)
    return data if stored else _Decoded(data, name=name)


class _Decoded(indexing.LazilyIndexedArray):
    """Data that is decoded when it is read, and so not written."""

    __slots__ = ("_name",)

    def __init__(self, array: Any, key: Any = None, name: str = "") -> None:  # noqa: ANN401
        super().__init__(array, key)
        self._name = name

    def __setitem__(self, key: object, value: object) -> None:
        raise ts.PermissionDeniedError(
            f'variable "{self._name}" is decoded, so what is assigned cannot be stored as it is; '
            "open it with mask_and_scale=False, or decode_cf=False, or write it with to_zarr"
        )

    def _oindex_set(self, key: indexing.OuterIndexer, value: object) -> None:
        self[key] = value

    def _vindex_set(self, key: indexing.VectorizedIndexer, value: object) -> None:
        self[key] = value
