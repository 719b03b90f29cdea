"""What is a service's own about HTTP: what its responses mean, signatures, throttling, pages.

HTTP says much by the status alone, and that is what the base classes here know. Stores derive from
them, and give what they made to `HttpClient`. The invariants: what a signer knows is in no `repr`,
error or spec; every attempt of every request is let out by the throttle; of any listing no page is
asked for twice, and no more than `MOST_EMPTY` pages with nothing in them follow each other.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from tensorstore_py._net.checksums import stated_digests
from tensorstore_py._net.failures import status_error
from tensorstore_py.errors import DataLossError, TensorStoreError

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse
    from tensorstore_py._net.retry import HttpTiming
    from tensorstore_py._runtime.limiters import RateLimits

__all__ = ["HttpDialect", "HttpSigner", "HttpThrottle", "HttpVerdict", "Paging", "ServerClock"]

_READS: Final = frozenset({"GET", "HEAD"})


class HttpVerdict(enum.Enum):
    """What to do about an answer that is no success.

    Attributes:
        FAIL: give up; the same would come again.
        RETRY: it may pass.
        REFRESH: the credentials were refused; others may not be.
        SKEWED: the clocks differ.
    """

    FAIL = enum.auto()
    RETRY = enum.auto()
    REFRESH = enum.auto()
    SKEWED = enum.auto()


class HttpDialect:
    """Plain HTTP.

    Attributes:
        name: of the store, which the retries resource is named after.
        retried: statuses that may pass.
    """

    name: ClassVar[str] = "http"
    retried: ClassVar[frozenset[int]] = frozenset({408, 425, 429, 500, 502, 503, 504})

    def verdict(self, response: HttpResponse) -> HttpVerdict:
        """What to do about an answer with an unexpected status."""
        if response.status in self.retried:
            return HttpVerdict.RETRY
        return HttpVerdict.REFRESH if response.status == 401 else HttpVerdict.FAIL

    def belies(self, request: HttpRequest, response: HttpResponse) -> bool:
        """Whether an answer with an expected status is an error after all."""
        return False

    def is_cut(self, response: HttpResponse) -> bool:
        """Whether of what an answer that is no success says the end is missing."""
        return False

    def error(self, response: HttpResponse) -> type[TensorStoreError]:
        """The class of error that an answer becomes."""
        return status_error(response.status)

    def digests(self, headers: Mapping[str, str]) -> Mapping[str, bytes]:
        """The checksums of the whole value that its headers state, see `check_digests`."""
        return stated_digests(headers)

    def words(self, response: HttpResponse) -> str:
        """What the service says about it, in one line; `""` if nothing is worth telling."""
        if "text/plain" not in response.headers.get("Content-Type", ""):
            return ""
        return " ".join(bytes(response.body[:200]).decode("utf-8", "replace").split())


class HttpSigner(ABC):
    """Signs requests: proves to a service whose they are."""

    @abstractmethod
    async def sign(self, request: HttpRequest, now: float) -> Mapping[str, str]:
        """The headers to send: the request's, and those that prove it.

        Args:
            request: complete but for the proof.
            now: seconds since the epoch by the service's clock.

        Raises:
            PermissionDeniedError: there are no credentials.
        """

    async def refresh(self, response: HttpResponse) -> bool:
        """Get other credentials after these were refused; asked at most once a request.

        Returns:
            Whether it is worth another attempt.
        """
        return False


class ServerClock:
    """The time, as the service sees it."""

    def __init__(self, timing: HttpTiming) -> None:
        self._timing = timing
        self._ahead_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._timing.now() + self._ahead_s

    def follow(self, response: HttpResponse) -> bool:
        """Take the time from an answer. Returns whether that changed anything worth a retry."""
        date = response.date()
        if date is None:
            return False
        ahead_s = date - self._timing.now()
        # Dates count whole seconds: what differs by less is the same.
        changed = abs(ahead_s - self._ahead_s) > 2.0
        self._ahead_s = ahead_s
        return changed


class HttpThrottle:
    """Lets requests out at the rates of a resource; those of services with further wishes derive.

    Args:
        rates: of the resource; None for no limits.
    """

    def __init__(self, rates: RateLimits | None = None) -> None:
        self._read = None if rates is None else rates.read
        self._write = None if rates is None else rates.write

    async def turn(self, request: HttpRequest) -> None:
        """Wait until the request may go out."""
        rate = self._read if request.method in _READS else self._write
        if rate is not None:
            await rate.acquire()

    def refused(self, request: HttpRequest, response: HttpResponse) -> None:
        """Hear of an answer that was not expected, before the request is tried again."""
        return


class Paging:
    """The pages of one listing so far.

    Example:
        >>> paging = Paging('"s3://bucket/"')
        >>> paging.page(["a", "b"], "token 1")
        >>> paging.page(["c"], "token 1")
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.DataLossError: cannot list "s3://bucket/": the service leads ...
    """

    MOST_EMPTY: Final = 100

    def __init__(self, what: str) -> None:
        self._what = what
        self._tokens: set[int] = set()
        self._pages: set[int] = set()
        self._empty = 0
        self._count = 0

    def page(self, names: Sequence[str], token: str | None) -> None:
        """A page came.

        Args:
            names: what it lists.
            token: what to ask for the next one with; None or empty after the last.

        Raises:
            DataLossError: the listing would not end.
        """
        self._count += 1
        self._empty = 0 if names else self._empty + 1
        if not token:
            return
        seen = bool(names) and _seen(self._pages, (names[0], names[-1], len(names)))
        if _seen(self._tokens, token) or seen or self._empty > self.MOST_EMPTY:
            raise DataLossError(
                f"cannot list {self._what}: the service leads from page to page without an end "
                f"({self._count} pages, of which the last repeats what came before, or has nothing "
                f"in it); nothing of the listing can be relied upon"
            )


def _seen(before: set[int], thing: object) -> bool:
    """Whether something came before; it will have from now on."""
    number = hash(thing)
    if number in before:
        return True
    before.add(number)
    return False
