import asyncio
import os
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py.plugin.kvstore import ListEntry
from tensorstore_py.testing import LoopStore, StoreAround
from tests.internals import set_transfer_piece_bytes, windows_allows


@pytest.fixture(params=["inline", "loop"])
def store(request):
    face = ts.KvStore.open("memory://").result()
    if request.param == "loop":
        return ts.KvStore.of(face.model, LoopStore(face.store))
    return face


def around(store, cls):
    return ts.KvStore.of(store.model, cls(store.store))


def files(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(Path(directory).rglob("*"))
        if path.is_file()
    }


def test_there_and_back(store, tmp_path):
    values = {"a/x": b"1", "a/y/z": b"", "b": bytes(range(256)) * 1000, "é": b"2"}
    for key, value in values.items():
        store["in/" + key] = value
    store["other"] = b"3"

    async def both():
        down = await ts.download(store / "in/", tmp_path / "new" / "dir")
        up = await ts.upload(tmp_path / "new", store / "back/")
        return down, up

    assert asyncio.run(both()) == (4, 4)
    assert files(tmp_path / "new/dir") == values
    assert {key: store[f"back/dir/{key}"] for key in values} == values


def test_a_range_of_keys(store, tmp_path):
    for key in "abc":
        store[key] = key.encode()
    (tmp_path / "b").write_bytes(b"old")
    (tmp_path / "kept").write_bytes(b"k")

    wanted = ts.KvStore.KeyRange("b")
    assert asyncio.run(ts.download(store, tmp_path, wanted)) == 2
    assert files(tmp_path) == {"b": b"b", "c": b"c", "kept": b"k"}


@pytest.mark.parametrize("key", ["../a", "/a", "a//b", "a/./b", "a/", "a\0b"])
def test_no_key_leads_out_of_the_directory(key, tmp_path):
    store = ts.KvStore.open("memory://").result()
    store[key] = b"1"

    with pytest.raises(ts.SpecError, match="cannot be the name of a file"):
        asyncio.run(ts.download(store, tmp_path / "in"))
    assert files(tmp_path) == {}


@pytest.mark.parametrize("link", ["a", "a/b"])
def test_nothing_is_written_through_a_link_of_the_directory(link, tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    if link == "a":
        (tmp_path / "in" / "a").rmdir()
    (tmp_path / "in" / link).symlink_to(tmp_path / "victim")
    store = ts.KvStore.open("memory://").result()
    store["a/b/c"] = b"1"

    with pytest.raises(ts.FailedPreconditionError, match=f'in/{link}": it is a link'):
        asyncio.run(ts.download(store, tmp_path / "in"))
    assert files(tmp_path / "victim") == {}


def test_a_link_in_place_of_a_file_is_replaced_and_the_directory_itself_may_be_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "in").symlink_to(tmp_path / "real")
    (tmp_path / "victim").write_bytes(b"v")
    (tmp_path / "real" / "a").symlink_to(tmp_path / "victim")
    store = ts.KvStore.open("memory://").result()
    store["a"], store["b/c"] = b"1", b"2"

    assert asyncio.run(ts.download(store, tmp_path / "in")) == 2
    assert files(tmp_path / "real") == {"a": b"1", "b/c": b"2"}
    assert (tmp_path / "victim").read_bytes() == b"v"


@pytest.mark.parametrize(
    "part",
    ["..", "..\\x", "c:", "nul", "NUL.txt", "Aux ", "com1.a.b", "LPT\xb2", "a.", "a ", ".. ",
     "a\x1f", "a?b", "a:b", ""],
)  # fmt: skip
def test_names_that_windows_takes_for_something_else(part):
    assert not windows_allows(part)


@pytest.mark.parametrize("part", [".zarray", "c.0.0", "null", "com10", "a b", "console.txt", "é"])
def test_names_that_windows_takes_as_they_are(part):
    assert windows_allows(part)


def test_names_as_long_as_they_can_be(tmp_path):
    store, key = ts.KvStore.open("memory://").result(), "n" * 255
    store[key] = b"1"

    assert asyncio.run(ts.download(store, tmp_path)) == 1
    assert files(tmp_path) == {key: b"1"}


def test_keys_of_any_bytes(tmp_path):
    store = ts.KvStore.open(f"{(tmp_path / 'store').as_uri()}/").result()
    store[b"a\xff"] = b"1"

    asyncio.run(ts.download(store, tmp_path / "out"))
    asyncio.run(ts.upload(tmp_path / "out", store / "again/"))

    assert [os.fsencode(path.name) for path in (tmp_path / "out").iterdir()] == [b"a\xff"]
    assert (store / "again/")[b"a\xff"] == b"1"


