"""The JSON of the obstore store: where, and how it opens.

Opening sends and loads nothing. A URL of another store's scheme (`s3://`) is fine in `url`, but by
itself it means that other store; Azure's mean this one.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.obstore.config import ObstoreClients
from tensorstore_py.kvstores.obstore.store import ObstoreStore
from tensorstore_py.plugin import (
    AfterValidator,
    KvStoreSpec,
    Resource,
    ResourceField,
    decode_path,
    encode_path,
    kvstore,
    model_validator,
    schemes_with_password,
)

__all__ = ["ObstoreSpec"]

_AZURE: Final = frozenset({"abfs", "abfss", "adl", "az", "azure"})
#: Of these, what comes behind the container is a path; of others, who knows.
_SPLIT: Final = _AZURE | {"file", "gs", "memory", "s3", "s3a"}


def _check_url(url: str) -> str:
    if schemes_with_password(url):
        raise SpecError('a URL is printed, passwords are not to be: put it into "config"')
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if not scheme or "://" not in url:
        raise SpecError(f'"{url}" is no URL; write it like "az://container/path"')
    return url


@kvstore("obstore", schemes=sorted(_AZURE))
class ObstoreSpec(KvStoreSpec):
    """`{"driver": "obstore", "url": "az://container/path/", "config": {"account_name": "lab"}}`.

    Attributes:
        url: where; its path goes to `path`.
        config: options of the library; see `ObstoreConfig`.
        use_conditional_write: false: the service has no conditional writes, and there is only one
            process that writes.

    Example:
        >>> ObstoreSpec.from_url("az://container/a%20b/")
        {'driver': 'obstore', 'url': 'az://container', 'path': 'a b/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    url: Annotated[str, AfterValidator(_check_url)]
    config: Resource[ObstoreClients] = ResourceField("obstore_config")
    use_conditional_write: bool | None = None

    @model_validator(mode="after")
    def _normal(self) -> ObstoreSpec:
        root, above = _split(self.url)
        between = "/" if above and self.path and not above.endswith("/") else ""
        object.__setattr__(self, "url", root)
        object.__setattr__(self, "path", above + between + self.path)
        return self

    def open(self) -> ObstoreStore:
        return ObstoreStore(
            self.config.value, self.url, use_conditional_write=self.use_conditional_write
        )

    def to_url(self) -> str:
        if urlsplit(self.url).scheme not in _AZURE:
            raise UnsupportedError(
                f'an obstore of "{self.url}" has no URL form, since its URL means another store; '
                "use its JSON"
            )
        return f"{self.url}/{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        root, path = _split(_check_url(url))
        return {"driver": "obstore", "url": root, **({"path": path} if path else {})}


def _split(url: str) -> tuple[str, str]:
    """The root of a URL, and the path in it as a key."""
    scheme, _, rest = url.partition("://")
    if scheme not in _SPLIT:
        return url, ""
    for mark in "?#":
        if mark in rest:
            # A signature may stand behind it.
            shown = url.partition(mark)[0]
            raise SpecError(f'"{shown}..." has a "{mark}"; write it as "%{ord(mark):02X}"')
    host, _, path = rest.partition("/")
    root = f"{scheme}://{host}"
    return root if host else f"{root}/", decode_path(path)
