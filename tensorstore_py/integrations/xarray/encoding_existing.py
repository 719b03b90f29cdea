"""Writing to arrays that are there: values are encoded as those that they join.

What an array's attributes say of its encoding is found out by xarray's decoder, on a single value
that stands for all of them; nothing of the array is read.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray import conventions
from xarray.backends.zarr import FillValueCoder
from xarray.coding import strings

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.encoding import encoded, named
from tensorstore_py.integrations.xarray.writing_documents import DIMENSIONS, Form, Node

__all__ = ["Existing", "as_existing", "joined"]


class Existing:
    """An array that is there, as xarray sees it.

    Args:
        name: of the variable.
        node: what is stored of it.
        array: the array.

    Attributes:
        name: as given.
        node: as given.
        dims: the names of its dimensions.
        shape: of the array.
        dtype: of what is stored, as xarray has it.
    """

    def __init__(self, name: str, node: Node, array: ts.zarr.Array, dims: tuple[str, ...]) -> None:
        self.name = name
        self.node = node
        self.dims = dims
        self.shape = tuple(array.shape)
        self.dtype: np.dtype[Any] = array.dtype
        if self.dtype.kind == "O":
            self.dtype = strings.create_vlen_dtype(str)  # type: ignore[no-untyped-call]
        self._fill_value = array.fill_value

    @property
    def sizes(self) -> dict[str, int]:
        """How long each dimension is."""
        return dict(zip(self.dims, self.shape, strict=True))

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes, as xarray's decoder takes them."""
        found = {key: value for key, value in self.node.attributes.items() if key != DIMENSIONS}
        if self.node.zarr_format == 2:
            if self._fill_value is not None:
                found["_FillValue"] = self._fill_value
        elif "_FillValue" in found:
            told = "string" if self.dtype.kind in "OT" else self.dtype
            found["_FillValue"] = FillValueCoder.decode(found["_FillValue"], told)
        return found

    def decoded(self, values: object = None) -> xr.Variable:
        """Values as a user sees them; by default a single one that stands for all.

        Args:
            values: stored ones.
        """
        if values is None:
            values = np.zeros((1,) * len(self.dims), self.dtype)
        stored = xr.Variable(self.dims, values, self.attributes)
        with named(self.name):
            return conventions.decode_cf_variable(self.name, stored)


def as_existing(name: str, node: Node, array: ts.zarr.Array) -> Existing:
    """An array that is there.

    Raises:
        ValueError: its dimensions have no names.
    """
    form = Form(node.zarr_format or 3)
    dims = form.dims(node)
    if dims is None:
        where = "dimension_names" if form.zarr_format == 3 else DIMENSIONS
        raise ValueError(
            f"variable {name!r} is an array whose dimensions have no names, which xarray needs: "
            f"store {where!r} with it"
        )
    return Existing(name, node, array, dims)


def joined(
    variable: xr.Variable,
    existing: Existing,
    *,
    region: Mapping[Hashable, slice],
    append_dim: Hashable | None,
) -> xr.Variable:
    """A variable that is written to an array that is there, encoded as what is in it.

    Args:
        variable: as a user has it.
        existing: the array.
        region: which part of each dimension is written.
        append_dim: the dimension that grows.

    Raises:
        ValueError: its type, dimensions or sizes do not fit; names both.
    """
    name = existing.name
    present = existing.decoded()
    _check_type(name, variable, present)
    again = variable.copy(deep=False)
    again.encoding = present.encoding
    found = encoded(again, name, existing.node.zarr_format or 3)
    if found.dims != existing.dims:
        if set(found.dims) != set(existing.dims):
            raise ValueError(
                f"variable {name!r} already exists with different dimension names: "
                f"{existing.dims} are stored, {found.dims} are to be written; rename them, or "
                "write it under another name"
            )
        found = found.transpose(*existing.dims)
    _check_sizes(found, existing, region, append_dim)
    return found


def _check_type(name: str, new: xr.Variable, present: xr.Variable) -> None:
    """Refuse text and byte strings of another length, which would be cut."""
    if new.dtype.kind not in "USV" or new.dtype == present.dtype:
        return
    if present.dtype == object:
        return
    raise ValueError(
        f"Mismatched dtypes for variable {name!r}: {present.dtype} is stored, {new.dtype} is to be "
        f"written; convert it first: ds[{name!r}].astype({present.dtype.str!r})"
    )


def _check_sizes(
    new: xr.Variable,
    existing: Existing,
    region: Mapping[Hashable, slice],
    append_dim: Hashable | None,
) -> None:
    stored = {}
    for dim, size in existing.sizes.items():
        if dim in region:
            start, stop, _ = region[dim].indices(size)
            size = max(0, stop - start)
        if dim != append_dim:
            stored[dim] = size
    given = {dim: size for dim, size in new.sizes.items() if dim != append_dim}
    if stored != given:
        raise ValueError(
            f"variable {existing.name!r} already exists with different dimension sizes: "
            f"{stored} stored != {given} to be written. To make a dimension longer say append_dim= "
            f"(it is {append_dim!r}), to write a part of it region="
        )
