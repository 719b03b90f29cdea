"""Array formats: the members that chunked drivers share, and what each format adds to them.

Everything here is pure: a spec with its constraints becomes a metadata document, and a document
becomes a layout. What is stored, and how an array is opened, is no matter of it (`spec`). Below are
the context resources that limit what such drivers do.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from tensorstore_py._chunked.pool import ChunkCache
from tensorstore_py._interface.array_info import check_schema, says_type_and_rank
from tensorstore_py._interface.array_metadata import ArrayMetadata
from tensorstore_py._interface.codec_chain import UNPACKED_BYTES
from tensorstore_py._interface.driver import DriverSpec, KvStoreField
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._runtime.executors import width
from tensorstore_py._runtime.limiters import MemoryBudget, ThreadLimiter
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.limits import ConcurrencyModel
from tensorstore_py._spec.model import (
    Field,
    JsonForm,
    PlainValidator,
    PositiveInt,
    model_validator,
)
from tensorstore_py._spec.open_mode import DELETE_NEEDS_CREATE, OpenMode
from tensorstore_py._spec.registry import context_resource
from tensorstore_py._spec.resource import Resource, ResourceField, ResourceModel
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.schema_constraints import NO_SCHEMA
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from tensorstore_py._chunked.array import ArrayLayout
    from tensorstore_py._interface.array_info import ArrayInfo
    from tensorstore_py._spec.dtype import dtype as DataType  # noqa: N812

__all__ = [
    "ArrayFormat",
    "DataCopyConcurrency",
    "MemoryLimit",
    "RecheckBound",
    "RecheckCacheOption",
    "UnpackingLimit",
    "recheck_bound",
]

M = TypeVar("M", bound=ArrayMetadata)

#: What specs imply, with all that it follows from. That is kept so that the ids in the key stay
#: those of the same objects.
_implied: LruCache[tuple[object, object]] = LruCache(192)

#: What "shared" means for memory: a quarter of the machine's, but so much at least.
_LEAST_BYTES: Final = 64 * 2**20
#: How much the machine has, where the system does not say.
_UNKNOWN_BYTES: Final = 4 * 2**30

RecheckCacheOption: TypeAlias = bool | Literal["open"] | float


def recheck_bound(json: object) -> RecheckCacheOption:
    """A bound on how old cached things may be: true (not at all), false, "open", or a time.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(json, bool) or json == "open":
        return json
    if isinstance(json, (int, float)):
        return float(json)
    raise SpecError(
        'expected true, false, "open" or a time in seconds since the epoch, '
        f"but found {describe(json)}"
    )


RecheckBound = Annotated[
    RecheckCacheOption,
    PlainValidator(recheck_bound),
    JsonForm({"anyOf": [{"type": "boolean"}, {"const": "open"}, {"type": "number"}]}),
]


