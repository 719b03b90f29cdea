"""Specs of arrays as TypedDicts, by driver.

Written by scripts/typed_specs.py, from the models that check specs.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, Required, TypeAlias, TypedDict

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.spec import Spec
from tensorstore_py._index import IndexTransform
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.schema import Schema
from tensorstore_py.typing.kvstores import KvStoreSpec
from tensorstore_py.typing.parts import ResourceSpec, SchemaSpec

__all__ = [
    "ArraySpec",
    "AutoSpec",
    "CastSpec",
    "DownsampleSpec",
    "DriverSpec",
    "JsonSpec",
    "N5Metadata",
    "N5Spec",
    "StackSpec",
    "Zarr3Metadata",
    "Zarr3Spec",
    "ZarrMetadata",
    "ZarrSpec",
]


class ArraySpec(TypedDict, total=False):
    """An array given in the spec."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    array: Required[object]
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["array"]]


class AutoSpec(TypedDict, total=False):
    """An array of a format that is found out when it is opened."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    kvstore: "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]"
    path: str
    open: bool
    create: bool
    delete_existing: bool
    assume_metadata: bool
    assume_cached_metadata: bool
    recheck_cached_metadata: bool | Literal["open"] | float
    recheck_cached_data: bool | Literal["open"] | float
    driver: Required[Literal["auto"]]
    aws_credentials: ResourceSpec
    cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    experimental_gcs_rate_limiter: ResourceSpec
    experimental_s3_rate_limiter: ResourceSpec
    file_io_concurrency: ResourceSpec
    file_io_locking: ResourceSpec
    file_io_mode: ResourceSpec
    file_io_retries: ResourceSpec
    file_io_sync: ResourceSpec
    fsspec_storage_options: ResourceSpec
    gcs_request_concurrency: ResourceSpec
    gcs_request_retries: ResourceSpec
    gcs_user_project: ResourceSpec
    http_request_concurrency: ResourceSpec
    http_request_retries: ResourceSpec
    memory_key_value_store: ResourceSpec
    memory_limit: ResourceSpec
    obstore_config: ResourceSpec
    ocdbt_coordinator: ResourceSpec
    s3_request_concurrency: ResourceSpec
    s3_request_retries: ResourceSpec
    unpacking_limit: ResourceSpec


class CastSpec(TypedDict, total=False):
    """An array of another data type."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    base: "Required[DriverSpec | Spec | str | PathLike[str]]"
    driver: Required[Literal["cast"]]


class DownsampleSpec(TypedDict, total=False):
    """A smaller view of an array."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    base: "Required[DriverSpec | Spec | str | PathLike[str]]"
    downsample_factors: Required[Sequence[int]]
    downsample_method: Required[Literal["stride", "mean", "median", "mode", "min", "max"]]
    driver: Required[Literal["downsample"]]


class JsonSpec(TypedDict, total=False):
    """One value of a JSON document."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    kvstore: "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]"
    path: str
    json_pointer: str
    cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    recheck_cached_data: bool | Literal["open"] | float
    driver: Required[Literal["json"]]


class N5Metadata(TypedDict, total=False):
    """Constraints on the attributes.json document: what a new array gets, and what an …."""

    dimensions: Sequence[int]
    blockSize: Sequence[int]
    dataType: Literal[
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
    ]
    compression: str | Mapping[str, object]
    axes: Sequence[str]
    units: Sequence[str]
    resolution: Sequence[float]


class N5Spec(TypedDict, total=False):
    """An array in N5 format."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    metadata: N5Metadata
    kvstore: "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]"
    path: str
    open: bool
    create: bool
    delete_existing: bool
    assume_metadata: bool
    assume_cached_metadata: bool
    cache_pool: ResourceSpec
    metadata_cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    memory_limit: ResourceSpec
    unpacking_limit: ResourceSpec
    recheck_cached_metadata: bool | Literal["open"] | float
    recheck_cached_data: bool | Literal["open"] | float
    fill_missing_data_reads: bool
    store_data_equal_to_fill_value: bool
    driver: Required[Literal["n5"]]


class StackSpec(TypedDict, total=False):
    """Arrays laid over each other."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    layers: "Required[Sequence[DriverSpec|Spec|str|PathLike[str]]]"
    data_copy_concurrency: ResourceSpec
    driver: Required[Literal["stack"]]


class ZarrMetadata(TypedDict, total=False):
    """Constraints on the .zarray document."""

    zarr_format: Literal[2]
    shape: Sequence[int]
    chunks: Sequence[int]
    dtype: str | Sequence[Sequence[object]]
    fill_value: object
    order: Literal["C", "F"]
    compressor: str | Mapping[str, object] | None
    filters: Sequence[str | Mapping[str, object]] | None
    dimension_separator: Literal[".", "/"]


class ZarrSpec(TypedDict, total=False):
    """A Zarr version 2 array."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    metadata: ZarrMetadata
    kvstore: "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]"
    path: str
    open: bool
    create: bool
    delete_existing: bool
    assume_metadata: bool
    assume_cached_metadata: bool
    cache_pool: ResourceSpec
    metadata_cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    memory_limit: ResourceSpec
    unpacking_limit: ResourceSpec
    recheck_cached_metadata: bool | Literal["open"] | float
    recheck_cached_data: bool | Literal["open"] | float
    fill_missing_data_reads: bool
    store_data_equal_to_fill_value: bool
    field: str
    open_as_void: bool
    metadata_key: str
    array_dimensions: bool
    allow_pickle: bool
    driver: Required[Literal["zarr"]]
    key_encoding: Literal[".", "/"]


class Zarr3Metadata(TypedDict, total=False):
    """Constraints on the zarr.json document: what a new array gets, and what an existing …."""

    zarr_format: Literal[3]
    node_type: Literal["array"]
    shape: Sequence[int]
    data_type: str | Mapping[str, object] | Sequence[object]
    chunk_grid: Mapping[str, object]
    chunk_key_encoding: Literal["default", "v2"] | Mapping[str, object]
    fill_value: object
    codecs: Sequence[str | Mapping[str, object]]
    dimension_names: Sequence[str | None]
    attributes: Mapping[str, object]
    storage_transformers: Sequence[object]


class Zarr3Spec(TypedDict, total=False):
    """An array in Zarr version 3 format."""

    context: Context | Mapping[str, object]
    dtype: DTypeLike
    rank: int
    transform: IndexTransform | Mapping[str, object]
    schema: SchemaSpec | Schema
    metadata: Zarr3Metadata
    kvstore: "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]"
    path: str
    open: bool
    create: bool
    delete_existing: bool
    assume_metadata: bool
    assume_cached_metadata: bool
    cache_pool: ResourceSpec
    metadata_cache_pool: ResourceSpec
    data_copy_concurrency: ResourceSpec
    memory_limit: ResourceSpec
    unpacking_limit: ResourceSpec
    recheck_cached_metadata: bool | Literal["open"] | float
    recheck_cached_data: bool | Literal["open"] | float
    fill_missing_data_reads: bool
    store_data_equal_to_fill_value: bool
    field: str
    open_as_void: bool
    driver: Required[Literal["zarr3"]]


DriverSpec: TypeAlias = (
    ArraySpec
    | AutoSpec
    | CastSpec
    | DownsampleSpec
    | JsonSpec
    | N5Spec
    | StackSpec
    | ZarrSpec
    | Zarr3Spec
)
