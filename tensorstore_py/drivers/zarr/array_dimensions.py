"""Dimension labels that xarray keeps beside an array: `_ARRAY_DIMENSIONS` in its `.zattrs`.

The format has no place for labels, and the reference reads none; a spec asks for these with
`"array_dimensions": true`. They are read once, when the array is opened, and written once, when an
array with labels is created. Other attributes are left alone.
"""

from __future__ import annotations

import json

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.codec import describe
from tensorstore_py.plugin.kvstore import NO_VALUE, KvStore, ReadResult

__all__ = ["known_labels", "read_labels", "write_labels"]

_KEY = ".zattrs"
_MEMBER = "_ARRAY_DIMENSIONS"


async def read_labels(store: KvStore, prefix: str) -> tuple[str, ...] | None:
    """The labels of an array whose keys begin with `prefix`; None if none are stored.

    Raises:
        DataLossError: the attributes are no JSON object, or the member is no list of labels.
    """
    key = f"{prefix}{_KEY}"
    result = await store.read(key)
    if result.state != "value":
        return None
    where = store.describe_key(key)
    try:
        attributes: object = json.loads(bytes(result.value))
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"Error reading {where}: this is no JSON: {error}") from error
    if not isinstance(attributes, dict):
        raise DataLossError(
            f"Error reading {where}: expected an object, but found {describe(attributes)}"
        )
    if _MEMBER not in attributes:
        return None
    labels = attributes[_MEMBER]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise DataLossError(
            f"Error reading {where}: {_MEMBER}: expected an array of names, "
            f"but found {describe(labels)}"
        )
    if not _distinct(labels):
        raise DataLossError(
            f"Error reading {where}: {_MEMBER}: names a dimension twice, {describe(labels)}; "
            "open the array without array_dimensions"
        )
    return tuple(labels)


def known_labels(
    document: ReadResult | None, attributes: ReadResult | None
) -> tuple[str, ...] | None:
    """The labels of an array in a group, from documents that were read; None if there are none.

    Nobody asked for them here, so labels that this array cannot have are no error: it has none.
    """
    if document is None or attributes is None:
        return None
    try:
        shape = json.loads(bytes(document.value))["shape"]
        labels = json.loads(bytes(attributes.value))[_MEMBER]
        same_rank = len(shape) == len(labels)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    named = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    return tuple(labels) if same_rank and named and _distinct(labels) else None


def _distinct(labels: list[str]) -> bool:
    named = [label for label in labels if label]
    return len(named) == len(set(named))


async def write_labels(store: KvStore, prefix: str, labels: tuple[str, ...]) -> None:
    """Store the labels of a new array, unless it has attributes already."""
    data = json.dumps({_MEMBER: list(labels)}, separators=(",", ":")).encode()
    await store.write(f"{prefix}{_KEY}", data, if_equal=NO_VALUE)
