"""The fsspec store on file systems of both temperaments."""

import numpy as np
import pytest
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.memory import MemoryFileSystem

import tensorstore_py as ts
from tensorstore_py.kvstores.fsspec import FsspecStore
from tensorstore_py.kvstores.fsspec.files import Files, open_files
from tensorstore_py.kvstores.fsspec.store import generation_of, is_weak
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, ByteRange
from tensorstore_py.testing import CountedWaits, FaultServer, KvStoreSuite, WebValues, drive
from tests.kvstores.s3.fake_s3 import FakeS3

BAD = ("", "/a", "a/", "a//b", ".", "a/..", "a/./b", "a\0")


class FsspecSuite(KvStoreSuite):
    bad_keys = BAD


class TestInMemory(FsspecSuite):
    @pytest.fixture
    def store(self, tmp_path):
        url = f"memory://{tmp_path.name}-{id(self)}"
        return FsspecStore(open_files(url, {}), url)


class TestOnTheLoop(FsspecSuite):
    @pytest.fixture
    def store(self, tmp_path):
        root = f"/{tmp_path.name}-loop-{id(self)}"

        def connect():
            return AsyncFileSystemWrapper(MemoryFileSystem(), asynchronous=True), root

        files = Files(connect, "memory", inline=False)
        return FsspecStore(files, f"memory:/{root}")


class TestOnS3(FsspecSuite):
    """Real requests, by s3fs, to a server that answers as S3 does."""

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls):
        server = FaultServer(FakeS3().handle, ())
        with server.running():
            client = {"endpoint_url": server.url, "region_name": "x"}
            url = "s3://bucket"
            files = open_files(url, {"anon": True, "client_kwargs": client})
            yield FsspecStore(files, url, use_conditional_write=False)

    @pytest.fixture
    def prefix(self, tmp_path):
        return f"{tmp_path.name}/"


class TestOnDisk(FsspecSuite):
    writers = 1  # the library writes in place

    @pytest.fixture
    def store(self, tmp_path):
        url = tmp_path.as_uri()
        return FsspecStore(open_files(url, {}), url, use_conditional_write=False)


class Watched(MemoryFileSystem):  # type: ignore[misc]  # it has no types
    """In memory, and tells what was asked of it; whoever wants may step in."""

    protocol = "watched"

    cachable = False

    def __init__(self):
        super().__init__()
        self.asked = []
        self.store = {}
        self.before = {}

    def _about_to(self, name):
        self.asked.append(name)
        step = self.before.pop(name, None)
        if step is not None:
            step()

    def info(self, path, **kwargs):
        self._about_to("info")
        return super().info(path, **kwargs)

    def cat_file(self, path, start=None, end=None, **kwargs):
        self._about_to("cat_file")
        return super().cat_file(path, start=start, end=end, **kwargs)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self._about_to(f"pipe_file {mode}")
        super().pipe_file(path, value, mode=mode, **kwargs)


def watched(protocol="watched", **options):
    system = Watched()
    files = Files(lambda: (system, ""), protocol, inline=True)
    return FsspecStore(files, f"{protocol}://", **options), system


def write(store, key, value, **condition):
    return drive(store, lambda: store.write(key, value, **condition))


def read(store, key, *arguments, **condition):
    return drive(store, lambda: store.read(key, *arguments, **condition))


def test_a_read_takes_two_calls_and_an_unchanged_value_one():
    store, system = watched()
    stamp = write(store, "a", b"0123")
    system.asked.clear()

    assert bytes(read(store, "a").value) == b"0123"
    assert system.asked == ["info", "cat_file"]
    assert read(store, "a", if_not_equal=stamp.generation).state == "unspecified"
    assert system.asked == ["info", "cat_file", "info"]


@pytest.mark.parametrize("byte_range", [ByteRange(), ByteRange(1), ByteRange(-2), ByteRange(0, 2)])
def test_what_is_replaced_meanwhile_is_read_again(byte_range):
    store, system = watched()
    write(store, "a", b"01")
    system.before["cat_file"] = lambda: MemoryFileSystem.pipe_file(system, "/a", b"wxyz")

    found = bytes(read(store, "a", byte_range).value)

    assert found == (b"wx" if byte_range.stop else b"wxyz"[byte_range.start :])


