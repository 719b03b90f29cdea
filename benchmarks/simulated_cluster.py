"""A cluster in one process: 1 to 1,000 workers share a manifest, and time is simulated.

The manifest and the workers are the real ones; the clock, the store's latency, how long tasks take
and which machines are lost are made up, from one seed. Tasks take ten seconds, a few of them five
times as long; one machine in fifty is three times as slow; one in twenty is lost on the way, and
every other of these comes back a minute later. Clocks of machines differ by up to half a minute.
Prints, for each number of workers, the time until all is done, how that compares with one worker
and with what parts allow (the same machines, if none were lost and each had its next part without
asking), and what the manifest was asked for each task.

    python benchmarks/simulated_cluster.py                  100,000 tasks
    python benchmarks/simulated_cluster.py --tasks 1000 --workers 1,30,1000
    python benchmarks/simulated_cluster.py --markdown
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import heapq
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# run as a file, only this folder would be importable
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.consistency import table
from benchmarks.simulated_time import simulated
from tensorstore_py._interface.key_range import ALL, KeyRange
from tensorstore_py._interface.kvstore import ListEntry
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import Parts
from tensorstore_py._plan.record import Clock, Owner
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import StoreAround

TASK_S = 10.0
LATENCY_S = 0.05
#: Keys that one request lists.
PAGE = 1000
#: Machines start one after the other.
START_S = 30.0
LOST = 0.05
BACK_AFTER_S = 60.0
SKEW_S = 30.0


def task_s(number: int) -> float:
    """How long a task takes on a machine that is not slow."""
    chance = random.Random(number)  # noqa: S311 - chance, no secret
    return TASK_S * chance.uniform(0.7, 1.3) * (5 if chance.random() < 0.01 else 1)


def slowness(number: int, workers: int) -> float:
    """How many times as long a task takes on a machine."""
    return 3.0 if workers > 1 and random.Random(-number).random() < 0.02 else 1.0  # noqa: S311


class MachineClock(Clock):
    """The simulated time, as one machine has it."""

    def __init__(self, chance: random.Random) -> None:
        self._loop = asyncio.get_running_loop()
        self._chance = chance
        self._skew = chance.uniform(-SKEW_S, SKEW_S)

    def now(self) -> float:
        return self._loop.time()

    def wall(self) -> float:
        return 1.8e9 + self._loop.time() + self._skew

    def chance(self) -> float:
        return self._chance.random()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class ServiceStore(StoreAround):
    """A store as a service has it: each request takes some time, and is counted."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(MemoryStore(SharedMap()))
        self.inline = False
        self.width = 32
        self.asked: Counter[str] = Counter()
        self._chance = chance
        self._keys: list[str] = []
        self._entries: list[ListEntry] = []  # made once, since they are listed often

    async def request(self, kind: str) -> None:
        self.asked[kind] += 1
        await asyncio.sleep(LATENCY_S * self._chance.uniform(0.5, 1.5))

    async def read(self, key: str, *arguments: Any, **options: Any) -> Any:
        await self.request("reads")
        return await super().read(key, *arguments, **options)

    async def write(self, key: str, value: Any, *, if_equal: bytes | None = None) -> Any:
        await self.request("writes")
        stamp = await super().write(key, value, if_equal=if_equal)
        at = bisect.bisect_left(self._keys, key)
        if stamp.generation and self._keys[at : at + 1] != [key]:
            self._keys.insert(at, key)
            self._entries.insert(at, ListEntry(key))
        return stamp

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        low = bisect.bisect_left(self._keys, key_range.inclusive_min.decode())
        high = bisect.bisect_left(self._keys, key_range.exclusive_max.decode())
        found = self._entries[low:high]
        for _ in range(0, max(1, len(found)), PAGE):
            await self.request("lists")
        for entry in found:
            yield entry


class UnpluggedError(Exception):
    """The machine is off."""


class MachineStore(StoreAround):
    """The store as one machine sees it, until that is lost."""

    def __init__(self, base: ServiceStore) -> None:
        super().__init__(base)
        self.lost = False

    async def read(self, key: str, *arguments: Any, **options: Any) -> Any:
        self._check()
        return await super().read(key, *arguments, **options)

    async def write(self, key: str, value: Any, *, if_equal: bytes | None = None) -> Any:
        self._check()
        return await super().write(key, value, if_equal=if_equal)

    def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        self._check()
        return self.base.list(key_range)

    def _check(self) -> None:
        if self.lost:
            raise UnpluggedError


@dataclass
class Run:
    """What came of one number of workers."""

    parts: Parts
    workers: int
    seconds: float
    asked: Counter[str]
    ran: Counter[int]
    losses: int


