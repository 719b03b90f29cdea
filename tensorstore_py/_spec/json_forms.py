"""JSON Schema of the parts of a spec that are not models: spaces, schemas, layouts, types, units.

Data only. A test holds each of them to the parser of the same part: what one accepts the other
does, as far as a schema can say it.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FORMS"]

Json = dict[str, Any]  # Any: nested JSON

_INDEX: Json = {"anyOf": [{"type": "integer"}, {"enum": ["-inf", "+inf"]}]}
_BOUND: Json = {
    "anyOf": [
        *_INDEX["anyOf"],
        {"type": "array", "items": _INDEX, "minItems": 1, "maxItems": 1},
    ]
}
_RANK: Json = {
    "type": "integer",
    "minimum": 0,
    "maximum": 32,
    "description": "Number of dimensions.",
}


def _bounds(text: str) -> Json:
    return {
        "type": "array",
        "items": _BOUND,
        "description": f"{text}, for each dimension; in brackets: implicit, it can be resized.",
    }


def _labels(text: str) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": text}


def _nullable(items: Json, text: str) -> Json:
    entries = {"anyOf": [items, {"type": "null"}]}
    return {"anyOf": [{"type": "array", "items": entries}, {"type": "null"}], "description": text}


def _object(description: str, properties: Json, **more: object) -> Json:
    return {
        "description": description,
        "type": "object",
        "properties": {**properties, "$schema": {}, "$comment": {}},
        "additionalProperties": False,
        **more,
    }


def _soft(name: str, form: Json) -> Json:
    """A constraint, and the same as a mere wish."""
    text = form["description"]
    return {
        name: form,
        f"{name}_soft_constraint": {**form, "description": f"{text} Only if nothing else decides."},
    }


_GRID: Json = _object(
    "Shape of chunks.",
    {
        **_soft(
            "shape",
            _nullable(
                {"type": "integer", "minimum": -1},
                "Extent in each dimension; -1: all of it, null or 0: open.",
            ),
        ),
        **_soft(
            "aspect_ratio",
            _nullable({"type": "number", "minimum": 0}, "Extents in proportion; null or 0: open."),
        ),
        **_soft(
            "elements",
            {
                "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
                "description": "Number of elements, about.",
            },
        ),
    },
)

_LAYOUT: Json = _object(
    "How an array is cut into chunks, and how they are ordered.",
    {
        "rank": _RANK,
        **_soft(
            "grid_origin",
            _nullable({"type": "integer"}, "Where the chunk grid begins in each dimension."),
        ),
        **_soft(
            "inner_order",
            {
                "anyOf": [{"type": "array", "items": {"type": "integer", "minimum": 0}}],
                "description": "Dimensions within a chunk, the slowest first.",
            },
        ),
        "chunk": {"x-def": "Grid", "description": "Of read and write chunks."},
        "write_chunk": {"x-def": "Grid", "description": "What is written at least."},
        "read_chunk": {"x-def": "Grid", "description": "What is read at least."},
        "codec_chunk": {"x-def": "Grid", "description": "What the codec works on."},
    },
)

_SCHEMA: Json = _object(
    "Constraints on an array's form.",
    {
        "rank": _RANK,
        "dtype": {"x-def": "dtype"},
        "domain": {"x-def": "IndexDomain"},
        "chunk_layout": {"x-def": "ChunkLayout"},
        "codec": {"x-def": "CodecSpec"},
        "fill_value": {"description": "What is read where nothing is stored."},
        "dimension_units": {
            "type": "array",
            "items": {"anyOf": [{"x-def": "Unit"}, {"type": "null"}]},
            "description": "The unit of each dimension.",
        },
    },
)

_DOMAIN: Json = _object(
    "Bounds and labels of dimensions.",
    {
        "rank": _RANK,
        "inclusive_min": _bounds("Lower bounds"),
        "exclusive_max": _bounds("Upper bounds, not included"),
        "inclusive_max": _bounds("Upper bounds, included"),
        "shape": _bounds("Extents"),
        "labels": _labels("Name of each dimension; empty: none."),
    },
)

_OUTPUT: Json = _object(
    "Where a dimension of the array comes from.",
    {
        "offset": {"type": "integer", "description": "Added; 0 by default."},
        "stride": {"type": "integer", "description": "Multiplied; 1 by default."},
        "input_dimension": {"type": "integer", "description": "Which input dimension."},
        "index_array": {"description": "Indices, as nested lists."},
        "index_array_bounds": {"type": "array", "items": _INDEX, "minItems": 2, "maxItems": 2},
        "index_array_shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    },
)

_TRANSFORM: Json = _object(
    "From the positions of a view to those of the array.",
    {
        "input_rank": _RANK,
        "input_inclusive_min": _bounds("Lower bounds"),
        "input_exclusive_max": _bounds("Upper bounds, not included"),
        "input_inclusive_max": _bounds("Upper bounds, included"),
        "input_shape": _bounds("Extents"),
        "input_labels": _labels("Name of each input dimension; empty: none."),
        "output": {
            "type": "array",
            "items": _OUTPUT,
            "description": "One for each dimension of the array; by default the same dimensions.",
        },
    },
)

_NAMES = [
    "bool",
    "char",
    "byte",
    "int2",
    "int4",
    "uint2",
    "uint4",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "string",
    "ustring",
    "json",
    "object",
]
_UNITS = "Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as"

_DTYPE: Json = {
    "description": "Element type.",
    "anyOf": [
        {"enum": _NAMES},
        {
            "type": "string",
            "pattern": rf"^(datetime64|timedelta64)(\[[1-9]?[0-9]*({_UNITS})\])?$",
            "description": "A date or a time difference, such as datetime64[ns].",
        },
        {
            "type": "string",
            "pattern": "^([<>=|]?(b1|[iu][1248]|f[248]|c8|c16)|half|single|double)$",
            "description": "A name in NumPy's spelling, such as <f4; the byte order is dropped.",
        },
        {
            "type": "string",
            "pattern": "^[USV][1-9][0-9]*$",
            "description": "Text or bytes of a fixed length, such as U10.",
        },
        {"type": "string", "pattern": r"^\[\["},
        {
            "type": "array",
            "minItems": 1,
            "description": "A record: its fields, [name, type] or [name, type, shape].",
            "items": {
                "type": "array",
                "minItems": 2,
                "maxItems": 3,
                "prefixItems": [
                    {"type": "string", "minLength": 1},
                    {"x-def": "dtype"},
                    {"type": "array", "items": {"type": "integer", "minimum": 1}},
                ],
            },
        },
    ],
}

_UNIT: Json = {
    "description": 'A physical unit: [4, "nm"], "4nm", "nm" or 4.',
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {
            "type": "array",
            "prefixItems": [{"type": "number"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ],
}

_DURATION: Json = {
    "type": "string",
    "description": 'A time, such as "1s", "100ms" or "1h30m".',
    "examples": ["1s", "100ms", "1m"],
}

#: By the name that `{"x-def": NAME}` refers to.
FORMS: Final[dict[str, Json]] = {
    "ChunkLayout": _LAYOUT,
    "Duration": _DURATION,
    "Grid": _GRID,
    "IndexDomain": _DOMAIN,
    "IndexTransform": _TRANSFORM,
    "Schema": _SCHEMA,
    "Unit": _UNIT,
    "dtype": _DTYPE,
}
