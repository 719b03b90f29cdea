"""Parts of a value over HTTP: how to ask for them, and whether the response is what was asked for.

Servers may send the part, or the whole value instead, or less than the whole of either.
`BodyWindow` says how the body of a response is to be read; it is made from the headers alone,
before anything of the body is taken. The invariant: bytes are only handed on if the headers prove
where they are from.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._net.failures import Failure, damaged
from tensorstore_py._net.message import whole_number
from tensorstore_py.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._interface.byte_range import ByteRange

__all__ = ["BodyWindow", "body_window", "range_header", "resolve"]

_CONTENT_RANGE: Final = re.compile(r"\s*bytes\s+(?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19}|\*)\s*\Z")


class BodyWindow(NamedTuple):
    """How to read a body.

    Attributes:
        skip: how many bytes come before those that are wanted.
        take: how many are wanted; None if the body has to be read to know.
        length: how long the body is; None if the headers do not say.
        size: how large the whole value is; None if the headers do not say.
    """

    skip: int
    take: int | None
    length: int | None
    size: int | None


def range_header(byte_range: ByteRange) -> str | None:
    """What to send as `Range`; None for the whole value.

    HTTP cannot ask for no bytes. The byte before an empty range stands in for it: if it is there,
    the range is inside the value.

    Example:
        >>> from tensorstore_py._interface.byte_range import WHOLE, ByteRange
        >>> range_header(ByteRange(2, 5)), range_header(ByteRange(-4)), range_header(WHOLE)
        ('bytes=2-4', 'bytes=-4', None)
    """
    start, stop = byte_range.start, byte_range.stop
    if byte_range.is_whole:
        return None
    if start < 0:
        return f"bytes={start}"
    if stop is None:
        return f"bytes={start}-"
    if start == stop:
        at = max(0, start - 1)
        return f"bytes={at}-{at}"
    return f"bytes={start}-{stop - 1}"


def body_window(
    byte_range: ByteRange, status: int, headers: Mapping[str, str]
) -> BodyWindow | None:
    """How to read the body of a successful answer; None if the status is no success of a read.

    Raises:
        Failure: the value is shorter than what was asked for, or the headers contradict that.
    """
    if status == 206:
        return _window_of_part(byte_range, headers)
    if status == 416:
        return _window_of_nothing(byte_range, headers)
    if not 200 <= status < 300:
        return None
    length = whole_number(headers.get("Content-Length"))
    if byte_range.is_whole:
        return BodyWindow(0, length, length, length)
    if length is None:
        return BodyWindow(0, None, None, None)
    start, stop = resolve(byte_range, length)
    return BodyWindow(start, stop - start, length, length)


def _window_of_part(byte_range: ByteRange, headers: Mapping[str, str]) -> BodyWindow:
    text = headers.get("Content-Range")
    found = _CONTENT_RANGE.match(text or "")
    if byte_range.is_whole or found is None or found[1] is None:
        raise damaged(f"the server sent a part that was not asked for (Content-Range: {text})")
    first, past = int(found[1]), int(found[2]) + 1
    size = None if found[3] == "*" else int(found[3])
    if past <= first or (size is not None and size < past):
        raise damaged(f"the server sent a part that cannot be (Content-Range: {text})")
    length = whole_number(headers.get("Content-Length"))
    if length is not None and length != past - first:
        raise damaged(f"{length} bytes came as {past - first} (Content-Range: {text})")
    start, stop = _wanted(byte_range, first, past, size)
    sent_start, sent_stop = _sent(byte_range, start, stop)
    if (first, past) != (sent_start, sent_stop):
        raise damaged(
            f"the server sent another part than bytes {sent_start} to {sent_stop - 1} "
            f"(Content-Range: {text})"
        )
    return BodyWindow(start - first if start > first else 0, stop - start, past - first, size)


def _wanted(byte_range: ByteRange, first: int, past: int, size: int | None) -> tuple[int, int]:
    """The absolute bounds, as far as the answer lets them be known."""
    if size is not None:
        return resolve(byte_range, size)
    start, stop = byte_range.start, byte_range.stop
    if start < 0:
        # Without the size, the number of bytes is all that can be checked.
        if past - first < -start:
            raise _outside(byte_range, f"the server has only {past - first} bytes of it")
        return past + start, past
    if stop is None:
        return start, past
    if start < stop and past < stop:
        raise _outside(byte_range, f"the server has it only up to {past}")
    return start, stop


def _sent(byte_range: ByteRange, start: int, stop: int) -> tuple[int, int]:
    """What `range_header` asked for, with absolute bounds."""
    if start == stop and byte_range.stop is not None:
        at = max(0, start - 1)
        return at, at + 1
    return start, stop


def _window_of_nothing(byte_range: ByteRange, headers: Mapping[str, str]) -> BodyWindow | None:
    """Status 416: nothing of what was asked for is there, which is right for no bytes."""
    if byte_range.is_whole:
        return None
    found = _CONTENT_RANGE.match(headers.get("Content-Range") or "")
    size = None if found is None or found[3] == "*" else int(found[3])
    if size is not None:
        start, stop = resolve(byte_range, size)
        if start < stop:
            raise damaged(f"the server has {size} bytes, but not bytes {start} to {stop - 1}")
    elif byte_range.start != 0 or byte_range.stop != 0:
        raise _outside(byte_range, "the server has nothing there")
    return BodyWindow(0, 0, None, size)


def resolve(byte_range: ByteRange, size: int) -> tuple[int, int]:
    """The absolute bounds within a value of `size` bytes.

    Raises:
        Failure: the range reaches outside the value.
    """
    try:
        return byte_range.resolve(size)
    except OutOfRangeError as error:
        raise Failure(str(error), OutOfRangeError) from None


def _outside(byte_range: ByteRange, why: str) -> Failure:
    stop = "end" if byte_range.stop is None else byte_range.stop
    return Failure(f"byte range [{byte_range.start}, {stop}) is outside: {why}", OutOfRangeError)