def test_large_values_go_in_pieces(store, tmp_path, monkeypatch):
    set_transfer_piece_bytes(monkeypatch, 10)
    asked = []

    class Watched(StoreAround):
        async def read(self, key, byte_range=None, **conditions):
            asked.append((byte_range.start, byte_range.stop))
            return await super().read(key, byte_range, **conditions)

    for size in (9, 10, 11, 25):
        store["a"] = bytes(range(size))
        asyncio.run(ts.download(around(store, Watched), tmp_path))
        assert (tmp_path / "a").read_bytes() == bytes(range(size))
    assert asked[-3:] == [(0, 10), (10, 20), (20, None)]
    assert asyncio.run(ts.upload(tmp_path, store / "b/")) == 1
    assert store["b/a"] == bytes(range(25))


@pytest.mark.parametrize("later", [b"B" * 25, b"B" * 40, b"B" * 12, None])
def test_what_is_replaced_meanwhile_is_of_one_version(store, tmp_path, monkeypatch, later):
    set_transfer_piece_bytes(monkeypatch, 10)
    steps = [*["later"] * 30, "now", "first"]

    class Replaced(StoreAround):
        async def read(self, key, byte_range=None, **conditions):
            if steps.pop() == "now":
                await self.base.write(key, later)
            return await super().read(key, byte_range, **conditions)

    store["a"] = b"A" * 25

    count = asyncio.run(ts.download(around(store, Replaced), tmp_path))

    assert files(tmp_path) == ({} if later is None else {"a": later})
    assert count == (later is not None)


def test_what_is_always_replaced_is_an_error(store, tmp_path, monkeypatch):
    set_transfer_piece_bytes(monkeypatch, 10)

    class Replaced(StoreAround):
        async def read(self, key, byte_range=None, **conditions):
            await self.base.write(key, b"A" * 25)
            return await super().read(key, byte_range, **conditions)

    store["a"] = b"A" * 25

    with pytest.raises(ts.AbortedError, match='"a": it was replaced 8 times'):
        asyncio.run(ts.download(around(store, Replaced), tmp_path))
    assert files(tmp_path) == {}


def test_errors_are_those_of_the_store_or_name_the_file(store, tmp_path):
    class Broken(StoreAround):
        async def list(self, key_range=None):
            for number in range(100):
                yield ListEntry(str(number))

        async def read(self, key, byte_range=None, **conditions):
            raise ts.UnavailableError("out of order")

    with pytest.raises(ts.UnavailableError, match="out of order"):
        asyncio.run(ts.download(around(store, Broken), tmp_path / "x"))
    assert files(tmp_path) == {}
    with pytest.raises(ts.FailedPreconditionError, match=r"cannot read .*nothing"):
        asyncio.run(ts.upload(tmp_path / "nothing", store))
    store["a"], store["a/b"] = b"1", b"2"
    with pytest.raises(ts.FailedPreconditionError, match=r"cannot write .*a"):
        asyncio.run(ts.download(store, tmp_path / "y"))


def test_only_some_at_a_time(store, tmp_path):
    most, now = [], set()

    class Watched(StoreAround):
        async def read(self, key, byte_range=None, **conditions):
            now.add(key)
            most.append(len(now))
            found = await super().read(key, byte_range, **conditions)
            now.discard(key)
            return found

    for number in range(100):
        store[f"{number}"] = b""

    assert asyncio.run(ts.download(around(store, Watched), tmp_path)) == 100
    assert max(most) <= 16


def test_unfinished_files_are_not_stored(store, tmp_path):
    (tmp_path / "a.1234.tensorstore-part").write_bytes(b"half")
    (tmp_path / "a").write_bytes(b"whole")
    (tmp_path / "link").symlink_to(tmp_path)

    assert asyncio.run(ts.upload(tmp_path, store)) == 1
    assert store.list().result() == [b"a"]


def test_a_cancelled_transfer_leaves_no_half_file(store, tmp_path):
    for number in range(50):
        store[f"{number}"] = b"x" * 100

    async def main():
        task = asyncio.ensure_future(ts.download(store, tmp_path))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(main())
    assert set(files(tmp_path).values()) <= {b"x" * 100}
