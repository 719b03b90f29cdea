"""Archives with several writers: tasks, threads, processes, and one that is killed."""

import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py.testing import FaultServer
from tests.kvstores.s3.fake_s3 import FakeS3

ROOT = Path(__file__).parents[3]
INCREMENT = """
import sys
import tensorstore_py as ts

store = ts.KvStore.open(sys.argv[1]).result()
for _ in range(int(sys.argv[2])):
    while True:
        found = store.read("n").result()
        value = b"%d" % (int(found.value or b"0") + 1)
        stamp = store.write("n", value, if_equal=found.stamp.generation).result()
        if stamp.generation:
            break
    store["own/" + sys.argv[3]] = value
"""
KILLED = """
import sys
import tensorstore_py as ts

store = ts.KvStore.open(sys.argv[1]).result()
number = 0
while True:
    number += 1
    with ts.Transaction() as transaction:
        inside = store.with_transaction(transaction)
        inside["a"] = inside["b"] = b"%d " % number * 20000
    print(number, flush=True)
"""


def run(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_two_processes_lose_no_increment(tmp_path):
    path = tmp_path / "a.zip"
    url = f"{path.as_uri()}|zip:"

    running = [run(INCREMENT, url, "40", name) for name in "xy"]
    assert [process.wait(60) for process in running] == [0, 0]
    for process in running:
        assert process.stdout is not None
        process.stdout.close()

    store = ts.KvStore.open(url).result()
    assert store["n"] == b"80"
    assert store.list().result() == [b"n", b"own/x", b"own/y"]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def test_whoever_is_killed_leaves_a_whole_archive(tmp_path):
    path = tmp_path / "a.zip"
    url = f"{path.as_uri()}|zip:"

    with run(KILLED, url) as process:
        assert process.stdout is not None
        done = [int(process.stdout.readline()) for _ in range(10)][-1]
        process.kill()

    store = ts.KvStore.open(url).result()
    assert store["a"] == store["b"]
    assert int(store["a"].split()[0]) >= done
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    store["c"] = b"goes on"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("base", ["memory", "file", "s3"])
def test_threads_that_write_at_once_lose_nothing(tmp_path, base):
    server = FaultServer(FakeS3().handle, ())
    with server.running():
        specs = {
            "memory": "memory://a.zip",
            "file": f"{tmp_path}/a.zip",
            "s3": {
                "driver": "s3", "bucket": "bucket", "path": "a.zip", "endpoint": server.url,
                "aws_credentials": {"type": "anonymous"},
            },
        }  # fmt: skip
        where = {"driver": "file", "path": specs["file"]} if base == "file" else specs[base]
        store = ts.KvStore.open({"driver": "zip", "base": where}).result()

        def work(number):
            store[f"k{number}"] = b"%d" % number * 500
            return store[f"k{number}"] == b"%d" % number * 500

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(64)))
        store.delete_range(ts.KvStore.KeyRange("k1", "k2")).result()

        expected = sorted(b"k%d" % number for number in range(64) if f"{number}"[0] != "1")
        assert store.list().result() == expected
    if base == "s3":
        asked = [request.method for request in server.requests]
        assert asked.count("PUT") < 64
