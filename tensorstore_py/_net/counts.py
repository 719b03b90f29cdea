"""What goes over HTTP: each attempt counted, timed and logged, whatever it is for.

The log names a place without its query, and no header, since both may hold secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from tensorstore_py._runtime.metrics import (
    Collected,
    Counter,
    Family,
    Gauge,
    Histogram,
    Metric,
    counter,
    note,
    register,
)
from tensorstore_py._runtime.verbose_logging import verbose_flag

if TYPE_CHECKING:
    from types import TracebackType

    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._net.message import HttpRequest, HttpResponse

__all__ = ["Attempt", "body_bytes", "retries_of"]

_HTTP = "/tensorstore/http/"


#: How an attempt went: when it ended, milliseconds, bytes sent, status, bytes received; status 0:
#: no response.
_Ended: TypeAlias = tuple[float, float, int, int, int]


class _Attempts(Metric):
    """What is counted of attempts; a note is when one began, or how it went.

    All of it in two notes: a note for each number takes as long as to parse the response. An
    attempt may begin on one thread and end on another, whose notes come in any order: so both say
    when.
    """

    def __init__(self) -> None:
        self._started = Counter(f"{_HTTP}request_started", "HTTP requests begun")
        self._completed = Counter(
            f"{_HTTP}request_completed", "HTTP requests that ended, or failed"
        )
        self._active = Gauge(f"{_HTTP}active", "HTTP requests under way")
        self._sent = Histogram(f"{_HTTP}request_bytes", "bytes of the bodies of requests", "bytes")
        self._received = Histogram(f"{_HTTP}response_bytes", "bytes received of values", "bytes")
        self._time_ms = Histogram(f"{_HTTP}total_time_ms", "how long requests took", "milliseconds")
        self._codes = Family(f"{_HTTP}response_codes", "responses by status", "code")
        self._parts: tuple[Metric, ...] = (
            self._started, self._completed, self._active, self._sent, self._received,
            self._time_ms, self._codes,
        )  # fmt: skip

    def add(self, notes: Sequence[_Ended | float]) -> None:
        ends = [ended for ended in notes if isinstance(ended, tuple)]
        begins = [began for began in notes if not isinstance(began, tuple)]
        moments = [*((began, False) for began in begins), *((each[0], True) for each in ends)]
        self._active.add([-1 if ended else 1 for _, ended in sorted(moments)])
        self._started.add([len(begins)])
        if not ends:
            return
        self._completed.add([len(ends)])
        self._time_ms.add([elapsed_ms for _, elapsed_ms, _, _, _ in ends])
        self._sent.add([sent for _, _, sent, _, _ in ends])
        answered = [(status, received) for _, _, _, status, received in ends if status]
        if answered:
            self._received.add([received for _, received in answered])
            self._codes.add([str(status) for status, _ in answered])

    def clear(self) -> None:
        for part in self._parts:
            part.clear()

    def collect(self) -> Iterator[Collected]:
        for part in self._parts:
            yield from part.collect()


_ATTEMPTS: Final = register(_Attempts())
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
    """What to put around one attempt at a request.

    Attributes:
        response: to be set when there is one.
    """

    __slots__ = ("_began", "_request", "response")

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.response: HttpResponse | None = None

    def __enter__(self) -> Self:
        self._began = perf_counter()
        note((_ATTEMPTS, self._began))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ended = perf_counter()
        elapsed_ms = 1000 * (ended - self._began)
        request, response = self._request, self.response
        status, received = (0, 0) if response is None else (response.status, len(response.body))
        sent = 0 if request.body is None else body_bytes(request.body)
        note((_ATTEMPTS, (ended, elapsed_ms, sent, status, received)))
        if _verbose.level >= 0:
            failed = "" if kind is None else kind.__name__
            said = failed if response is None else f"{status}, {received} bytes"
            _verbose.log("%r: %s in %.3f ms", request, said, elapsed_ms)


def body_bytes(body: Buffer | tuple[Buffer, ...]) -> int:
    """How many bytes a body has."""
    if type(body) is bytes:
        return len(body)
    parts = body if isinstance(body, tuple) else (body,)
    return sum([len(part) if type(part) is bytes else memoryview(part).nbytes for part in parts])
