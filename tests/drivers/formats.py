"""Documents of chunked formats by the public door: what creating stores, what a spec knows."""

import json
from typing import Any

import tensorstore_py as ts
from tests.drivers.documents import Documents

#: The key of a format's document below an array's path.
KEYS = {"n5": "attributes.json", "zarr": ".zarray", "zarr3": "zarr.json"}


def spec_of(driver: str, schema: object = None, metadata: object = None, **members: Any) -> dict:
    """The JSON of a spec in memory."""
    json = {"driver": driver, "kvstore": "memory://a/", **members}
    if metadata is not None:
        json["metadata"] = metadata
    if schema is not None:
        json["schema"] = schema.to_json() if isinstance(schema, ts.Schema) else schema
    return json


def created(driver: str, schema: object = None, metadata: object = None, **members: Any) -> dict:
    """The document that creating an array stores."""
    asked = schema if isinstance(schema, ts.Schema) else None
    spec = spec_of(driver, schema if asked is None else None, metadata, **members)
    array = ts.open(spec, create=True, context=ts.Context(), schema=asked).result()
    assert array.kvstore is not None
    document: dict = json.loads(array.kvstore[KEYS[driver]])
    return document


def known(driver: str, schema: object = None, metadata: object = None, **members: Any) -> ts.Schema:
    """What a spec says of the array before anything is open."""
    return ts.Spec(spec_of(driver, schema, metadata, **members)).schema


def opened(driver: str, document: dict, **members: Any) -> ts.TensorStore:
    """The array of a document."""
    return Documents(driver, KEYS[driver]).opened(json.dumps(document), **members)
