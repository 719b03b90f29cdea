import os
import re
import stat
import threading
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import (
    AbortedError,
    FailedPreconditionError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    UnavailableError,
)
from tensorstore_py.kvstores.file import FileStore, reading
from tensorstore_py.kvstores.file import store as store_module
from tensorstore_py.kvstores.file.resources import FileIoLocking, FileIoMode, FileIoRetries
from tensorstore_py.kvstores.file.staging import Segment, write_parts
from tensorstore_py.kvstores.file.status import present_at
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    ByteRange,
    CopiedRange,
    Duration,
    ReadModifyWrite,
    ThreadLimiter,
)
from tensorstore_py.testing import KvStoreSuite, drive
from tests.runtime.processes import width

VALUE = b"0123456789"


def locking(mode, timeout="60s"):
    return FileIoLocking(mode=mode, acquire_timeout=Duration.parse(timeout))


class FileSuite(KvStoreSuite):
    odd_keys = (*KvStoreSuite.odd_keys, "\udcff\udcfe", "C:/x", "back\\slash", "~")
    bad_keys = ("", "a/", "a//b", "/a", ".", "..", "./a", "a/../b", "a/.", "a\0b", "b\\",
                "a.__lock", "a.__lock/b")  # fmt: skip

    @pytest.fixture
    def store(self):
        return FileStore(sync=False)

    @pytest.fixture
    def prefix(self, tmp_path):
        return f"{tmp_path}/root/"


