"""The JSON and the URLs of OCDBT databases: their members, and how one opens. Opening asks nothing.

Specification: https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

import calendar
import re
import secrets
import time
from typing import Annotated, Any, ClassVar, Final, Literal

from tensorstore_py.errors import FailedPreconditionError, SpecError, UnsupportedError
from tensorstore_py.kvstores.ocdbt.commits import Commits
from tensorstore_py.kvstores.ocdbt.data_files import DataFilePrefixes
from tensorstore_py.kvstores.ocdbt.data_reads import AS_USUAL, Coalescing
from tensorstore_py.kvstores.ocdbt.database import Database, Place
from tensorstore_py.kvstores.ocdbt.manifest import Config, ManifestKind
from tensorstore_py.kvstores.ocdbt.names import is_name
from tensorstore_py.kvstores.ocdbt.nodes import NodeCache
from tensorstore_py.kvstores.ocdbt.store import OcdbtStore, SharedDatabase, VersionSpec
from tensorstore_py.plugin.codec import Field, Model
from tensorstore_py.plugin.driver import Unset
from tensorstore_py.plugin.kvstore import (
    ChunkCache,
    Duration,
    JsonForm,
    KvStoreField,
    KvStoreSpec,
    PlainValidator,
    Resource,
    ResourceField,
    ResourceModel,
    ThreadLimiter,
    adapter_url_rest,
    context_resource,
    describe,
    encode_path,
    field_validator,
    in_one_mode,
    kvstore,
)

__all__ = ["OcdbtSpec", "parse_version"]

_UUID: Final = re.compile(r"[0-9a-fA-F]{32}")
_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z", re.ASCII)
_GENERATION: Final = re.compile(r"v[0-9]{1,100}")
_LARGEST_GENERATION: Final = 2**64 - 1
_DATA_FILE_BYTES: Final = 2**31
_NO_LIMIT: Final = 2**63


def parse_version(json: object) -> VersionSpec:
    """The version that a number, a name, or a time such as `"2025-01-01T01:23:45.678Z"` stands for.

    Raises:
        SpecError: it is none of these.

    Example:
        >>> parse_version(3).text, parse_version("1970-01-01T00:00:01Z").time_ns
        ('v3', 1000000000)
    """
    if isinstance(json, VersionSpec):
        return json
    if isinstance(json, int) and not isinstance(json, bool):
        if not 1 <= json <= _LARGEST_GENERATION:
            raise SpecError(f"expected a generation, 1 or more, but found {describe(json)}")
        return VersionSpec(json, 0, f"v{json}")
    found = _TIME.fullmatch(json) if isinstance(json, str) else None
    if found is None:
        if is_name(json):
            return VersionSpec(None, 0, json, named=True)
        raise SpecError(
            "expected a generation such as 3, the time of a commit in UTC such as "
            f'"2025-01-01T01:23:45.678Z", or the name of a version, but found {describe(json)}'
        )
    *parts, fraction = found.groups()
    year, month, day, hour, minute, second = map(int, parts)
    try:
        time.strptime(found[0][:10], "%Y-%m-%d")
    except ValueError:
        day = 0
    if not day or hour > 23 or minute > 59 or second > 60:
        raise SpecError(f"there is no such time: {describe(json)}")
    seconds = calendar.timegm((year, month, day, hour, minute, second))
    nanoseconds = int((fraction or "0").ljust(9, "0"))
    return VersionSpec(None, seconds * 10**9 + nanoseconds, found[0])


class Zstd(Model):
    """`{"id": "zstd", "level": 0}`.

    Attributes:
        id: `"zstd"`.
        level: -131072 to 22; higher ones compress better and slower. 0 is the library's default.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"id", "level"})

    id: Literal["zstd"]
    level: Annotated[int, Field(ge=-131072, le=22)] = 0


_COMPRESSION_FORM: Final = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"id": {"const": "zstd"}, "level": {"type": "integer"}},
            "required": ["id"],
        },
        {"type": "null"},
    ]
}


def _compression(json: object) -> Zstd | Unset | None:
    return json if json is None or json is Unset.UNSET else Zstd.parse(json)


