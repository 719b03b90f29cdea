"""Opening a chunked array, the same for every format: its metadata is read, created or assumed.

Creation is one conditional write of the metadata document: of any number of processes that create
the same array one succeeds and the others find it. Nothing else is written.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar

from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._chunked.format import ArrayFormat
from tensorstore_py._chunked.metadata import MetadataFile, MetadataState
from tensorstore_py._chunked.pool import needed_since
from tensorstore_py._interface.array_info import says_type_and_rank
from tensorstore_py._interface.array_metadata import (
    ArrayMetadata,
)
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._spec.dtype import dtype as DataType  # noqa: N812
from tensorstore_py._spec.model import (
    BeforeValidator,
)
from tensorstore_py._spec.schema import Schema
from tensorstore_py.errors import AlreadyExistsError, MismatchError, NotFoundError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.field_bytes import ElementView
    from tensorstore_py._interface.kvstore import ReadResult
    from tensorstore_py._interface.transaction import Transaction

__all__ = ["ChunkedSpec", "FieldSpec"]

M = TypeVar("M", bound=ArrayMetadata)


class ChunkedSpec(ArrayFormat[M]):
    """The spec of an array that can be opened: an `ArrayFormat` of documents in a store."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    async def open(self) -> Driver:
        return await self.open_within(None)

    async def open_within(self, transaction: Transaction | None) -> Driver:
        return await open_chunked(self, transaction)

    async def open_known(
        self, transaction: Transaction | None, documents: Mapping[str, ReadResult]
    ) -> Driver:
        found = documents.get(self.metadata_key)
        return await open_chunked(self, transaction, found)


class FieldSpec(ChunkedSpec[M]):
    """Members of formats whose elements may have fields, or be opened as bytes.

    Attributes:
        field: the field to open, `"a.b"` for one inside another; None for the only one, or all of
            them as records.
        open_as_void: open the bytes of each element, as one more dimension.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"field", "open_as_void"})

    field: Annotated[str | None, BeforeValidator(lambda name: name or None)] = None
    open_as_void: bool = False

    def checked(self) -> Self:
        spec = super().checked()
        if spec.field is not None and spec.open_as_void:
            raise SpecError(
                '"field" and "open_as_void" exclude each other: a field is a part of the bytes',
                ("field",),
            )
        return spec

    def asked_schema(self) -> Schema:
        asked = super().asked_schema()
        if self.open_as_void:
            asked.update(dtype=DataType("byte"))
        return asked

    def data_type_of(self, metadata: M) -> DataType:
        return self.view_of(metadata).data_type

    def with_metadata(self, metadata: M) -> Self:
        return super().with_metadata(metadata).replace(field=self.view_of(metadata).name or None)

    @property
    def layout_variant(self) -> tuple[str, ...]:
        asked = self.asked_type
        reading = asked.name if asked is not None and asked.has_readings else ""
        return (self.field or "", str(self.open_as_void), reading)

    @property
    def asked_type(self) -> DataType | None:
        """The data type that is asked for, which tells apart several views of an element."""
        if self.dtype is not None:
            return self.dtype
        return None if self.schema_ is None else self.schema_.dtype

    def view_of(self, metadata: M) -> ElementView:
        """What is opened of each stored element.

        Raises:
            MismatchError: there is no such field.
        """
        try:
            return self.stored_view(metadata)
        except SpecError as error:
            raise MismatchError(str(error)) from None

    def require_no_view(self, member: str) -> None:
        """Refuse members that say what to open of an element of which no data type is stated.

        Raises:
            SpecError: one is given.
        """
        for name, given in (("field", self.field is not None), ("open_as_void", self.open_as_void)):
            if given:
                raise SpecError(
                    f'this member is required if "{name}" is specified', ("metadata", member)
                )

    @abstractmethod
    def stored_view(self, metadata: M) -> ElementView:
        """`view_of`, with the error of the data type.

        Raises:
            SpecError: there is no such field.
        """


async def open_chunked(
    spec: ChunkedSpec[M],
    transaction: Transaction | None = None,
    document: ReadResult | None = None,
) -> ChunkedDriver[M]:
    """The open array for a bound spec, as its open mode says.

    Args:
        spec: what is asked for.
        transaction: in which it is opened, and created.
        document: its metadata document, if it was read already.

    Raises:
        NotFoundError: nothing is there and `create` is off.
        AlreadyExistsError: something is there and `open` is off.
        MismatchError: what is there contradicts the spec.
        DataLossError, UnsupportedError: its metadata document is corrupt, or asks for what is not
            here; names its key.
        SpecError: flags of the open mode exclude each other, or the array can't be created from
            what the spec says.
    """
    mode = spec.check_open_mode()
    store_spec = spec.store_spec()
    store = store_spec.open()
    if mode.assume_metadata or mode.assume_cached_metadata:
        file = MetadataFile(spec, store, store_spec.path)
        metadata = spec.new_metadata()
        state = MetadataState(metadata, spec.layout(metadata), UNKNOWN, time.time())
        return ChunkedDriver(spec, file, state, assumed=mode.assume_metadata).with_transaction(
            transaction
        )
    file = MetadataFile(spec, store, store_spec.path, spec.metadata_pool)
    if transaction is not None:
        file = file.with_transaction(transaction)
        store = file.store
    since = needed_since(spec.recheck_cached_metadata, time.time())
    if mode.delete_existing:
        await store.delete_range(KeyRange.prefix(store_spec.path))
        file.learn(file.known, None)
    found: MetadataState[M] | None = None
    if document is not None:
        # Of a tree there may be thousands, none of which waits for anything else.
        found = await offload(store.inline, partial(file.take, document))
    elif mode.open:
        found = await file.current(since)
    if found is None and mode.create:
        found = await _create(spec, file, may_exist=mode.open)
    elif found is not None:
        _check(spec, file, found)
    if found is None:
        raise NotFoundError(
            f'Error opening "{spec.driver}" driver: metadata at {file.describe()} does not exist; '
            "to create the array pass create=True (with dtype and shape, or metadata)"
        )
    return ChunkedDriver(spec, file, found, transaction=transaction)


async def _create(
    spec: ChunkedSpec[M], file: MetadataFile[M], *, may_exist: bool
) -> MetadataState[M]:
    metadata = spec.new_metadata()
    before = file.known
    created = await file.write(metadata, if_equal=NO_VALUE)
    if created is not None:
        file.learn(before, created)
        return created
    found = await file.current(time.time()) if may_exist else None
    if found is None:
        raise AlreadyExistsError(
            f'Error creating "{spec.driver}" array: metadata at {file.describe()} already exists; '
            "pass open=True to open it if it exists, or delete_existing=True to replace it"
        )
    _check(spec, file, found)
    return found


def _check(spec: ChunkedSpec[M], file: MetadataFile[M], found: MetadataState[M]) -> None:
    """Compare what is stored with what was asked.

    Raises:
        MismatchError: names the key, the member, what is stored and what was asked.
    """
    asked, layout = spec.asked_schema().constraints, found.layout
    try:
        if (
            says_type_and_rank(asked)
            and (asked.dtype is None or asked.dtype == layout.data_type)
            and (asked.rank is None or asked.rank == layout.domain.rank)
        ):
            spec.check_document(found.metadata)  # nothing else is asked for
        else:
            spec.check_metadata(found.metadata)
    except MismatchError as error:
        raise MismatchError(
            f'Error opening "{spec.driver}" driver: metadata at {file.describe()} does not match '
            f"the spec: {error}"
        ) from error
