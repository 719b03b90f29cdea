"""A store far away: how many times somebody waits for it, one time after the other."""

import asyncio

from tensorstore_py.kvstores.file.spec import FileSpec
from tensorstore_py.testing import LoopStore

__all__ = ["Rounds", "far_away"]

#: So many turns of the loop does each read take.
_TURNS = 30


class Rounds(LoopStore):
    """Counts reads, and rounds: a read that begins while none is under way begins another one.

    Attributes:
        reads: how many there were.
        rounds: how often it was waited for.
    """

    def __init__(self, base):
        super().__init__(base, width=64)
        self.reads = self.rounds = 0
        self._under_way = 0

    async def read(self, key, *arguments, **options):
        return await self._counted(super().read(key, *arguments, **options))

    async def read_ranges(self, key, ranges):
        return await self._counted(super().read_ranges(key, ranges))

    async def _counted(self, reading):
        self.reads += 1
        self.rounds += not self._under_way
        self._under_way += 1
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            return await reading
        finally:
            self._under_way -= 1


def far_away(monkeypatch, where=""):
    """From now on files whose directory has that in its name are far away; gives their stores."""
    opened = FileSpec.open
    stores = []

    def far(spec):
        base = opened(spec)
        if where not in spec.path:
            return base
        stores.append(Rounds(base))
        return stores[-1]

    monkeypatch.setattr(FileSpec, "open", far)
    return stores
