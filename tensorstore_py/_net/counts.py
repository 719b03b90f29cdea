"""What goes over HTTP: each attempt counted, timed and logged, whatever it is for.

The log names a place without its query, and no header, since both may hold secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tensorstore_py._runtime.metrics import Family, Gauge, counter, histogram, register
from tensorstore_py._runtime.verbose_logging import verbose_flag

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse
    from tensorstore_py._runtime.metrics import Counter

__all__ = ["Attempt", "attempting", "retries_of"]

_HTTP = "/tensorstore/http/"
_STARTED: Final = counter(f"{_HTTP}request_started", "HTTP requests begun")
_COMPLETED: Final = counter(f"{_HTTP}request_completed", "HTTP requests that ended, or failed")
_ACTIVE: Final = register(Gauge(f"{_HTTP}active", "HTTP requests under way"))
_SENT: Final = histogram(f"{_HTTP}request_bytes", "bytes of the bodies of requests", "bytes")
_RECEIVED: Final = histogram(f"{_HTTP}response_bytes", "bytes received of values", "bytes")
_TIME_MS: Final = histogram(f"{_HTTP}total_time_ms", "how long requests took", "milliseconds")
_CODES: Final = register(Family(f"{_HTTP}response_codes", "responses by status", "code"))
_verbose: Final = verbose_flag("http_transport")
_retries: dict[str, Counter] = {}


def retries_of(service: str) -> Counter:
    """How often requests of a kind of store were tried again."""
    found = _retries.get(service)
    if found is None:
        name = f"/tensorstore/kvstore/{service}/retries"
        found = _retries[service] = counter(name, f"{service}: requests that were tried again")
    return found


class Attempt:
    """One request on its way; `response` is set when there is one."""

    __slots__ = ("response",)

    def __init__(self) -> None:
        self.response: HttpResponse | None = None


@contextmanager
def attempting(request: HttpRequest) -> Iterator[Attempt]:
    """Around one attempt at a request."""
    began = perf_counter()
    attempt = Attempt()
    _STARTED.note(1)
    _ACTIVE.note(1)
    failed = ""
    try:
        yield attempt
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        elapsed_ms = 1000 * (perf_counter() - began)
        response = attempt.response
        _ACTIVE.note(-1)
        _COMPLETED.note(1)
        _TIME_MS.note(elapsed_ms)
        _SENT.note(_body_bytes(request))
        if response is not None:
            _CODES.note(str(response.status))
            _RECEIVED.note(len(response.body))
        if _verbose.level >= 0:
            said = failed if response is None else f"{response.status}, {len(response.body)} bytes"
            _verbose.log("%r: %s in %.3f ms", request, said, elapsed_ms)


def _body_bytes(request: HttpRequest) -> int:
    body = request.body
    if body is None:
        return 0
    parts = body if isinstance(body, tuple) else (body,)
    return sum([memoryview(part).nbytes for part in parts])
