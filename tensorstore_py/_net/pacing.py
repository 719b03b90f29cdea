"""When a request may go out: the rates that a user set, and what a service needs.

The client asks before every attempt, and before it takes a slot for the first one, so that requests
that wait here keep nobody else from going out. The invariant: every attempt of every request has
had its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse
    from tensorstore_py._runtime.rates import Rates

__all__ = ["HttpPacer"]

_READS: Final = frozenset({"GET", "HEAD"})


class HttpPacer:
    """Lets requests out at the rates of a resource; those of services with further wishes derive.

    Args:
        rates: of the resource; None for no limits.
    """

    def __init__(self, rates: Rates | None = None) -> None:
        self._read = None if rates is None else rates.read
        self._write = None if rates is None else rates.write

    async def turn(self, request: HttpRequest) -> None:
        """Wait until the request may go out."""
        rate = self._read if request.method in _READS else self._write
        if rate is not None:
            await rate.turn()

    def refused(self, request: HttpRequest, response: HttpResponse) -> None:
        """Hear of an answer that nobody expected, before the request is tried again."""
        return
