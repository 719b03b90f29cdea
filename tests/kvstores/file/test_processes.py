"""The file store among processes: writers that are killed, and writers that compete."""

import os
import signal
import subprocess
import sys

import pytest

from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.testing import drive

OURS = """
import sys
import tensorstore_py
from tensorstore_py.kvstores.file import store as module
store = tensorstore_py.KvStore.open({"driver": "file", "path": "/", "file_io_sync": False}).result()
read = lambda key: store.read(key[1:]).result()
write = lambda key, value, like=None: store.write(key[1:], value, if_equal=like).result().generation
"""

THEIRS = """
import sys
import tensorstore
store = tensorstore.KvStore.open({"driver": "file", "path": "/", "file_io_sync": False}).result()
read = lambda key: store.read(key[1:]).result()
write = lambda key, value, like=None: store.write(key[1:], value, if_equal=like).result().generation
"""

INCREMENT = """
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    done = b""
    while not done:
        found = read(sys.argv[1])
        following = b"%d" % (int(bytes(found.value)) + 1)
        done = write(sys.argv[1], following, found.stamp.generation)
"""


def launch(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def line_of(process):
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.fixture
def store():
    return FileStore(sync=False)


def get(store, key):
    return bytes(drive(store, lambda: store.read(key)).value)


def put(store, key, value):
    return drive(store, lambda: store.write(key, value)).generation


def count_up(tmp_path, store, writers, increments):
    """Let the writers increment one number at once; returns the number."""
    key = f"{tmp_path}/number"
    put(store, key, b"0")
    processes = [launch(code + INCREMENT, key, str(increments)) for code in writers]
    assert [line_of(process) for process in processes] == ["ready"] * len(processes)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()

    assert [process.returncode for process in processes] == [0] * len(processes)
    assert os.listdir(tmp_path) == ["number"]
    return int(get(store, key))


def test_competing_processes_lose_no_update(tmp_path, store):
    assert count_up(tmp_path, store, [OURS] * 4, 200) == 800


def test_the_reference_is_one_writer_among_others(tmp_path, store):
    pytest.importorskip("tensorstore")  # of which there is none for every Python
    assert count_up(tmp_path, store, [OURS, OURS, THEIRS], 100) == 300


def test_a_writer_killed_half_way_leaves_the_old_value(tmp_path, store):
    key = f"{tmp_path}/a"
    put(store, key, b"old value")
    writer = launch(
        OURS + "import os\n"
        "def half(fd, parts):\n"
        "    os.write(fd, parts[0][: len(parts[0]) // 2])\n"
        "    print('half', flush=True)\n"
        "    sys.stdin.readline()\n"
        "module.write_parts = half\n"
        "write(sys.argv[1], b'x' * 100_000)\n",
        key,
    )
    assert line_of(writer) == "half"
    kill(writer)

    assert get(store, key) == b"old value"
    assert os.path.getsize(key + ".__lock") == 50_000
    # What the dead writer left neither blocks the next one nor gets into its value.
    put(store, key, b"new value")
    assert get(store, key) == b"new value"
    assert os.listdir(tmp_path) == ["a"]


def test_a_writer_killed_at_any_moment_leaves_a_whole_value(tmp_path, store):
    key = f"{tmp_path}/a"
    writer = launch(
        OURS + "number = 0\n"
        "while True:\n"
        "    write(sys.argv[1], bytes([65 + number % 26]) * (1 + number % 7 * 40_000))\n"
        "    number += 1\n"
        "    print(number, flush=True)\n",
        key,
    )
    while int(line_of(writer)) < 20:
        pass
    kill(writer)

    value = get(store, key)
    assert len(set(value)) == 1
    assert len(value) in {1 + each * 40_000 for each in range(7)}
    put(store, key, b"new")
    assert get(store, key) == b"new"
    assert os.listdir(tmp_path) == ["a"]