class OcdbtConfig(Model):
    """What is asked of the configuration: a new database gets it, an old one must have it.

    Attributes:
        uuid: 32 hexadecimal digits; random by default.
        manifest_kind: `"single"`, the default: one manifest, which is replaced; or `"numbered"`: a
            new
            one for each version, for stores that can create a key once, but not replace a value
            on a condition.
        max_inline_value_bytes: larger values are not stored in the leaves of the tree; 100 by
            default.
        max_decoded_node_bytes: larger nodes are divided; 8388608 by default.
        version_tree_arity_log2: how many versions or subtrees a node of the tree of versions has,
            as an exponent of 2; 4 by default.
        compression: of the manifest and of nodes; null for none; zstd by default.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "uuid", "manifest_kind", "max_inline_value_bytes", "max_decoded_node_bytes",
        "version_tree_arity_log2", "compression",
    })  # fmt: skip

    uuid: str | None = None
    manifest_kind: Literal["single", "numbered"] | None = None
    max_inline_value_bytes: Annotated[int, Field(ge=0, le=2**20)] | None = None
    max_decoded_node_bytes: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    version_tree_arity_log2: Annotated[int, Field(ge=1, le=16)] | None = None
    compression: Annotated[
        Zstd | Unset | None, PlainValidator(_compression), JsonForm(_COMPRESSION_FORM)
    ] = Unset.UNSET

    @field_validator("uuid")
    @classmethod
    def _is_uuid(cls, uuid: str) -> str:
        if not _UUID.fullmatch(uuid):
            raise SpecError(f"expected 32 hexadecimal digits, but found {describe(uuid)}")
        return uuid.lower()

    def new(self) -> Config:
        """The configuration of a new database."""
        said = {name: value for name, value in self._stated().items() if value is not None}
        if self.compression is None:
            said["zstd_level"] = None
        return Config(secrets.token_bytes(16))._replace(**said)

    def _stated(self) -> dict[str, Any]:
        """By field of `Config`; None where nothing is said, or no compression is asked for."""
        kind = self.manifest_kind
        return {
            "uuid": None if self.uuid is None else bytes.fromhex(self.uuid),
            "kind": None if kind is None else ManifestKind[kind.upper()],
            "max_inline_value_bytes": self.max_inline_value_bytes,
            "max_decoded_node_bytes": self.max_decoded_node_bytes,
            "version_tree_arity_log2": self.version_tree_arity_log2,
            "zstd_level": self.compression.level if isinstance(self.compression, Zstd) else None,
        }

    def accept(self, config: Config) -> None:
        """Refuse the configuration of a database that is not what was asked for.

        Raises:
            FailedPreconditionError: names the member.
        """
        wanted = self._stated()
        if self.compression is None and config.zstd_level is not None:
            raise _mismatch("compression", None, _compression_json(config))
        for name, value in wanted.items():
            found = getattr(config, name)
            if value is not None and value != found:
                if name == "zstd_level":
                    raise _mismatch(
                        "compression", {"id": "zstd", "level": value}, _compression_json(config)
                    )
                if name == "kind":
                    raise _mismatch("manifest_kind", self.manifest_kind, found.name.lower())
                shown = found.hex() if name == "uuid" else found
                raise _mismatch(name, self.uuid if name == "uuid" else value, shown)


def _compression_json(config: Config) -> object:
    return None if config.zstd_level is None else {"id": "zstd", "level": config.zstd_level}


def _mismatch(name: str, wanted: object, found: object) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"Configuration mismatch on {name}: expected {describe(wanted)} but received "
        f'{describe(found)}; leave "config" out to open the database as it is'
    )


@context_resource("ocdbt_coordinator")
class OcdbtCoordinator(ResourceModel):
    """A server by which TensorStore's writers cooperate; understood, but not used here.

    Attributes:
        address: of the server; none by default.
        lease_duration: how long a writer is responsible for a range of keys.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    address: str | None = None
    lease_duration: Duration | None = None
    security: dict[str, object] | None = None


def _coalescing(spec: OcdbtSpec) -> Coalescing:
    """Which reads are made together."""
    gap = spec.experimental_read_coalescing_threshold_bytes
    limit = spec.experimental_read_coalescing_merged_bytes
    interval = spec.experimental_read_coalescing_interval
    if gap is None and limit is None and interval is None:
        return AS_USUAL
    seconds = 0.0 if interval is None else interval.seconds
    return Coalescing(gap or 0, limit or _NO_LIMIT, seconds)


def _shared_database(spec: OcdbtSpec, name: object) -> SharedDatabase:
    """What all stores of one database share, as the first who opened it says; nodes have a name."""
    nodes = NodeCache(spec.cache_pool.value, (name, "node"))
    where = [spec.base] if spec.manifest is None else [spec.base, spec.manifest]
    stores = in_one_mode(*(each.open() for each in where))
    places = [Place(store, each.path) for store, each in zip(stores, where, strict=True)]
    database = Database(
        places[0], places[-1], spec.config.accept, nodes.get, nodes.put, _coalescing(spec)
    )
    prefixes = DataFilePrefixes(
        spec.value_data_prefix.encode(),
        spec.btree_node_data_prefix.encode(),
        spec.version_tree_node_data_prefix.encode(),
    )
    target = spec.target_data_file_size
    commits = Commits(
        database,
        spec.config.new,
        prefixes,
        _DATA_FILE_BYTES if target is None else target,
        spec.data_copy_concurrency.value,
        assumes=spec.assume_config,
    )
    return SharedDatabase(database, commits)


