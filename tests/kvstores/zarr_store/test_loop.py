import asyncio
import os
import subprocess
import sys

import numpy as np
import zarr
from zarr.storage import MemoryStore

import tensorstore_py as ts
from tensorstore_py.kvstores.zarr_store.loop import zarr_loop


class Noting(MemoryStore):
    """A store that notes in which loops it is used."""

    def __init__(self):
        super().__init__()
        self.loops = set()

    async def get(self, *arguments, **options):
        self.loops.add(asyncio.get_running_loop())
        return await super().get(*arguments, **options)


def test_an_object_is_used_in_the_loop_of_zarr_python_only():
    store = Noting()
    zarr.create_array(store, shape=4, dtype="i4")[:] = 7

    async def read():
        return (await (await ts.open(store)).read()).tolist()

    assert ts.open(store).result().read().result().tolist() == [7] * 4
    assert asyncio.run(read()) == [7] * 4
    assert np.asarray(zarr.open_array(store)[:]).tolist() == [7] * 4
    assert len(store.loops) == 1


async def test_the_loop_is_asked_for_once():
    assert await zarr_loop() is await zarr_loop()


def test_a_forked_child_has_a_loop_of_its_own():
    code = (
        "import os, sys, numpy, zarr, tensorstore_py as ts\n"
        "store = zarr.storage.MemoryStore()\n"
        "zarr.create_array(store, shape=4, dtype='i4')[:] = 7\n"
        "assert ts.open(store).result().read().result().sum() == 28\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(int(ts.open(store).result().read().result().sum()))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )

    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
        timeout=240,
    )

    assert ran.stdout.strip() == "28"
