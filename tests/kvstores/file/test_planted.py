"""A directory that others may write to: what they put there, and which users may use values."""

import os
import socket
import stat

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import FailedPreconditionError, UnavailableError

MODES = ["os", "lockfile", "none", "non_atomic"]
LOCKED = ["os", "lockfile"]


def opened(path, mode, **resources):
    locking = {"mode": mode, "acquire_timeout": "60s"}
    context = ts.Context({"file_io_locking": locking, "file_io_sync": False, **resources})
    return ts.KvStore.open({"driver": "file", "path": f"{path}/"}, context=context).result()


@pytest.fixture
def shared(tmp_path):
    """A shared directory, beside a file of ours."""
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "shared").mkdir()
    yield tmp_path / "shared"
    assert (tmp_path / "victim").read_bytes() == b"precious"


def plant(path, kind):
    if kind == "link":
        path.symlink_to("../victim")
    elif kind == "other name":
        path.hardlink_to(path.parent.parent / "victim")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        path.mkdir()


CHANGES = {
    "write": lambda store: store.write("a", b"new").result(),
    "write if": lambda store: store.write("a", b"new", if_equal=b"").result(),
    "delete": lambda store: store.write("a", None).result(),
}


@pytest.mark.parametrize("mode", LOCKED)
@pytest.mark.parametrize("kind", ["link", "other name", "pipe", "socket", "directory"])
@pytest.mark.parametrize("change", CHANGES)
def test_in_the_place_of_a_lock_file_it_is_refused_at_once(shared, mode, kind, change):
    plant(shared / "a.__lock", kind)

    with pytest.raises(FailedPreconditionError, match=r"shared/a\.__lock.*remove it"):
        CHANGES[change](opened(shared, mode))

    assert os.listdir(shared) == ["a.__lock"]


@pytest.mark.parametrize("mode", LOCKED)
def test_an_array_says_so_and_its_other_chunks_are_written(shared, mode):
    context = ts.Context({"file_io_locking": {"mode": mode}, "file_io_sync": False})
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{shared}/"}}
    layout = ts.ChunkLayout(chunk_shape=[2])
    array = ts.open(
        spec, create=True, dtype="int8", shape=[6], chunk_layout=layout, context=context
    ).result()
    array[...] = 1
    plant(shared / "c/1.__lock", "pipe")
    for part in (array[3], array[2:4]):
        with pytest.raises(FailedPreconditionError, match=r"c/1\.__lock"):
            part.write(2).result()
    array[:2] = array[4:] = 2
    assert array.read().result().tolist() == [2, 2, 1, 1, 2, 2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["pipe", "socket", "directory"])
def test_no_file_takes_the_place_of_something_else(shared, mode, kind):
    plant(shared / "a", kind)
    before = os.lstat(shared / "a")

    store = opened(shared, mode)
    with pytest.raises(FailedPreconditionError, match=r'"/.*shared/a": .* is in its place'):
        store.write("a", b"new").result()

    assert os.lstat(shared / "a").st_ino == before.st_ino
    assert os.listdir(shared) == ["a"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["link", "other name"])
def test_a_name_of_another_file_becomes_one_of_its_own(shared, mode, kind):
    plant(shared / "a", kind)

    store = opened(shared, mode)
    assert store["a"] == b"precious"
    store["a"] = b"new"

    assert store["a"] == b"new"
    assert stat.S_ISREG(os.lstat(shared / "a").st_mode)
    assert os.listdir(shared) == ["a"]


@pytest.mark.parametrize("mode", MODES)
def test_a_link_to_nothing_becomes_a_file(shared, mode):
    (shared / "a").symlink_to("../absent")

    store = opened(shared, mode)
    assert "a" not in store
    store["a"] = b"new"

    assert store["a"] == b"new"
    assert sorted(os.listdir(shared.parent)) == ["shared", "victim"]


@pytest.mark.parametrize("mode", MODES)
def test_no_file_takes_the_place_of_a_link_to_a_directory(shared, mode):
    (shared / "a").symlink_to("..")

    with pytest.raises(FailedPreconditionError, match="a directory is in its place"):
        opened(shared, mode)["a"] = b"new"

    assert (shared / "a").is_symlink()


def test_links_that_go_round_in_a_circle_do_not_hide_the_rest(shared):
    (shared / "a").symlink_to("b")
    (shared / "b").symlink_to("a")
    (shared / "c").write_bytes(b"1")

    store = opened(shared, "os")
    assert store.list().result() == [b"c"]
    assert list(store.keys()) == [b"c"]
    with pytest.raises(ts.SpecError, match=r'"/.*shared/a": .*circle'):
        store["a"]
    store.delete_range(ts.KvStore.KeyRange()).result()
    assert os.listdir(shared) == []


