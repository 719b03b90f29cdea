"""One request and its answer, as plain values.

Nothing here sends anything. URLs are percent-encoded as they go over the wire, and whoever makes a
request says what it is for, so that an error can. The invariant: the body of a response is what was
asked for, whole, or there is no response.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensorstore_py._spec.url_path import show_url

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["HttpRequest", "HttpResponse", "show_url"]


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
