"""What a spec's `metadata` member may say, in JSON Schema: for editors, which check as one types.

The rules themselves are in `metadata` and `members`; here they are told to people who write specs.
A test holds the two together.
"""

from __future__ import annotations

from typing import Any

# Any: nested JSON
__all__ = ["METADATA_FORM"]

_EXTENTS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_SIZE = {"type": "integer", "minimum": 1}
_SIZES = {"type": "array", "items": _SIZE}
_CUT = {
    "description": "One size for all chunks, or that of each; [size, how many] for equal ones.",
    "anyOf": [
        _SIZE,
        {"type": "array", "items": {"anyOf": [_SIZE, {**_SIZES, "minItems": 2, "maxItems": 2}]}},
    ],
}


def _named(name: str, configuration: dict[str, object], required: list[str]) -> dict[str, object]:
    """`{"name", "configuration"}`, as the format writes everything that can be extended."""
    return {
        "type": "object",
        "properties": {
            "name": {"const": name},
            "configuration": {
                "type": "object",
                "properties": configuration,
                "required": required,
                "additionalProperties": False,
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def _of_a_plug_in(*built_in: str) -> dict[str, object]:
    """What is called otherwise than what is built in: of that, nothing is known here."""
    return {
        "type": "object",
        "properties": {"name": {"type": "string", "not": {"enum": list(built_in)}}},
        "required": ["name"],
        "description": "That of a plug-in.",
    }


METADATA_FORM: dict[str, Any] = {
    "type": "object",
    "description": "Constraints on zarr.json: what a new array gets and an existing one must have.",
    "properties": {
        "zarr_format": {"const": 3},
        "node_type": {"const": "array"},
        "shape": {**_EXTENTS, "description": "Extent of each dimension."},
        "data_type": {
            "description": "Element type, by name or with a configuration; a list of fields.",
            "anyOf": [
                {"type": "string", "examples": ["uint8", "uint16", "float32", "string", "r16"]},
                {
                    "type": "object",
                    "properties": {
                        "name": {
                            "type": "string",
                            "examples": ["struct", "numpy.datetime64", "fixed_length_utf32"],
                        },
                        "configuration": {"type": "object"},
                    },
                    "required": ["name"],
                },
                {"type": "array", "minItems": 1},
            ],
        },
        "chunk_grid": {
            "description": "Sizes of the chunks; of the shards, where there are any.",
            "anyOf": [
                _named("regular", {"chunk_shape": _SIZES}, ["chunk_shape"]),
                _named(
                    "rectilinear",
                    {
                        "kind": {"const": "inline"},
                        "chunk_shapes": {"type": "array", "items": _CUT},
                    },
                    ["kind", "chunk_shapes"],
                ),
                _of_a_plug_in("regular", "rectilinear"),
            ],
        },
        "chunk_key_encoding": {
            "description": "How chunks are named.",
            "anyOf": [
                {"enum": ["default", "v2"]},
                _named("default", {"separator": {"enum": ["/", "."]}}, []),
                _named("v2", {"separator": {"enum": [".", "/"]}}, []),
                _of_a_plug_in("default", "v2"),
            ],
        },
        "fill_value": {
            "description": 'What missing chunks hold: a number, true or false, "NaN", '
            '"Infinity", "-Infinity", "0x…" (bits), [real, imaginary]; "NaT" or a number of units; '
            "text; base64 or a list of bytes; an object of all fields."
        },
        "codecs": {
            "description": "How chunks are encoded, first to last.",
            "type": "array",
            "items": {"x-def": "Codec.zarr3"},
        },
        "dimension_names": {
            "description": "A name or null for each dimension.",
            "type": "array",
            "items": {"type": ["string", "null"]},
        },
        "attributes": {
            "description": "User attributes; dimension_units among them means something here.",
            "type": "object",
        },
        "storage_transformers": {"type": "array", "maxItems": 0},
    },
    # members that may be ignored are objects that say so
    "additionalProperties": {
        "type": "object",
        "properties": {"must_understand": {"const": False}},
        "required": ["must_understand"],
    },
}
