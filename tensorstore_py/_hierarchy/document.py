"""A node's documents: bytes to JSON objects and back, and changes of them; and its attributes.

NaN and infinities are read and written as the ecosystem does, as bare tokens. The one invariant: a
document that is changed keeps what the change is not about, whichever program wrote it.

A change is a `ReadModifyWrite`: it is made again on whatever is stored by then, and within a
transaction when that is committed, so no writer's change is lost. Nothing is cached here: what is
read is what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._interface.read_modify_write import ReadModifyWrite
from tensorstore_py._interface.store_abilities import update
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._spec.json_value import check_text, describe
from tensorstore_py.errors import DataLossError, NotFoundError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject, KnownNode
    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = [
    "AttributesFile",
    "ChangeDocument",
    "as_attributes",
    "parse_document",
    "read_document",
    "serialize_document",
]


#: What is parsed in less than half a millisecond is not worth a thread.
_LARGE_BYTES = 1 << 15


def parse_document(data: Buffer, where: str) -> JsonObject:
    """The JSON object that a document holds.

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


class ChangeDocument(ReadModifyWrite):
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


class AttributesFile(NamedTuple):
    """Where the attributes of a node are.

    Attributes:
        store: the store, as a transaction sees it if there is one.
        prefix: the node's, ending in `/` unless empty.
        form: the format.
        known: what a copy of the documents tells, which is asked instead as long as it is true.
    """

    store: KvStore
    prefix: str
    form: HierarchyFormat
    known: KnownNode | None = None

    @property
    def key(self) -> str:
        """The whole key of the document."""
        return self.prefix + self.form.attributes_key

    def known_now(self) -> JsonObject | None:
        """What a copy tells, unless a change made here made it untrue; None: ask the store."""
        known = None if self.known is None else self.known.documents()
        if known is None:
            return None
        return dict(self.form.attributes(known.get(self.form.attributes_key)))

    async def read(self) -> JsonObject:
        """What is stored now, or what a copy tells, unless a change made here made it untrue.

        Raises:
            NotFoundError: the node is not there; names its key.
            DataLossError: the document is corrupt; names its key.
        """
        known = self.known_now()
        if known is not None:
            return known
        found = await self.store.read(self.key)
        where = self.store.describe_key(self.key)
        document = None
        if found.state == "value":
            document = parse_document(found.value, where)
        self._check_there(document)
        try:
            return dict(self.form.attributes(document))
        except SpecError as error:
            raise DataLossError(f"Error reading {where}: {error}") from error

    async def change(self, change: Callable[[JsonObject], Mapping[str, object]]) -> None:
        """Replace the attributes by what `change` makes of them, however often others do.

        Args:
            change: called with a copy of the stored ones, any number of times.

        Raises:
            NotFoundError: the node is not there; names its key.
            SpecError: the new ones are no JSON; has the path to what is not.
        """
        form = self.form

        def changed(document: JsonObject | None) -> JsonObject:
            self._check_there(document)
            attributes = as_attributes(change(dict(form.attributes(document))))
            return form.with_attributes(document, attributes)

        where = self.store.describe_key(self.key)
        await update(self.store, self.key, ChangeDocument(changed, where))

    def _check_there(self, document: JsonObject | None) -> None:
        """Refuse a node without the document that makes it one, if attributes are in that."""
        if document is None and self.form.attributes_key in self.form.node_keys:
            raise NotFoundError(
                f"{self.store.describe_key(self.key)} does not exist; was the node deleted?"
            )


def as_attributes(attributes: object) -> JsonObject:
    """Attributes as they are stored: tuples become lists, NumPy's numbers and arrays plain ones.

    Raises:
        SpecError: something is no JSON; has the path to it.

    Example:
        >>> as_attributes({"a": (1, 2), "b": None})
        {'a': [1, 2], 'b': None}
        >>> as_attributes({"a": {"b": [1, {2}]}})
        Traceback (most recent call last):
            ...
        tensorstore_py.errors.SpecError: a.b[1]: a set is no JSON; store text, numbers, lists or ...
    """
    if not isinstance(attributes, Mapping):
        raise SpecError(
            f"attributes must be a mapping of names to JSON, not {type(attributes).__name__}"
        )
    found = _json(attributes, ())
    assert isinstance(found, dict)
    return found


def _text(value: str, path: tuple[str | int, ...]) -> str:
    try:
        return check_text(value)
    except SpecError as error:
        raise SpecError(error.problem, path) from None


def _json(value: object, path: tuple[str | int, ...]) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise SpecError(f"a name must be text (str), not {name!r}", path)
            _text(name, path)
        return {name: _json(inner, (*path, name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner, (*path, place)) for place, inner in enumerate(value)]
    if isinstance(value, np.generic | np.ndarray):
        return _json(value.tolist(), path)
    raise SpecError(
        f"a {type(value).__name__} is no JSON; store text, numbers, lists or objects", path
    )
