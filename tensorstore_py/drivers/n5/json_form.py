"""What a spec's `metadata` member may say, in JSON Schema: for editors, which check as one types.

The rules themselves are in `metadata`; here they are told to people who write specs.
"""

from __future__ import annotations

from tensorstore_py.drivers.n5.metadata import DATA_TYPES

__all__ = ["METADATA_FORM"]


def _each(description: str, item: dict[str, object]) -> dict[str, object]:
    return {"type": "array", "items": item, "maxItems": 32, "description": description}


METADATA_FORM: dict[str, object] = {
    "type": "object",
    "description": "Constraints on attributes.json: what a new array gets, what one must have. "
    "Members other than these are attributes of your own.",
    "properties": {
        "dimensions": _each("Extent of each dimension.", {"type": "integer", "minimum": 0}),
        "blockSize": _each("Extents of a chunk.", {"type": "integer", "minimum": 1}),
        "dataType": {"enum": list(DATA_TYPES), "description": "Element type."},
        "compression": {"x-def": "Codec.n5"},
        "axes": _each("Label of each dimension, empty for none.", {"type": "string"}),
        "units": _each("Base unit of each dimension.", {"type": "string"}),
        "resolution": _each(
            "How many base units a step along each dimension is.", {"type": "number"}
        ),
    },
}
