"""What the library is to know, its clients, and store objects that the user made.

The library is loaded when a client is made, that is at the first request. A client is shared by all
who are bound to the same configuration; so is what it has in memory, and what is found out of the
service. The one invariant: secrets go in and are never printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.obstore.protocol import Conditions
from tensorstore_py.plugin.kvstore import (
    Duration,
    Held,
    OptionsModel,
    context_resource,
    kvstore_object,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config


__all__ = [
    "HeldClients",
    "ObstoreClients",
    "ObstoreConfig",
    "check_process",
    "is_client",
]

#: Spoken by many servers, which do not all heed conditions.
_MANY_SERVERS: Final = ("s3", "http")
_DURATIONS: Final = frozenset({"init_backoff", "max_backoff", "retry_timeout"})
#: The process whose threads the library has, once it was used.
_users: list[int] = []


@context_resource("obstore_config")
class ObstoreConfig(OptionsModel):
    """What the library is to know of a service: keys of its own, such as `account_name`.

    `client_options` and `retry_config` are objects among them. Secrets are never printed.

    Example:
        >>> ObstoreConfig.parse({"account_name": "lab", "account_key": "c2VjcmV0"})
        ObstoreConfig({'account_name': 'lab'})
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    harmless: ClassVar[frozenset[str]] = frozenset({
        "account_name", "allow_http", "aws_region", "azure_storage_account_name", "base", "bucket",
        "connect_timeout", "container_name", "endpoint", "http1_only", "http2_only", "init_backoff",
        "max_backoff", "max_retries", "pool_idle_timeout", "region", "request_payer",
        "retry_timeout", "skip_signature", "timeout", "use_emulator", "use_fabric_endpoint",
        "virtual_hosted_style_request",
    })  # fmt: skip

    def create(self) -> ObstoreClients:
        return ObstoreClients(self)


class ObstoreClients:
    """The library's clients, one for each URL, for all who are bound to one `obstore_config`.

    Attributes:
        made: those that are open, by URL.
    """

    def __init__(self, config: ObstoreConfig) -> None:
        self.config = config
        self.made: dict[str, ObjectStore] = {}
        self._conditions: dict[str, Conditions] = {}

    def open(self, url: str) -> ObjectStore:
        """The client for a URL.

        Raises:
            UnsupportedError: the library is not installed, or does not know the scheme.
            SpecError: it does not like its options.
        """
        found = self.made.get(url)
        return self.made.setdefault(url, self._make(url)) if found is None else found

    def conditions(self, url: str) -> Conditions:
        """What is known of the service behind a URL."""
        found = self._conditions.get(url)
        if found is None:
            trusted = not url.startswith(_MANY_SERVERS)
            found = self._conditions.setdefault(url, Conditions(trusted=trusted))
        return found

    def _make(self, url: str) -> ObjectStore:
        try:
            from obstore import exceptions, store  # noqa: PLC0415 - only who needs it pays for it
        except ImportError:
            raise UnsupportedError(
                f'cannot open "{url}": that takes the library obstore; pip install '
                "'tensorstore-py[obstore]'"
            ) from None
        options = dict(self.config.values)
        client_options = options.pop("client_options", None)
        retry_config = _timed(options.pop("retry_config", None))
        try:
            if options or client_options or retry_config:
                return store.from_url(
                    url,
                    config=cast("S3Config", options),  # whichever it is: the library looks at it
                    client_options=cast("ClientConfig", client_options),
                    retry_config=retry_config,
                )
            return store.from_url(url)
        except (exceptions.BaseError, ValueError, TypeError, OSError) as error:
            problem = self.config.hidden(str(error).partition("\n")[0])
            raise SpecError(
                f'obstore cannot open "{url}": {problem}; what it needs to know goes here, or into '
                "its environment variables",
                ("config",),
            ) from None


def check_process(url: str) -> None:
    """Make sure that the library's threads are in this process: without them nothing ever ends.

    Raises:
        UnsupportedError: they are in the one that this one was forked from.
    """
    if not _users:
        _users.append(os.getpid())
    elif _users[0] != os.getpid():
        raise UnsupportedError(
            f'cannot use "{url}" in this process: it was forked from one that had used the library '
            'obstore, which does not survive that; start processes by "spawn" or "forkserver"'
        )


def _timed(json: object) -> RetryConfig | None:
    """The library wants durations as such."""
    if not isinstance(json, Mapping):
        return None
    told: dict[str, object] = {}
    for name, value in json.items():
        if isinstance(value, Mapping):
            told[name] = _timed(value)
        elif name in _DURATIONS:
            told[name] = timedelta(seconds=Duration.parse(value).seconds)
        else:
            told[name] = value
    return cast("RetryConfig", told)


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
