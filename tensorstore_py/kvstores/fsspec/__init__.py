"""The fsspec store: keys and values on any file system that fsspec knows.

FTP, SFTP, HDFS, SMB, GitHub, and whatever else there is a file system for. Read `files` (one
way to call file systems that block and those that wait), then `store` and `spec`. It needs the
extra `fsspec`, and often a package that fsspec names.
"""

from tensorstore_py.kvstores.fsspec.spec import FsspecSpec, FsspecStorageOptions
from tensorstore_py.kvstores.fsspec.store import FsspecStore

__all__ = ["FsspecSpec", "FsspecStorageOptions", "FsspecStore"]
