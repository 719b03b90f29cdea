import pytest

from tensorstore_py.errors import UnavailableError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import NO_VALUE, ByteRange, KeyRange
from tensorstore_py.testing import KvStoreSuite, drive
from tensorstore_py.testing.fake_stores import CountingStore, FaultyStore, LoopStore, StoreAround


def memory():
    return MemoryStore(SharedMap())


class TestStoreAround(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return StoreAround(memory())


class TestFaultyStoreWithoutFaults(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return FaultyStore(memory())


class TestLoopStore(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return LoopStore(memory())

    def test_is_no_inline_store(self, store):
        assert not store.inline
        assert store.width == 8


class TestCountingStore(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return CountingStore(memory())

    def test_counts_by_key(self, store):
        self.set(store, "a", b"12345")
        self.set(store, "a", b"123")
        self.set(store, "b", None)
        self.get(store, "a", ByteRange(1))
        self.get(store, "a")
        self.get(store, "nothing")
        drive(store, lambda: store.read_ranges("a", [ByteRange(0, 1), ByteRange(0, 2)]))

        assert dict(store.writes) == {"a": 2}
        assert dict(store.bytes_written) == {"a": 8}
        assert dict(store.deletes) == {"b": 1}
        assert dict(store.reads) == {"a": 3, "nothing": 1}
        assert store.bytes_read["a"] == 2 + 3 + 3

    def test_counts_ranges(self, store):
        wanted = KeyRange.prefix("a/")
        self.entries(store, wanted)
        drive(store, lambda: store.delete_range(wanted))

        assert dict(store.lists) == {wanted: 1}
        assert dict(store.delete_ranges) == {wanted: 1}

    def test_begins_again(self, store):
        self.set(store, "a", b"1")
        store.reset()

        assert not store.writes
        assert not store.bytes_written


class TestFaultyStore:
    @pytest.fixture
    def store(self):
        return FaultyStore(memory())

    @staticmethod
    def fails(store, body):
        with pytest.raises(UnavailableError, match="unplugged"):
            drive(store, body)

    def test_fails_as_often_as_set(self, store):
        store.fail("read", UnavailableError("unplugged"), times=2)

        for _ in range(2):
            self.fails(store, lambda: store.read("a"))
        assert drive(store, lambda: store.read("a")).state == "missing"

    def test_fails_for_one_key_only(self, store):
        store.fail("write", UnavailableError("unplugged"), key="b")

        drive(store, lambda: store.write("a", b"1"))
        self.fails(store, lambda: store.write("b", b"1"))

    def test_a_delete_is_no_write(self, store):
        store.fail("delete", UnavailableError("unplugged"))

        drive(store, lambda: store.write("a", b"1"))
        self.fails(store, lambda: store.write("a", None))

    def test_an_answer_may_get_lost(self, store):
        store.fail("write", UnavailableError("unplugged"), afterwards=True)

        self.fails(store, lambda: store.write("a", b"1", if_equal=NO_VALUE))
        assert bytes(drive(store, lambda: store.read("a")).value) == b"1"

    def test_listing_and_deleting_may_fail(self, store):
        async def list_all():
            return [entry async for entry in store.list()]

        store.fail("list", UnavailableError("unplugged"))
        store.fail("delete_range", UnavailableError("unplugged"))

        self.fails(store, list_all)
        self.fails(store, store.delete_range)

    def test_values_may_rot(self, store):
        drive(store, lambda: store.write("a", b"12345"))
        store.alter("a", lambda value: value[:2])

        assert drive(store, lambda: store.read("a")).value == b"12"
        results = drive(store, lambda: store.read_ranges("a", [ByteRange(1, 4)]))
        assert results[0].value == b"23"
