"""Variables as they are stored: CF encoding, which is xarray's, and what the arrays are to be.

`encoded` makes a Variable of what is stored; `array_arguments` says in zarr-python's words which
array stores it. Whatever is wrong names the variable. Values that join an array that is there
(`Existing`) are encoded as that is: what its attributes say of its encoding is found out by
xarray's decoder, on a single value that stands for all of them; nothing of the array is read.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import xarray as xr
from xarray import conventions
from xarray.backends.zarr import FillValueCoder, encode_zarr_variable
from xarray.coding import strings

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_documents import DIMENSIONS, Form, Json, Node

__all__ = [
    "ArrayArguments",
    "Existing",
    "array_arguments",
    "as_attributes",
    "as_existing",
    "encoded",
    "joined",
    "named",
]


#: What a variable that was read tells of where it was; nothing that a new array could have.
_DROPPED: Final = frozenset({"original_shape", "preferred_chunks", "source"})
#: What may be said of a new array, in zarr-python's words, and of version 2 or 3 only.
_KNOWN: Final = frozenset(
    {
        "cache_metadata", "chunk_key_encoding", "chunks", "compressors", "filters", "serializer",
        "shards", "write_empty_chunks",
    }
)  # fmt: skip
_OF_VERSION: Final[dict[int, frozenset[str]]] = {
    2: frozenset({"compressor", "order"}),
    3: frozenset({"fill_value"}),
}
#: What is no part of the array's form.
_ASIDE: Final = ("cache_metadata", "write_empty_chunks")
#: Since it knows more than one version of the format, xarray asks for it.
_ASKS_VERSION: Final = "zarr_format" in inspect.signature(encode_zarr_variable).parameters


@contextmanager
def named(name: Hashable) -> Iterator[None]:
    """Have an error within name the variable that it is about."""
    try:
        yield
    except Exception as error:
        text = f"variable {name!r}"
        if text not in str(error):
            error.add_note(f"{text} cannot be stored")
        raise


def encoded(variable: xr.Variable, name: Hashable, zarr_format: int) -> xr.Variable:
    """A variable with the values and attributes that are stored, by the CF conventions.

    Args:
        variable: as a user has it; what it is to be encoded as is its `encoding`.
        name: of it.
        zarr_format: 2 or 3.

    Raises:
        ValueError, TypeError: its values cannot be stored; names the variable.
    """
    more: dict[str, Any] = {"zarr_format": zarr_format} if _ASKS_VERSION else {}
    with named(name):
        found: xr.Variable = encode_zarr_variable(variable, name=name, **more)
        if found.dtype.kind == "O" and not _is_text(found.dtype):
            raise TypeError(
                f"variable {name!r} holds objects, of which no array can be made; convert it to "
                "numbers, text or byte strings"
            )
    return found


def as_attributes(attributes: Mapping[Hashable, Any], owner: str) -> dict[str, Json]:
    """Attributes as JSON: arrays become lists, NumPy's numbers plain ones.

    Raises:
        TypeError: one cannot be stored; names it.

    Example:
        >>> as_attributes({"steps": np.array([1, 2])}, "Dataset.attrs")
        {'steps': [1, 2]}
    """
    found = {}
    for name, value in attributes.items():
        plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        try:
            if not isinstance(name, str):
                raise TypeError(f"its name must be text, not {type(name).__name__}")
            found[name] = json.loads(json.dumps(plain))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Invalid attribute in {owner}: {name!r} cannot be stored as JSON: {error}"
            ) from error
    return found


def _is_text(dtype: np.dtype[Any]) -> bool:
    """Whether it is how xarray says that objects are text."""
    return strings.check_vlen_dtype(dtype) is str  # type: ignore[no-untyped-call]


class ArrayArguments(NamedTuple):
    """A new array.

    Attributes:
        form: arguments of `ts.zarr.create`, but for the shape, names and attributes.
        attributes: of the array, as JSON.
        write_empty: store chunks that hold nothing but the fill value, too.
    """

    form: dict[str, Any]
    attributes: dict[str, Json]
    write_empty: bool


def array_arguments(
    variable: xr.Variable,
    name: Hashable,
    zarr_format: int,
    *,
    strict: bool,
    write_empty: bool | None,
) -> ArrayArguments:
    """The array that is to store a variable.

    Args:
        variable: encoded.
        name: of it.
        zarr_format: 2 or 3.
        strict: its encoding was given for this, so that unknown names in it are errors.
        write_empty: what was asked for all arrays.

    Raises:
        ValueError: the encoding has unknown names, or contradicts itself.
        TypeError: chunks or shards are no numbers.
    """
    encoding = {key: each for key, each in variable.encoding.items() if key not in _DROPPED}
    attributes = dict(variable.attrs)
    fill_value = _fill_value(attributes, encoding, variable.dtype, zarr_format)
    encoding = _checked(encoding, name, zarr_format, strict=strict)
    empty = encoding.get("write_empty_chunks")
    if None not in (empty, write_empty) and empty != write_empty:
        raise ValueError(
            f'variable {name!r}: write_empty_chunks is {write_empty}, but Differing "'
            f'write_empty_chunks" values are in encoding ({empty}); say it once'
        )
    shards = _cells(encoding.pop("shards", None), "shards", name, variable.ndim)
    form = {key: each for key, each in encoding.items() if key not in _ASIDE and each is not None}
    for key in ("compressors", "compressor"):
        if key in encoding:  # None is none, and no default
            form[key] = encoding[key]
    form["chunks"] = _chunks(encoding.get("chunks"), variable, name)
    if shards is not None:
        form["shards"] = shards
    form["dtype"] = str if _is_text(variable.dtype) else variable.dtype
    if fill_value is not None or zarr_format == 2:
        form["fill_value"] = fill_value
    plain = as_attributes(attributes, f"variable {name!r}")
    return ArrayArguments(form, plain, bool(empty or write_empty))


def _checked(
    encoding: dict[str, Any], name: Hashable, zarr_format: int, *, strict: bool
) -> dict[str, Any]:
    known = _KNOWN | _OF_VERSION[zarr_format]
    unknown = [key for key in encoding if key not in known]
    if unknown and strict:
        hint = ""
        if "fill_value" in unknown:
            hint = ". Use `_FillValue` to set the fill value of an array of version 2"
        raise ValueError(
            f"unexpected encoding parameters for zarr: variable {name!r} has {unknown!r}{hint}; "
            f"known are {sorted(known)}"
        )
    return {key: each for key, each in encoding.items() if key in known}


def _fill_value(
    attributes: dict[Hashable, Any], encoding: dict[str, Any], dtype: np.dtype[Any], version: int
) -> object:
    """What was never written reads as.

    In version 2 that is what stands for missing values, too. In version 3 these are told by the
    attribute `_FillValue`, which is encoded in place.
    """
    if encoding.get("_FillValue") is None:
        encoding.pop("_FillValue", None)
    if version == 2:
        return attributes.pop("_FillValue", None)
    found = encoding.pop("fill_value", None)
    if found is None and dtype.kind == "f":
        found = np.nan
    missing = attributes.pop("_FillValue", None)
    if missing is not None:
        attributes["_FillValue"] = FillValueCoder.encode(missing, dtype)
    if found is None and dtype.kind != "V":  # version 3 knows no array without one
        return "" if dtype.kind in "OTU" else np.zeros((), dtype)[()]
    return found


def _cells(given: object, what: str, name: Hashable, rank: int) -> tuple[int, ...] | None:
    """A shape of chunks or shards; None: none that fits is said."""
    if given is None or isinstance(given, str):
        return None
    if isinstance(given, int | np.integer):
        return (int(given),) * rank
    cells = tuple(given)  # type: ignore[arg-type, var-annotated]
    if len(cells) != rank:
        return None
    for each in cells:
        if isinstance(each, tuple | list):
            raise TypeError(
                f"encoding[{what!r}]={given!r} for variable {name!r} is a rectilinear grid, of "
                "cells of different sizes; say one size for each dimension, or delete it from the "
                "encoding of the variable"
            )
        if not isinstance(each, int | np.integer):
            raise TypeError(
                f"encoding[{what!r}] must be an int or a tuple of ints, but is {given!r} for "
                f"variable {name!r}"
            )
    return tuple(max(1, int(each)) for each in cells)


def _chunks(given: object, variable: xr.Variable, name: Hashable) -> tuple[int, ...] | None:
    """The shape of chunks; None: the engine chooses.

    Those of a chunked variable that are not all of one size become chunks of the largest one:
    what is not aligned is right all the same.
    """
    said = _cells(given, "chunks", name, variable.ndim)
    if said is not None or variable.chunks is None:
        return said
    return tuple(max(1, *sizes) if sizes else 1 for sizes in variable.chunks)


class Existing:
    """An array that is there, as xarray sees it."""

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
        """Values as a user sees them; by default a single one that stands for all."""
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
