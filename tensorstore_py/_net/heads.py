"""The heads of messages: text before the body, made for a request, taken apart of an answer.

Pure. Only what is beyond doubt is taken apart here: every other answer, right or wrong, is left to
the HTTP library. The invariant: no header's value can begin another line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from tensorstore_py._net.failures import Failure, damaged
from tensorstore_py.errors import SpecError

__all__ = ["AnswerHead", "HeadFields", "parse_head", "request_head"]

_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([1-9][0-9]{2})(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*)\r\n"
)
#: What two headers of one name say together is the library's to tell.
_ONCE: Final = ("content-length:", "connection:")
#: Requests that never have a body.
_BODILESS: Final = frozenset({"GET", "HEAD"})


class HeadFields(Mapping[str, str]):
    r"""The headers of an answer: names in any case; of two with one name the first counts.

    Example:
        >>> HeadFields("ETag: 5\r\nAge: 0\r\n")["etag"]
        '5'
    """

    __slots__ = ("_fields",)

    def __init__(self, lines: str) -> None:
        self._fields = fields = dict[str, str]()
        for line in lines.split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                name = name.lower()
                if name not in fields:
                    fields[name] = value.strip(" \t")

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        return self._fields.get(name.lower(), default)


class AnswerHead(NamedTuple):
    """What stands before the body of an answer.

    Attributes:
        status: the status code.
        reason: the words beside it; may be empty.
        fields: the headers.
        length: what `Content-Length` says; None if there is none.
    """

    status: int
    reason: str
    fields: HeadFields
    length: int | None


def parse_head(head: bytes) -> AnswerHead | None:
    r"""Take a head apart; None for all that is not plain HTTP/1.1 with a body of a known length.

    Args:
        head: up to and with the empty line.

    Raises:
        Failure: the length is no number.

    Example:
        >>> parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").length
        5
        >>> parse_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") is None
        True
    """
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    status, reason, lines = found.groups(b"")
    text = lines.decode("utf-8", "surrogateescape")
    fields = HeadFields(text)
    if "transfer-encoding" in fields or fields.get("connection", "keep-alive") != "keep-alive":
        return None
    length = fields.get("content-length")
    if len(fields) != text.count("\r\n") and any(text.lower().count(name) > 1 for name in _ONCE):
        return None
    if length is not None and not (length.isascii() and length.isdecimal() and len(length) < 20):
        # The library waits for the end of what has none.
        raise damaged(f"the server says that the answer has {length[:40]!r} bytes")
    words = reason.decode("utf-8", "surrogateescape")
    return AnswerHead(int(status), words, fields, None if length is None else int(length))


def request_head(
    method: str, target: str, host: str, headers: Mapping[str, str], size: int | None
) -> bytes:
    r"""The head of a request.

    Args:
        method: such as `"GET"`.
        target: path and query, encoded.
        host: of the URL, for `Host` unless the headers have another one.
        headers: by name.
        size: of the body; None if there is none.

    Raises:
        Failure: a header has a line break in it.

    Example:
        >>> request_head("GET", "/a", "there", {"Accept": "text/xml"}, None)
        b'GET /a HTTP/1.1\r\nHost: there\r\nAccept: text/xml\r\n\r\n'
    """
    is_told_host, extra = _extra(tuple(headers), size is not None)
    lines = [f"{method} {target} HTTP/1.1"]
    if not is_told_host:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += extra
    if size is not None:
        lines.append(f"Content-Length: {size}")
    elif method not in _BODILESS:
        lines.append("Content-Length: 0")
    lines.append("\r\n")
    text = "\r\n".join(lines)
    breaks = len(lines)
    if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
        raise Failure("a header has a line break in its value", SpecError)
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=256)
def _extra(names: tuple[str, ...], has_body: bool) -> tuple[bool, list[str]]:
    """Whether headers of these names have the host among them, and what else goes along."""
    given = {name.lower() for name in names}
    extra = [] if "accept" in given else ["Accept: */*"]
    if has_body and "content-type" not in given:
        extra.append("Content-Type: application/octet-stream")
    return "host" in given, extra
