"""How specs, schemas and layouts look in notebooks: what they say, and their JSON to be opened.

Nothing is filled in: what a spec leaves open is not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._display.codec_words import codec_list, codec_words
from tensorstore_py._display.drawing import Axis, drawing
from tensorstore_py._display.info import columns, rows
from tensorstore_py._display.json_view import json_view
from tensorstore_py._display.markup import element
from tensorstore_py._display.page import folded, page
from tensorstore_py._spec.pretty import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorstore_py._display.markup import Markup
    from tensorstore_py._spec.chunk_layout import ChunkLayout
    from tensorstore_py._spec.codec_spec import CodecSpec
    from tensorstore_py._spec.schema import Schema

__all__ = ["codec_page", "json_page", "layout_page", "schema_lines", "schema_page"]

Lines = list[tuple[str, object]]


def json_page(title: str, name: object, lines: Lines, json: Callable[[], object]) -> str:
    """A page of lines, with the JSON folded below.

    Args:
        title: what it is.
        name: which one.
        lines: names and values; None is left out.
        json: gives the JSON; ValueError, SpecError is one, if there is none.
    """
    table = rows([(each, value) for each, value in lines if value is not None])
    return page(title, name, table, _json(json, folds=table is not None))


def _json(json: Callable[[], object], *, folds: bool = True) -> Markup | None:
    try:
        found = shown(json())
    except (TypeError, ValueError, NotImplementedError):
        return None
    if not found:
        return None
    return folded("JSON", json_view(found)) if folds else json_view(found)


def schema_page(schema: Schema) -> str:
    """The page of a schema, with a drawing if its domain is known."""
    left = element("div", rows(schema_lines(schema)))
    domain, layout = schema.domain, schema.chunk_layout
    right = None
    if domain is not None:
        sizes = _hard(layout)
        right = drawing(
            [
                Axis(
                    dim.inclusive_min if dim.finite else None,
                    dim.exclusive_max if dim.finite else None,
                    dim.label,
                    *size,
                )
                for dim, size in zip(domain, sizes or [(None, None, 0)] * domain.rank, strict=True)
            ]
        )
    content = element("div", left, right, class_="tsv-row")
    return page("Schema", "", content, _json(schema.to_json))


def schema_lines(schema: Schema) -> Lines:
    """What a schema says, in a line each."""
    units, layout = schema.dimension_units, schema.chunk_layout
    found: Lines = [
        ("Data type", None if schema.dtype is None else schema.dtype.name),
        ("Domain", None if schema.domain is None else repr(schema.domain)),
        ("Rank", schema.rank if schema.domain is None else None),
        ("Chunks", _extents(layout.read_chunk.shape)),
        ("Codecs", None if schema.codec is None else codec_words(schema.codec.to_json())),
        ("Fill value", _scalar(schema.fill_value)),
        (
            "Units",
            ", ".join("none" if unit is None else str(unit) for unit in units)
            if units and any(units)
            else None,
        ),
    ]
    if layout.write_chunk.shape != layout.read_chunk.shape:
        found.insert(3, ("Shards", _extents(layout.write_chunk.shape)))
    return [(name, value) for name, value in found if value is not None]


def layout_page(layout: ChunkLayout) -> str:
    """The page of a layout: a line for each dimension, or for all if their number is not known."""
    if layout.rank < 0:
        return json_page("ChunkLayout", "", [], layout.to_json)
    names = ["Dimension", "Grid origin", "Write chunk", "Read chunk", "Codec chunk"]
    parts = [
        layout.grid_origin,
        layout.write_chunk.shape,
        layout.read_chunk.shape,
        layout.codec_chunk.shape,
    ]
    lines = [
        [dim, *("" if part is None or part[dim] is None else f"{part[dim]:,}" for part in parts)]
        for dim in range(layout.rank)
    ]
    order = layout.inner_order
    inner = None if order is None else rows([("Inner order", ", ".join(map(str, order)))])
    table = columns(names, lines) if lines else None
    return page("ChunkLayout", "", table, inner, _json(layout.to_json))


def codec_page(codec: CodecSpec) -> str:
    """The page of a codec spec: a line for each codec, in the order of encoding."""
    json = codec.to_json()
    return json_page("CodecSpec", codec.driver, [*codec_list(json)], lambda: json)


def _hard(layout: ChunkLayout) -> Sequence[tuple[int | None, int | None, int]] | None:
    if layout.rank < 0:
        return None
    nothing: tuple[None, ...] = (None,) * layout.rank
    parts = (layout.read_chunk.shape, layout.write_chunk.shape, layout.grid_origin)
    chunks, shards, origins = (part or nothing for part in parts)
    return [
        (chunk or None, shard or None, origin or 0)
        for chunk, shard, origin in zip(chunks, shards, origins, strict=True)
    ]


def _extents(shape: Sequence[int | None] | None) -> str | None:
    if shape is None or not any(shape):
        return None
    return " × ".join("?" if size is None else f"{size:,}" for size in shape)


def _scalar(value: object) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
