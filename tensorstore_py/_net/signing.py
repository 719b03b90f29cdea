"""The promise of a signer: what proves to a service who asks.

A store brings its own; here is only what the client needs of it. Every attempt is signed anew, at
the service's time: `ServerClock` follows the `Date` of its answers once it complained that ours is
off. The invariant: what a signer knows is in no `repr`, error or spec.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensorstore_py._net.dates import http_date

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse
    from tensorstore_py._net.retrying import HttpTiming

__all__ = ["HttpSigner", "ServerClock"]


class HttpSigner(ABC):
    """Proves to a service who asks."""

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
    """The time, as the service sees it.

    Args:
        timing: our own clock.
    """

    def __init__(self, timing: HttpTiming) -> None:
        self._timing = timing
        self._ahead_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._timing.now() + self._ahead_s

    def follow(self, response: HttpResponse) -> bool:
        """Take the time from an answer. Returns whether that changed anything worth a retry."""
        date = http_date(response.headers.get("Date"))
        if date is None:
            return False
        ahead_s = date - self._timing.now()
        # Dates count whole seconds: what differs by less is the same.
        changed = abs(ahead_s - self._ahead_s) > 2.0
        self._ahead_s = ahead_s
        return changed
