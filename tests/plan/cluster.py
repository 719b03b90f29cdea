"""Workers on machines of their own, in simulated time, that share a manifest in memory."""

import asyncio
import random
from collections import Counter

from benchmarks.simulated_time import simulated
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import Parts
from tensorstore_py._plan.record import Clock, Owner, Record
from tensorstore_py._plan.status import status_of
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, FaultyStore, LoopStore, StoreAround

# Tests of the inner parts of manifests take them from here.
__all__ = [
    "Cluster",
    "Line",
    "MachineClock",
    "Manifest",
    "Owner",
    "Parts",
    "Record",
    "Work",
    "Worker",
    "machine",
    "simulated",
    "status_of",
    "until",
]

REQUEST: dict[str, object] = {"request": {"source": "memory://a/"}}


class MachineClock(Clock):
    """The loop's time; the wall clock of a machine may be wrong."""

    def __init__(self, wrong_s=0.0, seed=0):
        self._wrong_s = wrong_s
        self._chance = random.Random(seed)

    def now(self):
        return asyncio.get_running_loop().time()

    def wall(self):
        return 1.8e9 + self.now() + self._wrong_s

    def chance(self):
        return self._chance.random()

    async def pause(self, seconds):
        await asyncio.sleep(seconds)


def machine(name):
    """A worker on another machine, of which is not known here whether it is alive."""
    return Owner(name, name, 1, name, "")


async def until(condition):
    """Wait for something that becomes so."""
    while not condition():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)


class Line(StoreAround):
    """The store as one machine sees it, as long as the line is not broken."""

    broken: Exception | None = None

    async def write(self, key, value, *, if_equal=None):
        if self.broken is not None:
            raise self.broken
        return await super().write(key, value, if_equal=if_equal)


class Cluster:
    """What workers share: a store that counts, and may fail; which tasks were run by whom."""

    def __init__(self, tasks, *, size=None, task_s=1.0, lease_s=120.0):
        self.counting = CountingStore(MemoryStore(SharedMap()))
        self.faulty = FaultyStore(self.counting)
        self.store = LoopStore(self.faulty)
        self.parts = Parts(tasks, size)
        self.lease_s = lease_s
        self.task_s = task_s
        self.began: Counter[int] = Counter()
        self.ran: Counter[int] = Counter()
        self.by = {}
        self.bad = set()

    @property
    def requests(self):
        """How often the store was asked."""
        asked = self.counting
        return asked.reads.total() + asked.writes.total() + asked.lists.total()

    def manifest(self, *, wrong_s=0.0, seed=0, store=None):
        return Manifest(
            self.store if store is None else store,
            "copy.json",
            self.parts,
            clock=MachineClock(wrong_s, seed),
            lease_s=self.lease_s,
        )

    def work(self, name="", *, task_s=None, **more):
        async def run(task):
            self.began[task] += 1
            await asyncio.sleep(self.task_s if task_s is None else task_s)
            if task in self.bad:
                raise more["damaged"][0](f"task {task} is bad")
            self.ran[task] += 1
            self.by[task] = name
            return {"sum": task}

        return Work(run, **more)

    async def run(self, name="a", *, wrong_s=0.0, seed=0, store=None, work=None, **options):
        """A worker from its start to its end."""
        manifest = self.manifest(wrong_s=wrong_s, seed=seed, store=store)
        await manifest.ensure(REQUEST)
        work = self.work(name) if work is None else work
        return await Worker(manifest, work, owner=machine(name), **options).run()

    async def lose(self, name, after_s, **options):
        """A worker that is gone after a while, without a word."""
        line = Line(self.store)
        running = asyncio.ensure_future(self.run(name, store=line, **options))
        await asyncio.sleep(after_s)
        line.broken = OSError("unplugged")
        running.cancel()
        await asyncio.wait((running,))
