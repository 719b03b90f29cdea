"""The JSON of the file store: its members, its URL, and how it opens.

Values only: paths are checked as text, and opening touches no file.
"""

from __future__ import annotations

import os
from typing import ClassVar

from tensorstore_py.kvstores.file.paths import normal_path, path_from_url, path_to_url
from tensorstore_py.kvstores.file.resources import FileIoLocking, FileIoMode, FileIoRetries
from tensorstore_py.kvstores.file.store import FileStore
from tensorstore_py.plugin.kvstore import (
    KvStoreSpec,
    Resource,
    ResourceField,
    ThreadLimiter,
    field_validator,
    kvstore,
)

__all__ = ["FileSpec"]


@kvstore("file", schemes=["file"])
class FileSpec(KvStoreSpec):
    """`{"driver": "file", "path": "/data/"}`, or `file:///data/`.

    The path is a prefix of keys as they are, so a directory is written with a final `/`.

    Attributes:
        file_io_concurrency: the limit on file operations at a time.
        file_io_sync: whether writes are durable when they return.
        file_io_locking: how writers exclude each other.
        file_io_mode: how values are read.
        file_io_retries: how often to try again.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "file_io_concurrency", "file_io_sync", "file_io_locking", "file_io_mode",
        "file_io_retries",
    })  # fmt: skip

    file_io_concurrency: Resource[ThreadLimiter] = ResourceField("file_io_concurrency")
    file_io_sync: Resource[bool] = ResourceField("file_io_sync")
    file_io_locking: Resource[FileIoLocking] = ResourceField("file_io_locking")
    file_io_mode: Resource[FileIoMode] = ResourceField("file_io_mode")
    file_io_retries: Resource[FileIoRetries] = ResourceField("file_io_retries")

    @field_validator("path", mode="before")
    @classmethod
    def _text(cls, path: object) -> object:
        return os.fspath(path) if isinstance(path, os.PathLike) else path

    @field_validator("path")
    @classmethod
    def _normal(cls, path: str) -> str:
        return normal_path(path)

    @classmethod
    def path_of(cls, text: str) -> str:
        return normal_path(text)

    @property
    def inline(self) -> bool:
        return FileStore.inline

    def open(self) -> FileStore:
        return FileStore(
            sync=self.file_io_sync.value,
            locking=self.file_io_locking.value,
            mode=self.file_io_mode.value,
            retries=self.file_io_retries.value,
            concurrency=self.file_io_concurrency.value,
        )

    def to_url(self) -> str:
        return path_to_url(self.path)

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        return {"driver": "file", "path": path_from_url(url)}
