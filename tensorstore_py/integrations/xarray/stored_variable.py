"""`StoredVariable`: an array of a group, as a variable of xarray before it is decoded.

Names of dimensions, attributes and `encoding` are those that xarray's own engine for Zarr gives, so
what is read here can be written there, and the other way round.
"""

from __future__ import annotations

import posixpath
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends.zarr import FillValueCoder
from xarray.core.indexing import LazilyIndexedArray

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.codec_json import codecs_of_version_2, codecs_of_version_3
from tensorstore_py.integrations.xarray.lazy_array import LazyArray

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StoredVariable"]

_DIMENSIONS = "_ARRAY_DIMENSIONS"
_TEXT = np.dtypes.StringDType()
#: Small variables of times are read whole, others by their ends, to find what type they decode to.
_SMALL_BYTES = 1 << 16


class StoredVariable:
    """An array with what is stored of it.

    Args:
        name: of the variable.
        where: how to name it to a person.
        metadata: the metadata document.
        attributes: its attributes.
        store: the open array.

    Attributes:
        name: as given.
        dims: names of the dimensions.
        data: its elements, not read.

    Raises:
        ts.UnsupportedError: it has no names for its dimensions; says which.
    """

    def __init__(
        self,
        name: str,
        where: str,
        metadata: Mapping[str, Any],
        attributes: Mapping[str, Any],
        store: ts.TensorStore,
    ) -> None:
        self.name = name
        self._where = where
        self._metadata = metadata
        self._attributes = dict(attributes)
        self._store = store
        self.data = LazyArray(store, self._strings())
        self.dims = self._dims()

    @property
    def _version(self) -> int | None:
        found = self._metadata.get("zarr_format")
        return found if isinstance(found, int) else None

    def _strings(self) -> np.dtype[Any] | None:
        """The type of elements that are text of any length, or bytes that are a dimension."""
        if self._store.dtype.name == "ustring":
            return _TEXT
        stored = self._metadata.get("dtype")
        if self._store.dtype.name == "char" and isinstance(stored, str):
            return np.dtype(stored)
        return None

    def _dims(self) -> tuple[str, ...]:
        rank = len(self.data.shape)
        found: object
        if self._version == 3:
            found, member = self._metadata.get("dimension_names") or (), "dimension_names"
        elif self._version == 2:
            found, member = self._dims_of_version_2(), f"the attribute {_DIMENSIONS}"
        else:
            found, member = self._store.domain.labels, "axes"
        names = tuple(found) if isinstance(found, list | tuple) else ()
        if len(names) == rank and all(isinstance(each, str) and each for each in names):
            return names
        raise ts.UnsupportedError(
            f'variable "{self.name}" has no names for its {rank} dimensions, so it is no variable '
            f"of xarray: {member} is {found!r}, at {self._where}; store names there, or pass "
            f'drop_variables=["{self.name}"]'
        )

    def _dims_of_version_2(self) -> object:
        """What the ecosystem stores as an attribute, and netCDF's library in the metadata."""
        named = self._attributes.pop(_DIMENSIONS, None)
        for each in [each for each in self._attributes if each.lower().startswith("_nc")]:
            del self._attributes[each]
        if named is not None:
            return named
        inner = self._metadata.get("_NCZARR_ARRAY", {})
        return [posixpath.basename(each) for each in inner.get("dimrefs", ())]

    def fetch(self, *, times: bool) -> None:
        """Begin to read what xarray reads of it when it opens a dataset.

        Args:
            times: whether times are decoded.
        """
        if self.dims == (self.name,):
            self.data.fetch()
        elif times and " since " in str(self._attributes.get("units", "")):
            if self.data.size * self.data.dtype.itemsize <= _SMALL_BYTES:
                self.data.fetch()
            else:
                self.data.fetch_ends()

    def variable(self, fills: bool | None) -> xr.Variable:
        """The variable, its values not read.

        Args:
            fills: whether Zarr's fill value says which elements are missing; by default so it does
                in version 2.
        """
        attributes, encoding = dict(self._attributes), self._encoding()
        if self._version is not None:
            masks = self._version == 2 if fills is None else fills
            fill = self._fill_value()
            if masks and fill is not None:
                attributes["_FillValue"] = fill
            if not masks:
                if self._version == 3:
                    encoding["fill_value"] = fill
                if "_FillValue" in attributes:
                    attributes["_FillValue"] = self._decoded(attributes["_FillValue"])
        data = LazilyIndexedArray(self.data)
        return xr.Variable(self.dims, data, attributes, encoding, fastpath=True)

    def _decoded(self, fill: Any) -> Any:  # noqa: ANN401 - JSON, and an element
        """The attribute `_FillValue` as xarray's engine for Zarr stores it."""
        kind = self.data.dtype.kind
        try:
            return FillValueCoder.decode(fill, "string" if kind in "TU" else self.data.dtype)
        except (TypeError, ValueError) as error:
            raise ts.DataLossError(
                f'variable "{self.name}": the attribute _FillValue is {fill!r}, which is no '
                f"{self.data.dtype} as xarray stores one, at {self._where}: {error}; "
                f"pass mask_and_scale=False, decode_cf=False or drop_variables"
            ) from error

    def _fill_value(self) -> Any:  # noqa: ANN401 - an element
        stored, dtype = self._metadata.get("fill_value"), self.data.dtype
        if stored is None:
            return None
        # Plain numbers are what nearly all are, and the whole schema takes longer than opening.
        if dtype.kind in "biuf" and isinstance(stored, int | float):
            return dtype.type(stored)
        found = self._store.fill_value
        if found is None:
            return None
        if dtype.kind == "S":
            return np.bytes_(found.tobytes().rstrip(b"\0"))
        return found[()] if found.ndim == 0 else found

    def _encoding(self) -> dict[str, Any]:
        if self._version == 2:
            chunks, shards = tuple(self._metadata["chunks"]), None
            codecs = codecs_of_version_2(dict(self._metadata))
        elif self._version == 3:
            chunks, shards = _cut(self._metadata, self.data.shape)
            codecs = codecs_of_version_3(self._metadata["codecs"])
        else:
            layout = self._store.chunk_layout.read_chunk.shape or ()
            chunks, shards, codecs = tuple(layout), None, {}
        encoding = {
            "chunks": chunks,
            "preferred_chunks": dict(zip(self.dims, chunks, strict=True)),
            **codecs,
            "shards": shards,
        }
        if self.data.dtype.kind == "T":
            encoding["dtype"] = self.data.dtype
        return encoding