@pytest.mark.parametrize("kind", ["link", "other name", "pipe", "socket"])
def test_deleting_everything_deletes_it(shared, kind):
    plant(shared / "a.__lock", kind)
    plant(shared / "b", kind)

    opened(shared, "os").delete_range(ts.KvStore.KeyRange()).result()

    assert os.listdir(shared) == []


@pytest.mark.parametrize("mode", ["default", "memmap", "direct"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "link"])
def test_reading_never_waits(shared, mode, kind):
    if kind == "link":
        plant(shared / "pipe", "pipe")
        (shared / "a").symlink_to("pipe")
    else:
        plant(shared / "a", kind)

    store = opened(shared, "os", file_io_mode={"mode": mode})
    with pytest.raises(FailedPreconditionError, match="shared/a"):
        store["a"]
    assert store.list().result() == []


def bits(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def masked():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("masked")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kept", [0o600, 0o644, 0o664, 0o440])
def test_a_value_keeps_its_permission_bits(shared, mode, kept):
    store = opened(shared, mode)
    store["a"] = b"1"
    assert bits(shared / "a") == 0o644
    (shared / "a").chmod(kept)
    if mode != "non_atomic" or kept & 0o200:
        store["a"] = b"22"
        store.write("a", b"333", if_equal=store.read("a").result().stamp.generation).result()
        assert (store["a"], bits(shared / "a")) == (b"333", kept)


@pytest.mark.usefixtures("masked")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shards", [False, True], ids=["chunks", "shards"])
def test_so_does_an_array_however_it_is_changed(shared, mode, shards):
    context = ts.Context({"file_io_locking": {"mode": mode}, "file_io_sync": False})
    kvstore = {"driver": "file", "path": f"{shared}/"}
    layout = ts.ChunkLayout(write_chunk_shape=[64, 64], read_chunk_shape=[8 if shards else 64, 64])
    array = ts.open(
        {"driver": "zarr3", "kvstore": kvstore},
        create=True, dtype="uint8", shape=[256, 64], chunk_layout=layout, context=context,
    ).result()  # fmt: skip
    array[...] = 1
    files = [path for path in shared.rglob("*") if path.is_file()]
    assert len(files) == 5
    for path in files:
        path.chmod(0o660)
    array[...] = 2
    array[5, 5] = 3
    array[::3] = np.arange(64, dtype="uint8")
    array.resize(exclusive_max=[250, 64]).result()
    assert {oct(bits(path)) for path in files} == {"0o660"}


@pytest.mark.usefixtures("masked")
def test_while_a_value_is_written_no_other_user_may_read_it(shared, monkeypatch):
    store = opened(shared, "os")
    store["a"] = b"1"
    (shared / "a").chmod(0o600)
    seen = []
    write = os.write

    def watched(fd, data):
        seen.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return write(fd, data)

    monkeypatch.setattr(os, "write", watched)
    store["a"] = b"secret"
    assert set(seen) == {0o600}


@pytest.mark.usefixtures("masked")
def test_a_failed_write_leaves_nothing_that_keeps_the_next_one_waiting(shared, monkeypatch):
    store = opened(shared, "os")
    store["a"] = b"1"
    (shared / "a").chmod(0o440)

    def crash(*_):
        raise UnavailableError("crashed")

    # What a killed writer leaves is the lock file as it was when it wrote the value.
    monkeypatch.setattr("tensorstore_py.kvstores.file.staging._unlink", lambda _: None)
    monkeypatch.setattr("tensorstore_py.kvstores.file.store.write_parts", crash)
    with pytest.raises(UnavailableError):
        store.write("a", b"2").result()
    monkeypatch.undo()
    assert bits(shared / "a.__lock") & 0o200
    store["a"] = b"3"
    assert (store["a"], bits(shared / "a")) == (b"3", 0o440)


def test_the_reference_does_not_keep_them_and_follows_links(shared):
    """What `docs/differences.md` says of it."""
    theirs = reference.KvStore.open(f"file://{shared}/").result()
    theirs["a"] = b"1"
    (shared / "a").chmod(0o600)
    theirs["a"] = b"2"
    assert bits(shared / "a") != 0o600
    (shared / "other").write_bytes(b"x" * 10)
    (shared / "b.__lock").symlink_to("other")
    theirs["b"] = b"1"
    assert (shared / "other").read_bytes() != b"x" * 10
