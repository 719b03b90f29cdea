"""`ts.zarr`: what zarr-python's users type, over the same engine as everything else.

Functions and classes by the names of zarr-python 2 and 3. They are thin: an array is a view over a
`TensorStore`, which is its `ts`, a group one over a `ts.Group`, and arguments become specs. Nothing
that a chunk, a codec or a store does is done here.
"""

from tensorstore_py.zarr.codecs import (
    BZ2,
    LZ4,
    LZMA,
    AsType,
    BitRound,
    Blosc,
    Categorize,
    Codec,
    Delta,
    FixedScaleOffset,
    GZip,
    PackBits,
    Quantize,
    Shuffle,
    VLenBytes,
    VLenUTF8,
    Zlib,
    Zstd,
)
from tensorstore_py.zarr.creation import (
    array,
    create,
    create_array,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    open_array,
    open_like,
    zeros,
    zeros_like,
)
from tensorstore_py.zarr.nodes import (
    consolidate_metadata,
    group,
    open,  # zarr-python's name
    open_consolidated,
    open_group,
    tree,
)
from tensorstore_py.zarr.saving import load, save, save_array, save_group
from tensorstore_py.zarr.storage import (
    DictStore,
    DirectoryStore,
    FsspecStore,
    FSStore,
    LocalStore,
    MemoryStore,
    NestedDirectoryStore,
    TempStore,
    ZipStore,
)
from tensorstore_py.zarr.store import Store
from tensorstore_py.zarr.synchronizers import ProcessSynchronizer, ThreadSynchronizer
from tensorstore_py.zarr.zarr_array import Array
from tensorstore_py.zarr.zarr_group import Group

__all__ = [
    "BZ2",
    "LZ4",
    "LZMA",
    "Array",
    "AsType",
    "BitRound",
    "Blosc",
    "Categorize",
    "Codec",
    "Delta",
    "DictStore",
    "DirectoryStore",
    "FSStore",
    "FixedScaleOffset",
    "FsspecStore",
    "GZip",
    "Group",
    "LocalStore",
    "MemoryStore",
    "NestedDirectoryStore",
    "PackBits",
    "ProcessSynchronizer",
    "Quantize",
    "Shuffle",
    "Store",
    "TempStore",
    "ThreadSynchronizer",
    "VLenBytes",
    "VLenUTF8",
    "ZipStore",
    "Zlib",
    "Zstd",
    "array",
    "consolidate_metadata",
    "create",
    "create_array",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "tree",
    "zeros",
    "zeros_like",
]
