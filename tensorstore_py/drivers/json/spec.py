"""What is asked of the `json` driver, and the open array: one value, of any JSON type.

    {"driver": "json", "kvstore": "file:///data/a.json", "json_pointer": "/a/0"}
    file:///data/a.json|json:/a/0

Nothing is read when it is opened, so a document can be begun by writing a value of it. A write of
several elements, to a view that was broadcast, leaves the last.
"""

from __future__ import annotations

import copy
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from tensorstore_py.drivers.json.document import (
    Assignment,
    StagedDocument,
    StoredDocument,
    find,
    parse_pointer,
)
from tensorstore_py.errors import FailedPreconditionError, NotFoundError, OutOfRangeError, SpecError
from tensorstore_py.plugin.codec import AfterValidator, Array, dtype
from tensorstore_py.plugin.driver import (
    ChunkLayout,
    Driver,
    DriverSpec,
    IndexDomain,
    IndexTransform,
    RecheckBound,
    Schema,
    Transaction,
    driver,
    new_array,
    propagate_bounds,
)
from tensorstore_py.plugin.kvstore import (
    ChunkCache,
    KvStore,
    KvStoreField,
    KvStoreSpec,
    Resource,
    ResourceField,
    decode_path,
    encode_path,
    model_validator,
)

__all__ = ["JsonDriver", "JsonSpec"]


def _checked_pointer(text: str) -> str:
    parse_pointer(text)
    return text


@driver("json", schemes=["json"])
class JsonSpec(DriverSpec):
    """One value of a JSON document.

    Attributes:
        kvstore: where the document is, as a spec or a URL; its path is the document's whole key.
        path: joined to the kvstore's; deprecated.
        json_pointer: which value, as a JSON Pointer (RFC 6901); the whole document by default.
        cache_pool: where documents are kept.
        data_copy_concurrency: accepted for the reference's sake; copying is one step.
        recheck_cached_data: when a document that is known is checked again: true (always), false
            (never), "open" (when opened), or a time in seconds since 1970.

    Example:
        >>> spec = JsonSpec.parse({"kvstore": "memory://a.json", "json_pointer": "/b/0"})
        >>> spec.to_url()
        'memory://a.json|json:/b/0'
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "kvstore", "json_pointer", "cache_pool", "data_copy_concurrency", "recheck_cached_data",
    })  # fmt: skip

    kvstore: KvStoreField | None = None
    path: str = ""
    json_pointer: Annotated[str, AfterValidator(_checked_pointer)] = ""
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    data_copy_concurrency: Resource[object] = ResourceField("data_copy_concurrency")
    recheck_cached_data: RecheckBound = "open"

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        asked = super().known_schema()
        for name in ("fill_value", "codec"):
            if getattr(asked, name) is not None:
                raise SpecError(
                    f"a JSON value has no {name.replace('_', ' ')}; leave the member out",
                    ("schema", name),
                )
        if asked.dtype not in (None, dtype("json")):
            raise SpecError(f'a JSON value is of type "json", not {asked.dtype}', ("dtype",))
        if asked.rank not in (None, 0):
            raise SpecError(f"a JSON value has rank 0, not {asked.rank}", ("rank",))
        changes: dict[str, object] = {"dtype": dtype("json"), "rank": None}
        if self.path:
            changes |= {"kvstore": self.store_spec(), "path": ""}
        return self.replace(**changes)

    def store_spec(self) -> KvStoreSpec:
        """The kvstore with this spec's path joined to its own: the key of the document.

        Raises:
            SpecError: no kvstore was given.
        """
        if self.kvstore is None:
            raise SpecError(
                'this member is required, for example "file:///data/a.json"', ("kvstore",)
            )
        if not self.path:
            return self.kvstore
        path = self.kvstore.path
        joint = "/" if path and not path.endswith("/") and not self.path.startswith("/") else ""
        return self.kvstore.replace(path=f"{path}{joint}{self.path}")

    def known_schema(self) -> Schema:
        return _schema()

    @property
    def inline(self) -> bool:
        return self.store_spec().open().inline

    async def open(self) -> JsonDriver:
        return JsonDriver(self, self.store_spec().open())

    @classmethod
    def from_url(cls, part: str) -> dict[str, object]:
        """The JSON for `json:POINTER`.

        Raises:
            SpecError: it is no JSON Pointer.
        """
        pointer = part.partition(":")[2].removeprefix("//")
        for mark, name in (("?", "Query string"), ("#", "Fragment identifier")):
            if mark in pointer:
                raise SpecError(f'{name} not supported; write "{mark}" as "%{ord(mark):02X}"')
        return {"driver": "json", "json_pointer": _checked_pointer(decode_path(pointer))}

    def to_url(self) -> str:
        return f"{self.store_spec().to_url()}|json:{encode_path(self.json_pointer)}"

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        if not self.path:
            json.pop("path", None)


def _schema() -> Schema:
    return Schema(
        dtype="json", rank=0, domain=IndexDomain(rank=0), chunk_layout=ChunkLayout(rank=0)
    )


class JsonDriver(Driver):
    """An open JSON value."""

    data_type = dtype("json")

    def __init__(
        self, spec: JsonSpec, store: KvStore, transaction: Transaction | None = None
    ) -> None:
        where = spec.store_spec()
        self._spec = spec
        self._store = store
        self._transaction = transaction
        self._parts = parse_pointer(spec.json_pointer)
        plain = StoredDocument(where, store, spec.cache_pool.value, spec.recheck_cached_data)
        self._document: StoredDocument | StagedDocument = plain
        if transaction is not None:
            self._document = StagedDocument(plain, where, transaction.overlay(where, store))
        self.inline = store.inline

    @property
    def domain(self) -> IndexDomain:
        return IndexDomain(rank=0)

    @property
    def schema(self) -> Schema:
        return _schema()

    @property
    def transaction(self) -> Transaction | None:
        return self._transaction

    def with_transaction(self, transaction: Transaction | None) -> JsonDriver:
        return JsonDriver(self._spec, self._store, transaction)

    async def resolve(self) -> IndexDomain:
        return self.domain

    async def read(self, transform: IndexTransform, order: str) -> Array:
        shape = propagate_bounds(self.domain, transform).input_shape
        out = new_array(shape, np.dtype(object), order)
        if out.size:
            value = self._found(await self._document.read())
            flat: np.ndarray[tuple[int, ...], np.dtype[Any]] = out.reshape(-1, order="A")
            flat[0] = value
            for place in range(1, flat.size):
                flat[place] = copy.deepcopy(value)  # whoever changes one changes one
        return out

    async def write(self, transform: IndexTransform, source: Array) -> None:
        shape = propagate_bounds(self.domain, transform).input_shape
        elements = np.broadcast_to(source, shape)
        if not elements.size:
            return
        new = elements[(-1,) * elements.ndim]
        if not self._parts:
            await self._document.replace(new)
            return
        assign = Assignment(self._parts, new)
        await self._document.update(lambda document: self._replaced(document, assign))

    def _found(self, document: object) -> object:
        try:
            return find(document, self._parts)
        except (NotFoundError, OutOfRangeError, FailedPreconditionError) as error:
            raise type(error)(f"Error reading {self._document.describe()}: {error}") from None

    def _replaced(self, document: object, assign: Assignment) -> object:
        try:
            return assign(document)
        except (OutOfRangeError, FailedPreconditionError) as error:
            raise type(error)(f"Error updating {self._document.describe()}: {error}") from None

    def spec(self) -> JsonSpec:
        return self._spec

    @property
    def kvstore(self) -> tuple[KvStoreSpec, KvStore]:
        return self._spec.store_spec(), self._store
