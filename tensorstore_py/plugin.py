"""Door 2, for authors of stores, codecs and drivers.

Built-in plug-ins enter by this door too: what a guest cannot do, we cannot do. Everything a
plug-in may use from the engine is named here.
"""

from tensorstore_py._chunked.cache import CachedChunk, ChunkCache, needed_since
from tensorstore_py._chunked.constraints import (
    array_schema,
    check_schema,
    chosen_chunks,
    chosen_dtype,
    chosen_fill_value,
    chosen_inner_order,
    chosen_read_chunk,
    known_domain,
    layout_constraints,
    new_domain,
)
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._chunked.in_memory import read_array, write_array
from tensorstore_py._chunked.layout import ArrayLayout, Remembered
from tensorstore_py._chunked.parts import CutAxis, Part, output_box, parts, shifted
from tensorstore_py._chunked.resources import CachePool, DataCopyConcurrency
from tensorstore_py._chunked.selection import Selection, select
from tensorstore_py._chunked.spec import ChunkedSpec, RecheckBound
from tensorstore_py._chunked.uneven import ChainsByShape
from tensorstore_py._index import (
    IndexDomain,
    IndexTransform,
    OutputIndexMap,
    identity,
    inf,
    propagate_bounds,
)
from tensorstore_py._interface.adapter import Adapter, AdapterSpec, BaseField
from tensorstore_py._interface.batch import Batch
from tensorstore_py._interface.bind_chain import bind_chain, resolve_chain, split_chain
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.checksum import Checksum, ChecksumSpec
from tensorstore_py._interface.chunk_grid import ChunkAxis, IrregularAxis, RegularAxis
from tensorstore_py._interface.chunk_grid_model import ChunkGridModel
from tensorstore_py._interface.chunk_keys import (
    ChunkKeyEncodingModel,
    ChunkKeys,
    OuterKeys,
    SeparatedKeys,
)
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
    TooLargeError,
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
from tensorstore_py._interface.conditional_update import conditional_update
from tensorstore_py._interface.counted_items import CountedItems, CountedItemsSpec
from tensorstore_py._interface.driver import (
    Driver,
    DriverSpec,
    KvStoreField,
    ResizeRequest,
)
from tensorstore_py._interface.element_type import (
    ElementType,
    check_characters,
    element_type,
    flat_view,
    native_type,
    recast,
    viewed_as,
)
from tensorstore_py._interface.element_view import ElementView, normalised
from tensorstore_py._interface.exact_cast import (
    OutOfRange,
    Rounding,
    UnrepresentableError,
    cast_numbers,
    integer_bounds,
)
from tensorstore_py._interface.field_bytes import FieldBytes
from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
    content_generation,
    holds,
)
from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject, NodeDocuments, NodeKind
from tensorstore_py._interface.kept import Kept, Stretch, coalesced
from tensorstore_py._interface.key_range import ALL, KeyRange, decode_key, encode_key
from tensorstore_py._interface.kvstore import Buffer, KvStore, KvStoreSpec, ListEntry, ReadResult
from tensorstore_py._interface.listed_elements import listed_elements
from tensorstore_py._interface.new_array import new_array
from tensorstore_py._interface.number_json import number_to_json, parse_number
from tensorstore_py._interface.opened import Opened, resolved_view
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._interface.sharded import MISSING, Sharded, ShardedSpec
from tensorstore_py._interface.statistics import StorageStatistics
from tensorstore_py._interface.streams import StreamCodec, StreamDecoder, decode_streams
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py._interface.update import Replace, Update
from tensorstore_py._net.byte_ranges import range_header
from tensorstore_py._net.client import HttpClient
from tensorstore_py._net.coalesce import RangeGroup, coalesce, read_coalesced
from tensorstore_py._net.dates import http_date
from tensorstore_py._net.dialect import HttpDialect, HttpVerdict
from tensorstore_py._net.digests import crc32c
from tensorstore_py._net.message import HttpRequest, HttpResponse, show_url
from tensorstore_py._net.pacing import HttpPacer
from tensorstore_py._net.paging import Paging
from tensorstore_py._net.retrying import HttpTiming
from tensorstore_py._net.signing import HttpSigner
from tensorstore_py._runtime.admission import Bytes, Places, Slots
from tensorstore_py._runtime.attempts import CONFLICTS, Attempts, RetryPolicy
from tensorstore_py._runtime.fan_out import fan_out, offload, within
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.gate import Gate, Mutex
from tensorstore_py._runtime.large import LARGE_BYTES, joined, large_memory
from tensorstore_py._runtime.loop import on_loop_end
from tensorstore_py._runtime.other_loop import in_other_loop
from tensorstore_py._runtime.private_loop import run_coroutine
from tensorstore_py._runtime.rates import Rate, Rates
from tensorstore_py._runtime.signals import pause
from tensorstore_py._runtime.turns import Turns
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec, CodecSpecModel, codec_spec
from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.duration import Duration
from tensorstore_py._spec.fill_value import array_from_json, element_from_json
from tensorstore_py._spec.fill_value import fill_value_to_json as array_to_json
from tensorstore_py._spec.held import Held, kvstore_object
from tensorstore_py._spec.json_value import Unset, describe, freeze, same_json, thaw
from tensorstore_py._spec.jsontext import parse_json_text, parse_stored_json
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
from tensorstore_py._spec.open_mode import DELETE_NEEDS_CREATE, OpenMode
from tensorstore_py._spec.options import OptionsModel, cause_of, schemes_with_password
from tensorstore_py._spec.parametric import LARGEST_ELEMENT
from tensorstore_py._spec.registered import ParsedOnce
from tensorstore_py._spec.registry import (
    chunk_grid,
    chunk_grids,
    chunk_key_encoding,
    chunk_key_encodings,
    codec,
    codec_resolver,
    context_resource,
    driver,
    drivers,
    hierarchy_format,
    kvstore,
    kvstores,
)
from tensorstore_py._spec.registry import resources as context_resources
from tensorstore_py._spec.resource import Resource, ResourceField, ResourceModel, ResourceSpec
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.units import Unit
from tensorstore_py._spec.url_path import (
    adapter_url_rest,
    check_authority,
    decode_path,
    encode_path,
    root_url_rest,
    split_bucket,
)

