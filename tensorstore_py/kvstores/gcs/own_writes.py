"""The writes of this process to one object, through all stores: not too fast, and not in vain.

`OwnConditionalWrites`: one at a time, and none that cannot succeed. A write whose answer was lost
looks whose value is stored, and no other write of this process may have replaced it by then. One
that waited for that and is too late now is told so without a request: a generation is replaced
once, and it is known here that it was. The invariant: what is known here is certain; what is not,
the service decides.

`ObjectThrottle`: an object can be replaced about once a second; who does it more often is told so
(status 429). From then on all writes to that object go out one by one, a second apart.
"""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, ClassVar, Final

from tensorstore_py.plugin.http import HttpThrottle, HttpTiming
from tensorstore_py.plugin.kvstore import KeyedLock

if TYPE_CHECKING:
    from tensorstore_py.plugin.http import HttpRequest, HttpResponse, RateLimits


__all__ = [
    "ObjectThrottle",
    "OwnConditionalWrites",
]


class OwnConditionalWrites:
    """Who writes on condition, through all stores on one bucket.

    Example:
        >>> rivals = OwnConditionalWrites("example")
        >>> rivals.replaced("key", 17)
        >>> rivals.is_late("key", 17), rivals.is_late("key", 18)
        (True, False)
    """

    MOST: ClassVar[int] = 4096
    _gate: ClassVar[KeyedLock] = KeyedLock(inline=False)
    _replaced: ClassVar[dict[tuple[str, str, int], float]] = {}

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """To be alone among ours with a key."""
        return self._gate.acquire((self._bucket, key))

    def replaced(self, key: str, number: int) -> None:
        """That generation of a key is no more, because of us."""
        if not number:
            return  # a key can be created again and again
        self._replaced[self._bucket, key, number] = time.time()
        if len(self._replaced) > self.MOST:
            del self._replaced[next(iter(self._replaced))]

    def seen(self, key: str, number: int, asked: float) -> None:
        """A read found that generation of a key.

        Args:
            key: which key.
            number: the generation.
            asked: when the read was sent, in s since 1970; one that was on its way while we wrote
                says nothing.
        """
        name = (self._bucket, key, number)
        replaced = self._replaced.get(name)
        if replaced is not None and asked > replaced:
            self._replaced.pop(name, None)

    def is_late(self, key: str, number: int) -> bool:
        """Whether a write on condition of that generation is bound to fail."""
        return (self._bucket, key, number) in self._replaced


_READS: Final = frozenset({"GET", "HEAD"})
_TOO_MANY: Final = 429


class ObjectThrottle(HttpThrottle):
    """Lets requests out at a user's rates, and writes to busy objects one a second."""

    GAP_S: ClassVar[float] = 1.0
    #: Who is left alone for so long is not busy any more.
    CALM_S: ClassVar[float] = 60.0
    #: By bucket and key: when the next write may go out.
    _busy: ClassVar[dict[tuple[str, str], float]] = {}

    def __init__(
        self, bucket: str, rates: RateLimits | None = None, timing: HttpTiming | None = None
    ) -> None:
        super().__init__(rates)
        self._bucket = bucket
        self._timing = HttpTiming() if timing is None else timing

    async def turn(self, request: HttpRequest) -> None:
        if self._busy and request.method not in _READS:
            await self._wait((self._bucket, request.key))
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
        name = (self._bucket, request.key)
        self._busy[name] = max(self._busy.get(name, 0.0), now + self.GAP_S)
