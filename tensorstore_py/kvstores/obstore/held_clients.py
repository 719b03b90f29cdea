"""Store objects of the library that the user made.

They are clients that need no configuration here. What is found out of the service is kept with the
object's holder, so that it is found out once.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py.kvstores.obstore.config import ObstoreClients, ObstoreConfig
from tensorstore_py.plugin import Held, kvstore_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore

__all__ = ["HeldClients", "is_client"]

_SCHEMES: Final[Mapping[str, str]] = {
    "AzureStore": "az",
    "GCSStore": "gs",
    "HTTPStore": "https",
    "LocalStore": "file",
    "MemoryStore": "memory",
    "S3Store": "s3",
}


class HeldClients(Held["ObjectStore"]):
    """A store object, and what is known of its service.

    Args:
        value: the object.

    Attributes:
        url: where it is, for people.
        clients: it alone.
    """

    __slots__ = ("clients", "url")

    def __init__(self, value: ObjectStore) -> None:
        super().__init__(value)
        self.url = _url_of(value)
        self.clients = ObstoreClients(ObstoreConfig())
        self.clients.made[self.url] = value

    @property
    def has_conditions(self) -> bool:
        """Whether there may be writes under a condition; files have none."""
        return not self.url.startswith("file:")


def is_client(value: object) -> bool:
    """Whether it is a store object of the library."""
    module = sys.modules.get("obstore.store")
    return any(isinstance(value, getattr(module, name)) for name in _SCHEMES) if module else False


def _url_of(store: Any) -> str:  # noqa: ANN401 - one of several classes
    scheme = next(
        _SCHEMES[kind.__name__] for kind in type(store).__mro__ if kind.__name__ in _SCHEMES
    )
    told = getattr(store, "config", {})
    place = told.get("bucket") or told.get("container_name") or ""
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    return f"{scheme}://{place}/{prefix}".rstrip("/") + ("" if place else "/")


@kvstore_object("obstore.store", *_SCHEMES)
def _of_store(store: ObjectStore) -> dict[str, object]:
    return {"driver": "obstore", "store": HeldClients(store)}
