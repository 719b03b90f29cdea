"""A node's documents: bytes to JSON objects and back, and the change of one.

NaN and infinities are read and written as the ecosystem does, as bare tokens. The one invariant: a
document that is changed keeps what the change is not about, whoever wrote it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tensorstore_py._interface.update import Update
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = ["ChangeDocument", "parse_document", "read_document", "serialize_document"]

#: What is parsed in less than half a millisecond is not worth a thread.
_LARGE_BYTES = 1 << 15


def parse_document(data: Buffer, where: str) -> JsonObject:
    """The JSON object that a document holds.

    Args:
        data: what is stored.
        where: how to name it to a person.

    Raises:
        DataLossError: it is no JSON object; names `where`.

    Example:
        >>> parse_document(b'{"a": NaN}', "here")
        {'a': nan}
    """
    try:
        document: object = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"Error reading {where}: this is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise DataLossError(
            f"Error reading {where}: expected an object, but found {describe(document)}"
        )
    return document


async def read_document(store: KvStore, data: Buffer, where: str) -> JsonObject:
    """`parse_document` where that may take long: a loop does something else meanwhile."""
    if len(data) < _LARGE_BYTES:
        return parse_document(data, where)
    return await offload(store.inline, lambda: parse_document(data, where))


def serialize_document(document: JsonObject) -> bytes:
    """The bytes to store."""
    return json.dumps(document, separators=(",", ":")).encode()


class ChangeDocument(Update):
    """A change of a document, made again on whatever is stored by then.

    Args:
        change: the new document, in view of the stored one (None: nothing is there). It may be
            called any number of times.
        where: how to name the document to a person.
    """

    __slots__ = ("_change", "_where")

    def __init__(self, change: Callable[[JsonObject | None], JsonObject], where: str) -> None:
        self._change = change
        self._where = where

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        document = None if stored is None else parse_document(stored, self._where)
        try:
            return serialize_document(self._change(document))
        except SpecError as error:
            raise SpecError(f"Error changing {self._where}: {error}") from error
