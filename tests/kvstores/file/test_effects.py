"""Each resource of the file store, given as a user gives it, does what it says."""

import os
import time
from collections import Counter

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import UnavailableError
from tensorstore_py.kvstores.file import locking
from tensorstore_py.kvstores.file import store as store_module
from tensorstore_py.testing import drive


def opened(path, **resources):
    """A store with these resources, from a context of its own."""
    context = ts.Context(resources)
    return ts.KvStore.open({"driver": "file", "path": f"{path}/"}, context=context).result()


def fetched(store, key):
    """The value as the file store gives it to the engine, not yet copied for the user."""
    inner = store.store
    return drive(inner, lambda: inner.read(store.path + key)).value


@pytest.fixture
def calls(monkeypatch):
    """Counts what is asked of the operating system, and the flags of what is opened."""
    counts: Counter[str] = Counter()

    def watch(name):
        plain = getattr(os, name)

        def counted(*arguments, **options):
            counts[name] += 1
            return plain(*arguments, **options)

        monkeypatch.setattr(os, name, counted)

    for name in ("fsync", "replace", "open"):
        watch(name)
    return counts


@pytest.mark.parametrize(("sync", "syncs"), [(True, 2), (False, 0)])
def test_sync(tmp_path, calls, sync, syncs):
    store = opened(tmp_path, file_io_sync=sync)
    store.write("a", b"1").result()
    assert calls["fsync"] == syncs  # of the file, and of its directory
    calls.clear()
    store.write("a", None).result()
    assert calls["fsync"] == syncs / 2


@pytest.mark.parametrize(
    ("mode", "renames", "number_stays"),
    [("os", 1, False), ("lockfile", 1, False), ("none", 1, False), ("non_atomic", 0, True)],
)
def test_locking(tmp_path, calls, mode, renames, number_stays):
    store = opened(tmp_path, file_io_locking={"mode": mode}, file_io_sync=False)
    store.write("a", b"1").result()
    before = os.stat(tmp_path / "a").st_ino
    calls.clear()
    store.write("a", b"2").result()
    assert calls["replace"] == renames
    assert (os.stat(tmp_path / "a").st_ino == before) is number_stays
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("mode", ["os", "lockfile"])
@pytest.mark.parametrize("value", [b"2", None], ids=["write", "delete"])
def test_locking_waits_for_as_long_as_it_should(tmp_path, monkeypatch, mode, value):
    store = opened(tmp_path, file_io_locking={"mode": mode, "acquire_timeout": "30ms"})
    store.write("a", b"1").result()
    holder = locking.acquire(f"{tmp_path}/a.__lock", 1)
    slept: list[float] = []
    clock = [100.0]

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with pytest.raises(UnavailableError, match=r"a\.__lock.*after 0\.03 s"):
        store.write("a", value).result()
    assert sum(slept) == pytest.approx(0.03)
    os.close(holder)
    assert store["a"] == b"1"


class TestMode:
    SIZE = 10_000

    @pytest.fixture
    def flags(self, tmp_path, monkeypatch):
        """The flags of each file that was opened to be read."""
        flags = []
        plain = os.open

        def watched(path, how, *arguments):
            if not how & (os.O_WRONLY | os.O_CREAT | os.O_DIRECTORY):
                flags.append(how)
            return plain(path, how, *arguments)

        monkeypatch.setattr(os, "open", watched)
        return flags

    @pytest.mark.parametrize(
        ("mode", "kind", "direct"),
        [("default", bytes, False), ("memmap", memoryview, False), ("direct", memoryview, True)],
    )
    def test_how_values_are_fetched(self, tmp_path, flags, mode, kind, direct):
        store = opened(tmp_path, file_io_mode={"mode": mode}, file_io_sync=False)
        data = os.urandom(self.SIZE)
        store.write("a", data).result()
        flags.clear()
        value = fetched(store, "a")
        assert type(value) is kind
        assert bytes(value) == data
        assert [bool(each & os.O_DIRECT) for each in flags] == [direct]

    def test_mapped_pages_are_those_of_the_file(self, tmp_path):
        store = opened(tmp_path, file_io_mode={"mode": "memmap"}, file_io_sync=False)
        store.write("a", b"1" * self.SIZE).result()
        value = fetched(store, "a")
        with open(tmp_path / "a", "r+b") as file:
            file.write(b"2")
        assert bytes(value[:2]) == b"21"

    @pytest.mark.parametrize("mode", ["memmap", "direct"])
    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_arrays_are_the_same_in_every_mode(self, tmp_path, mode, driver):
        spec = {
            "driver": driver,
            "kvstore": f"file://{tmp_path}/",
            "context": {"file_io_mode": {"mode": mode}, "file_io_sync": False},
        }
        layout = ts.ChunkLayout(chunk_shape=[50, 70])
        values = np.arange(120 * 130, dtype="uint16").reshape(120, 130)
        store = ts.open(
            spec, create=True, dtype="uint16", shape=values.shape, chunk_layout=layout
        ).result()
        store[...] = values
        store[3:70, 5] = 9
        values[3:70, 5] = 9
        np.testing.assert_array_equal(store.read().result(), values)
        plain = ts.open({"driver": driver, "kvstore": f"file://{tmp_path}/"}).result()
        np.testing.assert_array_equal(plain.read().result(), values)