class TestFileStore(FileSuite):
    def test_agrees_with_the_reference_on_generations(self, store, prefix):
        theirs = reference.KvStore.open(f"file://{prefix}").result()
        mine = self.set(store, prefix + "a", b"1").generation

        assert theirs.read("a").result().stamp.generation == mine
        assert theirs.write("a", b"2", if_equal=mine).result().generation != UNKNOWN
        assert self.set(store, prefix + "a", b"3", if_equal=mine).generation == UNKNOWN
        assert bytes(self.get(store, prefix + "a").value) == b"2"

    def test_no_generation_comes_back(self, store, prefix):
        # The file system hands out inode numbers again at once.
        seen = set()
        for number in range(300):
            seen.add(self.set(store, prefix + "a", b"same").generation)
            if number % 3 == 0:
                self.set(store, prefix + "a", None)

        assert len(seen) == 300

    def test_a_directory_is_no_value(self, store, prefix):
        os.makedirs(prefix + "dir")

        assert self.get(store, prefix + "dir").state == "missing"
        results = drive(store, lambda: store.read_ranges(prefix + "dir", [ByteRange(0, 1)]))
        assert [result.state for result in results] == ["missing"]
        for value in (b"1", None):
            with pytest.raises(FailedPreconditionError, match=r"root/dir.*directory"):
                self.set(store, prefix + "dir", value)

        assert os.listdir(prefix) == ["dir"]

    def test_a_pipe_is_no_value_and_does_not_block_the_reader(self, store, prefix):
        os.makedirs(prefix)
        os.mkfifo(prefix + "pipe")

        with pytest.raises(FailedPreconditionError, match="pipe"):
            self.get(store, prefix + "pipe")
        assert self.keys(store, prefix) == ()

    def test_a_file_is_no_directory(self, store, prefix):
        self.set(store, prefix + "a", b"1")

        for value in (b"2", None):
            with pytest.raises(FailedPreconditionError, match="root/a/b"):
                self.set(store, prefix + "a/b", value)

    def test_leaves_no_other_file_behind(self, store, prefix):
        stamp = self.set(store, prefix + "d/a", b"1")
        self.set(store, prefix + "d/a", b"2", if_equal=NO_VALUE)
        self.set(store, prefix + "d/a", None, if_equal=NO_VALUE)
        self.set(store, prefix + "d/b", None)

        assert os.listdir(prefix + "d") == ["a"]
        self.set(store, prefix + "d/a", None, if_equal=stamp.generation)
        assert os.listdir(prefix + "d") == []

    def test_makes_no_directory_for_what_it_does_not_write(self, store, prefix):
        self.set(store, prefix + "d/e", None)
        self.set(store, prefix + "d/e", b"1", if_equal=b"some generation")

        assert not os.path.exists(prefix)

    def test_a_symbolic_link_is_replaced_by_the_value(self, store, prefix):
        self.set(store, prefix + "target", b"1")
        os.symlink("target", prefix + "link")

        assert bytes(self.get(store, prefix + "link").value) == b"1"
        self.set(store, prefix + "link", b"2")
        assert bytes(self.get(store, prefix + "target").value) == b"1"
        assert not os.path.islink(prefix + "link")

    def test_files_get_the_modes_that_the_user_masks(self, store, prefix):
        before = os.umask(0o027)
        try:
            self.set(store, prefix + "a", b"1")
        finally:
            os.umask(before)

        assert stat.S_IMODE(os.stat(prefix + "a").st_mode) == 0o640

    def test_deleting_all_leaves_the_directory_itself(self, store, prefix):
        self.filled(store, prefix, self.tree, b"1")

        drive(store, lambda: store.delete_range(ALL.with_base(prefix)))

        assert os.listdir(prefix) == []

    def test_a_failed_write_changes_nothing(self, store, prefix, monkeypatch):
        self.set(store, prefix + "a", b"old")

        def full(fd, parts, _kept_fd=-1):
            os.write(fd, parts[0][:2])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(store_module, "write_parts", full)
        with pytest.raises(FailedPreconditionError, match=r'cannot write ".*root/a": No space'):
            self.set(store, prefix + "a", b"new")

        assert bytes(self.get(store, prefix + "a").value) == b"old"
        assert os.listdir(prefix) == ["a"]

    def test_says_what_the_system_forbids(self, store, prefix, monkeypatch):
        self.set(store, prefix + "a", b"1")

        def forbid(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(store, "_open", forbid)
        with pytest.raises(PermissionDeniedError, match=r'cannot read ".*root/a": Permission'):
            self.get(store, prefix + "a")

    def test_works_on_relative_paths(self, store, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        self.set(store, "x/y", b"1")
        self.set(store, "z", b"2")

        assert [entry.key for entry in self.entries(store)] == ["x/y", "z"]
        assert bytes(self.get(store, "x/y").value) == b"1"

    def test_describes_a_key_as_a_file(self, store):
        assert store.describe_key("/data/a") == 'local file "/data/a"'

    def test_what_is_kept_does_not_pass_through_the_process(self, store, prefix, monkeypatch):
        first = self.set(store, prefix + "a", bytes(10**6))
        monkeypatch.setattr(store, "_read", None)

        second = drive(
            store,
            lambda: store.splice(
                prefix + "a", (b"head", CopiedRange(4, 10**6), b"tail"), if_equal=first.generation
            ),
        )

        assert second.generation != UNKNOWN
        with open(prefix + "a", "rb") as file:
            assert file.read() == b"head" + bytes(10**6 - 4) + b"tail"

    def test_values_stand_in_the_room_one_after_the_other(self, store, prefix):
        for name, value in {"a": b"1", "b": b"23", "c": b"", "d": b"4567", "e": b"89"}.items():
            self.set(store, prefix + name, value)
        memory = bytearray(b"x" * 8)
        keys = [prefix + name for name in "abcnde"]

        found = drive(store, lambda: store.read_values(keys, memoryview(memory)[1:7]))

        assert [None if value is None else bytes(value) for value in found] == [
            b"1", b"23", b"", None, b"4567", b"89"
        ]  # fmt: skip
        # What is too long for the rest of the room leaves that to those behind it.
        assert memory == b"x12389xx"
        memory[1:7] = b"------"
        assert [bytes(found[place]) for place in (0, 1, 4, 5)] == [b"-", b"--", b"4567", b"--"]

    def test_a_value_that_grows_or_shrinks_on_the_way_is_whole_or_an_error(
        self, store, prefix, monkeypatch
    ):
        self.set(store, prefix + "a", VALUE)
        whole = os.fstat

        def once(change):
            def fstat(fd):
                status = whole(fd)
                os.truncate(prefix + "a", change)
                return status

            return fstat

        read = lambda: store.read_values([prefix + "a"], memoryview(bytearray(100)))  # noqa: E731
        monkeypatch.setattr(os, "fstat", once(20))
        assert [bytes(value) for value in drive(store, read)] == [VALUE]
        monkeypatch.setattr(os, "fstat", once(3))
        with pytest.raises(AbortedError, match="shrank from 20 to 3"):
            drive(store, read)

    def test_a_pipe_is_none_of_several_values(self, store, prefix):
        os.makedirs(prefix)
        os.mkfifo(prefix + "pipe")

        with pytest.raises(FailedPreconditionError, match="pipe"):
            self.values(store, prefix, ["pipe"], memoryview(b""))

    def test_a_directory_is_none_of_several_values(self, store, prefix):
        self.set(store, prefix + "dir/a", b"1")

        assert self.values(store, prefix, ["dir"], memoryview(b"")) == [None]
        keys = [prefix + name for name in ("b", "dir", "c")]
        for value in (b"1", None):
            write = partial(store.write_values, keys, [b"2", value, b"3"])
            with pytest.raises(FailedPreconditionError, match=r"root/dir\".*directory"):
                drive(store, write)
            # What was before the error is stored; what comes after it is not.
            assert self.keys(store, prefix) == ("b", "dir/a")

    def test_bad_keys_are_refused_among_several(self, store, prefix):
        for key in self.bad_keys:
            keys = [prefix + "a", prefix + key]
            with pytest.raises(SpecError, match="key"):
                drive(store, partial(store.read_values, keys, memoryview(b"")))
            with pytest.raises(SpecError, match="key"):
                drive(store, partial(store.write_values, keys, [b"1", b"2"]))
        assert self.keys(store, prefix) == ("a",)

    def test_of_several_says_which_the_system_forbids(self, store, prefix, monkeypatch):
        self.filled(store, prefix, ["a", "b"], b"1")
        opened = store._open

        def forbid(path):
            if path.endswith("b"):
                raise PermissionError(13, "Permission denied")
            return opened(path)

        monkeypatch.setattr(store, "_open", forbid)
        with pytest.raises(PermissionDeniedError, match=r'cannot read ".*root/b": Permission'):
            self.values(store, prefix, ["a", "b"], memoryview(bytearray(10)))

    def test_several_writes_leave_nothing_behind_when_one_fails(self, store, prefix, monkeypatch):
        def full(fd, parts, _kept_fd=-1):
            if bytes(parts[0]) == b"new":
                raise OSError(28, "No space left on device")
            os.write(fd, parts[0])

        monkeypatch.setattr(store_module, "write_parts", full)
        keys = [prefix + name for name in "abc"]
        with pytest.raises(FailedPreconditionError, match=r'cannot write ".*root/b": No space'):
            drive(store, lambda: store.write_values(keys, [b"1", b"new", b"2"]))

        assert os.listdir(prefix) == ["a"]
        assert store._places.available == store._places.limit

    def test_several_writes_that_wait_for_nothing_are_made_in_turns(
        self, store, prefix, monkeypatch
    ):
        taken = []
        turns = store_module._TURNS

        def mine():
            taken.append("turn")
            return nullcontext()

        monkeypatch.setattr(turns, "acquire", mine)

        drive(store, lambda: store.write_values([prefix + "a", prefix + "b"], [b"1", b"2"]))
        assert taken == ["turn"]
        durable = FileStore(sync=True)
        drive(durable, lambda: durable.write_values([prefix + "a"], [b"3"]))
        assert taken == ["turn"]


class TestDurable(FileSuite):
    @pytest.fixture
    def store(self):
        return FileStore(sync=True)

    def test_syncs_the_value_before_its_name(self, store, prefix, monkeypatch):
        done = []
        fsync, replace = os.fsync, os.replace

        def note_fsync(fd):
            done.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
            fsync(fd)

        def note_replace(old, new):
            done.append("rename")
            replace(old, new)

        os.makedirs(prefix)
        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(os, "replace", note_replace)

        self.set(store, prefix + "a", b"1")
        assert done == ["file", "rename", "directory"]
        self.set(store, prefix + "a", None)
        assert done[3:] == ["directory"]

    def test_values_of_a_batch_share_the_sync_of_their_directory(self, store, prefix, monkeypatch):
        done = []
        fsync, replace = os.fsync, os.replace

        def note_fsync(fd):
            status = os.fstat(fd)
            done.append(status.st_ino if stat.S_ISDIR(status.st_mode) else "file")
            fsync(fd)

        def note_replace(old, new):
            done.append("rename")
            replace(old, new)

        for name in ("x", "y"):
            os.makedirs(prefix + name)
        directories = [os.stat(prefix + name).st_ino for name in ("x", "y")]
        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(os, "replace", note_replace)

        keys = [prefix + name for name in ("x/a", "y/a", "x/b", "y/b")]
        drive(store, lambda: store.write_values(keys, [b"1", b"2", b"3", b"4"]))
        assert done == ["file", "rename"] * 4 + directories
        done.clear()
        drive(store, lambda: store.write_values(keys, [None, b"5", None, None]))
        assert done == ["file", "rename", *directories]

    def test_what_is_stored_before_an_error_lasts(self, store, prefix, monkeypatch):
        os.makedirs(prefix + "b")
        synced: list[str] = []
        monkeypatch.setattr(store_module, "sync_directory", synced.append)

        keys = [prefix + name for name in "abc"]
        with pytest.raises(FailedPreconditionError, match="directory"):
            drive(store, lambda: store.write_values(keys, [b"1", b"2", b"3"]))

        assert synced == keys[:1]

    def test_a_directory_that_others_removed_meanwhile_needs_no_sync(
        self, store, prefix, monkeypatch
    ):
        replace = os.replace

        def replace_and_lose(old, new):
            replace(old, new)
            os.unlink(new)
            os.rmdir(os.path.dirname(new))

        monkeypatch.setattr(os, "replace", replace_and_lose)

        self.set(store, prefix + "x/a", b"1")
        assert os.listdir(prefix) == []


class TestLockfileMode(FileSuite):
    @pytest.fixture
    def store(self):
        return FileStore(sync=False, locking=locking("lockfile"))

    def test_an_abandoned_lock_file_is_an_error_that_names_it(self, prefix):
        store = FileStore(sync=False, locking=locking("lockfile", "1ms"))
        self.set(store, prefix + "a", b"1")
        with open(prefix + "a.__lock", "w"):
            pass

        for value in (b"2", None):
            with pytest.raises(UnavailableError, match=r"a\.__lock.*remove the file"):
                self.set(store, prefix + "a", value)

        assert bytes(self.get(store, prefix + "a").value) == b"1"


class TestUnlockedMode(FileSuite):
    # Without locks, of two conditional writers both may win.
    writers = 1

    @pytest.fixture
    def store(self):
        return FileStore(sync=False, locking=locking("none"))

    def test_writes_beside_an_abandoned_lock_file(self, store, prefix):
        os.makedirs(prefix)
        with open(prefix + "a.__lock", "w") as file:
            file.write("half a value")

        self.set(store, prefix + "a", b"1")

        assert bytes(self.get(store, prefix + "a").value) == b"1"
        assert sorted(os.listdir(prefix)) == ["a", "a.__lock"]


class TestInPlaceMode(FileSuite):
    # And what is written in place is not whole at every moment.
    writers = 1

    @pytest.fixture
    def store(self):
        return FileStore(sync=False, locking=locking("non_atomic"))

    def test_keeps_the_file(self, store, prefix):
        self.set(store, prefix + "a", b"longer")
        number = os.stat(prefix + "a").st_ino
        self.set(store, prefix + "a", b"short")

        assert os.stat(prefix + "a").st_ino == number
        assert bytes(self.get(store, prefix + "a").value) == b"short"


class TestMapped(FileSuite):
    @pytest.fixture
    def store(self):
        return FileStore(sync=False, mode=FileIoMode(mode="memmap"))

    def test_what_was_read_outlives_the_file(self, store, prefix):
        self.set(store, prefix + "a", b"old value")
        found = self.get(store, prefix + "a")
        self.set(store, prefix + "a", b"new")
        self.set(store, prefix + "a", None)

        assert isinstance(found.value, memoryview)
        assert bytes(found.value) == b"old value"


class TestDirect(FileSuite):
    @pytest.fixture
    def store(self):
        return FileStore(sync=False, mode=FileIoMode(mode="direct"))


class TestRetries:
    @pytest.fixture
    def slept(self, monkeypatch):
        slept: list[float] = []
        monkeypatch.setattr(reading, "pause", slept.append)
        return slept

    @staticmethod
    def failing(number, times, then):
        left = [times]

        def run(path):
            if left[0]:
                left[0] -= 1
                raise OSError(number, os.strerror(number))
            return then(path)

        return run

    def store(self, max_retries):
        return FileStore(sync=False, retries=FileIoRetries(max_retries=max_retries))

    def test_goes_on_after_what_passes(self, tmp_path, monkeypatch, slept):
        store = self.store(3)
        drive(store, lambda: store.write(f"{tmp_path}/a", b"1"))
        monkeypatch.setattr(store, "_open", self.failing(116, 3, store._open))

        result = drive(store, lambda: store.read(f"{tmp_path}/a"))

        assert bytes(result.value) == b"1"
        assert len(slept) == 3
        assert 1 <= slept[0] <= 2 <= slept[1] <= 3 <= slept[2] - 1 <= 4

    def test_goes_on_with_several_values(self, tmp_path, monkeypatch, slept):
        store = self.store(3)
        keys = [f"{tmp_path}/{name}" for name in "abc"]
        drive(store, lambda: store.write_values(keys, [b"1", b"2", b"3"]))
        monkeypatch.setattr(store, "_open", self.failing(116, 2, store._open))
        room = bytearray(10)

        found = drive(store, lambda: store.read_values(keys, memoryview(room)))

        assert [bytes(value) for value in found] == [b"1", b"2", b"3"]
        assert room[:3] == b"123"
        assert len(slept) == 2

    @pytest.mark.parametrize("value", [b"1", None])
    def test_goes_on_with_several_writes(self, tmp_path, monkeypatch, slept, value):
        store = self.store(3)
        keys = [f"{tmp_path}/{name}" for name in "ab"]
        drive(store, lambda: store.write_values(keys, [b"old", b"old"]))
        unreliable = self.failing(5, 2, lambda _: None)
        change = store._change

        def changed(*arguments):
            unreliable(arguments)
            return change(*arguments)

        monkeypatch.setattr(store, "_change", changed)
        drive(store, lambda: store.write_values(keys, [value, b"2"]))

        found = drive(store, lambda: store.read_values(keys, memoryview(bytearray(10))))
        assert found == [value, b"2"]
        assert len(slept) == 2

    @pytest.mark.parametrize(("value", "action"), [(b"1", "write"), (None, "delete")])
    def test_gives_up_several_writes_and_says_which(
        self, tmp_path, monkeypatch, slept, value, action
    ):
        store = self.store(1)
        monkeypatch.setattr(store, "_change", lambda *_: self.fail())
        with pytest.raises(UnavailableError, match=f'cannot {action} ".*/a"') as caught:
            drive(store, lambda: store.write_values([f"{tmp_path}/a"], [value]))

        assert caught.value.attempts == 2
        assert len(slept) == 1

    @staticmethod
    def fail():
        raise OSError(5, os.strerror(5))

    def test_gives_up_in_the_end(self, tmp_path, monkeypatch, slept):
        store = self.store(2)
        monkeypatch.setattr(store, "_open", self.failing(5, 99, store._open))

        with pytest.raises(UnavailableError) as caught:
            drive(store, lambda: store.read(f"{tmp_path}/a"))

        assert caught.value.attempts == 3
        assert len(slept) == 2

    def test_never_repeats_what_will_not_pass(self, tmp_path, monkeypatch, slept):
        store = self.store(5)
        monkeypatch.setattr(store, "_open", self.failing(13, 99, store._open))

        with pytest.raises(PermissionDeniedError):
            drive(store, lambda: store.read(f"{tmp_path}/a"))

        assert slept == []


class Append(ReadModifyWrite):
    """Adds to the end of what is there, and calls `first` the first time."""

    def __init__(self, tail, first=lambda: None):
        self.tail = tail
        self.first = [first]

    async def apply(self, stored):
        if self.first:
            self.first.pop()()
        return bytes(stored or b"") + self.tail


class Replace(ReadModifyWrite):
    """Whatever is there."""

    replaces = True

    def __init__(self, value):
        self.value = value

    async def apply(self, stored):
        return self.value


class Broken(ReadModifyWrite):
    async def apply(self, stored):
        raise ValueError(bytes(stored or b""))


def put(key, value):
    """What another process would do, by a rename and on its own."""
    drive(other := FileStore(sync=False, locking=locking("none")), lambda: other.write(key, value))


def shown(folder):
    """All files there are, by name, whatever else lies beside the keys."""
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


@pytest.mark.parametrize("sync", [False, True], ids=["unsynced", "synced"])
@pytest.mark.parametrize("mode", ["os", "lockfile", "none", "non_atomic"])
class TestUpdatingSeveral:
    @pytest.fixture
    def store(self, mode, sync):
        store = FileStore(sync=sync, locking=locking(mode), concurrency=ThreadLimiter(3))
        yield store
        assert store._places.available == 3

    def update(self, store, folder, updates):
        keys = [f"{folder}/{name}" for name in updates]
        return drive(store, lambda: store.update_values(keys, list(updates.values())))

    def test_changes_makes_and_deletes(self, store, tmp_path):
        put(f"{tmp_path}/a", b"1")
        put(f"{tmp_path}/gone", b"2")
        updates = {
            "a": Append(b"x"),
            "gone": Replace(None),
            "new": Append(b"y"),
            "no": Replace(None),
            "over": Replace(b"z"),
        }

        stamps = self.update(store, tmp_path, updates)

        assert shown(tmp_path) == {"a": b"1x", "new": b"y", "over": b"z"}
        found = [drive(store, partial(store.read, f"{tmp_path}/{name}")) for name in updates]
        assert [each.stamp.generation for each in found] == [each.generation for each in stamps]

    def test_makes_directories(self, store, tmp_path):
        self.update(store, tmp_path, {"d/e/a": Append(b"1"), "d/f": Append(b"2")})

        assert (tmp_path / "d/e/a").read_bytes() == b"1"
        assert shown(tmp_path / "d/e") == {"a": b"1"}
        assert sorted(os.listdir(tmp_path / "d")) == ["e", "f"]

    def test_one_that_cannot_be_made_keeps_no_other(self, store, tmp_path):
        put(f"{tmp_path}/b", b"old")
        updates = {"a": Append(b"1"), "b": Broken(), "c.__lock": Append(b"2"), "d": Append(b"3")}

        first, second, third, last = self.update(store, tmp_path, updates)

        assert shown(tmp_path) == {"a": b"1", "b": b"old", "d": b"3"}
        assert isinstance(second, ValueError)
        assert isinstance(third, SpecError)
        assert UNKNOWN not in (first.generation, last.generation)

    @pytest.mark.parametrize("theirs", [b"theirs", None])
    def test_one_that_somebody_changes_meanwhile_is_made_again(self, store, tmp_path, theirs):
        put(f"{tmp_path}/b", b"old")
        interfere = partial(put, f"{tmp_path}/b", theirs)
        updates = {"a": Append(b"1"), "b": Append(b"2", interfere), "c": Append(b"3")}

        stamps = self.update(store, tmp_path, updates)

        assert shown(tmp_path) == {"a": b"1", "b": (theirs or b"") + b"2", "c": b"3"}
        assert UNKNOWN not in [stamp.generation for stamp in stamps]

    def test_so_is_one_that_somebody_begins_or_deletes(self, store, tmp_path):
        put(f"{tmp_path}/b", b"old")
        updates = {
            "a": Append(b"1", partial(put, f"{tmp_path}/a", b"theirs")),
            "b": Append(b"2", partial(put, f"{tmp_path}/b", None)),
        }

        self.update(store, tmp_path, updates)

        assert shown(tmp_path) == {"a": b"theirs1", "b": b"2"}

    @pytest.fixture(params=["read", "write"])
    def failing(self, request, store, monkeypatch):
        """How often reading or writing `b` is still to fail, before anything is done to it."""
        left = [0]
        of, name = {
            "read": (store, "_open"),
            "write": (store_module, "present_at"),
        }[request.param]
        usual = getattr(of, name)

        def unreliable(key):
            if key.endswith("b") and left[0]:
                left[0] -= 1
                raise OSError(116, os.strerror(116))
            return usual(key)

        monkeypatch.setattr(of, name, unreliable)
        monkeypatch.setattr(reading, "pause", lambda _: None)
        return left

    def test_a_trouble_that_passes_is_none(self, store, tmp_path, failing):
        put(f"{tmp_path}/b", b"old")
        store._retries = FileIoRetries(max_retries=1)
        failing[0] = 1

        stamps = self.update(
            store, tmp_path, {"a": Append(b"1"), "b": Append(b"2"), "c": Append(b"3")}
        )

        assert failing == [0]
        assert shown(tmp_path) == {"a": b"1", "b": b"old2", "c": b"3"}
        assert UNKNOWN not in [stamp.generation for stamp in stamps]

    def test_one_that_stays_is_its_keys(self, store, tmp_path, failing):
        put(f"{tmp_path}/b", b"old")
        failing[0] = 99

        _, error, _ = self.update(
            store, tmp_path, {"a": Append(b"1"), "b": Append(b"2"), "c": Append(b"3")}
        )

        assert shown(tmp_path) == {"a": b"1", "b": b"old", "c": b"3"}
        assert isinstance(error, UnavailableError)
        assert re.search(f'cannot (read|write) "{tmp_path}/b"', str(error))

    def test_a_directory_is_no_value(self, store, tmp_path):
        os.makedirs(tmp_path / "b/c")

        _, error, _ = self.update(
            store, tmp_path, {"a": Append(b"1"), "b": Append(b"2"), "d": Append(b"3")}
        )

        assert isinstance(error, FailedPreconditionError)
        assert sorted(os.listdir(tmp_path)) == ["a", "b", "d"]

    def test_no_writer_is_excluded_while_they_are_computed(self, store, tmp_path):
        free = []
        look = lambda: free.append(store._places.available)  # noqa: E731

        self.update(store, tmp_path, {"a": Append(b"1", look), "b": Append(b"2", look)})

        assert free == [3, 3]

    def test_calls_of_a_kind_are_made_together_unless_they_wait_for_the_disk(
        self, store, tmp_path, monkeypatch, sync
    ):
        steps = []

        def noted(step, usual):
            def run(key):
                steps.append(f"{step} {key[-1]}")
                return usual(key)

            return run

        monkeypatch.setattr(store, "_open", noted("read", store._open))
        present = noted("write", present_at)
        monkeypatch.setattr(store_module, "present_at", present)
        self.update(store, tmp_path, {"a": Append(b"1"), "b": Append(b"2")})

        alone = ["read a", "write a", "read b", "write b"]
        assert steps == (alone if sync else sorted(alone))


@pytest.mark.parametrize("sync", [False, True], ids=["unsynced", "synced"])
@pytest.mark.parametrize("mode", ["os", "lockfile", "none", "non_atomic"])
class TestSplicing:
    @pytest.fixture
    def store(self, mode, sync):
        store = FileStore(sync=sync, locking=locking(mode), concurrency=ThreadLimiter(3))
        yield store
        assert store._places.available == 3

    def splice(self, store, folder, parts, if_equal=None):
        key = f"{folder}/a"
        if if_equal is None:
            if_equal = drive(store, lambda: store.read(key)).stamp.generation
        return drive(store, lambda: store.splice(key, parts, if_equal=if_equal)).generation

    def test_keeps_some_and_tells_the_new_generation(self, store, tmp_path):
        put(f"{tmp_path}/a", VALUE)

        generation = self.splice(
            store, tmp_path, [b"new", CopiedRange(2, 5), memoryview(b"!"), CopiedRange(9, 10)]
        )

        assert shown(tmp_path) == {"a": b"new234!9"}
        found = drive(store, lambda: store.read(f"{tmp_path}/a"))
        assert found.stamp.generation == generation

    def test_of_parts_that_change_places(self, store, tmp_path):
        put(f"{tmp_path}/a", VALUE)
        parts = [CopiedRange(place, place + 1) for place in range(9, -1, -1)]

        assert self.splice(store, tmp_path, parts) != UNKNOWN
        assert shown(tmp_path) == {"a": VALUE[::-1]}

    def test_again_and_again(self, store, tmp_path):
        put(f"{tmp_path}/a", b"")
        for number in range(20):
            self.splice(store, tmp_path, [b"%d" % (number % 10), CopiedRange(0, number)])

        assert shown(tmp_path) == {"a": b"9876543210" * 2}

    @pytest.mark.parametrize("theirs", [b"theirs, of another length", b"", None])
    def test_what_was_replaced_stays_and_nothing_is_left_behind(self, store, tmp_path, theirs):
        put(f"{tmp_path}/a", VALUE)
        before = drive(store, lambda: store.read(f"{tmp_path}/a")).stamp.generation
        put(f"{tmp_path}/a", theirs)

        assert self.splice(store, tmp_path, [b"new", CopiedRange(0, 10)], before) == UNKNOWN
        assert shown(tmp_path) == ({} if theirs is None else {"a": theirs})

    def test_what_is_replaced_meanwhile_is_never_mixed_in(self, store, tmp_path, monkeypatch):
        # Not all writers respect the lock, and without locks none does.
        put(f"{tmp_path}/a", VALUE)
        before = drive(store, lambda: store.read(f"{tmp_path}/a")).stamp.generation
        theirs = [b"theirs, as long"]

        def replaced(key):
            found = present_at(key)
            if theirs:
                with open(f"{key}.new", "wb") as file:
                    file.write(theirs.pop())
                os.replace(f"{key}.new", key)
            return found

        monkeypatch.setattr(store_module, "present_at", replaced)
        self.splice(store, tmp_path, [b"new", CopiedRange(3, 10)], before)

        assert shown(tmp_path)["a"] in (b"new" + VALUE[3:], b"theirs, as long")

    def test_where_no_directory_is_none_is_made(self, store, tmp_path):
        parts = [b"new", CopiedRange(0, 1)]
        generation = self.splice(store, tmp_path / "d", parts, b"some generation")

        assert generation == UNKNOWN
        assert shown(tmp_path) == {}

    def test_nothing_kept_is_a_write(self, store, tmp_path):
        assert self.splice(store, tmp_path / "d", [b"a", b"b"], NO_VALUE) != UNKNOWN
        assert self.splice(store, tmp_path / "d", [b"c"], NO_VALUE) == UNKNOWN
        assert shown(tmp_path / "d") == {"a": b"ab"}

    def test_more_than_there_is_cannot_be_kept_and_the_old_value_stays(self, store, tmp_path):
        put(f"{tmp_path}/a", VALUE)

        with pytest.raises(OutOfRangeError, match=r"\[5, 11\)"):
            self.splice(store, tmp_path, [b"new", CopiedRange(5, 11), b"more"])

        assert shown(tmp_path) == {"a": VALUE}

    def test_bad_keys_are_refused(self, store, tmp_path):
        with pytest.raises(SpecError, match="key"):
            drive(store, lambda: store.splice(f"{tmp_path}/a.__lock", [b""], if_equal=NO_VALUE))
        assert shown(tmp_path) == {}


def test_a_trouble_while_it_splices_may_pass(tmp_path, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(reading, "pause", slept.append)
    store = FileStore(sync=False, retries=FileIoRetries(max_retries=1))
    stamp = drive(store, lambda: store.write(f"{tmp_path}/a", VALUE))
    failures = [5]

    def unreliable(fd, parts, path):
        write_parts(fd, parts, path)
        if failures:
            raise OSError(failures.pop(), "the device failed")

    monkeypatch.setattr(store_module, "write_parts", unreliable)
    parts: list[Segment] = [b"new", CopiedRange(2, 4)]
    drive(store, lambda: store.splice(f"{tmp_path}/a", parts, if_equal=stamp.generation))

    assert shown(tmp_path) == {"a": b"new23"}
    assert len(slept) == 1


def test_chunks_wait_for_the_disk_side_by_side(tmp_path, monkeypatch):
    """By more threads than there are cores: who waits encodes nothing."""
    count = 2 * width()
    array = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{tmp_path}/"}, create=True, dtype="uint16",
        shape=[256 * count, 64, 64], chunk_layout=ts.ChunkLayout(chunk_shape=[256, 64, 64]),
        context=ts.Context({"file_io_concurrency": {"limit": count}}),
    ).result()  # fmt: skip
    together, fsync = threading.Barrier(count), os.fsync
    left = iter(range(count))

    def fsync_with_others(fd):
        if stat.S_ISREG(os.fstat(fd).st_mode) and next(left, None) is not None:
            together.wait(60)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", fsync_with_others)
    values = np.arange(np.prod(array.shape)).astype("uint16").reshape(array.shape)
    array.write(values).result()

    assert next(left, None) is None
    np.testing.assert_array_equal(array.read().result(), values)
