"""Door 2, for authors of stores, codecs and drivers.

Built-in plug-ins enter by this door too: what a guest cannot do, we cannot do. Everything a
plug-in may use from the engine is named here.
"""

from tensorstore_py._chunked.constraints import (
    array_schema,
    check_schema,
    chosen_chunks,
    chosen_dtype,
    chosen_fill_value,
    chosen_inner_order,
    known_domain,
    layout_constraints,
    new_domain,
)
from tensorstore_py._chunked.in_memory import read_array, write_array
from tensorstore_py._chunked.layout import ArrayLayout, Remembered
from tensorstore_py._chunked.resources import CachePool, DataCopyConcurrency
from tensorstore_py._chunked.spec import ChunkedSpec, RecheckBound
from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap, propagate_bounds
from tensorstore_py._interface.adapter import Adapter, AdapterSpec
from tensorstore_py._interface.bind_chain import bind_chain, resolve_chain, split_chain
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.chunk_grid import ChunkAxis, RegularAxis
from tensorstore_py._interface.chunk_keys import ChunkKeys, SeparatedKeys
from tensorstore_py._interface.codec import (
    OPAQUE,
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    CodecModel,
    size_error,
)
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._interface.codec_json import (
    codec_to_json,
    codecs_to_json,
    parse_codec_json,
    parse_codec_list,
)
from tensorstore_py._interface.codec_merge import merge_chains, merge_codecs
from tensorstore_py._interface.driver import (
    Driver,
    DriverSpec,
    KvStoreField,
    ResizeRequest,
    StorageStatistics,
)
from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
    content_generation,
    holds,
)
from tensorstore_py._interface.key_range import ALL, KeyRange, decode_key, encode_key
from tensorstore_py._interface.kvstore import Buffer, KvStore, KvStoreSpec, ListEntry, ReadResult
from tensorstore_py._interface.sharded import MISSING, Sharded, ShardedSpec
from tensorstore_py._interface.streams import StreamDecoder, decode_streams
from tensorstore_py._runtime.admission import Bytes, Places, Slots
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._runtime.gate import Mutex
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec, CodecSpecModel, codec_spec
from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.duration import Duration
from tensorstore_py._spec.fill_value import array_from_json, element_from_json
from tensorstore_py._spec.fill_value import fill_value_to_json as array_to_json
from tensorstore_py._spec.json_value import Unset, describe, freeze, thaw
from tensorstore_py._spec.limits import (
    ConcurrencyModel,
    RateModel,
    RequestConcurrencyModel,
    RetriesModel,
)
from tensorstore_py._spec.model import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonForm,
    Level,
    Model,
    NonNegativeInt,
    PlainValidator,
    PositiveInt,
    field_validator,
    model_validator,
)
from tensorstore_py._spec.open_mode import OpenMode
from tensorstore_py._spec.registry import (
    codec,
    context_resource,
    driver,
    drivers,
    kvstore,
    kvstores,
)
from tensorstore_py._spec.registry import resources as context_resources
from tensorstore_py._spec.resource import Resource, ResourceField, ResourceModel, ResourceSpec
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.units import Unit
from tensorstore_py._spec.url_path import (
    adapter_url_rest,
    decode_path,
    encode_path,
    root_url_rest,
    split_bucket,
)

__all__ = [
    "ALL",
    "MISSING",
    "NO_VALUE",
    "OPAQUE",
    "UNKNOWN",
    "WHOLE",
    "Adapter",
    "AdapterSpec",
    "AfterValidator",
    "Array",
    "ArrayLayout",
    "ArrayToArray",
    "ArrayToArraySpec",
    "ArrayToBytes",
    "ArrayToBytesSpec",
    "BeforeValidator",
    "Buffer",
    "ByteRange",
    "Bytes",
    "BytesToBytes",
    "BytesToBytesSpec",
    "CachePool",
    "ChunkAxis",
    "ChunkKeys",
    "ChunkLayout",
    "ChunkType",
    "ChunkedSpec",
    "CodecChain",
    "CodecModel",
    "CodecSpec",
    "CodecSpecModel",
    "ConcurrencyModel",
    "DataCopyConcurrency",
    "Driver",
    "DriverSpec",
    "Duration",
    "Field",
    "IndexDomain",
    "IndexTransform",
    "JsonForm",
    "KeyRange",
    "KvStore",
    "KvStoreField",
    "KvStoreSpec",
    "Level",
    "ListEntry",
    "Model",
    "Mutex",
    "NonNegativeInt",
    "OpenMode",
    "OutputIndexMap",
    "Places",
    "PlainValidator",
    "PositiveInt",
    "RateModel",
    "ReadResult",
    "RecheckBound",
    "RegularAxis",
    "Remembered",
    "RequestConcurrencyModel",
    "ResizeRequest",
    "Resource",
    "ResourceField",
    "ResourceModel",
    "ResourceSpec",
    "RetriesModel",
    "Schema",
    "SeparatedKeys",
    "Sharded",
    "ShardedSpec",
    "Slots",
    "StorageStatistics",
    "StreamDecoder",
    "TimestampedStorageGeneration",
    "Unit",
    "Unset",
    "adapter_url_rest",
    "array_from_json",
    "array_schema",
    "array_to_json",
    "bind_chain",
    "check_schema",
    "chosen_chunks",
    "chosen_dtype",
    "chosen_fill_value",
    "chosen_inner_order",
    "codec",
    "codec_spec",
    "codec_to_json",
    "codecs_to_json",
    "content_generation",
    "context_resource",
    "context_resources",
    "decode_key",
    "decode_path",
    "decode_streams",
    "describe",
    "driver",
    "drivers",
    "dtype",
    "element_from_json",
    "encode_key",
    "encode_path",
    "field_validator",
    "freeze",
    "holds",
    "known_domain",
    "kvstore",
    "kvstores",
    "layout_constraints",
    "merge_chains",
    "merge_codecs",
    "model_validator",
    "new_domain",
    "offload",
    "parse_codec_json",
    "parse_codec_list",
    "propagate_bounds",
    "read_array",
    "resolve_chain",
    "root_url_rest",
    "size_error",
    "split_bucket",
    "split_chain",
    "thaw",
    "write_array",
]
