"""File systems, mappers and paths that the user made."""

import http.client
import os
import pickle
import subprocess
import sys
import uuid
from contextlib import closing

import fsspec
import numpy as np
import pytest
import upath
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.memory import MemoryFileSystem

import tensorstore_py as ts
from tensorstore_py.errors import PermissionDeniedError, SpecError
from tensorstore_py.kvstores.fsspec.files import Files, HeldFiles, open_files
from tensorstore_py.kvstores.fsspec.store import FsspecStore
from tensorstore_py.testing import FaultServer, KvStoreSuite
from tests.kvstores.s3.fake_s3 import FakeS3


@pytest.mark.parametrize(
    ("root", "key", "path"),
    [
        ("", "a/b", "/a/b"),
        ("", "", "/"),
        ("bucket", "a", "bucket/a"),
        ("/x/", "a", "/x/a"),
        ("https://host/x", "a", "https://host/x/a"),
    ],
)
def test_paths_of_keys(root, key, path):
    files = Files(lambda: (MemoryFileSystem(), root), "memory", inline=True)

    assert files.path(key) == path
    assert files.key(path) == key


def test_what_is_not_below_the_root_has_no_key():
    files = Files(lambda: (MemoryFileSystem(), "/x"), "memory", inline=True)

    assert files.key("/xy/z") == files.key("/x") == ""


def test_a_file_system_is_made_once_and_again_in_a_child(monkeypatch):
    made = []

    def connect():
        made.append(1)
        return MemoryFileSystem(), ""

    files = Files(connect, "memory", inline=True)
    assert made == []
    files.path("a")
    files.path("b")
    assert len(made) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    files.path("a")
    assert len(made) == 2


def test_chains_of_file_systems_are_opened():
    name = uuid.uuid4().hex
    MemoryFileSystem().pipe_file(f"/{name}/a", b"1")

    assert open_files(f"simplecache::memory://{name}", {}).inline
    spec = {"driver": "fsspec", "url": f"simplecache::memory://{name}"}
    assert ts.KvStore.open(spec).result()["a"] == b"1"


def test_what_is_not_installed_is_named(monkeypatch):
    with pytest.raises(ts.UnsupportedError, match="Protocol not known: nosuch"):
        open_files("nosuch://a", {})
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ts.UnsupportedError, match=r"tensorstore-py\[fsspec\]"):
        open_files("memory://a", {})


class Suite(KvStoreSuite):
    bad_keys = ("", "/a", "a/", "a//b", ".", "a/..", "a/./b", "a\0")
    odd_keys = ("a b", "a%20b", "é", "a+b", "a.b.c", "[a]", "a'b")

    @pytest.fixture
    def prefix(self):
        return f"{uuid.uuid4().hex}/"


class TestMemory(Suite):
    @pytest.fixture
    def store(self):
        return FsspecStore(HeldFiles(MemoryFileSystem()), "memory://")


class TestAsynchronous(Suite):
    """In the loop of the file system."""

    @pytest.fixture
    def store(self):
        system = AsyncFileSystemWrapper(MemoryFileSystem())
        return FsspecStore(HeldFiles(system), "memory://", use_conditional_write=False)


class TestDirectory(Suite):
    """A file system over another one, which cannot be awaited."""

    writers = 1  # local files are not replaced at once by fsspec

    @pytest.fixture
    def store(self, tmp_path):
        inner = fsspec.filesystem("file", auto_mkdir=True)
        system = fsspec.filesystem("dir", path=str(tmp_path), fs=inner)
        return FsspecStore(HeldFiles(system), "dir://", use_conditional_write=False)


def create(store):
    spec = {"driver": "zarr3", "kvstore": store}
    layout = {"chunk": {"shape": [4]}}
    return ts.open(spec, create=True, dtype="u2", shape=[8], chunk_layout=layout).result()


def places(tmp_path):
    name = uuid.uuid4().hex
    system = fsspec.filesystem("memory")
    yield fsspec.get_mapper(f"memory://{name}/a")
    yield fsspec.get_mapper(str(tmp_path / "b"))
    yield upath.UPath(f"memory://{name}/c")
    yield upath.UPath(tmp_path / "d")
    yield upath.UPath(f"file://{tmp_path}/e")
    yield fsspec.filesystem("dir", path=f"/{name}/f", fs=system)
    yield {"driver": "fsspec", "filesystem": system, "path": f"{name}/g/"}


def test_they_are_taken_everywhere(tmp_path):
    for place in places(tmp_path):
        create(place)[1:6] = 7

        expected = [0, 7, 7, 7, 7, 7, 0, 0]
        assert ts.open(place).result().read().result().tolist() == expected, place
        assert b"zarr.json" in ts.KvStore.open(place).result().list().result()
        assert ts.zarr.open_array(place, mode="r")[:].tolist() == expected
        group = ts.Group.open({"driver": "zarr3", "kvstore": place}, path="", open=True)
        with pytest.raises(ts.errors.MismatchError):
            group.result()


