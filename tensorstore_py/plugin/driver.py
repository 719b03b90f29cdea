"""The door of driver authors: drivers over stores, over other drivers, and over arrays.

A driver for chunks in a store is a metadata document that becomes an `ArrayLayout`; the engine does
all else. `docs/writing_a_driver.md` builds one.
"""

from tensorstore_py._chunked.array import (
    ArrayLayout,
    ChainsByShape,
)
from tensorstore_py._chunked.driver import (
    ChunkedDriver,
)
from tensorstore_py._chunked.format import (
    RecheckBound,
)
from tensorstore_py._chunked.parts import (
    CutAxis,
    Part,
    output_box,
    partition,
    read_array,
    shifted,
    write_array,
)
from tensorstore_py._chunked.pool import (
    CachedChunk,
    needed_since,
)
from tensorstore_py._chunked.selection import (
    Selection,
)
from tensorstore_py._chunked.spec import (
    ChunkedSpec,
    FieldSpec,
)
from tensorstore_py._index import (
    IndexDomain,
    IndexTransform,
    OutputIndexMap,
    identity,
    inf,
    propagate_bounds,
)
from tensorstore_py._interface.adapter import (
    Adapter,
    AdapterSpec,
    BaseField,
    Opened,
)
from tensorstore_py._interface.array_info import (
    ArrayInfo,
    asked_fill_value,
    check_schema,
)
from tensorstore_py._interface.array_metadata import (
    ArrayMetadata,
    MetadataConstraints,
    check_members,
    frozen_members,
    same_rank,
)
from tensorstore_py._interface.batch import (
    Batch,
)
from tensorstore_py._interface.byte_range import (
    ByteRange,
)
from tensorstore_py._interface.chunk_grid import (
    ChunkAxis,
    ChunkGridModel,
    IrregularAxis,
    RegularAxis,
)
from tensorstore_py._interface.chunk_keys import (
    ChunkKeyEncodingModel,
    ChunkKeys,
    SeparatedKeys,
)
from tensorstore_py._interface.codec import (
    OPAQUE,
    Array,
    ArrayToArray,
    ArrayToBytes,
    BytesToBytes,
    ChunkType,
)
from tensorstore_py._interface.codec_chain import (
    CodecChain,
)
from tensorstore_py._interface.codec_list import (
    bind_chain,
    codec_to_json,
    codecs_to_json,
    merge_chains,
    merge_codecs,
    parse_codec_json,
    parse_codec_list,
    resolve_chain,
    split_chain,
)
from tensorstore_py._interface.driver import (
    Driver,
    DriverSpec,
    StorageStatistics,
)
from tensorstore_py._interface.field_bytes import (
    ElementView,
    FieldBytes,
    normalised,
)
from tensorstore_py._interface.hierarchy import (
    HierarchyFormat,
    JsonObject,
    NodeDocuments,
    NodeKind,
)
from tensorstore_py._interface.new_array import (
    new_array,
)
from tensorstore_py._interface.number_json import (
    number_to_json,
)
from tensorstore_py._interface.overlay import (
    Overlay,
)
from tensorstore_py._interface.transaction import (
    Transaction,
)
from tensorstore_py._runtime.fan_out import (
    within,
)
from tensorstore_py._runtime.limiters import MemoryBudget
from tensorstore_py._spec.chunk_layout import (
    ChunkLayout,
)
from tensorstore_py._spec.codec_spec import (
    CodecSpec,
    CodecSpecModel,
    codec_spec,
)
from tensorstore_py._spec.dtype import (
    LARGEST_ELEMENT,
    dtype,
)
from tensorstore_py._spec.fill_value import (
    array_from_json,
    element_from_json,
)
from tensorstore_py._spec.fill_value import (
    fill_value_to_json as array_to_json,
)
from tensorstore_py._spec.json_value import (
    Unset,
    describe,
    freeze,
    parse_json_text,
    same_json,
    thaw,
)
from tensorstore_py._spec.model import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonForm,
    Level,
    Model,
    PlainValidator,
    model_validator,
)
from tensorstore_py._spec.open_mode import (
    DELETE_NEEDS_CREATE,
    OpenMode,
)
from tensorstore_py._spec.registered import (
    ParsedOnce,
)
from tensorstore_py._spec.registry import (
    chunk_grid,
    chunk_grids,
    chunk_key_encoding,
    chunk_key_encodings,
    driver,
    drivers,
    hierarchy_format,
    kvstores,
)
from tensorstore_py._spec.registry import (
    resources as context_resources,
)
from tensorstore_py._spec.resource import (
    ResourceSpec,
)
from tensorstore_py._spec.schema import (
    Schema,
)
from tensorstore_py._spec.units import (
    Unit,
)

__all__ = [
    "DELETE_NEEDS_CREATE",
    "LARGEST_ELEMENT",
    "OPAQUE",
    "Adapter",
    "AdapterSpec",
    "AfterValidator",
    "Array",
    "ArrayInfo",
    "ArrayLayout",
    "ArrayMetadata",
    "ArrayToArray",
    "ArrayToBytes",
    "BaseField",
    "Batch",
    "BeforeValidator",
    "ByteRange",
    "BytesToBytes",
    "CachedChunk",
    "ChainsByShape",
    "ChunkAxis",
    "ChunkGridModel",
    "ChunkKeyEncodingModel",
    "ChunkKeys",
    "ChunkLayout",
    "ChunkType",
    "ChunkedDriver",
    "ChunkedSpec",
    "CodecChain",
    "CodecSpec",
    "CodecSpecModel",
    "CutAxis",
    "Driver",
    "DriverSpec",
    "ElementView",
    "Field",
    "FieldBytes",
    "FieldSpec",
    "HierarchyFormat",
    "IndexDomain",
    "IndexTransform",
    "IrregularAxis",
    "JsonForm",
    "JsonObject",
    "Level",
    "MemoryBudget",
    "MetadataConstraints",
    "Model",
    "NodeDocuments",
    "NodeKind",
    "OpenMode",
    "Opened",
    "OutputIndexMap",
    "Overlay",
    "ParsedOnce",
    "Part",
    "PlainValidator",
    "RecheckBound",
    "RegularAxis",
    "ResourceSpec",
    "Schema",
    "Selection",
    "SeparatedKeys",
    "StorageStatistics",
    "Transaction",
    "Unit",
    "Unset",
    "array_from_json",
    "array_to_json",
    "asked_fill_value",
    "bind_chain",
    "check_members",
    "check_schema",
    "chunk_grid",
    "chunk_grids",
    "chunk_key_encoding",
    "chunk_key_encodings",
    "codec_spec",
    "codec_to_json",
    "codecs_to_json",
    "context_resources",
    "describe",
    "driver",
    "drivers",
    "dtype",
    "element_from_json",
    "freeze",
    "frozen_members",
    "hierarchy_format",
    "identity",
    "inf",
    "kvstores",
    "merge_chains",
    "merge_codecs",
    "model_validator",
    "needed_since",
    "new_array",
    "normalised",
    "number_to_json",
    "output_box",
    "parse_codec_json",
    "parse_codec_list",
    "parse_json_text",
    "partition",
    "propagate_bounds",
    "read_array",
    "resolve_chain",
    "same_json",
    "same_rank",
    "shifted",
    "split_chain",
    "thaw",
    "within",
    "write_array",
]
