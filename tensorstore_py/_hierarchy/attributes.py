"""The attributes of one node: read, checked to be JSON, and changed so that no writer loses any.

A change is an `Update`: it is made again on whatever is stored by then, and within a transaction
when that is committed. Nothing is kept here, so what is read is what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorstore_py._hierarchy.document import ChangeDocument, parse_document
from tensorstore_py._spec.json_value import check_text
from tensorstore_py.errors import DataLossError, NotFoundError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject, KnownNode
    from tensorstore_py._interface.kvstore import KvStore

__all__ = ["AttributesFile", "as_attributes"]


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
        """What a copy tells that nobody here has made untrue; None: the store must be asked."""
        known = None if self.known is None else self.known.documents()
        if known is None:
            return None
        return dict(self.form.attributes(known.get(self.form.attributes_key)))

    async def read(self) -> JsonObject:
        """What is stored now, or what a copy tells that nobody here has made untrue.

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
        await self.store.update(self.key, ChangeDocument(changed, where))

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
