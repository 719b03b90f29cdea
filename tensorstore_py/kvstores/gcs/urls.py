"""Where things are: the service's address, URLs of a bucket's objects, and which keys can be one.

`TENSORSTORE_GCS_HTTP_URL` names another server than Google's, and is treated as Google's in all
else. `STORAGE_EMULATOR_HOST`, which Google's own libraries heed, names one that wants no
credentials. Pure text; the invariant: whatever is in a key or a project, it cannot leave its place
in the URL.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, quote_from_bytes, urlencode

from tensorstore_py.errors import SpecError

__all__ = [
    "Bucket",
    "Service",
    "check_key",
]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MOST_BYTES: Final = 1024
_RESERVED: Final = ".well-known/acme-challenge"


def check_key(key: str) -> bytes:
    r"""The key as UTF-8.

    Raises:
        SpecError: the service has no such names.

    Example:
        >>> check_key("a/é")
        b'a/\xc3\xa9'
    """
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise _refused(key, "it is not valid UTF-8") from None
    if not encoded:
        raise _refused(key, "it is empty")
    if len(encoded) > _MOST_BYTES:
        raise _refused(key, f"it has {len(encoded)} bytes, and {_MOST_BYTES} is the most")
    if key in (".", ".."):
        raise _refused(key, "that name is reserved")
    if key.startswith(_RESERVED):
        raise _refused(key, f'names that begin with "{_RESERVED}" are reserved')
    if _CONTROL.search(key):
        raise _refused(key, "it has control characters in it")
    return encoded


def _refused(key: str, why: str) -> SpecError:
    shown = key if len(key) <= 60 else f"{key[:60]}…"
    return SpecError(f"the key {shown!r} cannot be the name of an object in a bucket: {why}")


_GOOGLE: Final = "https://storage.googleapis.com"
_ADDRESS: Final = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?\Z")
_LOOPBACK: Final = re.compile(r"http://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/|\Z)")


class Service(NamedTuple):
    """A server that speaks the JSON API.

    Attributes:
        address: scheme, host and maybe the beginning of the path.
        is_open: it wants no credentials.
    """

    address: str = _GOOGLE
    is_open: bool = False

    @classmethod
    def named(cls, environment: Mapping[str, str] | None = None) -> Service:
        """The one that the environment names, else Google's.

        Raises:
            SpecError: what a variable says is no address.

        Example:
            >>> Service.named({"STORAGE_EMULATOR_HOST": "localhost:9023"})
            Service(address='http://localhost:9023', is_open=True)
        """
        environment = os.environ if environment is None else environment
        for variable, is_open in (
            ("TENSORSTORE_GCS_HTTP_URL", False),
            ("STORAGE_EMULATOR_HOST", True),
        ):
            address = environment.get(variable, "").rstrip("/")
            if not address:
                continue
            if is_open and "://" not in address:
                address = f"http://{address}"
            if not _ADDRESS.match(address):
                raise SpecError(
                    f"the environment variable {variable} is no address such as "
                    f"http://127.0.0.1:9023"
                )
            return cls(address, is_open)
        return cls()

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return _LOOPBACK.match(self.address) is not None


class Bucket:
    """The URLs of one bucket.

    Args:
        service: where it is.
        name: of the bucket.
        user_project: who pays for the requests; by default its owner.

    Attributes:
        service: as given.
        name: as given.
    """

    def __init__(self, service: Service, name: str, user_project: str | None = None) -> None:
        self.service = service
        self.name = name
        where = f"storage/v1/b/{quote(name, safe='')}/o"
        self._objects = f"{service.address}/{where}"
        self._uploads = f"{service.address}/upload/{where}"
        self._payer = f"&userProject={quote(user_project, safe='')}" if user_project else ""
        self._fresh = _fresh_marks()

    def value(self, key: bytes, query: str = "") -> str:
        """To read a value.

        Args:
            key: the whole key.
            query: what to add, each part with an `&` in front.
        """
        return f"{self._object(key)}?alt=media{query}{self._payer}&tensorstore={next(self._fresh)}"

    def description(self, key: bytes, fields: str, query: str = "") -> str:
        """To read what is known of an object, as JSON."""
        asked = f"?alt=json&fields={fields}{query}{self._payer}"
        return f"{self._object(key)}{asked}&tensorstore={next(self._fresh)}"

    def object(self, key: bytes, query: str = "") -> str:
        """To delete an object."""
        return self._object(key) + _query(query + self._payer)

    def upload(self, kind: str, query: str = "") -> str:
        """To send a value; `kind` is the protocol."""
        return f"{self._uploads}?uploadType={kind}{query}{self._payer}"

    def listing(self, parameters: Mapping[str, str]) -> str:
        """To list objects."""
        return f"{self._objects}?{urlencode(parameters, quote_via=quote, safe='')}{self._payer}"

    def rewrite(self, key: bytes, target: Bucket, target_key: bytes, token: str = "") -> str:
        """To copy an object to another bucket of the service, or go on with that."""
        there = f"b/{quote(target.name, safe='')}/o/{quote_from_bytes(target_key, safe='')}"
        more = f"&rewriteToken={quote(token, safe='')}" if token else ""
        return f"{self._object(key)}/rewriteTo/{there}{_query(more + self._payer)}"

    def _object(self, key: bytes) -> str:
        return f"{self._objects}/{quote_from_bytes(key, safe='')}"


def _query(parts: str) -> str:
    return f"?{parts[1:]}" if parts else ""


def _fresh_marks() -> Iterator[str]:
    """Texts that no cache on the way has seen.

    What is public is kept by caches for an hour unless its owner said otherwise.
    """
    return map("{}{:x}".format, itertools.repeat(secrets.token_hex(12)), itertools.count())
