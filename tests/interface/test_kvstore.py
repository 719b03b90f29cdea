"""What a store has of the promise when it implements no more than it must."""

import copy

import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.kept import Kept, Stretch
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import KvStore, KvStoreSpec, ListEntry, ReadResult
from tensorstore_py._interface.update import Replace, Update
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import OutOfRangeError, UnsupportedError
from tests.chunked.stores import Hooked, once


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


class Append(Update):
    """Adds to the end of what is there."""

    def __init__(self, tail):
        self.tail = tail

    async def apply(self, stored):
        if stored == b"broken":
            raise ValueError(self.tail)
        return bytes(stored or b"") + self.tail


class Spliced(Append):
    """The same, without a look at what is there; what it makes of `last` is nothing."""

    async def apply(self, stored):
        raise AssertionError

    async def splice_in(self, store, key):
        found = await store.read(key, ByteRange(0, 0))
        if found.state == "missing":
            return NO_VALUE, [self.tail]
        if self.tail == b"last":
            return found.stamp.generation, None
        size = len((await store.read(key)).value)
        return found.stamp.generation, [Kept(0, size), self.tail]


class Splicing(Hooked):
    """A store that says that it splices, and notes what it is given."""

    splices = True

    def __init__(self):
        super().__init__()
        self.given = []

    async def splice(self, key, parts, *, if_equal):
        self.given.append([str(part) for part in parts])
        self.before("splice", key)
        return await super().splice(key, parts, if_equal=if_equal)


def put(store, key, value):
    return run_inline(store.base.write(key, value)).generation


def stored(store, key="k"):
    found = run_inline(store.base.read(key))
    return None if found.state == "missing" else bytes(found.value)


class TestUpdatingSeveral:
    def test_each_is_made_of_what_is_there(self):
        store = Hooked()
        put(store, "a", b"1")
        put(store, "gone", b"2")
        keys = ["a", "gone", "new"]
        stamps = run_inline(store.update_values(keys, [Append(b"x"), Replace(None), Append(b"y")]))
        assert [stored(store, key) for key in keys] == [b"1x", None, b"y"]
        found = [run_inline(store.base.read(key)).stamp.generation for key in keys]
        assert [getattr(stamp, "generation", stamp) for stamp in stamps] == found

    def test_an_error_is_that_of_its_key(self):
        store = Hooked()
        put(store, "b", b"broken")
        outcomes = run_inline(
            store.update_values(["a", "b", "c"], [Append(b"1"), Append(b"2"), Append(b"3")])
        )
        assert [isinstance(outcome, ValueError) for outcome in outcomes] == [False, True, False]
        assert str(outcomes[1]) == "b'2'"
        assert [stored(store, key) for key in "abc"] == [b"1", b"broken", b"3"]

    def test_one_that_others_change_meanwhile_is_made_again(self):
        store = Hooked()
        store.after = once(lambda: put(store, "b", b"theirs"), "read", "b")
        run_inline(store.update_values(["a", "b"], [Append(b"1"), Append(b"2")]))
        assert [stored(store, key) for key in "ab"] == [b"1", b"theirs2"]

    def test_no_keys(self):
        assert list(run_inline(Hooked().update_values([], []))) == []

    def test_as_many_keys_as_updates(self):
        with pytest.raises(ValueError, match="argument"):
            run_inline(Hooked().update_values(["a"], []))


