"""Processes and threads that race, or die: nothing is lost; a chunk is the old or the new one."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import AlreadyExistsError, MismatchError
from tests.chunked.stores import counting, opened

ROOT = Path(__file__).absolute().parents[2]


#: Opens an array of its own size, several times over, on a line of input; says what it got.
CREATOR = """
import sys
import tensorstore_py as ts
path, size = sys.argv[1], int(sys.argv[2])
outcomes = []
print("ready", flush=True)
sys.stdin.readline()
for round in range(20):
    modes = {"open": True} if round % 2 else {}
    kvstore = {"driver": "file", "path": f"{path}/{round}/", "file_io_sync": False}
    spec = {"driver": "zarr3", "kvstore": kvstore}
    try:
        ts.open(spec, create=True, dtype="uint8", shape=[size], **modes).result()
        outcomes.append("mine")
    except ValueError as error:
        outcomes.append(type(error).__name__)
print(" ".join(outcomes), flush=True)
"""


#: Resizes one dimension to each of a few sizes.
RESIZER = """
import sys
import tensorstore_py as ts
path, dim = sys.argv[1], int(sys.argv[2])
kvstore = {"driver": "file", "path": path, "file_io_sync": False}
store = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
print("ready", flush=True)
sys.stdin.readline()
for size in range(2, 9):
    wanted = [None] * 3
    wanted[dim] = size
    store.resize(exclusive_max=wanted).result()
print("done", flush=True)
"""


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def together(code, arguments):
    """Run a process for each of `arguments`, let all go at once, and return their last lines."""
    processes = [start(code, *each) for each in arguments]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outcomes = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outcomes
    return [out.strip() for out, _ in outcomes]


#: Counts in an attribute of a group of version 2, and of an array of version 3.
COUNTER = """
import sys
import tensorstore_py as ts
def group(name):
    path = f"{sys.argv[1]}/{name}/"
    return ts.Group.open({"driver": "file", "path": path, "file_io_sync": False}).result()
nodes = [group(2), group(3)["a"]]
print("ready", flush=True)
sys.stdin.readline()
for count in range(100):
    for node in nodes:
        node.attrs.change(lambda found: {**found, "n": found.get("n", 0) + 1}).result()
print("done", flush=True)
"""


class TestRaces:
    def test_of_many_processes_one_creates(self, tmp_path):
        lines = together(CREATOR, [(tmp_path, size) for size in (3, 4, 5)])
        for number, outcomes in enumerate(zip(*[line.split() for line in lines], strict=True)):
            loser = "MismatchError" if number % 2 else "AlreadyExistsError"
            assert sorted(outcomes) == sorted(["mine", loser, loser])
            found = ts.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/{number}/"}).result()
            assert found.shape == (3 + outcomes.index("mine"),)

    def test_of_many_threads_one_creates(self):
        store = counting()
        barrier = threading.Barrier(8)
        outcomes: dict[int, object] = {}

        def create(size, mode):
            barrier.wait()
            try:
                outcomes[size] = opened(
                    store, create=True, dtype="uint8", shape=[size], **mode
                ).shape
            except (AlreadyExistsError, MismatchError) as error:
                outcomes[size] = type(error)

        threads = [
            threading.Thread(target=create, args=(size, {"open": True} if size % 2 else {}))
            for size in range(1, 9)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        shape = opened(store).shape
        won = [size for size, outcome in outcomes.items() if outcome == (size,)]
        assert (won, len(outcomes)) == ([shape[0]], 8)
        for size in set(outcomes) - set(won):
            assert outcomes[size] is (MismatchError if size % 2 else AlreadyExistsError)

    def test_resizes_of_different_dimensions_by_processes_all_hold(self, tmp_path):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        ts.open(spec, create=True, dtype="uint8", shape=[1, 1, 1]).result()
        together(RESIZER, [(f"{tmp_path}/", dim) for dim in range(3)])
        assert ts.open(spec).result().shape == (8, 8, 8)

    def test_attributes_lose_no_increment_of_any_process(self, tmp_path: Path):
        arrays = []
        groups = []
        for number in (2, 3):
            group = ts.Group.open(tmp_path / f"{number}", create=True, zarr_format=number).result()
            made = group.create_array("a", dtype="int8", shape=[3], attributes={"kept": 1})
            arrays.append(made.result())
            groups.append(group)

        together(COUNTER, [(tmp_path,)] * 4)

        assert dict(groups[0].attrs) == {"n": 400}
        assert dict(arrays[1].attrs) == {"kept": 1, "n": 400}
        assert dict(arrays[0].attrs) == {"kept": 1}
        assert dict(groups[1].attrs) == {}
        assert arrays[1].shape == (3,)


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


#: Adds its share to one chunk of each array, element by element.
SHARER = """
import sys
import tensorstore_py as ts
first, *paths = sys.argv[1:]
stores = [
    ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path, "file_io_sync": False}})
    for path in paths
]
stores = [store.result() for store in stores]
print("ready", flush=True)
sys.stdin.readline()
for place in range(int(first), 64, 4):
    for store in stores:
        store[place] = place + 1
"""


class TestCrash:
    @pytest.mark.parametrize("driver", ["zarr", "sharded"])
    def test_a_killed_writer_leaves_every_chunk_old_or_new(self, tmp_path, driver):
        """Killed at whatever it is doing, three times over, in chunks of 64 KiB of one value."""
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
        # What killed writers left behind does no harm.
        store[...] = 9
        assert (store.read().result() == 9).all()
        fresh = ts.open(tmp_path).result()
        assert (fresh.read().result() == 9).all()

    def test_processes_that_write_parts_of_one_chunk_lose_nothing(self, tmp_path):
        plain = ts.ChunkLayout(chunk_shape=[64])
        shards = ts.ChunkLayout(write_chunk_shape=[64], read_chunk_shape=[4])
        stores = [
            ts.open(
                {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/{name}/"}},
                create=True, dtype="uint8", shape=[64], chunk_layout=layout,
            ).result()
            for name, layout in (("plain", plain), ("shards", shards))
        ]  # fmt: skip

        paths = [f"{tmp_path}/plain/", f"{tmp_path}/shards/"]
        together(SHARER, [(number, *paths) for number in range(4)])

        for store in stores:
            assert store.read().result().tolist() == list(range(1, 65))
