"""What a file system is to know, and those that are open.

All who are bound to the same options share the file systems, and so their connections. The one
invariant: secrets go in and are never printed.
"""

from __future__ import annotations

from typing import ClassVar

from tensorstore_py.kvstores.fsspec.files import Files, open_files
from tensorstore_py.plugin import OptionsModel, context_resource, thaw

__all__ = ["FsspecFiles", "FsspecStorageOptions"]


@context_resource("fsspec_storage_options")
class FsspecStorageOptions(OptionsModel):
    """Options of file systems, as fsspec calls them; secrets are never printed.

    Example:
        >>> FsspecStorageOptions.parse({"host": "ftp.lab.example", "password": "swordfish"})
        FsspecStorageOptions({'host': 'ftp.lab.example'})
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    harmless: ClassVar[frozenset[str]] = frozenset({
        "account_name", "anon", "auto_mkdir", "block_size", "branch", "consistency", "encoding",
        "endpoint_url", "host", "hostname", "max_concurrency", "org", "port", "profile", "project",
        "region_name", "replication", "repo", "requester_pays", "sha", "timeout", "tls", "use_ssl",
        "user", "username",
    })  # fmt: skip

    def create(self) -> FsspecFiles:
        return FsspecFiles(self)


class FsspecFiles:
    """File systems, one for each URL.

    Args:
        options: what they are told.
    """

    def __init__(self, options: FsspecStorageOptions) -> None:
        self.options = options
        self._open: dict[str, Files] = {}

    def open(self, url: str) -> Files:
        """What is at a URL. Nothing is sent yet.

        Raises:
            UnsupportedError: the library, or one that it needs for that scheme, is not installed.
        """
        found = self._open.get(url)
        if found is None:
            values = thaw(dict(self.options.values))
            assert isinstance(values, dict)
            found = self._open.setdefault(url, open_files(url, values))
        return found