class TestSplicing:
    """The default: what is kept is read, in as few pieces as it has, and all is written."""

    def test_takes_what_is_kept_and_what_is_new(self):
        store = Hooked()
        generation = put(store, "k", b"0123456789")
        parts: list[Stretch] = [
            b"ab",
            Kept(2, 4),
            Kept(4, 5),
            memoryview(b"c"),
            Kept(9, 9),
            Kept(0, 1),
        ]
        stamp = run_inline(store.splice("k", parts, if_equal=generation))
        assert stored(store) == b"ab234c0"
        assert stamp.generation == run_inline(store.base.read("k")).stamp.generation
        assert (store.reads["k"], store.bytes_read["k"], store.writes["k"]) == (2, 4, 1)

    def test_of_nothing_kept_is_a_write(self):
        store = Hooked()
        assert run_inline(store.splice("k", [b"a", b"b"], if_equal=NO_VALUE)).generation != UNKNOWN
        assert stored(store) == b"ab"
        stale = run_inline(store.splice("k", [b"c"], if_equal=NO_VALUE))
        assert (stale.generation, stored(store)) == (UNKNOWN, b"ab")
        assert store.reads.total() == 0

    def test_nothing_at_all_is_an_empty_value(self):
        store = Hooked()
        generation = put(store, "k", b"0123")
        run_inline(store.splice("k", [], if_equal=generation))
        assert stored(store) == b""

    @pytest.mark.parametrize("theirs", [b"9876543210", b"", None])
    def test_a_value_that_is_replaced_half_way_is_not_mixed_in(self, theirs):
        store = Hooked()
        generation = put(store, "k", b"0123456789")
        store.after = once(lambda: put(store, "k", theirs), "read", "k")
        parts: list[Stretch] = [Kept(0, 2), b"new", Kept(5, 7)]
        stamp = run_inline(store.splice("k", parts, if_equal=generation))
        assert (stamp.generation, stored(store)) == (UNKNOWN, theirs)
        assert store.writes.total() == 0

    def test_one_that_is_replaced_before_the_write_stays(self):
        store = Hooked()
        generation = put(store, "k", b"0123456789")
        store.before = once(lambda: put(store, "k", b"theirs"), "write", "k")
        stamp = run_inline(store.splice("k", [Kept(0, 2), b"new"], if_equal=generation))
        assert (stamp.generation, stored(store)) == (UNKNOWN, b"theirs")

    def test_of_nothing_stored_there_is_nothing_to_keep(self):
        store = Hooked()
        for generation in (NO_VALUE, b"some"):
            stamp = run_inline(store.splice("k", [Kept(0, 1)], if_equal=generation))
            assert stamp.generation == UNKNOWN
        assert stored(store) is None

    def test_what_is_not_there_cannot_be_kept(self):
        store = Hooked()
        generation = put(store, "k", b"0123")
        with pytest.raises(OutOfRangeError):
            run_inline(store.splice("k", [b"new", Kept(2, 5)], if_equal=generation))
        assert stored(store) == b"0123"


class TestUpdatingWhereItSplices:
    def test_keeps_what_the_update_keeps(self):
        store = Splicing()
        put(store, "k", b"0123")
        stamp = run_inline(store.update("k", Spliced(b"45")))
        assert (stored(store), store.given) == (b"012345", [["Kept(0, 4)", "b'45'"]])
        assert stamp.generation == run_inline(store.base.read("k")).stamp.generation

    def test_and_where_nothing_is(self):
        store = Splicing()
        run_inline(store.update("k", Spliced(b"45")))
        assert stored(store) == b"45"

    def test_what_becomes_nothing_is_deleted(self):
        store = Splicing()
        put(store, "k", b"0123")
        stamp = run_inline(store.update("k", Spliced(b"last")))
        assert (stamp.generation, stored(store), store.given) == (NO_VALUE, None, [])
        assert store.deletes == {"k": 1}

    def test_a_replacement_has_nothing_to_keep(self):
        store = Splicing()
        run_inline(store.update("k", Replace(b"new")))
        assert (stored(store), store.given, store.reads.total()) == (b"new", [], 0)

    def test_is_made_again_when_somebody_was_faster(self):
        store = Splicing()
        put(store, "k", b"0123")
        store.before = once(lambda: put(store, "k", b"98"), "splice", "k")
        run_inline(store.update("k", Spliced(b"45")))
        assert stored(store) == b"9845"
        assert store.given == [["Kept(0, 4)", "b'45'"], ["Kept(0, 2)", "b'45'"]]

    def test_so_is_a_deletion(self):
        store = Splicing()
        put(store, "k", b"0123")
        store.before = once(lambda: put(store, "k", b"98"), "write", "k")
        assert run_inline(store.update("k", Spliced(b"last"))).generation == NO_VALUE
        assert (stored(store), store.deletes) == (None, {"k": 2})

    def test_one_that_knows_nothing_of_it_works_as_anywhere(self):
        store = Splicing()
        put(store, "k", b"0123")
        run_inline(store.update("k", Append(b"45")))
        assert (stored(store), store.given) == (b"012345", [["b'012345'"]])

    def test_a_store_that_does_not_splice_is_not_asked_to(self):
        class Plain(Splicing):
            splices = False

        store = Plain()
        put(store, "k", b"0123")
        run_inline(store.update("k", Append(b"45")))
        assert (stored(store), store.given) == (b"012345", [])
