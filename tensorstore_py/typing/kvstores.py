"""Specs of key-value stores as TypedDicts.

Written by scripts/typed_specs.py, from the models that check specs.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, Required, TypeAlias, TypedDict

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._spec.context import Context
from tensorstore_py.typing.parts import ResourceSpec

__all__ = [
    "FileStoreSpec",
    "FsspecStoreSpec",
    "GcsStoreSpec",
    "HttpStoreSpec",
    "KvStoreSpec",
    "KvstackStoreSpec",
    "MemoryStoreSpec",
    "ObstoreStoreSpec",
    "OcdbtStoreConfig",
    "OcdbtStoreSpec",
    "S3StoreSpec",
    "SafetensorsStoreSpec",
    "UnionStoreSpec",
    "ZarrStoreStoreSpec",
    "ZipStoreSpec",
]


class FileStoreSpec(TypedDict, total=False):
    """The key-value store `file`."""

    path: str
    context: Context | Mapping[str, object]
    file_io_concurrency: ResourceSpec
    file_io_sync: ResourceSpec
    file_io_locking: ResourceSpec
    file_io_mode: ResourceSpec
    file_io_retries: ResourceSpec
    driver: Required[Literal["file"]]


class FsspecStoreSpec(TypedDict, total=False):
    """The key-value store `fsspec`."""

    path: str
    context: Context | Mapping[str, object]
    url: str
    filesystem: object
    storage_options: ResourceSpec
    use_conditional_write: bool
    driver: Required[Literal["fsspec"]]


class GcsStoreSpec(TypedDict, total=False):
    """The key-value store `gcs`."""

    path: str
    context: Context | Mapping[str, object]
    bucket: Required[str]
    gcs_request_concurrency: ResourceSpec
    gcs_request_retries: ResourceSpec
    gcs_user_project: ResourceSpec
    experimental_gcs_rate_limiter: ResourceSpec
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["gcs"]]


class HttpStoreSpec(TypedDict, total=False):
    """The key-value store `http`."""

    path: str
    context: Context | Mapping[str, object]
    base_url: Required[str]
    headers: Sequence[str]
    http_request_concurrency: ResourceSpec
    http_request_retries: ResourceSpec
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["http"]]


class KvstackStoreSpec(TypedDict, total=False):
    """The key-value store `kvstack`."""

    path: str
    context: Context | Mapping[str, object]
    layers: Required[Sequence[Mapping[str, object]]]
    driver: Required[Literal["kvstack"]]


class MemoryStoreSpec(TypedDict, total=False):
    """The key-value store `memory`."""

    path: str
    context: Context | Mapping[str, object]
    memory_key_value_store: ResourceSpec
    atomic: bool
    driver: Required[Literal["memory"]]


class ObstoreStoreSpec(TypedDict, total=False):
    """The key-value store `obstore`."""

    path: str
    context: Context | Mapping[str, object]
    url: str
    store: object
    config: ResourceSpec
    use_conditional_write: bool
    driver: Required[Literal["obstore"]]


class OcdbtStoreConfig(TypedDict, total=False):
    """Constraints of the configuration."""

    uuid: str
    manifest_kind: Literal["single", "numbered"]
    max_inline_value_bytes: int
    max_decoded_node_bytes: int
    version_tree_arity_log2: int
    compression: Mapping[str, object] | None


class OcdbtStoreSpec(TypedDict, total=False):
    """The key-value store `ocdbt`."""

    path: str
    context: Context | Mapping[str, object]
    base: "Required[KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]]"
    manifest: "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]"
    config: OcdbtStoreConfig
    assume_config: bool
    value_data_prefix: str
    btree_node_data_prefix: str
    version_tree_node_data_prefix: str
    target_data_file_size: int
    version: int | str
    experimental_read_coalescing_threshold_bytes: int
    experimental_read_coalescing_merged_bytes: int
    experimental_read_coalescing_interval: str
    coordinator: ResourceSpec
    cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["ocdbt"]]


class S3StoreSpec(TypedDict, total=False):
    """The key-value store `s3`."""

    path: str
    context: Context | Mapping[str, object]
    bucket: str
    aws_region: str
    endpoint: str
    host_header: str
    requester_pays: bool
    use_conditional_write: bool
    aws_credentials: ResourceSpec
    s3_request_concurrency: ResourceSpec
    s3_request_retries: ResourceSpec
    experimental_s3_rate_limiter: ResourceSpec
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["s3"]]


class SafetensorsStoreSpec(TypedDict, total=False):
    """The key-value store `safetensors`."""

    path: str
    context: Context | Mapping[str, object]
    base: "Required[KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]]"
    cache_pool: ResourceSpec
    driver: Required[Literal["safetensors"]]


class UnionStoreSpec(TypedDict, total=False):
    """The key-value store `union`."""

    path: str
    context: Context | Mapping[str, object]
    bases: "Required[Sequence[KvStoreSpec|KvStore|KvStore.Spec|str|PathLike[str]]]"
    driver: Required[Literal["union"]]


class ZarrStoreStoreSpec(TypedDict, total=False):
    """The key-value store `zarr_store`."""

    path: str
    context: Context | Mapping[str, object]
    store: Required[object]
    driver: Required[Literal["zarr_store"]]


class ZipStoreSpec(TypedDict, total=False):
    """The key-value store `zip`."""

    path: str
    context: Context | Mapping[str, object]
    base: "Required[KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]]"
    compression: Literal["store", "deflate", "zstd", "xz"]
    cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["zip"]]


KvStoreSpec: TypeAlias = (
    FileStoreSpec
    | FsspecStoreSpec
    | GcsStoreSpec
    | HttpStoreSpec
    | KvstackStoreSpec
    | MemoryStoreSpec
    | ObstoreStoreSpec
    | OcdbtStoreSpec
    | S3StoreSpec
    | SafetensorsStoreSpec
    | UnionStoreSpec
    | ZarrStoreStoreSpec
    | ZipStoreSpec
)