def _as_directory(spec: KvStoreSpec) -> KvStoreSpec:
    path = spec.path
    return spec if not path or path.endswith("/") else spec.replace(path=f"{path}/")


@kvstore("ocdbt", schemes=["ocdbt"])
class OcdbtSpec(KvStoreSpec):
    """`{"driver": "ocdbt", "base": "file:///db/", "path": "a/"}`, or `file:///db/|ocdbt:a/`.

    Attributes:
        base: the directory of the database in another store.
        manifest: another directory for the manifest.
        config: constraints of the configuration.
        assume_config: write data files before the first manifest, for one request less.
        value_data_prefix: what the paths of new files with values begin with.
        btree_node_data_prefix: what those of files with nodes of the tree of keys begin with.
        version_tree_node_data_prefix: what those of files with nodes of the tree of versions do.
        target_data_file_size: a data file that has so many bytes is followed by another one; 0 for
            no limit, 2147483648 by default.
        version: the generation, time or name of the version to read; the latest one by default.
        experimental_read_coalescing_threshold_bytes: how many bytes may lie between two values of
            a data file that are read by one request; by default 4095, or 0 if one of the next two
            is given.
        experimental_read_coalescing_merged_bytes: how many bytes are read at once by merging; 0 for
            no limit. By default 1 MiB, or no limit if one of the others is given.
        experimental_read_coalescing_interval: how long a reader of a remote store waits for others;
            by default for those that ask in the same moment.
        coordinator: refused if it has an address.
        cache_pool: where nodes are kept.
        data_copy_concurrency: how many threads change and encode large nodes at a time.

    Example:
        >>> OcdbtSpec.from_url("ocdbt:@v3/a/")
        {'driver': 'ocdbt', 'path': 'a/', 'version': 3}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "base", "manifest", "config", "version", "cache_pool", "data_copy_concurrency",
        "experimental_read_coalescing_threshold_bytes",
        "experimental_read_coalescing_merged_bytes", "experimental_read_coalescing_interval",
    })  # fmt: skip
    keeps_values: ClassVar[bool] = False

    detected_by: ClassVar[str | None] = "manifest.ocdbt"

    base: KvStoreField
    manifest: KvStoreField | None = None
    config: OcdbtConfig = OcdbtConfig()
    assume_config: bool = False
    value_data_prefix: str = "d/"
    btree_node_data_prefix: str = "d/"
    version_tree_node_data_prefix: str = "d/"
    target_data_file_size: Annotated[int, Field(ge=0, le=2**64 - 1)] | None = None
    version: (
        Annotated[
            VersionSpec, PlainValidator(parse_version), JsonForm({"type": ["integer", "string"]})
        ]
        | None
    ) = None
    experimental_read_coalescing_threshold_bytes: Annotated[int, Field(ge=0)] | None = None
    experimental_read_coalescing_merged_bytes: Annotated[int, Field(ge=0)] | None = None
    experimental_read_coalescing_interval: Duration | None = None
    coordinator: Resource[OcdbtCoordinator] = ResourceField("ocdbt_coordinator")
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")

    @field_validator("base", "manifest")
    @classmethod
    def _directory(cls, spec: KvStoreSpec) -> KvStoreSpec:
        return _as_directory(spec)

    @classmethod
    def path_of(cls, text: str) -> str:
        return text

    @property
    def inline(self) -> bool:
        return self.base.inline and (self.manifest is None or self.manifest.inline)

    def open(self) -> OcdbtStore:
        if self.coordinator.value.address is not None:
            raise UnsupportedError(
                'the coordinator of "ocdbt" is not supported: leave "address" out of '
                '"ocdbt_coordinator"; any number of processes may write without one, each commit '
                "on the condition that no other one came first"
            )
        cache = self.cache_pool.value
        form = self.replace(path="", version=None)
        scope = cache.scope(self.base.path, form, "ocdbt")
        shared = cache.companion(scope, lambda: _shared_database(self, scope))
        return shared.store(self.version)

    def to_url(self) -> str:
        if self.manifest is not None:
            raise UnsupportedError(
                'an "ocdbt" database with a "manifest" somewhere else has no URL form'
            )
        at = "" if self.version is None else f"@{self.version.text}/"
        return f"{self.base.to_url()}|ocdbt:{at}{encode_path(self.path).replace('@', '%40')}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        path = adapter_url_rest(url, "ocdbt")
        version: dict[str, object] = {}
        if url.startswith("ocdbt:@"):
            at, _, path = path[1:].partition("/")
            version = {"version": int(at[1:]) if _GENERATION.fullmatch(at) else at}
        return {"driver": "ocdbt", **({"path": path} if path else {}), **version}
