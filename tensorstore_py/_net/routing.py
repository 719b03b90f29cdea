"""Where a request goes: to its origin, through a proxy, or to where a redirect leads.

Proxies are named by the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`. They are
looked up once for an origin, not for a request. Redirects lead only from HTTP to HTTP or HTTPS, and
never back from HTTPS; another host gets nothing of what the user gave for the first one: of the
headers only those go along that say what is wanted.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_to_bytes, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.message import show_url
from tensorstore_py._spec.url import check_authority
from tensorstore_py.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse

__all__ = [
    "MOST_HOPS",
    "REDIRECTS",
    "Proxy",
    "basic_credentials",
    "follow",
    "origin_of",
    "proxy_for",
]

MOST_HOPS: Final = 8
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

#: What says what is wanted, in lower case.
_HARMLESS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "cache-control",
        "if-match",
        "if-none-match",
        "range",
        "user-agent",
    }
)


class Proxy(NamedTuple):
    """Where requests go instead.

    Attributes:
        url: of the proxy, without credentials.
        authorization: what it wants to be told as `Proxy-Authorization`; None for nothing.
    """

    url: str
    authorization: str | None = None


def origin_of(url: str) -> str:
    """Scheme, host and port.

    Example:
        >>> origin_of("https://me@example.org:8443/a?b")
        'https://example.org:8443'
    """
    scheme, _, rest = url.partition("://")
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return f"{scheme.lower()}://{rest.rpartition('@')[2].lower()}"


def basic_credentials(userinfo: str) -> str:
    """What stands before the host in a URL, as the header that it is for.

    Example:
        >>> basic_credentials("me:p%40ss")
        'Basic bWU6cEBzcw=='
    """
    user, _, password = userinfo.partition(":")
    secret = b"%b:%b" % (unquote_to_bytes(user), unquote_to_bytes(password))
    return f"Basic {b64encode(secret).decode()}"


def proxy_for(origin: str) -> Proxy | None:
    """The proxy for requests to an origin; None for direct connections.

    Raises:
        UnsupportedError: it is none that speaks HTTP.
    """
    scheme, _, host = origin.partition("://")
    proxies = getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or proxy_bypass(host):
        return None
    url = url if "://" in url else f"http://{url}"
    try:
        check_authority(url)
    except ValueError as error:
        raise UnsupportedError(
            f"{scheme}_proxy is no URL: {error}; correct it, or add {host} to no_proxy"
        ) from None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise UnsupportedError(
            f'proxies of the kind "{parts.scheme}" are not supported; set {scheme}_proxy to the '
            f"URL of an HTTP proxy, or add {host} to no_proxy"
        )
    userinfo, mark, place = parts.netloc.rpartition("@")
    return Proxy(f"{parts.scheme}://{place}", basic_credentials(userinfo) if mark else None)


def follow(request: HttpRequest, response: HttpResponse) -> HttpRequest | None:
    """The request to send next; None if what was asked for is a mere directory.

    Servers of static files say that by leading to the same URL with a slash behind it.

    Raises:
        Failure: there is no safe one.
    """
    location = response.headers.get("Location")
    if not location:
        raise Failure(
            f"the server answered {response.status} without saying where to",
            FailedPreconditionError,
        )
    try:
        url = urljoin(request.url, location.strip())
    except ValueError:
        raise _no_url("its host is no name and no address") from None
    scheme = url.partition(":")[0].lower()
    if scheme not in ("http", "https") or (scheme == "http" and request.url.startswith("https:")):
        raise Failure(
            f"the server leads from a secure place to {show_url(url)}; if that is right, use "
            f"that URL",
            PermissionDeniedError,
        )
    url = url.partition("#")[0]
    try:
        check_authority(url)
    except ValueError as error:
        raise _no_url(str(error)) from None
    parts = urlsplit(url)
    if not parts.path:
        url = parts._replace(path="/").geturl()  # or the host would not be seen to end
    here, there = request.url.partition("?")[0], url.partition("?")[0]
    if there == f"{here}/":
        return None
    headers = request.headers
    if origin_of(url) != origin_of(request.url):
        headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
    return request.changed(url, headers)


def _no_url(problem: str) -> Failure:
    return Failure(
        f"the server leads to what is no URL: {problem}; its operator has to mend that",
        FailedPreconditionError,
    )
