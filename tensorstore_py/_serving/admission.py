"""How much a server does at a time: so many values are made, and so many bytes are held.

Bytes are held from before a value is read until it is sent, a place among those who make values
only while it is made: slow clients keep nobody else from being served as long as there is memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tensorstore_py._runtime.limiters import MemoryBudget, Semaphore

__all__ = ["Admission"]

#: How many values are made at a time; those of remote stores mostly wait.
_TOGETHER: Final = 64


class Admission:
    """The limits of one server.

    Args:
        memory: how many bytes are held at a time; what is larger goes alone.
    """

    def __init__(self, memory: int) -> None:
        self.making = Semaphore(_TOGETHER)
        self._budget = MemoryBudget(memory)

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        """Hold so many bytes, when they can be had."""
        await self._budget.acquire(False, size)
        try:
            yield
        finally:
            self._budget.release(size)