def _cut(metadata: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The sizes of chunks and of shards, of all along a dimension or one after the other."""
    grid = metadata["chunk_grid"]["configuration"]
    outer = tuple(grid["chunk_shape"]) if "chunk_shape" in grid else None
    if outer is None:
        sizes = [_sizes(each, size) for each, size in zip(grid["chunk_shapes"], shape, strict=True)]
        outer = tuple(sizes)
    codecs = metadata["codecs"]
    if [codec.get("name") for codec in codecs if isinstance(codec, dict)] != ["sharding_indexed"]:
        return outer, None
    return tuple(codecs[0]["configuration"]["chunk_shape"]), outer


def _sizes(stated: Any, size: int) -> int | tuple[int, ...]:  # noqa: ANN401 - JSON
    """The sizes of chunks along one dimension: one number if all but the last have that."""
    if isinstance(stated, int):
        return stated
    runs = (repeat(each, 1) if isinstance(each, int) else repeat(*each) for each in stated)
    found: list[int] = []
    for each in chain.from_iterable(runs):
        left = size - sum(found)
        if left <= 0:
            break
        found.append(min(each, left))
    if not found:
        return (0,)
    regular = len(set(found[:-1])) <= 1 and found[-1] <= found[0]
    return found[0] if regular else tuple(found)