class ArrayFormat(DriverSpec, Generic[M]):
    """What a format and a user say of an array; `M` is the format's metadata document.

    Attributes:
        metadata: constraints on the metadata document: what a new array gets, and what an existing
            one must have.
        kvstore: where the array is, as a spec or a URL.
        path: joined to the kvstore's; deprecated.
        open: open the array if it exists; so it is by default, unless `create` is given.
        create: create the array if it does not exist.
        delete_existing: delete whatever is there first; needs `create`, and not `open`.
        assume_metadata: don't read or write the metadata: take what the spec says.
        assume_cached_metadata: take what the spec says of the metadata, until it is asked for.
        cache_pool: where decoded chunks are kept.
        metadata_cache_pool: where metadata is kept; the cache pool by default.
        data_copy_concurrency: how many threads encode, decode and copy.
        memory_limit: how many bytes of chunks may be in flight.
        unpacking_limit: to how much compressed data of variable length may unpack.
        recheck_cached_metadata: when metadata that is known is checked again: true (always),
            false (never), "open" (when opened), or a time in seconds since 1970.
        recheck_cached_data: when chunks that are cached are checked again; as above.
        fill_missing_data_reads: a missing chunk reads as the fill value; else it is an error.
        store_data_equal_to_fill_value: store chunks that hold nothing but the fill value.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, metadata: type[ArrayMetadata]) -> type[Self]:
            """The class itself: no member depends on `M`, and pydantic would make another class."""
            return cls

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "kvstore", "open_", "assume_metadata", "assume_cached_metadata", "cache_pool",
        "metadata_cache_pool", "data_copy_concurrency", "memory_limit", "unpacking_limit",
        "recheck_cached_metadata",
        "recheck_cached_data", "fill_missing_data_reads", "store_data_equal_to_fill_value",
    })  # fmt: skip
    writing_members: ClassVar[frozenset[str]] = frozenset({"create", "delete_existing"})

    metadata: object = None
    kvstore: KvStoreField | None = None
    path: str = ""
    open_: bool | None = Field(default=None, alias="open")
    create: bool = False
    delete_existing: bool = False
    assume_metadata: bool = False
    assume_cached_metadata: bool = False
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    metadata_cache_pool: Resource[ChunkCache] | None = ResourceField("cache_pool", optional=True)
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")
    memory_limit: Resource[MemoryBudget] = ResourceField("memory_limit")
    unpacking_limit: Resource[int] = ResourceField("unpacking_limit")
    recheck_cached_metadata: RecheckBound = "open"
    recheck_cached_data: RecheckBound = True
    fill_missing_data_reads: bool = True
    store_data_equal_to_fill_value: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        changes: dict[str, object] = {}
        if self.open_ is not None and not (self.open_ and self.create):
            # "open" says something only beside "create"
            changes["open_"] = None
        if self.assume_metadata and self.assume_cached_metadata:
            changes["assume_cached_metadata"] = False
        if self.kvstore is not None:
            store = self.store_spec()
            if store is not self.kvstore or self.path:
                changes.update(kvstore=store, path="")
        return self.replace(**changes) if changes else self

    @property
    def inline(self) -> bool:
        return self.store_spec().inline

    @property
    def metadata_pool(self) -> ChunkCache:
        """Where metadata is kept."""
        return (self.metadata_cache_pool or self.cache_pool).value

    def check_open_mode(self) -> OpenMode:
        """The open mode, if its flags go together.

        Raises:
            SpecError: they don't; names the members.
        """
        mode = self.open_mode()
        if mode.delete_existing and (mode.open or not mode.create):
            raise SpecError(DELETE_NEEDS_CREATE)
        if (mode.assume_metadata or mode.assume_cached_metadata) and (
            not mode.open or mode.delete_existing
        ):
            raise SpecError('"assume_metadata" and "assume_cached_metadata" need "open": true')
        return mode

    def at(self, path: str) -> Self:
        """This spec, which was checked, for the array at another path of its store."""
        assert self.kvstore is not None
        where = path if not path or path.endswith("/") else f"{path}/"
        return self.replace(kvstore=self.kvstore.replace(path=where))

    def open_mode(self) -> OpenMode:
        return OpenMode(
            # a spec that may do nothing at all is never meant
            open=bool(self.open_) or not self.create,
            create=self.create,
            delete_existing=self.delete_existing,
            assume_metadata=self.assume_metadata,
            assume_cached_metadata=self.assume_cached_metadata,
        )

    def to_url(self) -> str:
        return f"{self.store_spec().to_url()}|{self.url_scheme}:"

    @property
    def url_scheme(self) -> str:
        """The driver's name in a URL."""
        return self.driver

    def minimal(self) -> Self:
        return self.replace(metadata=type(self).model_fields["metadata"].default)

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        if not self.create:
            json.pop("create", None)
        if not self.path:
            json.pop("path", None)

    def store_spec(self) -> KvStoreSpec:
        """The kvstore with this spec's path joined to its own, ending in "/" unless empty.

        Raises:
            SpecError: no kvstore was given.
        """
        if self.kvstore is None:
            raise SpecError(
                'this member is required, for example {"driver": "file", "path": "/data/"}',
                ("kvstore",),
            )
        path = self.kvstore.path
        if self.path:
            joint = "/" if path and not path.endswith("/") and not self.path.startswith("/") else ""
            path = f"{path}{joint}{self.path}"
        if path and not path.endswith("/"):
            path += "/"
        return self.kvstore if path == self.kvstore.path else self.kvstore.replace(path=path)

    def asked_schema(self) -> Schema:
        """What the spec says without its metadata: `schema`, `dtype`, `rank` and `transform`."""
        schema, data_type, rank = self.schema_, self.dtype, self.rank
        if self.transform is not None:
            return super().known_schema()
        if schema is None:
            if data_type is None and rank is None:
                return Schema.of(NO_SCHEMA)
        elif (data_type is None or data_type is schema.dtype) and rank in (None, schema.rank):
            return schema.copy()  # which says all of it
        return super().known_schema()

    def known_schema(self) -> Schema:
        # Asked for several times while a spec is checked and an array made of it.
        asked = self.asked_schema()
        known = self._once("schema", asked, lambda: self.info(asked).constrain(asked))
        assert isinstance(known, Schema)
        return known.copy()

    def check_asked(self) -> None:
        """Refuse what `known_schema` does, which takes longer where much is asked for.

        Raises:
            MismatchError: constraints contradict each other.
            SpecError: the format has no such array.
        """
        asked = self.asked_schema()
        # What a new array is made of, and what says much, is needed as a whole.
        plain = not self.create and says_type_and_rank(asked.constraints)
        if not plain or not self.info(asked).agrees_with(asked):
            self.known_schema()

    def new_metadata(self) -> M:
        """Metadata for a new array, from the `metadata` and schema constraints and defaults.

        Raises:
            SpecError: something that has no default is missing.
            MismatchError: constraints contradict each other.
        """
        asked = self.asked_schema()

        def make() -> M:
            metadata = self.new_document(asked)
            if self.may_contradict(asked, metadata):
                self.check_metadata(metadata)
            return metadata

        return self._once("metadata", asked, make)  # type: ignore[return-value]

    def check_metadata(self, metadata: M) -> None:
        """Compare stored metadata with the constraints.

        Raises:
            MismatchError: names the member, what is stored and what was asked.
        """
        self.check_document(metadata)
        if self.schema_ is not None:
            self.info_of(metadata).check(self.asked_schema())
        elif self.dtype is not None or self.rank is not None:
            found = self.info_of(metadata)
            assert found.shape is not None
            rank = len(found.shape) + len(found.inner)
            check_schema(self.asked_schema(), Schema(dtype=found.data_type, rank=rank))

    def with_metadata(self, metadata: M) -> Self:
        """This spec with the `metadata` member complete: what reopens the array as it is."""
        return self.replace(
            metadata=metadata.constraints,
            dtype=self.data_type_of(metadata),
            rank=None,
            schema_=None,
            transform=None,
            open_=None,
            create=False,
            delete_existing=False,
        )

    def read_metadata(self, data: bytes) -> M:
        """The metadata of a stored document; errors are those of `ArrayMetadata.read`."""
        return self.metadata_type.read(data)  # type: ignore[return-value]

    def _once(self, what: str, asked: Schema, make: Callable[[], object]) -> object:
        """What follows from the schema constraints and the metadata; made once."""
        parts = (self.metadata, self.schema_, self.dtype, asked.rank)
        key = (type(self), what, self.layout_variant, *map(id, parts))
        return _implied.get(key, lambda: (parts, make()))[1]

    # What a format adds, all pure.

    #: Its document.
    metadata_type: ClassVar[type[ArrayMetadata]]
    #: What its `metadata` is if nothing is stated, beside None.
    unconstrained: ClassVar[object] = None

    @property
    def layout_variant(self) -> tuple[str, ...]:
        """Members other than the metadata that `layout` depends on, such as the field opened."""
        return ()

    @property
    @abstractmethod
    def metadata_key(self) -> str:
        """Name of the metadata document below the array's path."""

    @abstractmethod
    def info(self, asked: Schema) -> ArrayInfo:
        """What the `metadata` member says of the array.

        Args:
            asked: from `asked_schema`.

        Raises:
            SpecError: the format has no such array.
        """

    @abstractmethod
    def new_document(self, asked: Schema) -> M:
        """Metadata for a new array: the constraints, and for what they leave open the defaults.

        Args:
            asked: from `asked_schema`.

        Raises:
            SpecError: something that has no default is missing, or the format has no such array.
            MismatchError: constraints contradict each other.
        """

    def may_contradict(self, asked: Schema, metadata: M) -> bool:
        """Whether a document of `new_document` may contradict what was asked, and is compared.

        Not where each of its members was chosen to satisfy the constraints.
        """
        return True

    def check_document(self, metadata: M) -> None:
        """Compare a document with the `metadata` member.

        Raises:
            MismatchError: names the member, what is stored and what was asked.
        """
        stated = self.metadata
        if stated is not None and stated is not self.unconstrained:
            stated.check(metadata)  # type: ignore[attr-defined]  # a format's constraints

    def data_type_of(self, metadata: M) -> DataType | None:
        """The element type of an array with that document, as users see it."""
        return self.info_of(metadata).data_type

    @abstractmethod
    def info_of(self, metadata: M) -> ArrayInfo:
        """What a whole document says of the array."""

    @abstractmethod
    def layout(self, metadata: M) -> ArrayLayout:
        """Bind the metadata.

        Raises:
            SpecError, UnsupportedError: it asks for what does not exist, by name.
        """


