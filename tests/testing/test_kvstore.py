"""The suite itself: stores that break a promise fail the test of that promise."""

import pytest

from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import WHOLE, BulkWrite, ReadResult, TimestampedStorageGeneration
from tensorstore_py.testing import KvStoreSuite
from tensorstore_py.testing.fake_stores import StoreAround

SUITE = KvStoreSuite()


def memory():
    return MemoryStore(SharedMap())


class IgnoresConditions(StoreAround):
    async def write(self, key, value, *, if_equal=None):
        return await self.base.write(key, value)


class ForgetsGenerations(StoreAround):
    async def write(self, key, value, *, if_equal=None):
        await self.base.write(key, value, if_equal=if_equal)
        return TimestampedStorageGeneration.now(b"\0always the same")


class KeepsBuffers(StoreAround):
    def __init__(self, base):
        super().__init__(base)
        self.kept = {}

    async def write(self, key, value, *, if_equal=None):
        self.kept[key] = value
        return TimestampedStorageGeneration.now(b"\0x")

    async def read(self, key, byte_range=WHOLE, **conditions):
        return ReadResult("value", self.kept[key], TimestampedStorageGeneration.now(b"\0x"))


class SkipsDeletions(StoreAround, BulkWrite):
    async def write_values(self, keys, values):
        for key, value in zip(keys, values, strict=True):
            if value is not None:
                await self.base.write(key, value)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (SkipsDeletions, "test_writes_several_values_and_deletes_where_there_is_none"),
        (IgnoresConditions, "test_creates_only_if_absent"),
        (IgnoresConditions, "test_of_many_creators_one_wins"),
        (ForgetsGenerations, "test_a_write_tells_the_generation_of_what_it_wrote"),
        (KeepsBuffers, "test_a_buffer_is_the_callers_again_after_the_write"),
    ],
)
def test_a_broken_promise_is_found(broken, test):
    check = getattr(SUITE, test)

    check(memory(), "")
    with pytest.raises(AssertionError):
        check(broken(memory()), "")
