"""Creating and resizing at the same time, from threads and from processes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import AlreadyExistsError, MismatchError
from tests.chunked.stores import counting, opened

ROOT = Path(__file__).absolute().parents[2]

#: Opens an array of its own size, several times over, as soon as it is told to; says what it got.
CREATOR = """
import sys
import tensorstore_py as ts
path, size = sys.argv[1], int(sys.argv[2])
modes = {"open": True} if sys.argv[3] == "open" else {}
outcomes = []
print("ready", flush=True)
sys.stdin.readline()
for round in range(10):
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


def together(code, arguments):
    """Run a process for each of `arguments`, let all go at once, and return their last lines."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *map(str, each)], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for each in arguments
    ]  # fmt: skip
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


@pytest.mark.parametrize(
    ("mode", "loser"), [("open", "MismatchError"), ("only", "AlreadyExistsError")]
)
def test_of_many_processes_one_creates(tmp_path, mode, loser):
    lines = together(CREATOR, [(tmp_path, size, mode) for size in (3, 4, 5)])
    for number, outcomes in enumerate(zip(*[line.split() for line in lines], strict=True)):
        assert sorted(outcomes) == sorted(["mine", loser, loser])
        found = ts.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/{number}/"}).result()
        assert found.shape == (3 + outcomes.index("mine"),)


def test_of_many_threads_one_creates():
    store = counting()
    barrier = threading.Barrier(8)
    outcomes: dict[int, object] = {}

    def create(size, mode):
        barrier.wait()
        try:
            outcomes[size] = opened(store, create=True, dtype="uint8", shape=[size], **mode).shape
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


def test_resizes_of_different_dimensions_by_processes_all_hold(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    ts.open(spec, create=True, dtype="uint8", shape=[1, 1, 1]).result()
    together(RESIZER, [(f"{tmp_path}/", dim) for dim in range(3)])
    assert ts.open(spec).result().shape == (8, 8, 8)


#: Counts in an attribute of a group, or of the array in it.
COUNTER = """
import sys
import tensorstore_py as ts
store = {"driver": "file", "path": sys.argv[1], "file_io_sync": False}
node = ts.Group.open(store).result()
if sys.argv[2] == "array":
    node = node["a"]
print("ready", flush=True)
sys.stdin.readline()
for count in range(125):
    node.attrs.change(lambda found: {**found, "n": found.get("n", 0) + 1}).result()
print("done", flush=True)
"""


@pytest.mark.parametrize(("zarr_format", "kind"), [(2, "group"), (3, "array")])
def test_attributes_lose_no_increment_of_any_process(tmp_path: Path, zarr_format, kind):
    group = ts.Group.open(tmp_path, create=True, zarr_format=zarr_format).result()
    array = group.create_array("a", dtype="int8", shape=[3], attributes={"kept": 1}).result()

    together(COUNTER, [(tmp_path, kind)] * 8)

    node = group if kind == "group" else array
    assert node.attrs["n"] == 1000
    assert dict(group["a"].attrs) == {"kept": 1, **({"n": 1000} if kind == "array" else {})}
    assert group["a"].shape == (3,)
