"""Answers that carry bytes: entity tags, conditions, byte ranges, and sending piece by piece.

Pure but for sending. A tag is strong: equal tags are of equal bytes. The invariant: an answer says
its length before its first byte, and a client that takes nothing for a while is dropped, so that
nobody holds memory for ever.
"""

from __future__ import annotations

import asyncio
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._runtime.fan_out import offload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tensorstore_py._interface.kvstore import Buffer

__all__ = [
    "JSON",
    "OCTETS",
    "Head",
    "Piece",
    "clamped",
    "is_current",
    "requested",
    "respond",
    "tag",
    "tagged",
]

JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"

#: So much is handed to a connection at a time.
_PIECE: Final = 2**18
#: For so long a client may take nothing.
_IDLE_S: Final = 60.0

_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))\Z")


class Piece(NamedTuple):
    """The part of a value that is sent.

    Attributes:
        start: where it begins in the value.
        stop: where it ends.
        size: of the value.
        is_part: whether a part was asked for.
    """

    start: int
    stop: int
    size: int
    is_part: bool


class Head(NamedTuple):
    """What is said of a value besides its bytes.

    Attributes:
        etag: its tag; empty: there is none.
        content_type: always one that browsers run nothing of.
    """

    etag: str
    content_type: str = OCTETS


def tag(data: Buffer) -> str:
    """The entity tag of some bytes, or of what stands for them, such as a generation.

    Example:
        >>> tag(b"a") == tag(b"a"), tag(b"a") == tag(b"b"), tag(b"a")[0]
        (True, False, '"')
    """
    return f'"{blake2b(data, digest_size=16).hexdigest()}"'


def requested(header: str | None) -> ByteRange:
    """The byte range of a header `Range`; the whole value if there is none that is understood.

    Several ranges are answered with the whole value, as a server may.

    Example:
        >>> requested("bytes=2-5"), requested("bytes=-4"), requested("bytes=1-2,5-6").is_whole
        (ByteRange(start=2, stop=6), ByteRange(start=-4, stop=None), True)
    """
    found = _RANGE.match(header.strip()) if header else None
    if found is None:
        return WHOLE
    first, last, suffix = found.groups()
    if suffix is not None:
        # a suffix of no bytes cannot be had, and so lies beyond any value
        return ByteRange(-int(suffix)) if int(suffix) else ByteRange(10**18)
    start = int(first)
    if last is None:
        return ByteRange(start)
    return ByteRange(start, int(last) + 1) if int(last) >= start else WHOLE


def clamped(asked: ByteRange, size: int) -> Piece | None:
    """The part of a value of that size that a range means; None: no byte of it.

    Example:
        >>> clamped(ByteRange(2, 100), 10), clamped(ByteRange(10, 12), 10)
        (Piece(start=2, stop=10, size=10, is_part=True), None)
        >>> clamped(ByteRange(-20), 10)
        Piece(start=0, stop=10, size=10, is_part=True)
    """
    if asked.is_whole:
        return Piece(0, size, size, is_part=False)
    start = max(0, size + asked.start) if asked.start < 0 else asked.start
    stop = size if asked.stop is None else min(asked.stop, size)
    return Piece(start, stop, size, is_part=True) if start < size else None


def is_current(request: web.Request, etag: str) -> bool:
    """Whether the client has what the tag is of already."""
    said = request.headers.get("If-None-Match") if etag else None
    return said is not None and (said.strip() == "*" or etag in _tags(said))


def asked_range(request: web.Request, etag: str) -> ByteRange:
    """The range that is asked for; all of it if the client's other parts are of something else."""
    condition = request.headers.get("If-Range")
    if condition is not None and (not etag or condition.strip() != etag):
        return WHOLE
    return requested(request.headers.get("Range"))


def _tags(header: str) -> list[str]:
    return [each.strip().removeprefix("W/") for each in header.split(",")]


async def tagged(make: Callable[[], Buffer | None]) -> tuple[Buffer, Head] | None:
    """What a computation makes and its tag, both off the loop; None: it makes nothing."""

    def work() -> tuple[Buffer, Head] | None:
        data = make()
        return None if data is None else (data, Head(tag(data)))

    return await offload(False, work)


async def respond(request: web.Request, value: Buffer, head: Head) -> web.StreamResponse:
    """Answer with a value that is at hand, or with the part of it that is asked for."""
    if is_current(request, head.etag):
        return not_modified(head)
    view = memoryview(value).cast("B")
    piece = clamped(asked_range(request, head.etag), view.nbytes)
    if piece is None:
        return unsatisfiable(view.nbytes)

    if piece.stop - piece.start <= _PIECE:
        body = bytes(view[piece.start : piece.stop])
        response = web.Response(status=206 if piece.is_part else 200, body=body)
        _say(response, head, piece)
        return response

    async def pieces() -> AsyncIterator[Buffer]:
        for start in range(piece.start, piece.stop, _PIECE):
            yield view[start : min(start + _PIECE, piece.stop)]

    return await send(request, head, piece, pieces())


def not_modified(head: Head) -> web.Response:
    """The answer to a client that has it already."""
    return web.Response(status=304, headers={"ETag": head.etag, "Cache-Control": "no-cache"})


def unsatisfiable(size: int) -> web.Response:
    """The answer where no byte of the range is there."""
    return web.Response(status=416, headers={"Content-Range": f"bytes */{size}"})


async def send(
    request: web.Request, head: Head, piece: Piece, pieces: AsyncIterator[Buffer]
) -> web.StreamResponse:
    """Send a part of a value, which comes in pieces; nothing is asked for if the method is HEAD."""
    response = web.StreamResponse(status=206 if piece.is_part else 200)
    _say(response, head, piece)
    response.content_length = piece.stop - piece.start
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    try:
        async for each in pieces:
            async with asyncio.timeout(_IDLE_S):
                await response.write(each)
        async with asyncio.timeout(_IDLE_S):
            await response.write_eof()
    except BaseException:
        # The length is said: a client must not take a part for the whole, nor wait for the rest.
        if request.transport is not None:
            request.transport.abort()
        raise
    return response


def _say(response: web.StreamResponse, head: Head, piece: Piece) -> None:
    headers = response.headers
    if head.etag:
        headers["ETag"] = head.etag
    headers["Accept-Ranges"] = "bytes"
    headers["Cache-Control"] = "no-cache"
    headers["Content-Type"] = head.content_type
    if piece.is_part:
        headers["Content-Range"] = f"bytes {piece.start}-{piece.stop - 1}/{piece.size}"
