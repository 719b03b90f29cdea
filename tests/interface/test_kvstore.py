"""What a store has of the promise when it implements no more than it must."""

import copy

import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import KvStore, KvStoreSpec, ListEntry, ReadResult
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import OutOfRangeError, UnsupportedError


class Reading(KvStore):
    """A store that can read and nothing else."""

    inline = True

    def __init__(self, values):
        self.stored = values
        self.asked = []

    async def read(self, key, byte_range=WHOLE, *, if_equal=None, if_not_equal=None):
        self.asked.append((key, byte_range))
        if key not in self.stored:
            return ReadResult("missing")
        start, stop = byte_range.resolve(len(self.stored[key]))
        return ReadResult("value", self.stored[key][start:stop])


class Listing(Reading):
    """A store that writes and lists besides."""

    async def write(self, key, value, *, if_equal=None):
        if value is None:
            del self.stored[key]
        else:
            self.stored[key] = value
        return TimestampedStorageGeneration()

    async def list(self, key_range=KeyRange()):  # noqa: B008  # a frozen value
        for key in sorted(self.stored):
            if key in key_range:
                yield ListEntry(key, len(self.stored[key]))


class TestDefaults:
    def test_several_ranges_are_read_one_by_one(self):
        store = Reading({"a": b"0123456789"})
        ranges = [ByteRange(0, 2), ByteRange(-3)]
        found = run_inline(store.read_ranges("a", ranges))
        assert [result.value for result in found] == [b"01", b"789"]
        assert store.asked == [("a", each) for each in ranges]

    def test_several_values_are_read_one_by_one(self):
        store = Reading({"a": b"01", "b": b""})
        room = bytearray(b"xxxx")
        found = run_inline(store.read_values(["b", "nothing", "a"], memoryview(room)))
        assert found == [b"", None, b"01"]
        assert room == bytearray(b"xxxx")
        assert store.asked == [("b", WHOLE), ("nothing", WHOLE), ("a", WHOLE)]

    def test_several_values_are_written_one_by_one(self):
        store = Listing({"a": b"1", "b": b"2"})
        run_inline(store.write_values(["a", "b", "c"], [None, b"3", b"4"]))
        assert store.stored == {"b": b"3", "c": b"4"}
        with pytest.raises(UnsupportedError, match="'b'"):
            run_inline(Reading({}).write_values(["b"], [b"1"]))

    def test_the_present_value_is_always_new_enough(self):
        store = Reading({"a": b"0123456789"})
        found = run_inline(store.read_as_of("a", ByteRange(2, 4), 0.0))
        assert found.value == b"23"
        assert store.asked == [("a", ByteRange(2, 4))]

    def test_what_is_not_there_cannot_be_done_and_names_store_and_key(self):
        store = Reading({})
        with pytest.raises(UnsupportedError, match=r"Reading is read-only.*'a/b'"):
            run_inline(store.write("a/b", b""))
        with pytest.raises(UnsupportedError, match="Reading cannot list"):
            store.list()
        with pytest.raises(NotImplementedError):
            run_inline(store.delete_range())

    def test_a_range_is_deleted_key_by_key(self):
        store = Listing({"a/1": b"", "a/2": b"", "b": b""})
        run_inline(store.delete_range(KeyRange.prefix("a/")))
        assert list(store.stored) == ["b"]
        run_inline(store.delete_range())
        assert store.stored == {}

    def test_closing_needs_nothing(self):
        store = Reading({})
        run_inline(store.aclose())
        run_inline(store.aclose())

    @pytest.mark.parametrize(
        ("key", "text"), [("a/b", '"a/b"'), ("é", '"é"'), ("\udcff", '"\\\\xff"')]
    )
    def test_a_key_is_described_in_quotes(self, key, text):
        assert Reading({}).describe_key(key) == text


class TestReadResult:
    def test_is_that_of_the_reference(self):
        theirs = wheel.KvStore.ReadResult(
            "value", b"abc", wheel.KvStore.TimestampedStorageGeneration(b"g", 1.0)
        )
        mine = ReadResult("value", b"abc", TimestampedStorageGeneration(b"g", 1.0))
        assert repr(mine) == repr(theirs)
        assert (ReadResult().state, ReadResult().value) == ("unspecified", b"")
        assert ReadResult("value", "é").value == "é".encode()

    def test_copies_are_independent(self):
        value = bytearray(b"abc")
        result = ReadResult("value", value, TimestampedStorageGeneration(b"g", 1.0))
        deep = copy.deepcopy(result)
        for made in (copy.copy(result), copy.deepcopy(result)):
            made.stamp.generation = b"h"
            assert (made.state, bytes(made.value)) == ("value", b"abc")
        value[0] = 0
        assert bytes(deep.value) == b"abc"
        assert result.stamp.generation == b"g"

    def test_of_a_value_at_hand(self):
        found = ReadResult.of(b"0123", b"g", ByteRange(1, 3))
        assert (found.state, found.value, found.stamp.generation) == ("value", b"12", b"g")
        with pytest.raises(OutOfRangeError):
            ReadResult.of(b"0123", b"g", ByteRange(1, 9))

    def test_of_nothing(self):
        for conditions in ({}, {"if_equal": b"g"}, {"if_not_equal": NO_VALUE}):
            found = ReadResult.of(None, NO_VALUE, ByteRange(1, 3), **conditions)
            assert (found.state, found.value, found.stamp.generation) == ("missing", b"", NO_VALUE)

    @pytest.mark.parametrize(
        ("conditions", "state"),
        [
            ({"if_equal": b"g"}, "value"),
            ({"if_equal": b"other"}, "unspecified"),
            ({"if_equal": UNKNOWN}, "value"),
            ({"if_not_equal": b"g"}, "unspecified"),
            ({"if_not_equal": b"other"}, "value"),
            ({"if_not_equal": UNKNOWN}, "value"),
        ],
    )
    def test_on_conditions(self, conditions, state):
        found = ReadResult.of(b"0123", b"g", **conditions)
        assert (found.state, found.stamp.generation) == (state, b"g")
        assert found.value == (b"0123" if state == "value" else b"")


class TestSpec:
    class Odd(KvStoreSpec):
        driver = "odd"

    def test_what_a_spec_cannot_do_is_named(self):
        spec = self.Odd.parse({"path": "a/"})
        for action in (spec.open, spec.to_url, lambda: self.Odd.from_url("odd://x")):
            with pytest.raises(UnsupportedError, match='kvstore driver "odd"'):
                action()

    def test_a_listing_entry_need_not_know_the_size(self):
        assert ListEntry("a") == ("a", -1)

    def test_path_and_driver_are_printed(self):
        assert self.Odd.parse({"driver": "odd", "path": "a/"}).to_json() == {
            "driver": "odd", "path": "a/"
        }  # fmt: skip
        assert ts.KvStore.Spec("memory://a/").to_json() == {"driver": "memory", "path": "a/"}


def test_by_default_a_copy_is_a_read_and_a_write():
    store = Reading({"a": b"1"})

    assert run_inline(store.copy_to("a", store, "b")) is False
    assert store.asked == []
