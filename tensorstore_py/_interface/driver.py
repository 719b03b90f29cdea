"""The driver promise: an open array in its own coordinates, and the spec that opens it.

A driver knows nothing of views: the public `TensorStore` holds a driver and an `IndexTransform`,
and passes transforms down. A driver's `inline` is that of the store at the bottom.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from tensorstore_py._display.info import rows
from tensorstore_py._display.page import page
from tensorstore_py._index import IndexDomain, IndexTransform, identity
from tensorstore_py._interface.execution_mode import HasExecutionMode
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.arguments import MEMBERS
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py._spec.model import Field, JsonForm, Model, PlainValidator, Rank
from tensorstore_py._spec.open_mode import OpenMode
from tensorstore_py._spec.registered import registered
from tensorstore_py._spec.registry import drivers, kvstores
from tensorstore_py._spec.resource import NO_CONTEXT, ContextSpec
from tensorstore_py._spec.schema import Schema, constrained
from tensorstore_py._spec.schema_constraints import NO_SCHEMA
from tensorstore_py._spec.url import kvstore_from_url
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from typing import Self

    import numpy as np

    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.hierarchy import KnownNode
    from tensorstore_py._interface.kvstore import KvStore, ReadResult
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.limiters import MemoryBudget

    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

__all__ = [
    "BufferOwnership",
    "Driver",
    "DriverSpec",
    "KvStoreField",
    "ResizeRequest",
    "StorageStatistics",
    "TransformField",
]

#: A member that holds a kvstore spec or its URL.
KvStoreField = Annotated[KvStoreSpec, registered(kvstores, from_url=kvstore_from_url)]


def _transform(json: object) -> IndexTransform:
    return json if isinstance(json, IndexTransform) else IndexTransform(json=json)


#: A member that holds an index transform or its JSON.
TransformField = Annotated[
    IndexTransform, PlainValidator(_transform), JsonForm({"x-def": "IndexTransform"})
]


class ResizeRequest(NamedTuple):
    """New bounds in the driver's own dimensions; None leaves a bound as it is.

    Attributes:
        inclusive_min: new lower bounds.
        exclusive_max: new upper bounds.
        metadata_only: leave chunks outside the new bounds where they are.
        expand_only: fail if a dimension would shrink.
        shrink_only: fail if a dimension would grow.
    """

    inclusive_min: tuple[int | None, ...]
    exclusive_max: tuple[int | None, ...]
    metadata_only: bool = False
    expand_only: bool = False
    shrink_only: bool = False


class BufferOwnership(NamedTuple):
    """What the caller of a write says of the memory that the new values are in.

    A driver may leave it unread: it then copies what it keeps, and the caller learns at the end of
    the write that its memory is its own again.

    Attributes:
        lasting: the values never change, so a store may keep the very memory.
        taken: to be called, once or more often, as soon as the values are not read any more.
    """

    lasting: bool = False
    taken: Callable[[], None] | None = None


class StorageStatistics:
    """What a driver tells of how much of a region is stored.

    Attributes:
        not_stored: True if nothing of it is stored; None if not asked.
        fully_stored: True if all of it is stored; None if not asked.
    """

    __slots__ = ("fully_stored", "not_stored")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *, not_stored: bool | None = None, fully_stored: bool | None = None) -> None:
        self.not_stored = not_stored
        self.fully_stored = fully_stored

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StorageStatistics):
            return NotImplemented
        return (self.not_stored, self.fully_stored) == (other.not_stored, other.fully_stored)

    def _repr_html_(self) -> str:
        answers = [("Not stored", self.not_stored), ("Fully stored", self.fully_stored)]
        words = {None: "not asked", True: "yes", False: "no"}
        return page("StorageStatistics", "", rows((name, words[told]) for name, told in answers))

    def __repr__(self) -> str:
        return (
            f"TensorStore.StorageStatistics(not_stored={self.not_stored}, "
            f"fully_stored={self.fully_stored})"
        )


class Driver(HasExecutionMode, ABC):
    """An open array.

    Attributes:
        inline: execution mode of its coroutines.
        data_type: element type.
        readable: whether `read` may be called.
        writable: whether `write` may be called.
        known_node: the copy of its metadata that it was opened from, to be marked as changed.
    """

    inline: bool
    data_type: DType
    readable: bool = True
    writable: bool = True
    known_node: KnownNode | None = None

    @property
    @abstractmethod
    def domain(self) -> IndexDomain:
        """The domain as last known; upper bounds that can be resized are implicit."""

    @property
    def whole(self) -> IndexTransform:
        """The view of everything."""
        return identity(self.domain)

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Everything known of the array's form, in its own dimensions."""

    @abstractmethod
    async def resolve(self) -> IndexDomain:
        """The domain as stored now."""

    @abstractmethod
    async def read(self, transform: IndexTransform, order: str) -> Array:
        """Read what `transform` selects into a fresh array of its input shape.

        Args:
            transform: from the reader's positions to this array's; bounds may be implicit.
            order: memory order of the result, `"C"` or `"F"`.

        Raises:
            OutOfRangeError: it selects something outside the array as it is now.
            DataLossError: what is stored is corrupt; names the key.
        """

    def prepare_read(
        self, transform: IndexTransform, order: str
    ) -> Callable[[], Coroutine[Any, Any, Array]]:
        """A read that is asked for now, as of now or later; arguments as for `read`.

        Returns:
            What makes its coroutine, once; a `PendingBody` if others are to know of it before.
        """
        return partial(self.read, transform, order)

    def forget_cached(self, transform: IndexTransform) -> None:
        """Keep nothing of what a transform selects: the next read asks for what is stored."""
        if self.base is not None:
            self.base.forget_cached(self.base_view(transform))

    async def write(self, transform: IndexTransform, source: Array) -> None:
        """Store `source`, broadcast to the transform's input shape.

        Args:
            transform: from the source's positions to this array's; bounds may be implicit.
            source: of this array's NumPy data type.

        Raises:
            OutOfRangeError: it selects something outside the array as it is now.
            UnsupportedError: the driver cannot write.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot be written")

    async def write_buffer(
        self, transform: IndexTransform, source: Array, ownership: BufferOwnership
    ) -> None:
        """`write`, where more is known of `source`; arguments and errors as there."""
        await self.write(transform, source)

    def prepare_write(
        self, transform: IndexTransform, source: Array, ownership: BufferOwnership
    ) -> Callable[[], Coroutine[Any, Any, None]]:
        """A write that is asked for now, as `prepare_read` is; arguments as for `write_buffer`."""
        return partial(self.write_buffer, transform, source, ownership)

    async def resize(self, request: ResizeRequest) -> None:
        """Change the bounds.

        Raises:
            FailedPreconditionError: against the request's flags, or what was assumed.
            OutOfRangeError: an extent would be negative.
            UnsupportedError: the driver cannot resize, or not this bound.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot be resized")

    async def grow(self, dim: int, by: int, check: Callable[[IndexDomain], None]) -> IndexDomain:
        """Raise the upper bound of a dimension, from whatever it is now.

        Args:
            dim: which dimension.
            by: by how many positions; however many callers there are, they are this one's alone.
            check: called with the domain that is about to grow; if it raises nothing changes.

        Returns:
            The domain that this change made: its last `by` positions of the dimension are the new
            ones.

        Raises:
            FailedPreconditionError: against what was assumed.
            UnsupportedError: the driver cannot resize, or not this bound.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot be resized")

    async def storage_statistics(
        self, transform: IndexTransform, *, not_stored: bool, fully_stored: bool
    ) -> StorageStatistics:
        """Whether what `transform` selects is stored at all, and entirely.

        Raises:
            OutOfRangeError: it selects something outside the array as it is now.
            UnsupportedError: the driver cannot tell.
        """
        raise UnsupportedError(f"{type(self).__name__} has no storage statistics")

    @abstractmethod
    def spec(self) -> DriverSpec:
        """The bound spec that would open this very array again, metadata filled in."""

    @property
    def base(self) -> Driver | None:
        """The array underneath, for drivers over another one."""
        return None

    def base_view(self, transform: IndexTransform) -> IndexTransform:
        """What is seen of the array underneath, for a view's transform to this array."""
        return transform

    def chunk_starts(self, dim: int, low: int, high: int) -> Sequence[int]:
        """Where chunks begin in between, if they are not of one size, which the schema tells."""
        return ()

    @property
    def memory(self) -> MemoryBudget | None:
        """The budget of bytes in flight, for copies block by block; None: there is none."""
        return None if self.base is None else self.base.memory

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that it is seen through."""
        return None if self.base is None else self.base.transaction

    def with_transaction(self, transaction: Transaction | None) -> Driver:
        """This array as a transaction sees it; as everybody does, for None.

        Raises:
            UnsupportedError: the driver knows no transactions.
        """
        if transaction is None:
            return self
        raise UnsupportedError(f"{type(self).__name__} cannot be used in a transaction")

    def with_batch(self, batch: Batch) -> Driver:
        """This array, read together with whatever else is in a batch; by default as it is."""
        return self

    def spoil_copy(self) -> None:
        """Say that the metadata is about to be changed, if it came from a copy."""
        if self.known_node is not None:
            self.known_node.spoil()

    def view_spec(self, transform: IndexTransform) -> DriverSpec:
        """The bound spec of a view by its transform; one that holds data gives only the view's."""
        return self.spec().replace(
            transform=transform, dtype=self.data_type, rank=None, schema_=None
        )

    @property
    def kvstore(self) -> tuple[KvStoreSpec, KvStore] | None:
        """The bound spec (with its path) of the store underneath, and the store; None without."""
        return None if self.base is None else self.base.kvstore


