"""Conditional writes of one process to one key: one at a time, and none that cannot succeed.

A write whose answer was lost looks whose value is stored, and no other write of this process may
have replaced it by then. Who waited for it and is too late now is told so without a request: a
generation is replaced once, and it is known here that it was. Servers that begin to count again, as
emulators do when they restart, are found out by a read: what it shows is there, whatever is known
here. The invariant: what is known here is certain; what is not known, the service decides.
"""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

from tensorstore_py.plugin import Gate

__all__ = ["Rivals"]


class Rivals:
    """Who writes on condition, through all stores on one bucket.

    Args:
        place: what tells the bucket from all others.

    Example:
        >>> rivals = Rivals("example")
        >>> rivals.replaced("key", 17)
        >>> rivals.is_late("key", 17), rivals.is_late("key", 18)
        (True, False)
    """

    MOST: ClassVar[int] = 4096
    _gate: ClassVar[Gate] = Gate(inline=False)
    _replaced: ClassVar[dict[tuple[str, str, int], float]] = {}

    def __init__(self, place: str) -> None:
        self._place = place

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """To be alone among ours with a key."""
        return self._gate.hold((self._place, key))

    def replaced(self, key: str, number: int) -> None:
        """That generation of a key is no more, because of us."""
        if not number:
            return  # a key can be created again and again
        self._replaced[self._place, key, number] = time.time()
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
        name = (self._place, key, number)
        replaced = self._replaced.get(name)
        if replaced is not None and asked > replaced:
            self._replaced.pop(name, None)

    def is_late(self, key: str, number: int) -> bool:
        """Whether a write on condition of that generation is bound to fail."""
        return (self._place, key, number) in self._replaced
