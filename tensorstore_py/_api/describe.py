"""What is known of an open array without reading anything: `info`, notebooks, `tspy info`, dask.

Everything is from the metadata that was read when the array was opened. Facts are JSON, collected
here once; the display room decides how they look.
"""

from __future__ import annotations

import json
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from tensorstore_py._api.kvstore_spec import place
from tensorstore_py._display.codec_words import codec_words
from tensorstore_py._display.drawing import drawing
from tensorstore_py._display.geometry import Axis
from tensorstore_py._display.info import Info, columns, human_size, rows, times
from tensorstore_py._display.json_view import json_view
from tensorstore_py._display.markup import element
from tensorstore_py._display.page import folded, page
from tensorstore_py._spec.context import places, spec_json, strip_context, unbind
from tensorstore_py._spec.json_value import freeze, thaw
from tensorstore_py._spec.pretty import shown
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.handle import Handle
    from tensorstore_py._display.markup import Markup


__all__ = [
    "Facts",
    "array_axes",
    "array_facts",
    "array_html",
    "array_info",
    "array_sizes",
    "size_lines",
    "token_of",
]

Facts = dict[str, Any]  # Any: JSON, to be walked through
Lines = list[tuple[str, object]]
Sizes = list[tuple[str, list[int | None], int | None]]

#: The spec of an array in memory holds its elements; more of them than this are not printed.
_FEW_ELEMENTS = 10_000


def array_facts(array: Handle) -> Facts:
    """What is known of an open array, as JSON."""
    driver, dtype = array._driver, array.dtype
    layout = array.chunk_layout
    store = driver.kvstore
    found: Facts = {
        "kind": "array",
        "driver": driver.spec().driver,
        "place": None if store is None else place(store[0]),
        "dtype": dtype.to_json(),
        "shape": list(array.shape),
    }
    if any(array.origin):
        found["origin"] = list(array.origin)
    if any(array.domain.labels):
        found["labels"] = list(array.domain.labels)
    units = array.dimension_units
    if any(units):
        found["dimension_units"] = [None if unit is None else str(unit) for unit in units]
    read, write = layout.read_chunk.shape, layout.write_chunk.shape
    if read and any(read):
        found["chunks"] = list(read)
        if write != read:
            found["shards"] = list(write or ())
    if array.codec is not None:
        codec = array.codec.to_json()
        found["codec"] = {name: codec[name] for name in codec if name != "driver"}
    if array.fill_value is not None:
        found["fill_value"] = _plain(array.fill_value)
    found["elements"] = prod(array.shape)
    if dtype.kind != "O":
        found["bytes"] = prod(array.shape) * dtype.itemsize
    return found


def _plain(value: object) -> object:
    """A fill value as JSON, or else as text."""
    try:
        plain = thaw(freeze(value))
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        return str(value)
    return plain


def array_info(array: Handle) -> Info:
    """The short text, a line for each fact."""
    facts = array_facts(array)
    lines: Lines = [("Type", f"TensorStore, {facts['driver']}"), ("Place", facts["place"])]
    lines += [("Data type", facts["dtype"]), ("Shape", times(_extents(array)))]
    sizes = array_sizes(array, facts)[1:]
    lines += [(f"{name} shape", times(shape)) for name, shape, _ in sizes]
    if "bytes" in facts and _is_finite(array):
        lines.append(("Bytes", _bytes(facts["bytes"])))
    lines += [(f"{name}s", f"{count:,}") for name, _, count in sizes if count is not None]
    lines += _more(array, facts)
    return Info([(name, value) for name, value in lines if value is not None], "TensorStore")


def array_html(array: Handle, title: str, more: Lines | None = None) -> str:
    """The page of an array, for notebooks; lines of `more` go in place of those of their names."""
    facts = array_facts(array)
    name = facts["place"] or f"driver {facts['driver']}"
    sizes = array_sizes(array, facts)
    table = columns(["", *(each[0] for each in sizes)], size_lines(facts, sizes))
    kind: Lines = [("Driver", facts["driver"]), ("Data type", facts["dtype"])]
    lines = dict([*kind, *_more(array, facts), *(more or [])])
    left = element("div", table, rows(lines.items()))
    right = drawing(array_axes(array, facts))
    return page(title, name, element("div", left, right, class_="tsv-row"), _spec(array, facts))