class TestRetries:
    @pytest.fixture
    def slept(self, monkeypatch):
        slept: list[float] = []
        monkeypatch.setattr("tensorstore_py.kvstores.file.reading.pause", slept.append)
        return slept

    @pytest.fixture
    def store(self, tmp_path):
        store = opened(
            tmp_path,
            file_io_sync=False,
            file_io_retries={"max_retries": 2, "initial_delay": "100ms", "max_delay": "150ms"},
        )
        store.write("a", b"1").result()
        return store

    @staticmethod
    def fail(monkeypatch, owner, name, times, number=5):
        plain = getattr(owner, name)
        left = [times]

        def failing(*arguments, **options):
            if left[0]:
                left[0] -= 1
                raise OSError(number, os.strerror(number))
            return plain(*arguments, **options)

        monkeypatch.setattr(owner, name, failing)

    @pytest.mark.parametrize(
        ("name", "work"),
        [
            ("present_at", lambda store: store.write("a", b"2")),
            ("present_at", lambda store: store.write("a", None)),
            ("delete_tree", lambda store: store.delete_range(ts.KvStore.KeyRange("a", "b"))),
        ],
        ids=["write", "delete", "delete_range"],
    )
    def test_changes_are_tried_again(self, store, monkeypatch, slept, name, work):
        self.fail(monkeypatch, store_module, name, 2)
        work(store).result()
        assert len(slept) == 2
        assert 0.1 <= slept[0] <= 0.15 == slept[1]
        assert store.read("a").result().value in (b"2", b"")

        self.fail(monkeypatch, store_module, name, 3)
        with pytest.raises(UnavailableError) as caught:
            work(store).result()
        assert caught.value.attempts == 3

    @pytest.mark.parametrize(
        "number", [5, 116, 110, 11], ids=["EIO", "ESTALE", "ETIMEDOUT", "EAGAIN"]
    )
    def test_reads_are_tried_again(self, store, monkeypatch, slept, number):
        self.fail(monkeypatch, os, "fstat", 2, number)
        assert store["a"] == b"1"
        assert len(slept) == 2

    @pytest.mark.parametrize("value", [b"2", None], ids=["write", "delete"])
    def test_a_condition_is_not_checked_against_our_own_change(
        self, tmp_path, monkeypatch, slept, value
    ):
        store = opened(tmp_path, file_io_retries={"max_retries": 2})
        stamp = store.write("a", b"1").result()
        self.fail(monkeypatch, store_module, "sync_directory", 2)
        result = store.write("a", value, if_equal=stamp.generation).result()
        assert result.generation == store.read("a").result().stamp.generation
        assert len(slept) == 2

    def test_by_default_once(self, tmp_path, monkeypatch, slept):
        store = opened(tmp_path)
        store.write("a", b"1").result()
        self.fail(monkeypatch, os, "fstat", 1)
        with pytest.raises(UnavailableError, match="a"):
            store["a"]
        assert slept == []


def test_a_process_that_dies_with_the_lock_blocks_no_other(tmp_path):
    holder = os.fork()
    if not holder:
        locking.acquire(f"{tmp_path}/a.__lock", 1)
        os._exit(0)
    os.waitpid(holder, 0)
    store = opened(tmp_path, file_io_locking={"acquire_timeout": "0s"})
    store.write("a", b"1").result()
    assert store["a"] == b"1"
