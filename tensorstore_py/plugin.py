"""Door 2, for authors of stores, codecs and drivers.

Built-in plug-ins enter by this door too: what a guest cannot do, we cannot do. Everything a
plug-in may use from the engine is named here.
"""

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.bind_chain import bind_chain, resolve_chain, split_chain
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
from tensorstore_py._interface.codec_merge import merge_chains
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.key_range import ALL, KeyRange, decode_key, encode_key
from tensorstore_py._interface.kvstore import Buffer, KvStore, KvStoreSpec, ListEntry, ReadResult
from tensorstore_py._interface.sharded import MISSING, Sharded, ShardedSpec
from tensorstore_py._interface.streams import StreamDecoder, decode_streams
from tensorstore_py._runtime.gate import Mutex