__all__ = [
    "ALL",
    "CONFLICTS",
    "DELETE_NEEDS_CREATE",
    "LARGEST_ELEMENT",
    "LARGE_BYTES",
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
    "Attempts",
    "BaseField",
    "Batch",
    "BeforeValidator",
    "Buffer",
    "ByteRange",
    "Bytes",
    "BytesToBytes",
    "BytesToBytesSpec",
    "CachePool",
    "CachedChunk",
    "ChainsByShape",
    "Checksum",
    "ChecksumSpec",
    "ChunkAxis",
    "ChunkCache",
    "ChunkGridModel",
    "ChunkKeyEncodingModel",
    "ChunkKeys",
    "ChunkLayout",
    "ChunkType",
    "ChunkedDriver",
    "ChunkedSpec",
    "CodecChain",
    "CodecModel",
    "CodecSpec",
    "CodecSpecModel",
    "ConcurrencyModel",
    "CountedItems",
    "CountedItemsSpec",
    "CutAxis",
    "DataCopyConcurrency",
    "Driver",
    "DriverSpec",
    "Duration",
    "ElementType",
    "ElementView",
    "Field",
    "FieldBytes",
    "Forkable",
    "Gate",
    "Held",
    "HierarchyFormat",
    "HttpClient",
    "HttpDialect",
    "HttpPacer",
    "HttpRequest",
    "HttpResponse",
    "HttpSigner",
    "HttpTiming",
    "HttpVerdict",
    "IndexDomain",
    "IndexTransform",
    "IrregularAxis",
    "JsonForm",
    "JsonObject",
    "Kept",
    "KeyRange",
    "KvStore",
    "KvStoreField",
    "KvStoreSpec",
    "Level",
    "ListEntry",
    "Model",
    "Mutex",
    "NodeDocuments",
    "NodeKind",
    "NonNegativeInt",
    "OpenMode",
    "Opened",
    "OptionsModel",
    "OutOfRange",
    "OuterKeys",
    "OutputIndexMap",
    "Overlay",
    "Paging",
    "ParsedOnce",
    "Part",
    "Places",
    "PlainValidator",
    "PositiveInt",
    "RangeGroup",
    "Rate",
    "RateModel",
    "Rates",
    "ReadResult",
    "RecheckBound",
    "RegularAxis",
    "Remembered",
    "Replace",
    "RequestConcurrencyModel",
    "ResizeRequest",
    "Resource",
    "ResourceField",
    "ResourceModel",
    "ResourceSpec",
    "RetriesModel",
    "RetryPolicy",
    "Rounding",
    "Schema",
    "Selection",
    "SeparatedKeys",
    "Sharded",
    "ShardedSpec",
    "Slots",
    "StorageStatistics",
    "StreamCodec",
    "StreamDecoder",
    "Stretch",
    "TimestampedStorageGeneration",
    "TooLargeError",
    "Transaction",
    "Turns",
    "Unit",
    "UnrepresentableError",
    "Unset",
    "Update",
    "adapter_url_rest",
    "array_from_json",
    "array_schema",
    "array_to_json",
    "bind_chain",
    "cast_numbers",
    "cause_of",
    "check_authority",
    "check_characters",
    "check_schema",
    "chosen_chunks",
    "chosen_dtype",
    "chosen_fill_value",
    "chosen_inner_order",
    "chosen_read_chunk",
    "chunk_grid",
    "chunk_grids",
    "chunk_key_encoding",
    "chunk_key_encodings",
    "coalesce",
    "coalesced",
    "codec",
    "codec_resolver",
    "codec_spec",
    "codec_to_json",
    "codecs_to_json",
    "conditional_update",
    "content_generation",
    "context_resource",
    "context_resources",
    "crc32c",
    "decode_key",
    "decode_path",
    "decode_streams",
    "describe",
    "driver",
    "drivers",
    "dtype",
    "element_from_json",
    "element_type",
    "encode_key",
    "encode_path",
    "fan_out",
    "field_validator",
    "flat_view",
    "freeze",
    "hierarchy_format",
    "holds",
    "http_date",
    "identity",
    "in_other_loop",
    "inf",
    "integer_bounds",
    "joined",
    "known_domain",
    "kvstore",
    "kvstore_object",
    "kvstores",
    "large_memory",
    "layout_constraints",
    "listed_elements",
    "merge_chains",
    "merge_codecs",
    "model_validator",
    "native_type",
    "needed_since",
    "new_array",
    "new_domain",
    "normalised",
    "number_to_json",
    "offload",
    "on_loop_end",
    "output_box",
    "parse_codec_json",
    "parse_codec_list",
    "parse_json_text",
    "parse_number",
    "parse_stored_json",
    "parts",
    "pause",
    "propagate_bounds",
    "range_header",
    "read_array",
    "read_coalesced",
    "recast",
    "resolve_chain",
    "resolved_view",
    "root_url_rest",
    "run_coroutine",
    "same_json",
    "schemes_with_password",
    "select",
    "shifted",
    "show_url",
    "size_error",
    "split_bucket",
    "split_chain",
    "thaw",
    "viewed_as",
    "within",
    "write_array",
]
