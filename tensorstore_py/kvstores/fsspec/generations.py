"""Generations: whatever a file system tells that changes with a file.

An ETag, a version or a checksum is as good as it gets. Others only tell the time and the size, and
two values of one size may have one time: who relies on it has to make sure that they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

__all__ = ["generation_of", "is_weak"]

_STRONG: Final = (
    "ETag", "etag", "VersionId", "version_id", "generation", "metageneration", "content_md5",
    "md5Hash", "md5", "checksum", "sha", "blob_id",
)  # fmt: skip
_WEAK: Final = (
    "mtime", "LastModified", "last_modified", "lastModified", "updated", "modify", "modified",
    "modification_time", "modificationTime", "time", "last_write_time", "created", "ino", "size",
)  # fmt: skip


def generation_of(info: Mapping[str, object]) -> bytes:
    """Of a file.

    Args:
        info: what the file system tells of it.

    Example:
        >>> generation_of({"ETag": '"abc"', "size": 5}) == generation_of({"ETag": '"abc"'})
        True
        >>> generation_of({"mtime": 1.5, "size": 5}) == generation_of({"mtime": 1.5, "size": 6})
        False
    """
    names = _WEAK if is_weak(info) else _STRONG
    told = [(name, str(info[name])) for name in names if info.get(name) is not None]
    return blake2b(repr(told).encode(), digest_size=16).digest()


def is_weak(info: Mapping[str, object]) -> bool:
    """Whether two values of a file may have the same generation."""
    return not any(info.get(name) for name in _STRONG)
