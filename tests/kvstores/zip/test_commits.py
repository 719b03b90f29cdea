"""Archives with several writers: tasks, threads, processes, and one that is killed."""

import asyncio
import io
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.kvstores.zip.archive import Archive
from tensorstore_py.kvstores.zip.commits import Change, Commits
from tensorstore_py.kvstores.zip.methods import pack
from tensorstore_py.kvstores.zip.store import SharedArchive, ZipStore
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, KeyRange
from tensorstore_py.testing import CountingStore, FaultServer, FaultyStore, LoopStore, drive
from tests.kvstores.s3.fake_s3 import FakeS3
from tests.runtime.processes import run_script


@pytest.fixture
def shared():
    return SharedMap()


def stored(shared):
    return shared.entries["a.zip"][0]


def opened(base):
    return ZipStore(SharedArchive(base, "a.zip"))


def write(store, key, value, **condition):
    return drive(store, lambda: store.write(key, value, **condition))


def test_new_entries_go_behind_the_old_ones(shared):
    base = CountingStore(MemoryStore(shared))
    store = opened(base)
    write(store, "a", bytes(range(256)) * 100)
    first = stored(shared)
    write(store, "b", b"b")

    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        start = archive.start_dir
    assert stored(shared)[:start] == first[:start]


def test_an_archive_is_packed_anew_when_a_quarter_is_wasted(shared):
    base = MemoryStore(shared)
    store = ZipStore(SharedArchive(base, "a.zip"), "store")
    for key in "abcdefghij":
        write(store, key, key.encode() * 1000)
    full = len(stored(shared))

    sizes = []
    for key in "abcdefghij":
        write(store, key, None)
        sizes.append(len(stored(shared)))

    assert sizes[0] > full - 1000
    assert sizes[4] < full * 0.7
    assert sizes[-1] == 22


def test_two_writers_of_one_archive_undo_nothing_of_each_other(shared):
    stores = [opened(MemoryStore(shared)) for _ in range(2)]
    for number in range(10):
        write(stores[number % 2], f"k{number}", b"%d" % number)
    stale = write(stores[0], "k9", b"late", if_equal=NO_VALUE)

    assert stale.generation == UNKNOWN
    with zipfile.ZipFile(io.BytesIO(stored(shared))) as archive:
        assert len(archive.namelist()) == 10


def test_of_several_waiters_each_gets_its_own_outcome(shared):
    store = opened(LoopStore(MemoryStore(shared)))
    write(store, "a", b"0")

    async def together():
        return await asyncio.gather(
            store.write("x", b"0"),
            *(store.write("a", b"%d" % number, if_equal=NO_VALUE) for number in range(3)),
            *(store.write("b", b"%d" % number, if_equal=NO_VALUE) for number in range(3)),
        )

    stamps = drive(store, together)

    failed = [stamp.generation == UNKNOWN for stamp in stamps]
    assert failed[:4] == [False, True, True, True]
    assert sorted(failed[4:]) == [False, True, True]


def test_generations_differ_even_for_equal_values_at_one_time(shared, monkeypatch):
    monkeypatch.setattr("tensorstore_py.kvstores.zip.commits.time.time", lambda: 1.0e9)
    store = opened(MemoryStore(shared))

    seen = {write(store, "a", b"same").generation for _ in range(10)}

    assert len(seen) == 10


def test_a_failed_replacement_is_an_error_for_all_its_waiters_and_only_for_them(shared):
    base = FaultyStore(MemoryStore(shared))
    store = opened(base)
    write(store, "a", b"1")
    before = stored(shared)
    base.fail("write", ts.PermissionDeniedError("no"))
    with pytest.raises(ts.PermissionDeniedError):
        write(store, "b", b"2")

    assert stored(shared) == before
    write(store, "b", b"2")
    assert len(stored(shared)) > len(before)


def test_whoever_is_cancelled_leaves_the_others_be(shared):
    store = opened(LoopStore(MemoryStore(shared)))

    async def cancel_one():
        first, second, third = (
            asyncio.ensure_future(store.write(key, key.encode())) for key in "abc"
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(second, third)
        with pytest.raises(asyncio.CancelledError):
            await first

    drive(store, cancel_one)

    with zipfile.ZipFile(io.BytesIO(stored(shared))) as archive:
        assert {"b", "c"} <= set(archive.namelist())


def test_whoever_is_interrupted_leaves_the_changes_of_others(shared):
    class Interrupted(MemoryStore):
        async def write(self, key, value, **condition):
            raise KeyboardInterrupt

    interrupted = Interrupted(shared)
    archive = Archive(interrupted, "a.zip")
    commits = Commits(archive)
    mine, other = (Change({key: pack(b"1", "store")}, {}) for key in "ab")
    commits._waiting.append(other)  # its thread waits for its turn
    with pytest.raises(KeyboardInterrupt):
        drive(interrupted, lambda: commits.make(mine))

    archive.base = MemoryStore(shared)
    drive(archive.base, lambda: commits._take_turn(other))

    assert other.done
    assert zipfile.ZipFile(io.BytesIO(stored(shared))).namelist() == ["b"]


def test_what_waits_in_the_parent_is_not_done_by_a_forked_child():
    script = """
        import os
        from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
        from tensorstore_py.kvstores.zip.commits import Change
        from tensorstore_py.kvstores.zip.store import SharedArchive, ZipStore
        from tensorstore_py.plugin.kvstore import KeyRange
        from tensorstore_py.testing import drive

        shared = SharedArchive(MemoryStore(SharedMap()), "a.zip")
        store = ZipStore(shared)
        drive(store, lambda: store.write("kept", b"1"))
        shared.commits._waiting.append(Change({}, {}, KeyRange()))  # a thread of the parent
        child = os.fork()
        if not child:
            drive(store, lambda: store.write("new", b"2"))
            print(sorted(drive(store, shared.archive.latest).keys), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """
    assert run_script(script) == "['kept', 'new']\n"


def test_deleting_nothing_writes_nothing(shared):
    base = CountingStore(MemoryStore(shared))
    store = opened(base)

    write(store, "a", None)
    drive(store, lambda: store.delete_range(KeyRange.prefix("x")))

    assert not base.writes
    write(store, "a", b"1")
    drive(store, lambda: store.delete_range(KeyRange.prefix("x")))
    assert base.writes["a.zip"] == 1


def test_directories_and_comments_stay(shared):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("d/", b"")
        archive.writestr("d/a", b"x" * 1000)
        archive.writestr("d/b", b"x")
        archive.comment = b"hello"
    base = MemoryStore(shared)
    drive(base, lambda: base.write("a.zip", file.getvalue()))

    write(opened(base), "d/a", None)

    with zipfile.ZipFile(io.BytesIO(stored(shared))) as archive:
        assert archive.namelist() == ["d/", "d/b"]
        assert archive.comment == b"hello"
        assert len(stored(shared)) < 500


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