_COMMON = frozenset({"context", "dtype", "rank", "transform", "schema_"})


class DriverSpec(Model):
    """What was asked of a driver: the JSON members common to all of them.

    A concrete class adds its members, registers with `@driver("id")`, and says how to open.

    Attributes:
        driver: the registered name.
        context: shared resources that are defined here, for this spec and all inside it.
        dtype: element type.
        rank: number of dimensions.
        transform: which part of the array is seen, and how its dimensions are arranged.
        schema: constraints on the array's form: what a new one gets, an existing one must have.
        detected_by: keys below an array's path, one of which is there, for the driver `auto`.
    """

    data_members: ClassVar[frozenset[str] | None] = _COMMON

    driver: ClassVar[str]
    detected_by: ClassVar[tuple[str, ...]] = ()
    json_tag: ClassVar[str | None] = "driver"
    words: ClassVar[Mapping[str, str]] = MEMBERS

    context: ContextSpec = NO_CONTEXT
    dtype: DType | None = None
    rank: Rank | None = None
    transform: TransformField | None = None
    schema_: Schema | None = Field(default=None, alias="schema")

    @staticmethod
    def class_of(driver: str) -> type[DriverSpec]:
        """The class of a driver.

        Raises:
            SpecError: there is none of that name.
        """
        cls = drivers.get(driver)
        assert issubclass(cls, DriverSpec)
        return cls

    @classmethod
    def detectable(cls) -> Iterator[type[DriverSpec]]:
        """The classes that have `detected_by`, the newest version of a format first."""
        for found in reversed(drivers.detecting()):
            assert issubclass(found, DriverSpec)
            if found.detected_by:
                yield found

    @property
    def inline(self) -> bool:
        """The execution mode that opening has, and the open driver.

        Raises:
            UnsupportedError: the driver cannot be opened.
        """
        raise UnsupportedError(f'driver "{self.driver}" cannot be opened')

    async def open(self) -> Driver:
        """The open array; resource members are bound by now.

        Raises:
            NotFoundError: nothing is there, and the open mode does not create.
            AlreadyExistsError: something is there, and the open mode only creates.
            MismatchError: what is there contradicts the constraints.
            UnsupportedError: the driver cannot be opened.
        """
        raise UnsupportedError(f'driver "{self.driver}" cannot be opened')

    async def open_within(self, transaction: Transaction | None) -> Driver:
        """As `open`, in a transaction if one is given.

        By default what is there is seen through it; drivers that can create something override it.
        """
        return (await self.open()).with_transaction(transaction)

    async def open_known(
        self, transaction: Transaction | None, documents: Mapping[str, ReadResult]
    ) -> Driver:
        """As `open_within`, where the array's documents have been read already.

        Args:
            transaction: in which it is opened.
            documents: what was found, by key below the array's path. Their generation is `UNKNOWN`
                where they come from a copy that may be out of date.
        """
        return await self.open_within(transaction)

    def named(self, driver: str) -> DriverSpec:
        """This spec with the driver named, for one that finds out which it is; else as it is."""
        return self

    async def inside(self) -> DriverSpec:
        """This bound spec in the archive that the value at its path is; as it is if it is none."""
        return self

    def known_schema(self) -> Schema:
        """`schema`, `dtype`, `rank`, `transform` and what other members imply, as one schema.

        Raises:
            MismatchError: they contradict each other.
        """
        known = NO_SCHEMA if self.schema_ is None else self.schema_.constraints
        if self.dtype is not None and self.dtype != known.dtype:
            known = constrained(known, dtype=self.dtype)
        if self.transform is None:
            if self.rank is not None and self.rank != known.rank:
                known = constrained(known, rank=self.rank)
            return Schema.of(known)
        # the rank is the view's, like the transform's input; constraints are on the array
        if self.rank not in (None, self.transform.input_rank):
            raise SpecError(
                f"the rank is {self.rank}, but the transform has {self.transform.input_rank} "
                "input dimensions",
                ("rank",),
            )
        return Schema.of(constrained(known, rank=self.transform.output_rank))

    def known_domain(self) -> IndexDomain | None:
        """The array's domain as far as the constraints tell, resizable bounds implicit."""
        return self.known_schema().domain

    def canonical(self) -> Self:
        domain = self.known_domain() if self.transform is None else None
        return self if domain is None else self.replace(transform=identity(domain))

    @property
    def view_transform(self) -> IndexTransform | None:
        """From the view's positions to those of the driver that `open` gives; None: all of it."""
        return self.transform

    def open_mode(self) -> OpenMode:
        """The open mode flags."""
        return OpenMode(open=True)

    def with_layers(self, change: Callable[[DriverSpec], DriverSpec]) -> Self:
        """This spec with its layers changed, for drivers over several arrays; else as it is."""
        return self

    def checked(self) -> Self:
        """This spec, after the checks that concern several members.

        Raises:
            SpecError, MismatchError: members contradict each other.
        """
        return self

    def minimal(self) -> Self:
        """Without the members that are not needed to open what exists, such as the metadata."""
        return self

    def to_url(self) -> str:
        """The URL form.

        Raises:
            UnsupportedError: the driver has none.
        """
        raise UnsupportedError(f'driver "{self.driver}" has no URL form')

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        """Print data type and rank once, next to the schema rather than in it."""
        schema = json.get("schema")
        if isinstance(schema, dict):
            dtype = schema.pop("dtype", None)
            rank = schema.pop("rank", None)
            if dtype is not None:
                json.setdefault("dtype", dtype)
            if rank is not None and "transform" not in json and "domain" not in schema:
                json.setdefault("rank", rank)
            if not schema:
                del json["schema"]
        if "transform" in json:
            json.pop("rank", None)
        if include_defaults:
            # The whole schema then, what stands beside it included, as the reference prints it.
            known = self.known_schema()
            whole = dict(schema) if isinstance(schema, dict) else {}
            if known.dtype is not None:
                whole["dtype"] = known.dtype.to_json()
            if known.rank is not None:
                whole["rank"] = known.rank
            json["schema"] = {name: whole[name] for name in sorted(whole)}
