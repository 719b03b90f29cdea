"""The suite itself: stores that break a promise fail the test of that promise."""

import pytest

from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin import NO_VALUE, UNKNOWN, WHOLE, ReadResult, TimestampedStorageGeneration
from tensorstore_py.testing.fake_stores import StoreAround
from tensorstore_py.testing.kvstore import KvStoreSuite, drive

SUITE = KvStoreSuite()


def memory():
    return MemoryStore(SharedMap())


class ClampsRanges(StoreAround):
    async def read(self, key, byte_range=WHOLE, **conditions):
        found = await self.base.read(key, **conditions)
        if found.state == "value":
            stop = len(found.value) if byte_range.stop is None else byte_range.stop
            found.value = found.value[byte_range.start : stop]
        return found


class IgnoresConditions(StoreAround):
    async def write(self, key, value, *, if_equal=None):
        return await self.base.write(key, value)


class ForgetsGenerations(StoreAround):
    async def write(self, key, value, *, if_equal=None):
        await self.base.write(key, value, if_equal=if_equal)
        return TimestampedStorageGeneration.now(b"\0always the same")


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


class KeepsBuffers(StoreAround):
    def __init__(self, base):
        super().__init__(base)
        self.values = {}

    async def write(self, key, value, *, if_equal=None):
        self.values[key] = value
        return TimestampedStorageGeneration.now(b"\0x")

    async def read(self, key, byte_range=WHOLE, **conditions):
        return ReadResult("value", self.values[key], TimestampedStorageGeneration.now(b"\0x"))


@pytest.mark.parametrize(
    ("broken", "test", "arguments"),
    [
        (ClampsRanges, "test_a_range_outside_the_value_is_an_error", (0, 11)),
        (IgnoresConditions, "test_creates_only_if_absent", ()),
        (IgnoresConditions, "test_of_many_creators_one_wins", ()),
        (ForgetsGenerations, "test_a_write_tells_the_generation_of_what_it_wrote", ()),
        (RaisesOnMissing, "test_a_key_that_is_not_there_is_missing", ()),
        (ListsTooMuch, "test_lists_what_begins_with_a_prefix", ("a/",)),
        (KeepsBuffers, "test_a_buffer_is_the_callers_again_after_the_write", ()),
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
