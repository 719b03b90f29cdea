"""The door of driver authors: drivers over stores, over other drivers, and over arrays.

A driver for chunks in a store is a metadata document that becomes an `ArrayLayout`; the engine does
all else. `docs/writing_a_driver.md` builds one.
"""

from tensorstore_py._chunked.array import (
    ArrayLayout,
    ChainsByShape,
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
)
from tensorstore_py._interface.array_metadata import (
    ArrayMetadata,
    MetadataConstraints,
    same_rank,
)
from tensorstore_py._interface.batch import (
    Batch,
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
    freeze,
    parse_json_text,
    same_json,
    thaw,
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
    chunk_key_encoding,
    driver,
    hierarchy_format,
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
    "ArrayInfo",
    "ArrayLayout",
    "ArrayMetadata",
    "BaseField",
    "Batch",
    "CachedChunk",
    "ChainsByShape",
    "ChunkAxis",
    "ChunkGridModel",
    "ChunkKeyEncodingModel",
    "ChunkKeys",
    "ChunkLayout",
    "ChunkedSpec",
    "CodecSpec",
    "CodecSpecModel",
    "CutAxis",
    "Driver",
    "DriverSpec",
    "ElementView",
    "FieldBytes",
    "FieldSpec",
    "HierarchyFormat",
    "IndexDomain",
    "IndexTransform",
    "IrregularAxis",
    "MetadataConstraints",
    "OpenMode",
    "Opened",
    "OutputIndexMap",
    "Overlay",
    "ParsedOnce",
    "Part",
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
    "bind_chain",
    "chunk_grid",
    "chunk_key_encoding",
    "codec_spec",
    "codec_to_json",
    "codecs_to_json",
    "driver",
    "element_from_json",
    "freeze",
    "hierarchy_format",
    "inf",
    "merge_chains",
    "merge_codecs",
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
