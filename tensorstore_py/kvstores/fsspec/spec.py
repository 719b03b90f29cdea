"""The JSON of the fsspec store: where, what the file system is to know, and how it opens.

Opening loads what fsspec has for the scheme, and sends nothing. A URL of another store's scheme
(`s3://`) is fine in `url`, but by itself it means that other store. All who are bound to the same
options share the file systems, and so their connections. The invariant: secrets go in and are never
printed.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.fsspec.files import Files, HeldFiles, open_files, protocol_of
from tensorstore_py.kvstores.fsspec.store import FsspecStore
from tensorstore_py.plugin.kvstore import (
    Held,
    JsonForm,
    KvStoreSpec,
    OptionsModel,
    PlainValidator,
    Resource,
    ResourceField,
    context_resource,
    decode_path,
    describe,
    encode_path,
    field_validator,
    kvstore,
    model_validator,
)

__all__ = [
    "FsspecFiles",
    "FsspecSpec",
    "FsspecStorageOptions",
]


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
    """File systems, one for each URL."""

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
            found = self._open.setdefault(url, open_files(url, self.options.plain()))
        return found


#: Those that are no other store's.
_SCHEMES: Final = (
    "box", "dbfs", "dropbox", "ftp", "gdrive", "github", "hdfs", "hf", "oci", "oss", "sftp", "smb",
    "ssh", "webdav", "webhdfs",
)  # fmt: skip
_LOCAL: Final = frozenset({"file", "local"})
#: Its URLs have the repository where others have a password.
_WITH_COLON: Final = frozenset({"github"})


def _check_url(url: str) -> str:
    if not _WITH_COLON.issuperset(OptionsModel.schemes_with_password(url)):
        raise SpecError('a URL is printed, passwords are not to be: use "storage_options"')
    scheme, mark, _ = url.partition("://")
    if not mark or not scheme:
        raise SpecError(f'"{url}" is no URL; write it like "ftp://host/path"')
    try:
        urlsplit(url.rpartition("::")[2])
    except ValueError:
        raise SpecError(f'"{url}" is no URL; write it like "ftp://host/path"') from None
    return url


def _held(value: object) -> Held[Any]:
    if not isinstance(value, Held) or not hasattr(value.value, "storage_options"):
        raise SpecError(f"expected a file system object of fsspec, but found {describe(value)}")
    return value


@kvstore("fsspec", schemes=_SCHEMES)
class FsspecSpec(KvStoreSpec):
    """`{"driver": "fsspec", "url": "ftp://host/data/", "storage_options": {"timeout": 5}}`.

    Attributes:
        url: where, as fsspec takes it; its path goes to `path`. With `filesystem`, what its paths
            begin with, if these are URLs.
        filesystem: a file system object, in place of `url` and `storage_options`.
        storage_options: what the file system is told; see `FsspecStorageOptions`.
        use_conditional_write: false: there is only one process that writes, so that conditions may
            be checked here; by default only those are taken that the file system decides, and of
            file system objects all are, checked here.

    Example:
        >>> FsspecSpec.from_url("ftp://host/a%20b/")
        {'driver': 'fsspec', 'url': 'ftp://host', 'path': 'a b/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    url: str = ""
    filesystem: Annotated[Held[Any], PlainValidator(_held), JsonForm({"not": {}})] | None = None
    storage_options: Resource[FsspecFiles] = ResourceField("fsspec_storage_options")
    use_conditional_write: bool | None = None

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        return _check_url(url)

    @model_validator(mode="after")
    def _normal(self) -> FsspecSpec:
        if self.filesystem is not None and not self.url:
            object.__setattr__(self, "url", f"{protocol_of(self.filesystem.value)}://")
        elif not self.url:
            raise SpecError('this member is required, for example "ftp://host/data/"', ("url",))
        root, above = _split(self.url)
        between = "/" if above and self.path and not above.endswith("/") else ""
        object.__setattr__(self, "url", root)
        object.__setattr__(self, "path", above + between + self.path)
        return self

    def open(self) -> FsspecStore:
        if self.filesystem is not None:
            return _of_system(self.filesystem.value, self.url, self.use_conditional_write)
        shared = self.storage_options.value
        return FsspecStore(
            shared.open(self.url),
            self.url,
            hidden=shared.options.hidden,
            use_conditional_write=self.use_conditional_write,
        )

    def to_url(self) -> str:
        if self.filesystem is not None or self.url.partition("://")[0] not in _SCHEMES:
            raise UnsupportedError(
                f'an fsspec store of "{self.url}" has no URL form, since its URL means another '
                "store; use its JSON"
            )
        return f"{self.url}/{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        _check_url(url)
        for mark in "?#":
            if mark in url:
                shown = url.partition(mark)[0]
                raise SpecError(f'"{shown}..." has a "{mark}"; write it as "%{ord(mark):02X}"')
        root, path = _split(url)
        path = decode_path(path)
        return {"driver": "fsspec", "url": root, **({"path": path} if path else {})}


def _of_system(system: Any, url: str, use_conditional_write: bool | None) -> FsspecStore:  # noqa: ANN401 - a class of fsspec
    told = {name: one for name, one in system.storage_options.items() if isinstance(one, str)}
    return FsspecStore(
        HeldFiles(system, url if urlsplit(url).netloc else ""),
        url,
        hidden=FsspecStorageOptions.parse(told).hidden,
        use_conditional_write=bool(use_conditional_write),
        identity=None,
    )


def _split(url: str) -> tuple[str, str]:
    """The root of a URL, and the path in it, where that can be told; fsspec decodes none."""
    if "::" in url or "?" in url:
        return url, ""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    # fsspec takes "file://" for the working directory.
    root = "/" if scheme in _LOCAL and not host else ""
    return f"{scheme}://{host}{root}", path
