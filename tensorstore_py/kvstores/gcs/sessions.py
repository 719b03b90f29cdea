"""Resumable uploads: a large value in a session that survives cuts.

After a cut, the service is asked how much it has, and the rest is sent; what was sent already is
not sent again. A session ends once, so that an answer that was lost can be asked for again, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.gcs.uploads import stored_until
from tensorstore_py.plugin import HttpClient, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from tensorstore_py.plugin import Buffer

__all__ = ["Settle", "send_in_session"]

Settle = Callable[[], Awaitable[HttpResponse | None]]

_ENDED: Final = frozenset({200, 201})
_GONE: Final = frozenset({404, 410})
_MORE: Final = 308
#: How often in a row may nothing of what was sent be kept, and a session be forgotten.
_MOST_IDLE: Final = 8


async def send_in_session(
    client: HttpClient,
    begin: HttpRequest,
    address: str,
    value: Buffer,
    settle: Settle | None,
    parse: Callable[[HttpResponse], object],
) -> HttpResponse:
    """Upload a value, and get the answer that ends its session.

    Args:
        client: sends the requests.
        begin: opens a session.
        address: of the service; the session is there, whatever it calls itself.
        value: contiguous bytes.
        settle: see `HttpClient.send`; None where the write is not conditional.
        parse: makes what the caller needs of the answer that ends the session.

    Returns:
        A success with what the service says of the object, or status 412.

    Raises:
        UnavailableError: the service keeps nothing of what it is sent.
    """
    view = memoryview(value).cast("B")
    size = len(view)
    ended = _ENDED if settle is None else _ENDED | {412}
    sent = idle = forgotten = 0
    url = ""
    while idle <= _MOST_IDLE and forgotten <= _MOST_IDLE:
        if not url:
            response = await client.send(begin, ended)
            if response.status not in (200, 201):
                return response
            url, sent = _place(response, address), 0
        response = await client.send(
            _rest(begin, url, view, sent),
            ended | _GONE | {_MORE},
            settle=settle,
            instead=_question(begin, url, size),
            parse=parse,
        )
        if response.status in ended:
            return response
        kept = 0 if response.status in _GONE else stored_until(response.headers.get("Range"))
        idle = idle + 1 if kept <= sent else 0
        sent = kept
        if response.status in _GONE:
            url = ""
            forgotten += 1
    raise UnavailableError(
        f'cannot write "{begin.key}": the service kept nothing of what it was sent '
        f"{max(idle, forgotten)} times; try later",
        max(idle, forgotten),
    )


def _rest(begin: HttpRequest, url: str, view: memoryview, sent: int) -> HttpRequest:
    size = len(view)
    # Everything may have arrived already, but for the news of it.
    what = f"bytes {sent}-{size - 1}/{size}" if sent < size else f"bytes */{size}"
    headers = {**begin.headers, "Content-Range": what}
    return HttpRequest("PUT", url, headers, view[sent:], action=begin.action, key=begin.key)


def _question(begin: HttpRequest, url: str, size: int) -> HttpRequest:
    headers = {**begin.headers, "Content-Range": f"bytes */{size}"}
    return HttpRequest("PUT", url, headers, b"", action=begin.action, key=begin.key)


def _place(response: HttpResponse, address: str) -> str:
    """Where the session is: what the answer says, at the address that we were given.

    Servers behind a tunnel do not know what they are called outside, and credentials must not
    follow an answer to another host.
    """
    try:
        location = urlsplit(response.headers.get("Location", ""))
    except ValueError:
        location = urlsplit("")
    if not location.query:
        raise FailedPreconditionError(
            "the service opened an upload session without saying where; it speaks another "
            "protocol than the JSON API of Google Cloud Storage"
        )
    base = urlsplit(address)
    return f"{base.scheme}://{base.netloc}{location.path}?{location.query}"
