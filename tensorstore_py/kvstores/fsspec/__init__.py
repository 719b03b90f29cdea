"""The fsspec store: keys and values on any file system that fsspec knows.

FTP, SFTP, HDFS, SMB, GitHub, and whatever else somebody wrote a file system for. Read `options`
(what the library is told), `files` (one way to call file systems of both temperaments),
`generations` and `errors`, then `store` and `spec`. It needs the extra `fsspec`, and often a
package that fsspec names.
"""

from tensorstore_py.kvstores.fsspec.options import FsspecStorageOptions
from tensorstore_py.kvstores.fsspec.spec import FsspecSpec
from tensorstore_py.kvstores.fsspec.store import FsspecStore

__all__ = ["FsspecSpec", "FsspecStorageOptions", "FsspecStore"]
