"""`StoredGroup`: the variables and attributes of one group, as xarray's data store.

A `StoredVariable` is an array of the group before it is decoded. Names of dimensions, attributes
and `encoding` are those that xarray's own engine for Zarr gives, so what is read here can be
written there, and the other way round. Codecs in `encoding` are `CodecJson`: zarr-python takes such
JSON wherever it takes its codec objects, and it compares with those and has their attributes. What
is wrong with one variable is said by its name, and what to do about it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import AbstractDataStore
from xarray.backends.zarr import FillValueCoder
from xarray.core.indexing import LazilyIndexedArray

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.lazy_array import LazyArray

if TYPE_CHECKING:
    from tensorstore_py.integrations.xarray.source import Node

__all__ = [
    "CodecJson",
    "StoredGroup",
    "StoredVariable",
    "codecs_of_version_2",
    "codecs_of_version_3",
]


#: Codecs from elements to bytes, without which no chain is; what is before it are filters.
_SERIALIZERS = frozenset({
    "bytes", "endian", "json2", "numcodecs.json2", "numcodecs.msgpack2", "numcodecs.packbits",
    "numcodecs.pcodec", "numcodecs.pickle", "numcodecs.zfpy", "packbits", "pcodec",
    "sharding_indexed", "vlen-array", "vlen-bytes", "vlen-utf8", "zfpy",
})  # fmt: skip


class CodecJson(dict[str, Any]):
    """A codec's JSON: `name` and `configuration` in version 3.

    Example:
        >>> codec = CodecJson(name="gzip", configuration={"level": 5})
        >>> codec["name"], codec.level
        ('gzip', 5)
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - JSON
        found = self.get("configuration", {})
        if name in found:
            return found[name]
        raise AttributeError(f'codec "{self.get("name")}" has no {name!r}; it has {[*found]}')

    def __eq__(self, other: object) -> bool:
        asdict = getattr(other, "to_dict", None)
        if asdict is None:
            return super().__eq__(other)
        return super().__eq__(asdict())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def codecs_of_version_3(codecs: object) -> dict[str, Any]:
    """The members of `encoding` for the `codecs` of version 3, with those within shards.

    Example:
        >>> codecs_of_version_3(
        ...     [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]
        ... )
        ... # doctest: +NORMALIZE_WHITESPACE
        {'compressors': ({'name': 'gzip', 'configuration': {'level': 1}},), 'filters': (),
         'serializer': {'name': 'bytes'}}
    """
    chain = [
        CodecJson({"name": codec} if isinstance(codec, str) else codec)
        for codec in (codecs if isinstance(codecs, list) else [])
    ]
    places = [place for place, codec in enumerate(chain) if codec.get("name") in _SERIALIZERS]
    if not places:
        return {}
    place = places[0]
    if chain[place]["name"] == "sharding_indexed" and len(chain) == 1:
        return codecs_of_version_3(chain[place]["configuration"]["codecs"])
    return {
        "compressors": tuple(chain[place + 1 :]),
        "filters": tuple(chain[:place]),
        "serializer": chain[place],
    }


def codecs_of_version_2(document: dict[str, Any]) -> dict[str, Any]:
    """The members of `encoding` for a `.zarray`: codec objects, which that version is made of.

    Example:
        >>> codecs_of_version_2({"compressor": {"id": "zlib", "level": 3}, "filters": None})
        {'compressors': (Zlib(level=3),), 'filters': ()}
    """
    from numcodecs import get_codec  # noqa: PLC0415 - heavy

    found = document.get("compressor")
    return {
        "compressors": () if found is None else (get_codec(dict(found)),),
        "filters": tuple(get_codec(dict(codec)) for codec in document.get("filters") or ()),
    }


_DIMENSIONS = "_ARRAY_DIMENSIONS"
_TEXT = np.dtypes.StringDType()
#: Small variables of times are read whole, others by their ends, to find what type they decode to.
_SMALL_BYTES = 1 << 16


class StoredVariable:
    """An array with what is stored of it.

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
        """Begin to read what xarray reads of it when it opens a dataset."""
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


class StoredGroup(AbstractDataStore):
    """A group with its arrays, open."""

    def __init__(
        self,
        where: str,
        node: Node,
        arrays: Mapping[str, Node],
        fills: bool | None,
        end: Callable[[], object],
    ) -> None:
        self.where = where
        self._node = node
        self._nodes = arrays
        # Begun here and awaited later, so that those of all groups are opened together.
        self._opening = {name: each.open() for name, each in arrays.items()}
        self.stored: dict[str, StoredVariable] = {}
        self.fills = fills
        self._end = end

    def ready(self) -> None:
        """Wait until all are open.

        Raises:
            UnsupportedError, DataLossError: one cannot be represented; names it.
            MismatchError: a dimension has two sizes; names both variables.
        """
        for name, opening in self._opening.items():
            where = f"{self.where}{name}"
            node = self._nodes[name]
            try:
                store = opening.result()
            except (ts.UnsupportedError, ts.DataLossError) as error:
                raise type(error)(
                    f'variable "{name}" cannot be opened: {error}; to open the others pass '
                    f'drop_variables=["{name}"]'
                ) from error
            except ts.TensorStoreError as error:
                error.add_note(
                    f'This is variable "{name}"; to open the others pass drop_variables=["{name}"].'
                )
                raise
            self.stored[name] = StoredVariable(name, where, node.metadata, node.attributes, store)
        self._check_sizes()

    def _check_sizes(self) -> None:
        found: dict[str, tuple[int, str]] = {}
        for each in self.stored.values():
            for dim, size in zip(each.dims, each.data.shape, strict=True):
                other, name = found.setdefault(dim, (size, each.name))
                if other != size:
                    raise ts.MismatchError(
                        f'dimension "{dim}" has size {other} in variable "{name}", but {size} in '
                        f'variable "{each.name}", in {self.where}; they are no one dataset: pass '
                        "drop_variables with one of them"
                    )

    def fetch(self, *, times: bool) -> None:
        """Begin to read what xarray reads when it opens a dataset."""
        for each in self.stored.values():
            each.fetch(times=times)

    # As xarray asks.

    def load(self) -> tuple[dict[str | None, xr.Variable], dict[str, Any]]:
        """The variables, and the attributes of the group."""
        variables = {_shown(each.name): each.variable(self.fills) for each in self.stored.values()}
        return variables, self.attributes

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the group, without those that netCDF's library hides."""
        found = self._node.attributes
        return {name: found[name] for name in found if not name.lower().startswith("_nc")}

    def __reduce__(self) -> tuple[type[_NothingOpen], tuple[()]]:
        return _NothingOpen, ()

    def close(self) -> None:
        """Close it; what was read stays."""
        for each in self.stored.values():
            each.data.store.close()
        self._end()


def _shown(name: str) -> str | None:
    """The name as xarray's users know it: it stores a variable without one under another."""
    return None if name == "__values__" else name


class _NothingOpen:
    """What a dataset that came from another process closes: arrays are opened there one by one."""

    def close(self) -> None:
        """Do nothing."""
