"""Writers in several processes: conditional writes lose nothing."""

import os
import subprocess
import sys

import pytest

INCREMENT = """
import asyncio, sys
import tensorstore_py as ts

async def increment(store, count):
    for _ in range(count):
        done = b""
        while not done:
            found = await store.read("n")
            following = b"%d" % (int(found.value) + 1)
            done = (await store.write("n", following, if_equal=found.stamp.generation)).generation

async def main(tasks, count):
    store = await ts.KvStore.open("gs://bucket/")
    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(*(increment(store, count) for _ in range(tasks)))

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"""

#: Writers and increments of each; the whole run is 16 and 1000.
WRITERS = int(os.environ.get("TENSORSTORE_PY_TEST_WRITERS", "8"))
INCREMENTS = int(os.environ.get("TENSORSTORE_PY_TEST_INCREMENTS", "10"))


@pytest.mark.timeout(3600)
def test_two_processes_count_together(kv):
    store = kv()
    store["n"] = b"0"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", INCREMENT, str(WRITERS // 2), str(INCREMENTS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
    for process in processes:
        process.communicate("go\n")

    assert [process.returncode for process in processes] == [0, 0]
    assert store["n"] == b"%d" % (2 * (WRITERS // 2) * INCREMENTS)
