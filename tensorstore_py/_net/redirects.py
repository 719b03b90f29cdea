"""Where a redirect leads, and what may go along.

Only from HTTP to HTTP or HTTPS, never back from HTTPS. Another host gets nothing of what the user
gave for the first one: of the headers only those go along that say what is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.message import show_url
from tensorstore_py._net.proxies import origin_of
from tensorstore_py._spec.url_path import check_authority
from tensorstore_py.errors import FailedPreconditionError, PermissionDeniedError

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse

__all__ = ["MOST_HOPS", "REDIRECTS", "follow"]

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
        f"the server leads to what is no URL: {problem}; who runs it has to mend that",
        FailedPreconditionError,
    )
