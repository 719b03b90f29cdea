"""Types of specs, for checkers and editors: TypedDicts of dicts that say what to open.

Annotate a spec, and a misspelt or missing member is shown where it is written:

    from tensorstore_py.typing import Zarr3Spec

    spec: Zarr3Spec = {"driver": "zarr3", "kvstore": {"driver": "memory"}}

`DriverSpec` is any array's, `KvStoreSpec` any store's.
"""

from tensorstore_py.typing.drivers import (
    ArraySpec,
    AutoSpec,
    CastSpec,
    DownsampleSpec,
    DriverSpec,
    JsonSpec,
    N5Metadata,
    N5Spec,
    StackSpec,
    Zarr3Metadata,
    Zarr3Spec,
    ZarrMetadata,
    ZarrSpec,
)
from tensorstore_py.typing.kvstores import (
    FileStoreSpec,
    FsspecStoreSpec,
    GcsStoreSpec,
    HttpStoreSpec,
    KvStoreSpec,
    MemoryStoreSpec,
    ObstoreStoreSpec,
    S3StoreSpec,
    ZipStoreSpec,
)
from tensorstore_py.typing.parts import ChunkLayoutSpec, GridSpec, ResourceSpec, SchemaSpec

__all__ = [
    "ArraySpec",
    "AutoSpec",
    "CastSpec",
    "ChunkLayoutSpec",
    "DownsampleSpec",
    "DriverSpec",
    "FileStoreSpec",
    "FsspecStoreSpec",
    "GcsStoreSpec",
    "GridSpec",
    "HttpStoreSpec",
    "JsonSpec",
    "KvStoreSpec",
    "MemoryStoreSpec",
    "N5Metadata",
    "N5Spec",
    "ObstoreStoreSpec",
    "ResourceSpec",
    "S3StoreSpec",
    "SchemaSpec",
    "StackSpec",
    "Zarr3Metadata",
    "Zarr3Spec",
    "ZarrMetadata",
    "ZarrSpec",
    "ZipStoreSpec",
]