@context_resource("data_copy_concurrency")
class DataCopyConcurrency(ConcurrencyModel):
    """How many threads encode, decode and copy at a time; `"shared"` is one a core."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    @classmethod
    def shared_limit(cls) -> int:
        """One a core."""
        return width()


@context_resource("memory_limit")
class MemoryLimit(ResourceModel):
    """How many bytes of chunks may be in flight: fetched, being decoded, or being written.

    Attributes:
        limit_bytes: a number for this resource alone; `"shared"`, a quarter of the machine's
            memory, is one for the whole process. The arrays that a program reads to and writes
            from are its own and not counted. A chunk larger than the limit goes alone.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"limit_bytes"})

    unseen: ClassVar[bool] = True

    limit_bytes: PositiveInt | Literal["shared"] = "shared"

    def create(self) -> MemoryBudget:
        return _shared_memory() if self.limit_bytes == "shared" else MemoryBudget(self.limit_bytes)


@context_resource("unpacking_limit")
class UnpackingLimit(ResourceModel):
    """To how much compressed data may unpack where the chunk does not say: text, objects.

    Attributes:
        limit_bytes: what a chunk may unpack to in any case. More is allowed for large chunks: a
            hundred times what is stored, and 64 bytes for each element.
    """

    # Who does not trust a spec does not let it say how much memory it may take.
    data_members: ClassVar[frozenset[str] | None] = frozenset()

    unseen: ClassVar[bool] = True

    limit_bytes: PositiveInt = UNPACKED_BYTES

    def create(self) -> int:
        return self.limit_bytes


@cache
def _shared_memory() -> MemoryBudget:
    return MemoryBudget(max(_LEAST_BYTES, memory_bytes() // 4))


def memory_bytes() -> int:
    """How much memory this process may use: the machine's, or its control group's if less."""
    sizes = [_UNKNOWN_BYTES]
    if hasattr(os, "sysconf"):
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            sizes.append(int(text))
    return min(sizes)
