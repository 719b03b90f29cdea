"""Who may ask a server: the token, the host that is asked for, and the origin of a web page.

- The token is the first part of every path: clients of Zarr send no headers. It is compared in
  constant time, and a path without it is as unknown as any other.
- On a loopback address the request must name a loopback host. A name that a page's owner has
  pointed at this machine (DNS rebinding) is refused.
- What changes something, and web sockets, are for pages of this server alone.

The invariant: a response that a page of another origin may read was asked for with the token, or
its origin was named by the user.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Guard", "is_loopback"]

#: What pages of other origins may ask with, and see of an answer.
_METHODS: Final = "GET, HEAD"
_REQUEST_HEADERS: Final = "Range, If-None-Match, If-Match, If-Range"
_RESPONSE_HEADERS: Final = "Accept-Ranges, Content-Range, Content-Length, ETag"
_READS: Final = frozenset(("GET", "HEAD", "OPTIONS"))


class Guard:
    """What a server lets in.

    Args:
        token: the first part of every path; empty: none is asked for.
        loopback: whether the server has a loopback address, and only that.
        cors: origins whose pages may read, `"*"` for all; None: all if there is a token, else none.

    Raises:
        SpecError: an origin is none.

    Example:
        >>> guard = Guard("secret", loopback=True)
        >>> guard.refusal("GET", "/secret/zarr.json", {"Host": "127.0.0.1:80"})
        >>> guard.refusal("GET", "/zarr.json", {"Host": "127.0.0.1:80"})
        (404, 'there is nothing here')
        >>> guard.refusal("GET", "/secret/zarr.json", {"Host": "evil.example"})
        (421, 'this server does not answer for that host')
    """

    def __init__(
        self, token: str, *, loopback: bool, cors: str | Sequence[str] | None = None
    ) -> None:
        self.token = token
        self._token = token.encode()
        self._loopback = loopback
        if cors is None:
            cors = "*" if token else ()
        self._origins = tuple(_origin(each) for each in ([cors] if isinstance(cors, str) else cors))

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the reason why a request is refused; None: it is let in.

        Args:
            method: of HTTP.
            path: as it was sent, with the token.
            headers: of the request.
        """
        if self._loopback and not is_loopback(_host(headers.get("Host", ""))):
            return 421, "this server does not answer for that host"
        first = path.removeprefix("/").partition("/")[0]
        if self.token and not hmac.compare_digest(first.encode(), self._token):
            return 404, "there is nothing here"
        origin = headers.get("Origin")
        if origin is None or (method in _READS and "Upgrade" not in headers):
            return None
        if urlsplit(origin).netloc != headers.get("Host", ""):
            return 403, "pages of other origins may only read"
        return None

    def response_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """What an answer to a request that was let in says to the browser, by its headers."""
        origin = headers.get("Origin")
        if "*" in self._origins:
            allowed = "*"
        elif origin in self._origins:
            allowed = str(origin)
        else:
            return {"Vary": "Origin"} if self._origins else {}
        found = {
            "Access-Control-Allow-Origin": allowed,
            "Access-Control-Expose-Headers": _RESPONSE_HEADERS,
        }
        if allowed != "*":
            found["Vary"] = "Origin"
        if "Access-Control-Request-Method" in headers:
            found["Access-Control-Allow-Methods"] = _METHODS
            found["Access-Control-Allow-Headers"] = _REQUEST_HEADERS
            found["Access-Control-Max-Age"] = "86400"
            if "Access-Control-Request-Private-Network" in headers:
                found["Access-Control-Allow-Private-Network"] = "true"
        return found


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and can be nothing else.

    Example:
        >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("localhost.evil.example")
        (True, True, False)
    """
    name = host.lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    """The host of a header `Host`, without the port; empty if it is none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _origin(text: str) -> str:
    if text == "*":
        return text
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
        raise SpecError(
            f'"{text}" is not the origin of web pages; say one such as https://example.org, or *'
        )
    return f"{parts.scheme}://{parts.netloc}"
