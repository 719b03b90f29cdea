"""What was asked of a chunked array: the JSON members that every chunked format shares.

A format's driver subclasses `ChunkedSpec`, adds its `metadata` member, and implements the few
pure methods at the end: bytes to metadata, metadata to layout, constraints to new metadata.
Opening, creating, caching and resizing are then the same for all (`opening`, `driver`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, Literal, TypeAlias, TypeVar

from tensorstore_py._chunked import opening
from tensorstore_py._chunked.cache import ChunkCache
from tensorstore_py._interface.driver import DriverSpec, KvStoreField
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._runtime.admission import Bytes, Places
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import Field, JsonForm, PlainValidator, model_validator
from tensorstore_py._spec.open_mode import DELETE_NEEDS_CREATE, OpenMode
from tensorstore_py._spec.resource import Resource, ResourceField
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from tensorstore_py._chunked.driver import ChunkedDriver
    from tensorstore_py._chunked.layout import ArrayLayout
    from tensorstore_py._interface.kvstore import ReadResult
    from tensorstore_py._interface.transaction import Transaction

__all__ = ["ChunkedSpec", "RecheckBound", "RecheckCacheOption", "recheck_bound"]

M = TypeVar("M")

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


class ChunkedSpec(DriverSpec, Generic[M]):
    """Members shared by chunked drivers; `M` is the format's metadata, frozen and hashable.

    Attributes:
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

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "kvstore", "open_", "assume_metadata", "assume_cached_metadata", "cache_pool",
        "metadata_cache_pool", "data_copy_concurrency", "memory_limit", "unpacking_limit",
        "recheck_cached_metadata",
        "recheck_cached_data", "fill_missing_data_reads", "store_data_equal_to_fill_value",
    })  # fmt: skip
    writing_members: ClassVar[frozenset[str]] = frozenset({"create", "delete_existing"})

    kvstore: KvStoreField | None = None
    path: str = ""
    open_: bool | None = Field(default=None, alias="open")
    create: bool = False
    delete_existing: bool = False
    assume_metadata: bool = False
    assume_cached_metadata: bool = False
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    metadata_cache_pool: Resource[ChunkCache] | None = ResourceField("cache_pool", optional=True)
    data_copy_concurrency: Resource[Places] = ResourceField("data_copy_concurrency")
    memory_limit: Resource[Bytes] = ResourceField("memory_limit")
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
            changes.update(kvstore=self.store_spec(), path="")
        return self.replace(**changes) if changes else self

    @property
    def inline(self) -> bool:
        return self.store_spec().open().inline

    async def open(self) -> ChunkedDriver[M]:
        return await self.open_within(None)

    async def open_within(self, transaction: Transaction | None) -> ChunkedDriver[M]:
        return await opening.open_chunked(self, transaction)

    async def open_known(
        self, transaction: Transaction | None, documents: Mapping[str, ReadResult]
    ) -> ChunkedDriver[M]:
        found = documents.get(self.metadata_key)
        return await opening.open_chunked(self, transaction, found)

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
        return self.replace(metadata=None)

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

    # What a format adds, all pure.

    @property
    def layout_variant(self) -> tuple[str, ...]:
        """Members other than the metadata that `layout` depends on, such as the field opened."""
        return ()

    @property
    @abstractmethod
    def metadata_key(self) -> str:
        """Name of the metadata document below the array's path."""

    @abstractmethod
    def parse_metadata(self, data: bytes) -> M:
        """The document's bytes as metadata.

        Raises:
            DataLossError: not valid JSON, or not this format; names the member.
        """

    @abstractmethod
    def serialize_metadata(self, metadata: M) -> bytes:
        """The document to store."""

    @abstractmethod
    def new_metadata(self) -> M:
        """Metadata for a new array, from the `metadata` and schema constraints and defaults.

        Raises:
            SpecError: something that has no default is missing, or constraints contradict.
        """

    @abstractmethod
    def check_metadata(self, metadata: M) -> None:
        """Compare stored metadata with the constraints.

        Raises:
            MismatchError: names the member, what is stored and what was asked.
        """

    @abstractmethod
    def layout(self, metadata: M) -> ArrayLayout:
        """Bind the metadata.

        Raises:
            SpecError, UnsupportedError: it asks for what does not exist, by name.
        """

    @abstractmethod
    def resized(self, metadata: M, shape: tuple[int, ...]) -> M:
        """The metadata with another shape."""

    @abstractmethod
    def with_metadata(self, metadata: M) -> ChunkedSpec[M]:
        """This spec with the `metadata` member complete: what reopens the array as it is."""
