"""A program: workers of one plan in files, which are killed at random and begun again.

    python killed_workers.py FOLDER SEED KILLS

Each task appends a line to a file of its own, with the process that ran it. The store loses
answers, before or after it has done what it was asked to. Prints which processes were killed.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from tensorstore_py.errors import UnavailableError
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.testing import StoreAround
from tests.plan.cluster import Manifest, Parts, Work, Worker
from tests.runtime.processes import start

TASKS, SIZE = 240, 6
WORKERS = 3
LOST = 0.03


class Losing(StoreAround):
    """Some answers are lost."""

    def __init__(self, base, chance):
        super().__init__(base)
        self.chance = chance

    async def write(self, key, value, *, if_equal=None):
        if self.chance.random() < LOST:
            raise UnavailableError("the request was lost")
        stamp = await super().write(key, value, if_equal=if_equal)
        if self.chance.random() < LOST:
            raise UnavailableError("the answer was lost")
        return stamp


def work(folder, seed):
    """One worker, in a process of its own."""
    chance = random.Random(seed)
    store = Losing(FileStore(sync=False), chance)

    async def run(task):
        with (folder / "ran" / f"{task}").open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        await asyncio.sleep(0.005)
        return {str(task): 1}

    async def main():
        manifest = Manifest(store, f"{folder}/plan.json", Parts(TASKS, SIZE))
        await manifest.ensure({"request": {"tasks": TASKS}})
        merged = Work(run, merge=lambda one, other: one | other)
        return await Worker(manifest, merged, width=2).run()

    assert len(start(False, main).result().result) == TASKS


def begin(folder, seed):
    """Fork a worker; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work(folder, seed)
        os._exit(0)
    except BaseException as error:
        print(f"a worker failed: {error!r}", file=sys.stderr)
        os._exit(1)


def main(folder, seed, kills):
    """Kill workers until it is enough, then let them finish."""
    chance = random.Random(seed)
    seeds = iter(range(1000 * seed, 2**31))
    running = [begin(folder, next(seeds)) for _ in range(WORKERS)]
    killed: list[int] = []
    while len(killed) < kills:
        # Each moment is one of progress, so that a machine of any speed has as many.
        while len(list((folder / "ran").iterdir())) < (len(killed) + 1) * TASKS // (kills + 2):
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        pid = running.pop(chance.randrange(WORKERS))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        killed.append(pid)
        running.append(begin(folder, next(seeds)))
    statuses = [os.waitpid(pid, 0)[1] for pid in running]
    print(json.dumps({"killed": killed, "statuses": statuses}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
