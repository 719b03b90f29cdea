"""A web server's values in memory: the handler that the HTTP store's tests are served by.

It answers GET and HEAD as a good server of static files does: ranges, strong ETags, conditions,
dates. What a worse one leaves out can be switched off.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import unquote

from tensorstore_py.testing.fault_server import Reply, Request

__all__ = ["WebValues"]

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


@dataclass
class WebValues:
    """Values by path.

    Attributes:
        values: by the path without its first slash, decoded.
        ranges: whether ranges are served; else the whole value is sent.
        etags: whether there are ETags.
        changed: when every value was last changed, in seconds since the epoch; None to say nothing
            of it.
        conditions: whether conditions are heeded.
        headers: further headers of every value.

    Example:
        >>> web = WebValues({"a": b"0123"})
        >>> web.handle(Request("GET", "/a", {"range": "bytes=1-2"})).body
        b'12'
    """

    values: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    etags: bool = True
    changed: float | None = None
    conditions: bool = True
    headers: dict[str, str] = field(default_factory=dict)

    def handle(self, request: Request) -> Reply:
        """The reply to a request."""
        if request.method not in ("GET", "HEAD"):
            return Reply(405)
        path = unquote(request.target.partition("?")[0], errors="surrogateescape")
        value = self.values.get(path.removeprefix("/"))
        if value is None:
            return Reply(404, b"nothing here")
        headers = dict(self.headers)
        etag = f'"{hashlib.sha256(value).hexdigest()[:16]}"'
        if self.etags:
            headers["ETag"] = etag
        if self.changed is not None:
            headers["Last-Modified"] = formatdate(self.changed, usegmt=True)
            headers["Date"] = formatdate(time.time(), usegmt=True)
        if self.conditions and self.etags:
            if request.headers.get("if-match", etag) not in (etag, "*"):
                return Reply(412, headers=headers)
            if request.headers.get("if-none-match", "") in (etag, "*"):
                return Reply(304, headers=headers)
        found = _RANGE.match(request.headers.get("range", ""))
        if found is None or not self.ranges:
            return Reply(200, value, headers)
        return _part(value, found[1], found[2], headers)


def _part(value: bytes, first: str, last: str, headers: dict[str, str]) -> Reply:
    size = len(value)
    if first:
        start, stop = int(first), min(size, int(last) + 1 if last else size)
    else:
        start, stop = max(0, size - int(last)), size
    if start >= stop:
        # As nginx does, which says nothing of the version here.
        return Reply(416, headers={"Content-Range": f"bytes */{size}"})
    shown = f"bytes {start}-{stop - 1}/{size}"
    return Reply(206, value[start:stop], {**headers, "Content-Range": shown})
