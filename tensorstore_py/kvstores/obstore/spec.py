"""The JSON of the obstore store: where, and how it opens.

Opening sends and loads nothing. A URL of another store's scheme (`s3://`) is fine in `url`, but by
itself it means that other store; Azure's mean this one.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.obstore.clients import HeldClients, ObstoreClients, is_client
from tensorstore_py.kvstores.obstore.store import ObstoreStore
from tensorstore_py.plugin.kvstore import (
    Held,
    JsonForm,
    KvStoreSpec,
    OptionsModel,
    PlainValidator,
    Resource,
    ResourceField,
    decode_path,
    describe,
    encode_path,
    field_validator,
    kvstore,
    model_validator,
)

__all__ = ["ObstoreSpec"]

_AZURE: Final = frozenset({"abfs", "abfss", "adl", "az", "azure"})
#: Of these, what comes behind the container is a path; of others, who knows.
_SPLIT: Final = _AZURE | {"file", "gs", "memory", "s3", "s3a"}


def _check_url(url: str) -> str:
    if OptionsModel.schemes_with_password(url):
        raise SpecError('a URL is printed, passwords are not to be: put it into "config"')
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if not scheme or "://" not in url:
        raise SpecError(f'"{url}" is no URL; write it like "az://container/path"')
    return url


def _held(value: object) -> HeldClients:
    if isinstance(value, HeldClients):
        return value
    if not isinstance(value, Held) or not is_client(value.value):
        raise SpecError(f"expected a store object of obstore, but found {describe(value)}")
    return HeldClients(value.value)


@kvstore("obstore", schemes=sorted(_AZURE))
class ObstoreSpec(KvStoreSpec):
    """`{"driver": "obstore", "url": "az://container/path/", "config": {"account_name": "lab"}}`.

    Attributes:
        url: where; its path goes to `path`.
        store: a store object of the library, in place of `url` and `config`.
        config: options of the library; see `ObstoreConfig`.
        use_conditional_write: false: the service has no conditional writes, and there is only one
            process that writes.

    Example:
        >>> ObstoreSpec.from_url("az://container/a%20b/")
        {'driver': 'obstore', 'url': 'az://container', 'path': 'a b/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    url: str = ""
    store: Annotated[HeldClients, PlainValidator(_held), JsonForm({"not": {}})] | None = None
    config: Resource[ObstoreClients] = ResourceField("obstore_config")
    use_conditional_write: bool | None = None

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        return _check_url(url)

    @model_validator(mode="after")
    def _normal(self) -> ObstoreSpec:
        if self.store is not None:
            object.__setattr__(self, "url", self.store.url)
            return self
        if not self.url:
            raise SpecError('this member is required, for example "az://container/"', ("url",))
        root, above = _split(self.url)
        between = "/" if above and self.path and not above.endswith("/") else ""
        object.__setattr__(self, "url", root)
        object.__setattr__(self, "path", above + between + self.path)
        return self

    def open(self) -> ObstoreStore:
        if self.store is not None:
            decides = self.use_conditional_write
            return ObstoreStore(
                self.store.clients,
                self.url,
                use_conditional_write=self.store.has_conditions if decides is None else decides,
                is_held=True,
            )
        return ObstoreStore(
            self.config.value, self.url, use_conditional_write=self.use_conditional_write
        )

    def to_url(self) -> str:
        if self.store is not None or urlsplit(self.url).scheme not in _AZURE:
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
