"""A mapping of the user's as a store."""

import asyncio
import threading

import tensorstore_py as ts
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._spec.held import Held
from tensorstore_py.zarr.mapping import MappingSpec


def opened(mapping):
    return MappingSpec(held=Held(mapping)).open()


def test_reads_what_is_in_it():
    store = opened({"a": b"12345"})
    found = asyncio.run(store.read("a", ByteRange(1, 3)))
    assert (found.state, bytes(found.value)) == ("value", b"23")
    assert asyncio.run(store.read("b")).state == "missing"


def test_writes_on_condition():
    files: dict[str, bytes] = {}
    store = opened(files)

    first = asyncio.run(store.write("a", b"1", if_equal=NO_VALUE))
    assert asyncio.run(store.write("a", b"2", if_equal=NO_VALUE)).generation == UNKNOWN
    assert files == {"a": b"1"}
    files["a"] = b"changed"
    assert asyncio.run(store.write("a", b"2", if_equal=first.generation)).generation == UNKNOWN
    asyncio.run(store.write("a", None))
    asyncio.run(store.write("a", None))
    assert files == {}


def test_lists_with_sizes():
    store = opened({"b/x": b"12", "a": b"1", "b/y": b""})

    async def listed():
        return [tuple(entry) async for entry in store.list(KeyRange.prefix("b/"))]

    assert asyncio.run(listed()) == [("b/x", 2), ("b/y", 0)]


def test_is_itself_and_no_other():
    files: dict[str, bytes] = {}
    assert Held(files) == Held(files)
    assert Held(files) != Held({})
    assert len({Held(files), Held(files)}) == 1


def test_threads_lose_nothing_however_often_it_is_opened():
    files: dict[str, bytes] = {}
    ts.zarr.zeros(40, store=files, chunks=40, dtype="i4")

    def write(start):
        z = ts.zarr.open_array(files)
        for place in range(start, 40, 4):
            z[place] = place

    threads = [threading.Thread(target=write, args=[start]) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ts.zarr.open_array(files)[:].tolist() == list(range(40))
