"""Writes to one object, no faster than the service takes them.

An object can be replaced about once a second; who does it more often is told so (status 429). From
then on, all writes of this process to that object go out one by one, a second apart, instead of
pushing each other back. Only objects that were complained about are known here, and only as long as
they are written to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tensorstore_py.plugin import HttpPacer, HttpTiming

if TYPE_CHECKING:
    from tensorstore_py.plugin import HttpRequest, HttpResponse, Rates

__all__ = ["GcsPacer"]

_READS: Final = frozenset({"GET", "HEAD"})
_TOO_MANY: Final = 429


class GcsPacer(HttpPacer):
    """Lets requests out at a user's rates, and writes to busy objects one a second.

    Args:
        place: what tells the bucket from all others.
        rates: of the resource; None for no limits.
        timing: the clock.
    """

    GAP_S: ClassVar[float] = 1.0
    #: Who is left alone for so long is not busy any more.
    CALM_S: ClassVar[float] = 60.0
    #: By place and key: when the next write may go out.
    _busy: ClassVar[dict[tuple[str, str], float]] = {}

    def __init__(
        self, place: str, rates: Rates | None = None, timing: HttpTiming | None = None
    ) -> None:
        super().__init__(rates)
        self._place = place
        self._timing = HttpTiming() if timing is None else timing

    async def turn(self, request: HttpRequest) -> None:
        if self._busy and request.method not in _READS:
            await self._wait((self._place, request.key))
        await super().turn(request)

    async def _wait(self, name: tuple[str, str]) -> None:
        due = self._busy.get(name)
        if due is None:
            return
        now = self._timing.now()
        if now > due + self.CALM_S:
            self._busy.pop(name, None)
            return
        self._busy[name] = max(due, now) + self.GAP_S
        if due > now:
            await self._timing.sleep(due - now)

    def refused(self, request: HttpRequest, response: HttpResponse) -> None:
        if response.status != _TOO_MANY or request.method in _READS:
            return
        now = self._timing.now()
        if len(self._busy) > 1000:
            for name in [name for name, due in self._busy.items() if now > due + self.CALM_S]:
                del self._busy[name]
        name = (self._place, request.key)
        self._busy[name] = max(self._busy.get(name, 0.0), now + self.GAP_S)
