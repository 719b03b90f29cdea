"""The door of store authors: the promise of a key-value store, its values, and how its work runs.

A store is a model (what JSON says) whose `open` returns a `KvStore`; `docs/writing_a_store.md`
builds one. Stores that speak HTTP find the client behind the door `plugin.http`.
"""

from tensorstore_py._chunked.pool import (
    ChunkCache,
)
from tensorstore_py._interface.bridged import in_one_mode
from tensorstore_py._interface.byte_range import (
    WHOLE,
    ByteRange,
)
from tensorstore_py._interface.coalesce import (
    RangeGroup,
    coalesce,
    read_coalesced,
)
from tensorstore_py._interface.compressors import decode_streams
from tensorstore_py._interface.crc32c import crc32c
from tensorstore_py._interface.driver import (
    KvStoreField,
)
from tensorstore_py._interface.foreign_errors import (
    ForeignErrors,
)
from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
    content_generation,
    holds,
)
from tensorstore_py._interface.key_range import (
    ALL,
    KeyRange,
    encode_key,
)
from tensorstore_py._interface.kvstore import (
    Buffer,
    KvStore,
    KvStoreSpec,
    ListEntry,
    ReadResult,
)
from tensorstore_py._interface.read_modify_write import (
    CheckedChange,
    CopiedRange,
    ReadModifyWrite,
    StoredValue,
)
from tensorstore_py._interface.store_abilities import (
    AtomicBatch,
    AtomicUpdate,
    BulkListing,
    BulkRead,
    BulkWrite,
    CachedRead,
    DirectoryListing,
    GroupedWrite,
    PartedWrite,
    RangeRead,
    RangeReadAsOf,
    ReferenceCopy,
    SegmentedWrite,
    ServerCopy,
    ServiceReport,
    ServiceState,
    Splice,
    WholeRewrite,
    conditional_update,
    read_ranges,
    splice,
    update_each,
    write_segments,
)
from tensorstore_py._runtime.awaitable_bridge import in_other_loop
from tensorstore_py._runtime.buffers import joined
from tensorstore_py._runtime.fan_out import (
    fan_out,
    offload,
)
from tensorstore_py._runtime.fork import (
    Forkable,
)
from tensorstore_py._runtime.group_commit import GroupCommit, PendingChange, Registered
from tensorstore_py._runtime.interpreter_lock import IoLock
from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex
from tensorstore_py._runtime.limiters import Semaphore, ThreadLimiter
from tensorstore_py._runtime.loop import (
    on_loop_end,
)
from tensorstore_py._runtime.metrics import counter, histogram
from tensorstore_py._runtime.retry import RetryPolicy
from tensorstore_py._runtime.signals import (
    pause,
)
from tensorstore_py._runtime.single_flight import SingleFlights
from tensorstore_py._spec.held import (
    Held,
    kvstore_object,
)
from tensorstore_py._spec.json_value import (
    describe,
)
from tensorstore_py._spec.limits import (
    ConcurrencyModel,
    Duration,
    RetriesModel,
)
from tensorstore_py._spec.model import (
    JsonForm,
    NonNegativeInt,
    PlainValidator,
    PositiveInt,
    field_validator,
    model_validator,
)
from tensorstore_py._spec.options import (
    OptionsModel,
)
from tensorstore_py._spec.registry import (
    context_resource,
    kvstore,
)
from tensorstore_py._spec.resource import (
    Resource,
    ResourceField,
    ResourceModel,
)
from tensorstore_py._spec.url import (
    adapter_url_rest,
    check_authority,
    decode_path,
    encode_path,
    root_url_rest,
)

__all__ = [
    "ALL",
    "NO_VALUE",
    "UNKNOWN",
    "WHOLE",
    "AtomicBatch",
    "AtomicUpdate",
    "Buffer",
    "BulkListing",
    "BulkRead",
    "BulkWrite",
    "ByteRange",
    "CachedRead",
    "CheckedChange",
    "ChunkCache",
    "ConcurrencyModel",
    "CopiedRange",
    "DirectoryListing",
    "Duration",
    "ForeignErrors",
    "Forkable",
    "GroupCommit",
    "GroupedWrite",
    "Held",
    "IoLock",
    "JsonForm",
    "KeyRange",
    "KeyedLock",
    "KvStore",
    "KvStoreField",
    "KvStoreSpec",
    "ListEntry",
    "Mutex",
    "NonNegativeInt",
    "OptionsModel",
    "PartedWrite",
    "PendingChange",
    "PlainValidator",
    "PositiveInt",
    "RangeGroup",
    "RangeRead",
    "RangeReadAsOf",
    "ReadModifyWrite",
    "ReadResult",
    "ReferenceCopy",
    "Registered",
    "Resource",
    "ResourceField",
    "ResourceModel",
    "RetriesModel",
    "RetryPolicy",
    "SegmentedWrite",
    "Semaphore",
    "ServerCopy",
    "ServiceReport",
    "ServiceState",
    "SingleFlights",
    "Splice",
    "StoredValue",
    "ThreadLimiter",
    "TimestampedStorageGeneration",
    "WholeRewrite",
    "adapter_url_rest",
    "check_authority",
    "coalesce",
    "conditional_update",
    "content_generation",
    "context_resource",
    "counter",
    "crc32c",
    "decode_path",
    "decode_streams",
    "describe",
    "encode_key",
    "encode_path",
    "fan_out",
    "field_validator",
    "histogram",
    "holds",
    "in_one_mode",
    "in_other_loop",
    "joined",
    "kvstore",
    "kvstore_object",
    "model_validator",
    "offload",
    "on_loop_end",
    "pause",
    "read_coalesced",
    "read_ranges",
    "root_url_rest",
    "splice",
    "update_each",
    "write_segments",
]