class Cluster:
    """See the head of this file."""

    def __init__(self, tasks: int, workers: int, seed: int = 1, lost: float = LOST) -> None:
        self.parts = Parts(tasks)
        self.workers = workers
        self.chance = random.Random(seed)  # noqa: S311 - chance, no secret
        self.share_lost = lost
        self.losses = 0
        self.over_s = float("inf")
        self.ran: Counter[int] = Counter()

    async def run(self) -> Run:
        self.service = ServiceStore(self.chance)
        await self.manifest(self.service).ensure({"request": {"tasks": self.parts.tasks}})
        await asyncio.gather(*(self.machine(number) for number in range(self.workers)))
        return Run(self.parts, self.workers, self.over_s, self.service.asked, self.ran, self.losses)

    async def machine(self, number: int) -> None:
        """One machine, from its start to the end of all work, or of itself."""
        await asyncio.sleep(self.chance.uniform(0, START_S))
        slow = slowness(number, self.workers)
        if self.chance.random() < self.share_lost:
            expected_s = self.parts.tasks * TASK_S / min(self.workers, self.parts.count)
            store = MachineStore(self.service)
            worker = asyncio.ensure_future(self.worker(f"{number}-lost", store, slow))
            done, _ = await asyncio.wait((worker,), timeout=self.chance.uniform(0, expected_s))
            if done:
                return
            store.lost = True
            worker.cancel()
            await asyncio.wait((worker,))
            self.losses += 1
            if self.workers > 1 and self.chance.random() < 0.5:
                return
            await asyncio.sleep(BACK_AFTER_S)
        await self.worker(f"{number}", MachineStore(self.service), slow)

    async def worker(self, name: str, store: MachineStore, slow: float) -> None:
        """The real one, on a machine."""

        async def task(number: int) -> None:
            await asyncio.sleep(task_s(number) * slow)
            self.ran[number] += 1

        manifest = self.manifest(store)
        await manifest.load()
        owner = Owner(name, name, 1, name, "")
        await Worker(manifest, Work(task), owner=owner).run()
        self.over_s = min(self.over_s, manifest.clock.now())

    def manifest(self, store: StoreAround) -> Manifest:
        clock = MachineClock(random.Random(self.chance.random()))  # noqa: S311
        return Manifest(store, "plan.json", self.parts, clock=clock)


def simulate(tasks: int, workers: int, seed: int = 1, lost: float = LOST) -> Run:
    """Run a plan on a cluster, in no time."""

    async def main() -> Run:
        return await Cluster(tasks, workers, seed, lost).run()

    return simulated(main())


def allowed_s(parts: Parts, workers: int) -> float:
    """How long it would take if nobody had to ask for parts, and no machine were lost."""
    free = [(0.0, number) for number in range(workers)]
    for part in range(parts.count):
        now, number = heapq.heappop(free)
        took = sum(map(task_s, parts[part])) * slowness(number, workers)
        heapq.heappush(free, (now + took, number))
    return max(free)[0]


def rows_of(runs: Sequence[Run]) -> list[list[str]]:
    """The table."""
    head = ["workers", "time", "speed-up", "efficiency", "parts allow", "writes", "reads", "lists",
            "requests a task", "machines lost", "tasks run twice"]  # fmt: skip
    rows = [head]
    for run in runs:
        tasks = run.parts.tasks
        alone = runs[0].seconds * runs[0].workers
        speedup = alone / run.seconds
        most = alone / allowed_s(run.parts, run.workers)
        each = [run.asked[kind] / tasks for kind in ("writes", "reads", "lists")]
        again = run.ran.total() - len(run.ran)
        rows.append([
            f"{run.workers:,}", duration(run.seconds), f"{speedup:,.1f}",
            f"{speedup / run.workers:.0%}",
            f"{most / run.workers:.0%}",
            *(f"{share:.2f}" for share in each), f"{sum(each):.2f}", f"{run.losses}",
            f"{again} ({again / tasks:.1%})",
        ])  # fmt: skip
    return rows


def duration(seconds: float) -> str:
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:.1f} h"


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--workers", default="1,10,100,1000", help="separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args(arguments)
    chosen.workers = [int(each) for each in chosen.workers.split(",")]
    return chosen


def main(arguments: Sequence[str]) -> int:
    chosen = options(arguments)
    runs = []
    for workers in chosen.workers:
        began = time.monotonic()
        runs.append(simulate(chosen.tasks, workers, chosen.seed))
        print(f"{workers} workers: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    parts = runs[0].parts
    print(f"{parts.tasks:,} tasks in {parts.count:,} parts of {parts.size}")
    print()
    print(table(rows_of(runs), markdown=chosen.markdown))
    return int(any(len(run.ran) < chosen.tasks for run in runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
