"""How an array of an older version is said in version 3, tried out before anything relies on it.

The array is opened both ways, as it is and as it would be, without storing anything; what both tell
and a few chunks must be the same. If so, chunks stay. If not, or if there are no words for it, the
array is made anew under other names of chunks, beside what is there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._api.group_arrays import NewArray, with_members
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._chunked.spec import ChunkedSpec
from tensorstore_py._conversion.member import SourceArray
from tensorstore_py._conversion.new_form import Wanted, new_form
from tensorstore_py._conversion.version1 import array_in_version2
from tensorstore_py._conversion.version3 import array_in_version3
from tensorstore_py._index import IndexDomain
from tensorstore_py.errors import (
    DataLossError,
    MismatchError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.old_nodes import OldNode
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = ["Translated", "as_version2", "open_as", "same_array", "translate"]

#: What drivers that take text and bytes of a fixed length apart call the parts.
_PARTS = {"char": "S", "byte": "V"}


class Translated(NamedTuple):
    """An array in version 3.

    Attributes:
        document: its `zarr.json`; None: there can be none.
        copies: whether chunks have to be copied.
        why: they have to, or nothing can be done.
    """

    document: JsonObject | None
    copies: bool = False
    why: str = ""


def as_version2(node: OldNode) -> JsonObject:
    """The `.zarray` of a node that is an array.

    Raises:
        SpecError: its document is of version 1, and wrong.
    """
    return array_in_version2(node.document) if node.version == 1 else node.document


async def translate(node: OldNode, old: Place, new: Place) -> Translated:
    """An array of an older version in version 3.

    Args:
        node: the array.
        old: the hierarchy as version 2 sees it.
        new: the same as version 3 sees it.
    """
    try:
        before = as_version2(node)
        present = await open_as(old, node.path, before)
    except (SpecError, UnsupportedError, DataLossError, MismatchError) as error:
        return Translated(None, why=f"it cannot be opened: {error}")
    try:
        document = array_in_version3(before, node.attributes)
        why = await same_array(present, await open_as(new, node.path, document))
        if not why:
            return Translated(document)
    except TensorStoreError as error:
        why = str(error)
    try:
        made = _made_anew(node, present, before, old, new)
        await open_as(new, node.path, made)
    except TensorStoreError as error:
        return Translated(None, why=f"{why}; nor can it be made anew: {error}")
    return Translated(made, copies=True, why=why)


async def open_as(place: Place, path: str, document: JsonObject) -> TensorStore:
    """The array at a path, as if a document were its metadata; elements are whole values.

    Raises:
        SpecError, MismatchError, UnsupportedError: nothing can be opened with that.
    """
    plain = {name: value for name, value in document.items() if name != "attributes"}
    found = await _open(place, path, plain, {})
    letter, shape = _PARTS.get(found.dtype.name), document.get("shape")
    if letter is None or not isinstance(shape, list) or len(shape) == found.rank:
        return found
    return await _open(place, path, plain, {"dtype": f"{letter}{found.shape[-1]}"})


async def same_array(one: TensorStore, other: TensorStore, *, chunks: bool = True) -> str:
    """In which way two arrays differ, as far as a few chunks tell; "" if they are the same.

    Args:
        one: an array.
        other: another one.
        chunks: whether to look at chunks.
    """
    if one.shape != other.shape:
        return f"the shape would be {other.shape}, not {one.shape}"
    if one.dtype != other.dtype:
        return f"the data type would be {other.dtype.name}, not {one.dtype.name}"
    fill = one.fill_value
    if fill is not None and not _equal(fill, other.fill_value):
        return "what is not stored would read as something else"
    size = one.chunk_layout.read_chunk.shape or one.shape
    places = (0, 0.5, 1) if chunks else ()
    for place in dict.fromkeys(_region(one.shape, size, at) for at in places):
        region = IndexDomain(
            inclusive_min=[low for low, _ in place], exclusive_max=[high for _, high in place]
        )
        first = await one._driver.read(one[region]._transform, "C")
        second = await other._driver.read(other[region]._transform, "C")
        if not _equal(first, second):
            return "its chunks would not decode to the same elements"
    return ""


async def _open(
    place: Place, path: str, document: JsonObject, options: dict[str, object]
) -> TensorStore:
    mode = {"open": True, "create": False, "assume_metadata": True}
    spec = updated(with_members(place, path, {"metadata": document}), {**options, **mode})
    return opened(await spec.open(), spec, readable=True, writable=True)


def _made_anew(
    node: OldNode, present: TensorStore, before: JsonObject, old: Place, new: Place
) -> JsonObject:
    """The `zarr.json` that a new array like this one would get, under names of its own.

    Raises:
        SpecError, MismatchError: there can be none.
    """
    source = SourceArray(node.path, present, before, old.form, node.attributes)
    form = new_form(source, new.form, Wanted())
    made = NewArray.of(
        new, node.path, form.attributes, form.options, may_exist=False, deletes=False
    )
    assert isinstance(made.spec, ChunkedSpec)
    document: JsonObject = json.loads(made.spec.serialize_metadata(made.spec.new_metadata()))
    return document


def _region(
    shape: tuple[int, ...], chunks: tuple[int | None, ...], at: float
) -> tuple[tuple[int, int], ...]:
    """One chunk, at a fraction of the way through the array."""
    found = []
    for extent, chunk in zip(shape, chunks, strict=True):
        size = chunk or extent or 1
        low = int(max(0, extent - 1) * at) // size * size
        found.append((low, min(low + size, extent)))
    return tuple(found)


def _equal(one: object, other: object) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype.hasobject or left.dtype.names:
        return bool(left.shape == right.shape and left.tolist() == right.tolist())
    # Bit for bit: NaN is NaN, and the arrays may differ in byte order only.
    return bool(left.shape == right.shape and left.tobytes() == right.astype(left.dtype).tobytes())
