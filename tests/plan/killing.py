"""Processes that work on one stored plan, over a store that fails now and then, and are killed.

`python -m tests.plan.killing FOLDER SEED LEFT` works on the plan in a folder until all is done, and
kills itself after LEFT operations of the store; 0: never. `Killing` runs these and the one that
plans, and compares what comes of it with the source. All that is random follows from the seed.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import tensorstore_py as ts
from tensorstore_py.plugin.kvstore import KvStore, KvStoreSpec, kvstore
from tensorstore_py.testing.fake_stores import StoreAround
from tests.runtime.processes import ROOT

SHAPE = (60, 70)
CHUNK = (6, 7)
#: In so many of a hundred operations an answer is lost, or none comes.
FAULTS = 3


class FlakyStore(StoreAround):
    """Files on a bad line: some reads fail, some writes succeed and their answers are lost.

    Only of chunks and of the manifest: metadata is read by clients that ask again by themselves.

    Attributes:
        left: how many operations are left until the process kills itself; 0: it never does.
        chance: what decides.
    """

    def __init__(self, base):
        super().__init__(base)
        self.left = int(os.environ.get("KILLING_LEFT", "0"))
        self.chance = random.Random(os.environ.get("KILLING_SEED", "0") + str(self.left))

    def _fails(self, key):
        if self.left:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)
        bad = "/c/" in key or "copy.json" in key
        return bad and self.chance.randrange(100) < FAULTS

    async def read(self, key, *arguments, **options):
        if self._fails(key):
            raise ts.UnavailableError(f"no answer about {key}")
        return await super().read(key, *arguments, **options)

    async def write(self, key, value, *, if_equal=None):
        fails = self._fails(key)
        stamp = await super().write(key, value, if_equal=if_equal)
        if "/new/" in key and "/c/" in key:
            with open(os.environ["KILLING_LOG"], "a", encoding="ascii") as log:  # noqa: PTH123
                log.write(f"{key.rpartition('/new/')[2]}\n")
        if fails:
            raise ts.UnavailableError(f"the answer about {key} was lost")
        return stamp

    async def list(self, key_range=None):
        if self._fails("copy.json"):
            raise ts.UnavailableError("no list")
        async for entry in self.base.list(*() if key_range is None else (key_range,)):
            yield entry


_stores: dict[str, FlakyStore] = {}


@kvstore("flaky_file")
class FlakyFileSpec(KvStoreSpec):
    """`{"driver": "flaky_file", "path": ...}`: one store a process, so that it counts all."""

    def open(self) -> KvStore:
        context = ts.Context()
        if "" not in _stores:
            _stores[""] = FlakyStore(ts.KvStore.open("file:///", context=context).result().store)
        return _stores[""]


def place(folder, name):
    return {"driver": "flaky_file", "path": f"{folder}/{name}"}


def work(folder):
    """Copy, by whatever is stored of the plan."""
    ts.copy(
        place(folder, "old/"), place(folder, "new/"), codec="gzip", if_exists="skip",
        manifest=place(folder, "copy.json"),
        context=ts.Context({"memory_limit": {"limit_bytes": 2048}}),
    ).result()  # fmt: skip


class Killing:
    """One trial.

    Args:
        folder: an empty one.
        seed: what all chance follows from.
        kills: how many processes are killed.

    Attributes:
        killed: how many were.
    """

    def __init__(self, folder, *, seed, kills):
        self.folder, self.kills = folder, kills
        self.chance = random.Random(seed)
        self.seed = seed
        self.killed = 0
        self.values = np.random.default_rng(seed).integers(0, 2**16, SHAPE, "uint16")
        layout = ts.ChunkLayout(chunk_shape=CHUNK)
        group = ts.Group.open(folder / "old", create=True, attributes={"a": 1}).result()
        group.create_array("b/image", dtype="uint16", shape=SHAPE, chunk_layout=layout).result()[
            ...
        ] = self.values
        group.create_array("d", dtype="int8", shape=[9]).result()[...] = 4

    def run(self):
        """Two at a time, of which each is killed, until enough were; then one that is not."""
        while self.killed < self.kills:
            count = min(2, self.kills - self.killed)
            # The more kills, the less each process gets to do.
            most = 40 + 720 // self.kills
            pair = [self._begin(self.chance.randrange(20, most)) for _ in range(count)]
            for process in pair:
                _, reporter = process.communicate(timeout=240)
                if process.returncode == -signal.SIGKILL:
                    self.killed += 1
                else:
                    assert process.returncode == 0, reporter
                    return
        last = self._begin(0)
        _, reporter = last.communicate(timeout=240)
        assert last.returncode == 0, reporter

    def _begin(self, left):
        environment = {
            **os.environ, "KILLING_LEFT": str(left), "KILLING_SEED": str(self.seed),
            "KILLING_LOG": str(self.folder / "log"),
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "tests.plan.killing", str(self.folder)],
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def check(self):
        """The target is what the source is, and nothing was done for nothing."""
        new = ts.Group.open(self.folder / "new").result()
        np.testing.assert_array_equal(new["b/image"].read().result(), self.values)
        assert new["d"].read().result().tolist() == [4] * 9
        times = Counter((self.folder / "log").read_text().split())
        assert len(times) == 101
        # A killed worker has at most a few chunks at hand; a lost answer makes one task again.
        lost = sum(times.values()) * FAULTS // 20 + 10
        assert sum(times.values()) - len(times) <= 16 * self.killed + lost, times.most_common(5)

    def stored(self):
        """The plan, and the states of its parts."""
        return json.loads(Path(self.folder / "copy.json").read_text())


if __name__ == "__main__":
    work(Path(sys.argv[1]))
