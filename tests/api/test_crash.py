"""Processes that die or race: a chunk is the old one or the new one, and nothing gets lost.

Nothing is synchronised to the disk: that is for machines that die, and takes much longer.
"""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts

ROOT = Path(__file__).absolute().parents[2]

#: Fills the whole array with 1, 2, 3, … for ever; says so after each round.
WRITER = """
import itertools, sys
import tensorstore_py as ts
kvstore = {"driver": "file", "path": sys.argv[1], "file_io_sync": False}
store = ts.open({"driver": sys.argv[2], "kvstore": kvstore}).result()
for value in itertools.count(int(sys.argv[3])):
    store[...] = value % 60000 + 1
    print(value, flush=True)
"""

#: Adds its share to one chunk, element by element.
SHARER = """
import sys
import tensorstore_py as ts
path, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kvstore = {"driver": "file", "path": path, "file_io_sync": False}
store = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
print("ready", flush=True)
sys.stdin.readline()
for place in range(first, 64, step):
    store[place] = place + 1
"""


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("driver", ["zarr", "sharded"])
def test_a_killed_writer_leaves_every_chunk_old_or_new(tmp_path, driver):
    """Killed at whatever it is doing, three times over, in chunks of 64 KiB of one value each."""
    sharded = driver == "sharded"
    driver = "zarr3" if sharded else driver
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    layout = (
        ts.ChunkLayout(write_chunk_shape=[64, 512], read_chunk_shape=[32, 64])
        if sharded
        else ts.ChunkLayout(chunk_shape=[64, 512])
    )
    store = ts.open(
        spec, create=True, dtype="uint16", shape=[256, 1024], chunk_layout=layout
    ).result()
    store[...] = 1
    written = 1
    for _ in range(3):
        with start(WRITER, f"{tmp_path}/", driver, written) as writer:
            assert writer.stdout is not None
            assert writer.stderr is not None
            for _ in range(3):
                line = writer.stdout.readline()
                assert line, writer.stderr.read()
                written = int(line)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            written = max([written, *map(int, writer.stdout.read().split())])
        found = store.read().result()
        for row in range(0, 256, 64):
            for column in range(0, 1024, 512):
                values = np.unique(found[row : row + 64, column : column + 512])
                assert len(values) == 1
                # The round that was finished, or the one that was not.
                assert values[0] in {written + 1, written + 2}
    # What the dead left behind is in nobody's way.
    store[...] = 9
    assert (store.read().result() == 9).all()
    fresh = ts.open(tmp_path).result()
    assert (fresh.read().result() == 9).all()


@pytest.mark.parametrize("sharded", [False, True])
def test_processes_that_write_parts_of_one_chunk_lose_nothing(tmp_path, sharded):
    layout = (
        ts.ChunkLayout(write_chunk_shape=[64], read_chunk_shape=[4])
        if sharded
        else ts.ChunkLayout(chunk_shape=[64])
    )
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    store = ts.open(spec, create=True, dtype="uint8", shape=[64], chunk_layout=layout).result()
    processes = [start(SHARER, f"{tmp_path}/", number, 4) for number in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    assert store.read().result().tolist() == list(range(1, 65))