def array_sizes(array: Handle, facts: Facts) -> Sizes:
    """The array, its shards and its chunks: their extents, and how many there are."""
    found: Sizes = [("Array", _extents(array), None)]
    for name, member in (("Shard", "shards"), ("Chunk", "chunks")):
        size = facts.get(member)
        if not size or not all(size):
            continue
        origin = array.chunk_layout.grid_origin or ()
        counts = [
            max(0, -(-(high - start) // each) - (low - start) // each) if high > low else 0
            for low, high, each, start in zip(
                array.domain.inclusive_min,
                array.domain.exclusive_max,
                size,
                [start or 0 for start in origin] or [0] * len(size),
                strict=True,
            )
        ]
        found.append((name, size, prod(counts) if _is_finite(array) else None))
    return found


def _extents(array: Handle) -> list[int | None]:
    return [dim.size if dim.finite else None for dim in array.domain]


def size_lines(facts: Facts, sizes: Sizes) -> list[list[object]]:
    """Shape, bytes and count of the array, its shards and its chunks, a line for each."""
    lines: list[list[object]] = [["Shape", *(times(shape) for _, shape, _ in sizes)]]
    if "bytes" in facts and facts["elements"]:
        item = facts["bytes"] // facts["elements"]
        bounded = ([size for size in shape if size is not None] for _, shape, _ in sizes)
        bytes_ = [human_size(item * prod(shape)) for shape in bounded]
        lines.append(["Bytes", *(["∞", *bytes_[1:]] if None in sizes[0][1] else bytes_)])
    if len(sizes) > 1:
        counts = ("" if count is None else f"{count:,}" for _, _, count in sizes)
        lines.append(["Count", *counts])
    return lines


def _more(array: Handle, facts: Facts) -> Lines:
    """What is said of an array in text and HTML alike, but for sizes."""
    lines: Lines = []
    if "labels" in facts or "origin" in facts:
        lines.append(("Domain", repr(array.domain)))
    if "codec" in facts:
        lines.append(("Codecs", codec_words(facts["codec"])))
    if "fill_value" in facts:
        lines.append(("Fill value", _short(facts["fill_value"])))
    if "dimension_units" in facts:
        units = (unit or "none" for unit in facts["dimension_units"])
        lines.append(("Units", ", ".join(units)))
    lines.append(("Mode", {"r": "read", "w": "write"}.get(array.mode, "read, write")))
    if array.transaction is not None:
        lines.append(("Transaction", "its writes are staged"))
    if array._life.closed:
        lines.append(("Closed", "open it again"))
    return lines


def array_axes(array: Handle, facts: Facts) -> list[Axis]:
    """The dimensions, as they are drawn."""
    rank = len(facts["shape"])
    nothing: list[None] = [None] * rank
    origins = array.chunk_layout.grid_origin or nothing
    chunks, shards = facts.get("chunks", nothing), facts.get("shards", nothing)
    return [
        Axis(
            dim.inclusive_min if dim.finite else None,
            dim.exclusive_max if dim.finite else None,
            dim.label,
            chunk or None,
            shard or None,
            origin or 0,
        )
        for dim, chunk, shard, origin in zip(array.domain, chunks, shards, origins, strict=True)
    ]


def _spec(array: Handle, facts: Facts) -> Markup | None:
    """The spec; None if it has none, or one that holds too many elements."""
    if array._driver.kvstore is None and facts["elements"] > _FEW_ELEMENTS:
        return None
    try:
        found = shown(spec_json(unbind(array._bound_spec())))
    except (SpecError, UnsupportedError):
        return None
    return folded("Spec", json_view(found))


def _bytes(size: int) -> str:
    words = human_size(size)
    return words if size < 1024 else f"{words} ({size:,})"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _is_finite(array: Handle) -> bool:
    return all(dim.finite for dim in array.domain)


def token_of(store: Handle) -> str:
    """Text that is the same whenever the same array is opened alike, in any process.

    The view's bounds and the known metadata are part of it, and elements only if they are in
    memory: writing changes it no more than a path changes with its file. A view that can't be told
    from others (seen through a transaction, or made of functions) has another one for each call.
    """
    if store.transaction is not None:
        return uuid4().hex
    model = store._bound_spec()
    values = getattr(model, "values", None)
    if isinstance(values, np.ndarray):
        return _of_memory(values, store)
    try:
        said = json.dumps(strip_context(model).to_json(), sort_keys=True)
    except (SpecError, UnsupportedError, TypeError):
        return uuid4().hex
    return sha256(repr((said, places(model))).encode()).hexdigest()


def _of_memory(values: np.ndarray[Any, Any], store: Handle) -> str:
    """The token of elements in memory, which are what they are."""
    view = json.dumps(store._transform.to_json(), sort_keys=True)
    found = sha256(repr((view, store.dtype, values.shape)).encode())
    found.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())
    return found.hexdigest()
