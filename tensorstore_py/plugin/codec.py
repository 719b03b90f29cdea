"""The door of codec authors: promises of codecs, the type of a chunk, registration.

A spec says what JSON may say; `bind` checks it against the shape and type of an array's chunks,
once an array; the bound codec encodes and decodes. `docs/writing_a_codec.md` builds one.
"""

from tensorstore_py._interface.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    CodecModel,
    EncodedPart,
    ForeignCodecModel,
    TooLargeError,
    size_error,
)
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._interface.codec_list import CodecList, ShardedSpec
from tensorstore_py._interface.compressors import SizedCodec, StreamCodec, share_numcodecs
from tensorstore_py._interface.crc32c import crc32c
from tensorstore_py._interface.element_type import ElementType, element_type
from tensorstore_py._interface.kvstore import Buffer
from tensorstore_py._interface.number_json import parse_number
from tensorstore_py._interface.sharded import Sharded
from tensorstore_py._runtime.buffers import huge_page_buffer
from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonForm,
    Level,
    Model,
)
from tensorstore_py._spec.registry import codec, codec_resolver

__all__ = [
    "AfterValidator",
    "Array",
    "ArrayToArray",
    "ArrayToArraySpec",
    "ArrayToBytes",
    "ArrayToBytesSpec",
    "BeforeValidator",
    "Buffer",
    "BytesToBytes",
    "BytesToBytesSpec",
    "ChunkType",
    "CodecChain",
    "CodecList",
    "CodecModel",
    "ElementType",
    "EncodedPart",
    "Field",
    "ForeignCodecModel",
    "JsonForm",
    "Level",
    "Model",
    "Sharded",
    "ShardedSpec",
    "SizedCodec",
    "StreamCodec",
    "TooLargeError",
    "codec",
    "codec_resolver",
    "crc32c",
    "describe",
    "dtype",
    "element_type",
    "huge_page_buffer",
    "parse_number",
    "share_numcodecs",
    "size_error",
]