def test_a_path_and_a_mapper_are_places_in_their_file_system():
    mapper = fsspec.get_mapper("memory://lab/data")

    assert ts.KvStore.Spec(mapper).path == "lab/data/"
    assert ts.KvStore.Spec(upath.UPath("memory://lab/data/x")).path == "lab/data/x/"
    assert ts.KvStore.Spec(mapper).to_json() == {
        "driver": "fsspec",
        "url": "memory://",
        "filesystem": "<MemoryFileSystem>",
        "path": "lab/data/",
    }


def test_a_mapper_is_not_read_when_a_spec_is_made():
    class Silent(MemoryFileSystem):  # type: ignore[misc]  # it has no types
        protocol = "silent"

        def find(self, *arguments, **options):
            raise AssertionError

        ls = cat = info = find

    assert ts.KvStore.Spec(fsspec.FSMap("/a", Silent())).path == "a/"


def test_asynchronous_file_systems_are_used_in_their_own_loop_or_another_like_them(moto_s3):
    bucket = moto_s3.make_bucket()
    options = {
        "key": moto_s3.access_key,
        "secret": moto_s3.secret_key,
        "endpoint_url": moto_s3.endpoint,
        "skip_instance_cache": True,
    }
    system = fsspec.filesystem("s3", **options)
    mapper = fsspec.FSMap(f"{bucket}/a", system)
    mapper["before"] = b"1"

    kvstore = ts.KvStore.open(mapper).result()
    assert kvstore["before"] == b"1"
    kvstore["after"] = b"2"
    assert mapper["after"] == b"2"
    create(mapper)[:] = np.arange(8, dtype="u2")
    assert ts.open(mapper).result()[3].read().result() == 3

    elsewhere = fsspec.filesystem("s3", **options, asynchronous=True)
    spec = {"driver": "fsspec", "filesystem": elsewhere, "path": f"{bucket}/a/"}
    assert ts.KvStore.open(spec).result()["after"] == b"2"


def test_paths_that_are_urls_are_distinguished_from_their_server():
    server = FaultServer(FakeS3().handle, ())
    with server.running():
        with closing(http.client.HTTPConnection(server.url[7:])) as connection:
            connection.request("PUT", "/bucket/a/x", b"0123456789")
            connection.getresponse().read()
        mapper = fsspec.get_mapper(f"{server.url}/bucket/a", skip_instance_cache=True)
        path = upath.UPath(f"{server.url}/bucket/a")

        for place in (mapper, path):
            kvstore = ts.KvStore.open(place).result()
            assert kvstore.path == "bucket/a/"
            assert kvstore["x"] == b"0123456789"
            assert kvstore.read("nothing").result().state == "missing"


def test_what_is_no_file_system_is_refused():
    for given in ("<MemoryFileSystem>", 5, ts.zarr.MemoryStore()):
        with pytest.raises(SpecError, match="file system object"):
            ts.KvStore.Spec({"driver": "fsspec", "filesystem": given})
    with pytest.raises(SpecError, match="url"):
        ts.KvStore.Spec({"driver": "fsspec"})


def test_no_secret_is_printed():
    class Forbidden(MemoryFileSystem):  # type: ignore[misc]  # it has no types
        protocol = "forbidden"

        def info(self, path, **options):
            raise PermissionError(f"not with {self.storage_options['password']}")

    system = Forbidden(password="swordfish", skip_instance_cache=True)
    kvstore = ts.KvStore.open(system).result()

    with pytest.raises(PermissionDeniedError) as caught:
        kvstore.read("a").result()
    assert "swordfish" not in f"{caught.value} {kvstore!r} {kvstore.spec()!r}"


def test_a_pickle_has_the_file_system(tmp_path):
    create(fsspec.get_mapper(str(tmp_path)))[:] = 5
    array = ts.open(fsspec.get_mapper(str(tmp_path))).result()
    code = "import pickle, sys\nprint(pickle.load(sys.stdin.buffer).read().result().tolist())\n"

    ran = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(array), capture_output=True, check=True
    )

    assert ran.stdout.decode().strip() == str([5] * 8)


def test_unaligned_writers_of_this_process_lose_nothing(tmp_path):
    array = create(fsspec.get_mapper(str(tmp_path)))

    for future in [array[place].write(place + 1) for place in range(8)]:
        future.result()

    assert array.read().result().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_asynchronous_file_system_is_made_anew_in_a_forked_child(monkeypatch):
    system = AsyncFileSystemWrapper(MemoryFileSystem())
    files = HeldFiles(system)
    assert files._system()[0] is system

    monkeypatch.setattr(os, "getpid", lambda: -1)

    assert files._system()[0] is not system
