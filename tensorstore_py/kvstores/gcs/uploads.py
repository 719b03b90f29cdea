"""How values are sent: small ones in one request, large ones in a session that survives cuts.

Both carry the checksum of the value, so that the service refuses what was damaged on its way, and
conditional writes carry a mark in the object's metadata: who is told that the condition does not
hold, after an answer was lost, can look whose value it is.

After a cut, the service is asked how much it has of a session, and the rest is sent. A session ends
once, so that an answer that was lost can be asked for again, too.
"""

from __future__ import annotations

import json
import re
import secrets
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.plugin.http import HttpClient, HttpRequest, HttpResponse
from tensorstore_py.plugin.kvstore import crc32c

if TYPE_CHECKING:
    from tensorstore_py.plugin.kvstore import Buffer


__all__ = [
    "MARK",
    "Settle",
    "checksum_of",
    "in_one_piece",
    "is_older",
    "mark_in",
    "new_mark",
    "replaces",
    "resource",
    "send_in_session",
    "stored_until",
]

#: The metadata entry of conditional writes.
MARK: Final = "tensorstore_py-write"

#: Between the parts of a body: as likely to be in a value as to guess a key.
_BOUNDARY: Final = secrets.token_hex(16)
_HEADERS: Final = {"Content-Type": f"multipart/related; boundary={_BOUNDARY}"}
_FIRST: Final = f"--{_BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode()
_SECOND: Final = f"\r\n--{_BOUNDARY}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
_END: Final = f"\r\n--{_BOUNDARY}--\r\n".encode()
_RANGE: Final = re.compile(r"\s*bytes=0-([0-9]{1,18})\s*\Z")


def new_mark(number: int) -> str:
    """Something that no other write has, and what it replaces."""
    return f"{number}-{secrets.token_hex(12)}"


def mark_in(said: Mapping[str, object]) -> str:
    """The mark of the write that made an object; `""` if it was no conditional one of ours."""
    metadata = said.get("metadata")
    found = metadata.get(MARK) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def replaces(mark: str, number: int) -> bool:
    """Whether a mark is of the write that replaced that generation; there can only be one.

    Example:
        >>> replaces(new_mark(17), 17), replaces(new_mark(17), 18), replaces("", 17)
        (True, False, False)
    """
    return mark.partition("-")[0] == str(number)


def checksum_of(value: Buffer) -> str:
    """The checksum of a value as the service writes it.

    Example:
        >>> checksum_of(b"123456789")
        '4waSgw=='
    """
    return b64encode(crc32c(value).to_bytes(4, "big")).decode()


def resource(name: str, checksum: str, mark: str | None = None) -> bytes:
    """What is said of a new object.

    Example:
        >>> resource("a", "4waSgw==")
        b'{"name": "a", "crc32c": "4waSgw=="}'
    """
    said: dict[str, object] = {"name": name, "crc32c": checksum}
    if mark is not None:
        said["metadata"] = {MARK: mark}
    return json.dumps(said).encode()


def is_older(said: Mapping[str, object], moment: float) -> bool:
    """Whether an object was certainly made before a moment, both by the service's clock.

    Args:
        said: what the service says of the object.
        moment: seconds since the epoch; off by two seconds at most.

    Example:
        >>> is_older({"timeCreated": "1970-01-01T00:01:40.5Z"}, 103.0)
        True
    """
    try:
        made = datetime.fromisoformat(str(said.get("timeCreated")))
    except ValueError:
        return False
    return made.tzinfo is not None and made.timestamp() < moment - 2


def in_one_piece(said: bytes, value: Buffer) -> tuple[Mapping[str, str], tuple[Buffer, ...]]:
    """Headers and body of a request that says what an object is, and is its value."""
    return _HEADERS, (_FIRST + said + _SECOND, value, _END)


def stored_until(text: str | None) -> int:
    """How much of a session's value the service has, by the `Range` of its answer.

    Example:
        >>> stored_until("bytes=0-99"), stored_until(None)
        (100, 0)
    """
    found = _RANGE.match(text or "")
    return int(found[1]) + 1 if found else 0


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
    resolve_ambiguous: Settle | None,
    parse: Callable[[HttpResponse], object],
) -> HttpResponse:
    """Upload a value, and get the answer that ends its session.

    Args:
        client: sends the requests.
        begin: opens a session.
        address: of the service; the session is there, whatever it calls itself.
        value: contiguous bytes.
        resolve_ambiguous: see `HttpClient.send`; None where the write is not conditional.
        parse: makes what the caller needs of the answer that ends the session.

    Returns:
        A success with what the service says of the object, or status 412.

    Raises:
        UnavailableError: the service keeps nothing of what it is sent.
    """
    view = memoryview(value).cast("B")
    size = len(view)
    ended = _ENDED if resolve_ambiguous is None else _ENDED | {412}
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
            resolve_ambiguous=resolve_ambiguous,
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
