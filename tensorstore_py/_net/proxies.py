"""Proxies, as the environment names them: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`.

Looked up once for an origin, not for a request. Names and passwords in a proxy's URL are taken out
of it and sent as the header that they are for.
"""

from __future__ import annotations

from base64 import b64encode
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tensorstore_py._spec.url_path import check_authority
from tensorstore_py.errors import UnsupportedError

__all__ = ["Proxy", "origin_of", "proxy_for"]


class Proxy(NamedTuple):
    """Where requests go instead.

    Attributes:
        url: of the proxy, without credentials.
        headers: what it wants to be told.
    """

    url: str
    headers: dict[str, str]


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
    headers = {}
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(secret.encode()).decode()}"
    return Proxy(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", headers)
