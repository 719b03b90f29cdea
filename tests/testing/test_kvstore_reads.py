"""The suites themselves: stores that break a promise fail the test of that promise."""

import pytest

from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, WHOLE, BulkRead
from tensorstore_py.testing import KvStoreListSuite, LoopStore, drive
from tensorstore_py.testing.fake_stores import StoreAround

SUITE = KvStoreListSuite()


def memory():
    return MemoryStore(SharedMap())


class ClampsRanges(StoreAround):
    async def read(self, key, byte_range=WHOLE, **conditions):
        found = await self.base.read(key, **conditions)
        if found.state == "value":
            stop = len(found.value) if byte_range.stop is None else byte_range.stop
            found.value = found.value[byte_range.start : stop]
        return found


class RaisesOnMissing(StoreAround):
    async def read(self, key, byte_range=WHOLE, **conditions):
        found = await self.base.read(key, byte_range, **conditions)
        if found.state == "missing":
            raise KeyError(key)
        return found


class ListsTooMuch(StoreAround):
    async def list(self, key_range=None):
        async for entry in self.base.list():
            yield entry


async def values_of(store, keys):
    """Each value, or None where there is none."""
    found = [await store.read(key) for key in keys]
    return [each.value if each.state == "value" else None for each in found]


class UsesTheRoomTwice(StoreAround, BulkRead):
    async def read_values(self, keys, room):
        found = []
        for value in await values_of(self.base, keys):
            if value is not None and len(value) <= len(room):
                room[: len(value)] = value
                value = room[: len(value)]
            found.append(value)
        return found


class LeavesOutWhatIsMissing(StoreAround, BulkRead):
    async def read_values(self, keys, room):
        return [value for value in await values_of(self.base, keys) if value is not None]


@pytest.mark.parametrize(
    ("broken", "test", "arguments"),
    [
        (UsesTheRoomTwice, "test_reads_several_values_whatever_room_there_is", (1000,)),
        (LeavesOutWhatIsMissing, "test_reads_several_values_whatever_room_there_is", (0,)),
        (ClampsRanges, "test_a_range_outside_the_value_is_an_error", (0, 11)),
        (RaisesOnMissing, "test_a_key_that_is_not_there_is_missing", ()),
        (ListsTooMuch, "test_lists_what_begins_with_a_prefix", ("a/",)),
    ],
)
def test_a_broken_promise_is_found(broken, test, arguments):
    check = getattr(SUITE, test)

    check(memory(), "", *arguments)
    with pytest.raises((AssertionError, KeyError, pytest.fail.Exception)):
        check(broken(memory()), "", *arguments)


def test_drives_inline_stores_without_a_loop():
    store = memory()

    assert drive(store, lambda: store.write("a", None)).generation == NO_VALUE
    assert drive(store, lambda: store.write("a", b"", if_equal=b"?")).generation == UNKNOWN


def test_drives_loop_stores_on_the_loop():
    store = LoopStore(memory())

    assert drive(store, lambda: store.write("a", None)).generation == NO_VALUE