def test_parts_are_of_one_version():
    store, system = watched()
    write(store, "a", b"0123456789" * 1000)
    system.before["cat_file"] = lambda: write(store, "a", b"abcdefghij" * 1000)

    wanted = [ByteRange(0, 5), ByteRange(9000, 9005)]
    found = drive(store, lambda: store.read_ranges("a", wanted))

    assert [bytes(each.value) for each in found] == [b"abcde", b"abcde"]


def test_what_never_stays_the_same_is_an_error():
    store, system = watched()
    write(store, "a", b"01")

    def replace():
        MemoryFileSystem.pipe_file(system, "/a", b"0" * (len(system.asked) + 2))
        system.before["cat_file"] = replace

    system.before["cat_file"] = replace
    with pytest.raises(ts.AbortedError, match="was replaced 8 times"):
        read(store, "a")


def test_conditions_that_the_server_ignores_are_refused():
    store, _ = watched()
    stamp = write(store, "a", b"1")

    for condition in (NO_VALUE, stamp.generation):
        for value in (b"2", None):
            with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
                write(store, "a", value, if_equal=condition)
    assert bytes(read(store, "a").value) == b"1"


def test_services_decide_which_writer_creates():
    store, system = watched("az")

    assert write(store, "a", b"1", if_equal=NO_VALUE).generation not in (UNKNOWN, NO_VALUE)
    assert write(store, "a", b"2", if_equal=NO_VALUE).generation == UNKNOWN
    assert system.asked.count("pipe_file create") == 2
    assert "pipe_file overwrite" not in system.asked


def test_values_of_one_size_at_one_time_are_distinguished():
    store, system = watched(use_conditional_write=False)
    first = write(store, "a", b"1")
    created = system.store["/a"].created
    waits = CountedWaits()

    def stand_still():
        late = len(waits.seconds) >= 3
        system.store["/a"].created = system.store["/a"].modified if late else created
        system.before["info"] = stand_still

    system.before["info"] = stand_still
    with waits:
        second = write(store, "a", b"2")

    assert second.generation != first.generation
    assert waits.seconds == [0.002, 0.004, 0.008]


def test_errors_name_the_key_and_have_no_secrets():
    def fail():
        raise OSError("no route to swordfish")

    store, system = watched(hidden=lambda text: text.replace("swordfish", "..."))
    system.before = {"info": fail}

    with pytest.raises(
        ts.UnavailableError, match=r'cannot read "watched:///a": no route to \.\.\.'
    ) as caught:
        read(store, "a")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__  # a traceback would print it
    write(store, "b", b"")
    with pytest.raises(ts.FailedPreconditionError, match='cannot write "watched:///b/c"'):
        write(store, "b/c", b"")


def test_arrays_on_any_file_system():
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "fsspec", "url": "memory://arrays/a"},
        "metadata": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [30, 30]}}},
    }
    data = np.arange(6400, dtype=np.uint16).reshape(80, 80)
    made = ts.open(spec, create=True, delete_existing=True, dtype="uint16", shape=[80, 80]).result()
    made[...] = data
    made[3:50, 7] = data[3:50, 7] = 5

    found = ts.open(spec).result()
    np.testing.assert_array_equal(found[...].read().result(), data)
    inside = MemoryFileSystem().find("/arrays/a")
    assert len(inside) == 10


def test_values_on_a_web_server():
    web = WebValues()
    web.values["some/a b"] = b"0123456789"
    server = FaultServer(web.handle, ())
    with server.running():
        spec = {"driver": "fsspec", "url": f"{server.url}/some"}
        store = ts.KvStore.open(spec).result()

        assert store["/a b"] == b"0123456789"
        assert store.read("/a b", byte_range=slice(-3, None)).result().value == b"789"
        assert "/nothing" not in store


@pytest.mark.parametrize("name", ["ETag", "etag", "generation", "content_md5", "sha"])
def test_what_is_strong_is_enough(name):
    info = {name: "x", "mtime": 1, "size": 5}

    assert not is_weak(info)
    assert generation_of(info) == generation_of({name: "x", "mtime": 2})
    assert generation_of(info) != generation_of({name: "y", "mtime": 1, "size": 5})


@pytest.mark.parametrize("name", ["mtime", "LastModified", "modify", "created", "ino", "size"])
def test_all_that_is_weak_is_used(name):
    info = {"mtime": 1, "size": 5, "ETag": ""}

    assert is_weak(info)
    assert generation_of(info) != generation_of({**info, name: 7})


def test_what_changes_without_the_value_is_not_used():
    assert generation_of({"mtime": 1, "atime": 1}) == generation_of({"mtime": 1, "atime": 2})
