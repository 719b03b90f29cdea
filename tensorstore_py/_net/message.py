"""One request and its response, as plain values: what their heads, dates and lengths say.

Nothing here sends anything. URLs are percent-encoded as they go over the wire, and the store that
makes a request says what it is for, so that an error can. The invariants: the body of a response is
what was asked for, whole, or there is no response; and no header's value can begin another line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from tensorstore_py._spec.url import show_url

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import Buffer

__all__ = [
    "HeaderFields",
    "HttpRequest",
    "HttpResponse",
    "http_date",
    "retry_after_s",
    "show_url",
    "whole_number",
]

#: Of 64 bits; more digits than Python converts are an attack.
_LONGEST_NUMBER: Final = 20
#: In s; who says so has not understood the question.
_LONGEST_WAIT: Final = 10**11


class HttpRequest:
    """What to send.

    Args:
        method: `"GET"`, `"PUT"`, ...
        url: absolute and percent-encoded.
        headers: by name, without the ones that the connection itself needs.
        body: contiguous bytes, or several that are sent one after the other; must not change before
            the answer is there.
        action: what the request is for, as a verb: `"read"`.
        key: which key it is about; `""` for none.

    Example:
        >>> HttpRequest("GET", "https://example.org/a?token=5", {"Accept": "*/*"}, key="a")
        GET https://example.org/a?token=...
    """

    __slots__ = ("action", "body", "headers", "key", "method", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Buffer | tuple[Buffer, ...] | None = None,
        *,
        action: str = "read",
        key: str = "",
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.action = action
        self.key = key

    def changed(self, url: str, headers: Mapping[str, str]) -> HttpRequest:
        """The same request to another place, or with other headers."""
        return HttpRequest(self.method, url, headers, self.body, action=self.action, key=self.key)

    def __repr__(self) -> str:
        return f"{self.method} {show_url(self.url)}"


class HttpResponse:
    """What came back.

    Attributes:
        status: the status code.
        reason: the words beside it; may be empty.
        headers: by name, in any case.
        body: the bytes asked for; of an answer that is no success, its beginning.
        size: how large the whole value is, if the server said so.
        time: seconds since the epoch when it was asked for; what it says was true then or later.
        attempts: how many requests it took.
        ambiguous: an earlier attempt failed, and may have been carried out all the same.
        lost: the answer to an earlier attempt did not come, so that not even the server said
            anything about it.
        parsed: what `parse` of `HttpClient.send` made of it.
    """

    __slots__ = (
        "ambiguous",
        "attempts",
        "body",
        "headers",
        "lost",
        "parsed",
        "reason",
        "size",
        "status",
        "time",
    )

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        body: Buffer = b"",
        *,
        reason: str = "",
        size: int | None = None,
        time: float = 0.0,
    ) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
        self.size = size
        self.time = time
        self.attempts = 1
        self.ambiguous = False
        self.lost = False
        self.parsed: object = None

    def date(self, name: str = "Date") -> float | None:
        """What a header says of a moment, in seconds since the epoch; None if it says nothing."""
        return http_date(self.headers.get(name))


class HeaderFields(Mapping[str, str]):
    """The headers of a response: names in any case; of two with one name the first counts.

    Example:
        >>> HeaderFields({"etag": "5"})["ETag"]
        '5'
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

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

    def has_any(self, names: frozenset[str]) -> bool:
        """Whether one of these headers is there; the names are in lower case."""
        return not names.isdisjoint(self._fields)


def http_date(text: str | None) -> float | None:
    """Seconds since the epoch.

    Example:
        >>> http_date("Wed, 21 Oct 2015 07:28:00 GMT"), http_date("soon"), http_date(None)
        (1445412480.0, None, None)
    """
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def whole_number(text: object) -> int | None:
    """A number that a server wrote; None if it is none, or out of all proportion.

    Example:
        >>> whole_number("120"), whole_number("-1"), whole_number("9" * 5000), whole_number(None)
        (120, None, None, None)
    """
    if not isinstance(text, str) or len(text) > _LONGEST_NUMBER:
        return None
    return int(text) if text.isascii() and text.isdecimal() else None


def retry_after_s(text: str | None, now: float) -> float | None:
    """For how long a server asks to be left alone, in seconds.

    Args:
        text: a number of seconds, or a date.
        now: seconds since the epoch.

    Example:
        >>> retry_after_s("120", 0), retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT", 1445412470)
        (120.0, 10.0)
    """
    if text is None:
        return None
    seconds = whole_number(text.strip())
    if seconds is not None:
        return float(seconds) if seconds < _LONGEST_WAIT else None
    date = http_date(text)
    return None if date is None else max(0.0, date - now)
