"""Stores: one file or folder each, found by the registry and never imported by one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = ["REGISTERED"]

#: By module, what it registers, by the kind of the registry.
REGISTERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "file": {
        "kvstore driver": ("file",),
        "kvstore driver scheme": ("file",),
        "context resource": (
            "file_io_concurrency",
            "file_io_locking",
            "file_io_mode",
            "file_io_retries",
            "file_io_sync",
        ),
    },
    "fsspec": {
        "kvstore driver": ("fsspec",),
        "kvstore driver scheme": (
            "box",
            "dbfs",
            "dropbox",
            "ftp",
            "gdrive",
            "github",
            "hdfs",
            "hf",
            "oci",
            "oss",
            "sftp",
            "smb",
            "ssh",
            "webdav",
            "webhdfs",
        ),
        "context resource": ("fsspec_storage_options",),
    },
    "gcs": {
        "kvstore driver": ("gcs",),
        "kvstore driver scheme": ("gs",),
        "context resource": (
            "experimental_gcs_rate_limiter",
            "gcs_request_concurrency",
            "gcs_request_retries",
            "gcs_user_project",
        ),
    },
    "http": {
        "kvstore driver": ("http",),
        "kvstore driver scheme": ("http", "https"),
        "context resource": ("http_request_concurrency", "http_request_retries"),
    },
    "kvstack": {"kvstore driver": ("kvstack",)},
    "memory": {
        "kvstore driver": ("memory",),
        "kvstore driver scheme": ("memory",),
        "context resource": ("memory_key_value_store",),
    },
    "obstore": {
        "kvstore driver": ("obstore",),
        "kvstore driver scheme": ("abfs", "abfss", "adl", "az", "azure"),
        "context resource": ("obstore_config",),
    },
    "ocdbt": {
        "kvstore driver": ("ocdbt",),
        "kvstore driver detecting": ("ocdbt",),
        "kvstore driver scheme": ("ocdbt",),
        "context resource": ("ocdbt_coordinator",),
    },
    "s3": {
        "kvstore driver": ("s3",),
        "kvstore driver scheme": ("s3",),
        "context resource": (
            "aws_credentials",
            "experimental_s3_rate_limiter",
            "s3_request_concurrency",
            "s3_request_retries",
        ),
    },
    "safetensors": {
        "kvstore driver": ("safetensors",),
        "kvstore driver detecting": ("safetensors",),
        "kvstore driver scheme": ("safetensors",),
    },
    "union": {"kvstore driver": ("union",)},
    "zarr_store": {"kvstore driver": ("zarr_store",)},
    "zip": {
        "kvstore driver": ("zip",),
        "kvstore driver detecting": ("zip",),
        "kvstore driver scheme": ("zip",),
    },
}
