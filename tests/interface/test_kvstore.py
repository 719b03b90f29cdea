"""Keys, ranges and generations; stores that implement the least, abilities and updates."""

import copy
import math
import time

import pytest
import tensorstore as wheel
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import (
    AbortedError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py._interface.key_range import decode_key
from tensorstore_py._interface.read_modify_write import Replace, Segment, coalesced, merged
from tensorstore_py._interface.store_abilities import (
    copy_value,
    read_as_of,
    read_values,
    update,
    update_values,
    write_values,
)
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    ByteRange,
    CopiedRange,
    ForeignErrors,
    KeyRange,
    KvStore,
    KvStoreSpec,
    ListEntry,
    ReadModifyWrite,
    ReadResult,
    RetryPolicy,
    Splice,
    TimestampedStorageGeneration,
    conditional_update,
    content_generation,
    encode_key,
    holds,
    read_ranges,
    splice,
)
from tensorstore_py.testing import CountedWaits, LoopStore, StoreAround, drive
from tests.chunked.stores import Hooked, once
from tests.runtime.processes import run_inline


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


class TestForeignErrors:
    @pytest.mark.parametrize(
        ("error", "cls"),
        [
            (PermissionError(), PermissionDeniedError),
            (IsADirectoryError(), FailedPreconditionError),
            (NotADirectoryError("no"), FailedPreconditionError),
            (NotImplementedError(), UnsupportedError),
            (ImportError("paramiko"), UnsupportedError),
            (TypeError("no"), SpecError),
            (ConnectionResetError(), UnavailableError),
            (TimeoutError(), UnavailableError),
            (Exception(), UnavailableError),
        ],
    )
    def test_each_has_a_class_of_ours(self, error, cls):
        for errors in (ForeignErrors(), ForeignErrors({"FileNotFoundError": NotFoundError})):
            assert type(errors.typed(error, "read", "a")) is cls

    def test_a_store_knows_more(self):
        errors = ForeignErrors({"FileNotFoundError": NotFoundError})

        assert type(errors.typed(FileNotFoundError(), "read", "a")) is NotFoundError

    def test_what_is_ours_already_stays_what_it_is(self):
        error = AbortedError("replaced")

        assert ForeignErrors().typed(error, "read", "a") is error
        outside = ForeignErrors().typed(OutOfRangeError("[5, 9) is outside"), "read", "a")
        assert (type(outside), str(outside)) == (
            OutOfRangeError,
            "cannot read a: [5, 9) is outside",
        )

    def test_the_first_line_says_what_it_is(self):
        long = RuntimeError("what went wrong \n\nDebug source:\n...")

        assert str(ForeignErrors().typed(long, "read", "a")) == "cannot read a: what went wrong"
        assert str(ForeignErrors().typed(OSError(), "list", "b")) == "cannot list b: OSError"

    def test_what_has_secrets_is_no_cause_and_hands_none_on(self):
        plain, secret = OSError("no route"), OSError("swordfish was refused")
        errors = ForeignErrors(hidden=lambda text: text.replace("swordfish", "..."))
        wrapped = OSError("no way")
        wrapped.__cause__ = secret

        assert [errors.cause(error) for error in (plain, secret, wrapped)] == [plain, None, None]
        with pytest.raises(UnavailableError, match=r"cannot read a: \.\.\. was refused") as raised:
            errors.raise_for(secret, "read", "a")
        assert raised.value.__cause__ is None


OLD = bytes(range(40))


def shown(parts):
    return [str(part) for part in parts]


def made(parts):
    """The value that they stand for, of `OLD`."""
    return b"".join(
        OLD[part.start : part.stop] if isinstance(part, CopiedRange) else bytes(part)
        for part in parts
    )


@st.composite
def stretches(draw):
    start = draw(st.integers(0, len(OLD)))
    kept = CopiedRange(start, draw(st.integers(start, len(OLD))))
    return draw(st.sampled_from([kept, b"", b"new"]))


class TestWithoutAbilities:
    def test_several_ranges_are_read_one_by_one(self):
        store = Reading({"a": b"0123456789"})
        ranges = [ByteRange(0, 2), ByteRange(-3)]
        found = run_inline(read_ranges(store, "a", ranges))
        assert [result.value for result in found] == [b"01", b"789"]
        assert store.asked == [("a", each) for each in ranges]

    def test_several_values_are_read_one_by_one(self):
        store = Reading({"a": b"01", "b": b""})
        room = bytearray(b"xxxx")
        found = run_inline(read_values(store, ["b", "nothing", "a"], memoryview(room)))
        assert found == [b"", None, b"01"]
        assert room == bytearray(b"xxxx")
        assert store.asked == [("b", WHOLE), ("nothing", WHOLE), ("a", WHOLE)]

    def test_several_values_are_written_one_by_one(self):
        store = Listing({"a": b"1", "b": b"2"})
        run_inline(write_values(store, ["a", "b", "c"], [None, b"3", b"4"]))
        assert store.stored == {"b": b"3", "c": b"4"}
        with pytest.raises(UnsupportedError, match="'b'"):
            run_inline(write_values(Reading({}), ["b"], [b"1"]))

    def test_the_present_value_is_always_new_enough(self):
        store = Reading({"a": b"0123456789"})
        found = run_inline(read_as_of(store, "a", ByteRange(2, 4), 0.0))
        assert found.value == b"23"
        assert store.asked == [("a", ByteRange(2, 4))]


class Append(ReadModifyWrite):
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
        return found.stamp.generation, [CopiedRange(0, size), self.tail]


class Splicing(Hooked, Splice):
    """A store that says that it splices, and notes what it is given."""

    def __init__(self):
        super().__init__()
        self.given = []

    async def splice(self, key, parts, *, if_equal):
        self.given.append([str(part) for part in parts])
        self.before("splice", key)
        return await splice(self.base, key, parts, if_equal=if_equal)


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
        stamps = run_inline(update_values(store, keys, [Append(b"x"), Replace(None), Append(b"y")]))
        assert [stored(store, key) for key in keys] == [b"1x", None, b"y"]
        found = [run_inline(store.base.read(key)).stamp.generation for key in keys]
        assert [getattr(stamp, "generation", stamp) for stamp in stamps] == found

    def test_an_error_is_that_of_its_key(self):
        store = Hooked()
        put(store, "b", b"broken")
        outcomes = run_inline(
            update_values(store, ["a", "b", "c"], [Append(b"1"), Append(b"2"), Append(b"3")])
        )
        assert [isinstance(outcome, ValueError) for outcome in outcomes] == [False, True, False]
        assert str(outcomes[1]) == "b'2'"
        assert [stored(store, key) for key in "abc"] == [b"1", b"broken", b"3"]

    def test_one_that_others_change_meanwhile_is_made_again(self):
        store = Hooked()
        store.after = once(lambda: put(store, "b", b"theirs"), "read", "b")
        run_inline(update_values(store, ["a", "b"], [Append(b"1"), Append(b"2")]))
        assert [stored(store, key) for key in "ab"] == [b"1", b"theirs2"]

    def test_no_keys(self):
        assert list(run_inline(update_values(Hooked(), [], []))) == []

    def test_as_many_keys_as_updates(self):
        with pytest.raises(ValueError, match="argument"):
            run_inline(update_values(Hooked(), ["a"], []))


class TestSplicing:
    """The default: what is kept is read, in as few pieces as it has, and all is written."""

    def test_takes_what_is_kept_and_what_is_new(self):
        store = Hooked()
        generation = put(store, "k", b"0123456789")
        parts: list[Segment] = [
            b"ab",
            CopiedRange(2, 4),
            CopiedRange(4, 5),
            memoryview(b"c"),
            CopiedRange(9, 9),
            CopiedRange(0, 1),
        ]
        stamp = run_inline(splice(store, "k", parts, if_equal=generation))
        assert stored(store) == b"ab234c0"
        assert stamp.generation == run_inline(store.base.read("k")).stamp.generation
        assert (store.reads["k"], store.bytes_read["k"], store.writes["k"]) == (2, 4, 1)

    def test_of_nothing_kept_is_a_write(self):
        store = Hooked()
        assert run_inline(splice(store, "k", [b"a", b"b"], if_equal=NO_VALUE)).generation != UNKNOWN
        assert stored(store) == b"ab"
        stale = run_inline(splice(store, "k", [b"c"], if_equal=NO_VALUE))
        assert (stale.generation, stored(store)) == (UNKNOWN, b"ab")
        assert store.reads.total() == 0

    def test_nothing_at_all_is_an_empty_value(self):
        store = Hooked()
        generation = put(store, "k", b"0123")
        run_inline(splice(store, "k", [], if_equal=generation))
        assert stored(store) == b""

    @pytest.mark.parametrize("theirs", [b"9876543210", b"", None])
    def test_a_value_that_is_replaced_half_way_is_not_mixed_in(self, theirs):
        store = Hooked()
        generation = put(store, "k", b"0123456789")
        store.after = once(lambda: put(store, "k", theirs), "read", "k")
        parts: list[Segment] = [CopiedRange(0, 2), b"new", CopiedRange(5, 7)]
        stamp = run_inline(splice(store, "k", parts, if_equal=generation))
        assert (stamp.generation, stored(store)) == (UNKNOWN, theirs)
        assert store.writes.total() == 0

    def test_one_that_is_replaced_before_the_write_stays(self):
        store = Hooked()
        generation = put(store, "k", b"0123456789")
        store.before = once(lambda: put(store, "k", b"theirs"), "write", "k")
        stamp = run_inline(splice(store, "k", [CopiedRange(0, 2), b"new"], if_equal=generation))
        assert (stamp.generation, stored(store)) == (UNKNOWN, b"theirs")

    def test_of_nothing_stored_there_is_nothing_to_keep(self):
        store = Hooked()
        for generation in (NO_VALUE, b"some"):
            stamp = run_inline(splice(store, "k", [CopiedRange(0, 1)], if_equal=generation))
            assert stamp.generation == UNKNOWN
        assert stored(store) is None

    def test_what_is_not_there_cannot_be_kept(self):
        store = Hooked()
        generation = put(store, "k", b"0123")
        with pytest.raises(OutOfRangeError):
            run_inline(splice(store, "k", [b"new", CopiedRange(2, 5)], if_equal=generation))
        assert stored(store) == b"0123"


class TestUpdatingWhereItSplices:
    def test_keeps_what_the_update_keeps(self):
        store = Splicing()
        put(store, "k", b"0123")
        stamp = run_inline(update(store, "k", Spliced(b"45")))
        assert (stored(store), store.given) == (b"012345", [["CopiedRange(0, 4)", "b'45'"]])
        assert stamp.generation == run_inline(store.base.read("k")).stamp.generation

    def test_and_where_nothing_is(self):
        store = Splicing()
        run_inline(update(store, "k", Spliced(b"45")))
        assert stored(store) == b"45"

    def test_what_becomes_nothing_is_deleted(self):
        store = Splicing()
        put(store, "k", b"0123")
        stamp = run_inline(update(store, "k", Spliced(b"last")))
        assert (stamp.generation, stored(store), store.given) == (NO_VALUE, None, [])
        assert store.deletes == {"k": 1}

    def test_a_replacement_has_nothing_to_keep(self):
        store = Splicing()
        run_inline(update(store, "k", Replace(b"new")))
        assert (stored(store), store.given, store.reads.total()) == (b"new", [], 0)

    def test_is_made_again_when_somebody_was_faster(self):
        store = Splicing()
        put(store, "k", b"0123")
        store.before = once(lambda: put(store, "k", b"98"), "splice", "k")
        run_inline(update(store, "k", Spliced(b"45")))
        assert stored(store) == b"9845"
        assert store.given == [["CopiedRange(0, 4)", "b'45'"], ["CopiedRange(0, 2)", "b'45'"]]

    def test_so_is_a_deletion(self):
        store = Splicing()
        put(store, "k", b"0123")
        store.before = once(lambda: put(store, "k", b"98"), "write", "k")
        assert run_inline(update(store, "k", Spliced(b"last"))).generation == NO_VALUE
        assert (stored(store), store.deletes) == (None, {"k": 2})

    def test_one_that_knows_nothing_of_it_works_as_anywhere(self):
        store = Splicing()
        put(store, "k", b"0123")
        run_inline(update(store, "k", Append(b"45")))
        assert (stored(store), store.given) == (b"012345", [["b'012345'"]])

    def test_a_store_that_does_not_splice_is_not_asked_to(self):
        store = Hooked()
        put(store, "k", b"0123")
        run_inline(update(store, "k", Append(b"45")))
        assert (stored(store), store.writes["k"]) == (b"012345", 1)


class TestAbilities:
    def test_is_as_long_as_what_it_keeps(self):
        kept = CopiedRange(3, 10)
        assert (kept.start, kept.stop, len(kept)) == (3, 10, 7)
        assert repr(kept) == "CopiedRange(3, 10)"
        assert not CopiedRange(4, 4)

    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ([], []),
            ([CopiedRange(5, 5)], []),
            ([CopiedRange(0, 2), CopiedRange(2, 5), CopiedRange(5, 6)], [CopiedRange(0, 6)]),
            ([CopiedRange(0, 2), CopiedRange(2, 2), CopiedRange(2, 5)], [CopiedRange(0, 5)]),
            ([CopiedRange(0, 2), CopiedRange(9, 9), CopiedRange(2, 5)], [CopiedRange(0, 5)]),
            # A gap, an overlap and the wrong order are no neighbours.
            ([CopiedRange(0, 2), CopiedRange(3, 5)], [CopiedRange(0, 2), CopiedRange(3, 5)]),
            ([CopiedRange(0, 3), CopiedRange(2, 5)], [CopiedRange(0, 3), CopiedRange(2, 5)]),
            ([CopiedRange(2, 5), CopiedRange(0, 2)], [CopiedRange(2, 5), CopiedRange(0, 2)]),
            # What is new between them keeps them apart, and stays as it is.
            (
                [CopiedRange(0, 2), b"new", CopiedRange(2, 5)],
                [CopiedRange(0, 2), b"new", CopiedRange(2, 5)],
            ),
            ([b"a", b"b", CopiedRange(0, 1)], [b"a", b"b", CopiedRange(0, 1)]),
        ],
        ids=str,
    )
    def test_neighbours_become_one_and_what_is_empty_goes(self, parts, expected):
        assert shown(coalesced(parts)) == shown(expected)

    def test_what_is_new_is_not_copied(self):
        new = bytearray(b"new")
        assert coalesced([CopiedRange(0, 1), new, CopiedRange(1, 2)])[1] is new

    def test_what_is_given_stays_as_it_was(self):
        parts = [CopiedRange(0, 2), CopiedRange(2, 5)]
        coalesced(iter(parts))
        assert shown(parts) == ["CopiedRange(0, 2)", "CopiedRange(2, 5)"]

    @given(st.lists(stretches(), max_size=8))
    def test_it_stands_for_the_same_value(self, parts):
        found = coalesced(parts)
        assert made(found) == made(parts)
        assert not [part for part in found if isinstance(part, CopiedRange) and not len(part)]

    def test_by_default_a_copy_is_a_read_and_a_write(self):
        store = Reading({"a": b"1"})

        assert run_inline(copy_value(store, "a", store, "b")) is False
        assert store.asked == []


class AppendAll(ReadModifyWrite):
    """Adds to the end of what is there."""

    def __init__(self, *tails):
        self.tails = tails

    async def apply(self, stored):
        return (stored or b"") + b"".join(self.tails)


class JoinedAppend(AppendAll):
    def then(self, later):
        if isinstance(later, JoinedAppend):
            return JoinedAppend(*self.tails, *later.tails)
        return super().then(later)


def applied(update, stored=None):
    return run_inline(update.apply(stored))


@pytest.mark.parametrize("way", ["parts_in", "splice_in"])
class TestInAStore:
    """Whoever knows no better reads all of the value, and keeps nothing of it in place."""

    def test_what_is_there_is_changed_and_its_generation_returned(self, way):
        store = MemoryStore(SharedMap())
        stamp = run_inline(store.write("k", b"_"))
        generation, parts = run_inline(getattr(AppendAll(b"a"), way)(store, "k"))
        assert (generation, list(parts)) == (stamp.generation, [b"_a"])

    def test_what_is_missing_is_begun_on_condition_that_it_still_is(self, way):
        store = MemoryStore(SharedMap())
        generation, parts = run_inline(getattr(AppendAll(b"a"), way)(store, "k"))
        assert (generation, list(parts)) == (NO_VALUE, [b"a"])

    def test_what_becomes_nothing_has_no_parts(self, way):
        store = MemoryStore(SharedMap())
        stamp = run_inline(store.write("k", b"_"))
        update = merged([AppendAll(b"a"), Replace(None)])
        assert run_inline(getattr(update, way)(store, "k")) == (stamp.generation, None)


class AddLetter(ReadModifyWrite):
    """Add a letter."""

    async def apply(self, stored):
        return b"" if stored is None else bytes(stored) + b"x"


class Refusing(StoreAround):
    """Refuses so many conditional writes; `meddle` is what others do before each of them."""

    def __init__(self, base, times, meddle=None, error=None):
        super().__init__(base)
        self.left = times
        self.writes = 0
        self._meddle = meddle
        self._error = error

    async def write(self, key, value, *, if_equal=None):
        self.writes += 1
        if self.left > 0:
            self.left -= 1
            if self._error is not None:
                raise self._error
            if self._meddle is not None:
                await self.base.write(key, self._meddle(self.writes))
            return TimestampedStorageGeneration.now(UNKNOWN)
        return await super().write(key, value, if_equal=if_equal)


def letters(number):
    return b"%d" % number


@pytest.fixture(params=["inline", "loop"])
def base(request):
    memory = MemoryStore(SharedMap())
    return memory if request.param == "inline" else LoopStore(memory)


class TestReadModifyWrite:
    def test_a_replacement_forgets_what_was_before(self):
        last = Replace(b"new")
        assert merged([AppendAll(b"x"), Replace(b"old"), AppendAll(b"y"), last]) is last
        assert last.replaces
        assert applied(last, b"stored") == b"new"

    @pytest.mark.parametrize("kind", [AppendAll, JoinedAppend])
    def test_updates_are_made_in_turn(self, kind):
        update = merged([kind(b"a"), kind(b"b"), kind(b"c")])
        assert not update.replaces
        assert applied(update, b"_") == b"_abc"
        assert applied(update, b"_") == b"_abc"

    def test_updates_that_know_each_other_become_one(self):
        both = merged([JoinedAppend(b"a"), JoinedAppend(b"b")])
        assert isinstance(both, JoinedAppend)
        assert both.tails == (b"a", b"b")
        mixed = merged([AppendAll(b"a"), JoinedAppend(b"b"), JoinedAppend(b"c")])
        assert isinstance(mixed.then(JoinedAppend(b"d")), type(mixed))
        assert applied(mixed) == b"abc"

    def test_what_follows_a_replacement_needs_nothing_stored(self):
        update = merged([Replace(b"a"), AppendAll(b"b")])
        assert update.replaces
        assert applied(update, b"stored") == b"ab"
        assert applied(merged([Replace(None), AppendAll(b"b"), Replace(None)])) is None

    def test_kept_is_independent_of_the_callers_memory(self):
        memory = bytearray(b"abc")
        kept = merged([Replace(memory), AppendAll(b"d")]).kept()
        memory[:] = b"xyz"
        assert applied(kept) == b"abcd"

    def test_writers_that_are_always_faster_end_it(self, base):
        store = Refusing(base, 10**6, letters)

        with (
            CountedWaits() as waits,
            pytest.raises(AbortedError, match=r'update "k".*try again') as lost,
        ):
            drive(store, lambda: update(store, "k", AddLetter()))

        assert lost.value.attempts == store.writes == RetryPolicy().attempts
        assert len(waits.seconds) == RetryPolicy().attempts - 1

    def test_a_store_that_refuses_although_nothing_changed_ends_it(self, base):
        store = Refusing(base, 10**6)

        with CountedWaits(), pytest.raises(UnavailableError, match='cannot update "k"') as refused:
            drive(store, lambda: update(store, "k", AddLetter()))

        assert refused.value.attempts == store.writes == RetryPolicy().fruitless

    def test_hundreds_of_faster_writers_are_not_too_many(self, base):
        store = Refusing(base, 900, letters)

        with CountedWaits():
            drive(store, lambda: update(store, "k", AddLetter()))

        assert drive(store, lambda: store.read("k")).value == b"900x"

    def test_what_may_have_been_stored_is_made_again_a_few_times(self, base):
        mine = AbortedError("who knows")
        store = Refusing(base, 10**6, error=mine)

        with CountedWaits(), pytest.raises(AbortedError) as unsure:
            drive(store, lambda: update(store, "k", AddLetter()))

        assert unsure.value is mine
        assert store.writes == 9

    def test_what_replaces_is_not_refused_and_not_read(self, base):
        store = Refusing(base, 0)

        drive(store, lambda: conditional_update(store, "k", Replace(b"1"), RetryPolicy(attempts=1)))

        assert drive(store, lambda: store.read("k")).value == b"1"


@st.composite
def ranges(draw):
    start = draw(st.integers(-12, 12))
    if start < 0:
        return ByteRange(start)
    stop = draw(st.one_of(st.none(), st.integers(start, start + 8)))
    return ByteRange(start, stop)


class TestByteRange:
    @given(ranges(), st.integers(0, 12))
    def test_what_resolves_is_what_a_slice_takes(self, byte_range, size):
        value = bytes(range(size))
        reach = [abs(byte_range.start), byte_range.stop or 0]
        if max(reach) > size:
            with pytest.raises(OutOfRangeError):
                byte_range.resolve(size)
            return
        start, stop = byte_range.resolve(size)
        assert 0 <= start <= stop <= size
        assert value[start:stop] == value[slice(byte_range.start, byte_range.stop)]

    @pytest.mark.parametrize(
        ("start", "stop"), [(3, 2), (1, 0), (-3, 5), (-3, -1), (-1, 0), (0, -1)]
    )
    def test_what_is_no_range_is_refused(self, start, stop):
        with pytest.raises(ValueError, match=rf"\[{start}, {stop}\)"):
            ByteRange(start, stop)

    @pytest.mark.parametrize(
        ("byte_range", "asked"),
        [
            (ByteRange(2, 9), r"\[2, 9\)"),
            (ByteRange(-9), r"\[-9, end\)"),
            (ByteRange(6), r"\[6, end"),
        ],
    )
    def test_the_error_names_the_range_and_the_size(self, byte_range, asked):
        with pytest.raises(OutOfRangeError, match=f"{asked}.*5 bytes"):
            byte_range.resolve(5)

    def test_only_one_range_is_whole(self):
        assert WHOLE.is_whole
        assert ByteRange(0, None).is_whole
        assert not any(each.is_whole for each in (ByteRange(0, 0), ByteRange(1), ByteRange(-1)))

    def test_ranges_are_values(self):
        assert ByteRange(1, 2) == ByteRange(1, 2)
        assert len({WHOLE, ByteRange(), ByteRange(0, 0)}) == 2


#: Few letters, so that prefixes meet; the greatest byte and the greatest code point among them.
RAW = st.binary(max_size=4).map(lambda raw: bytes(b"ab/\xff"[byte % 4] for byte in raw))


TEXT = st.text("ab/é\U0010ffff", max_size=4)


KEYS = st.one_of(TEXT, RAW.map(decode_key))


RANGES = st.builds(KeyRange, RAW, RAW)


class TestKeyRange:
    @given(st.one_of(st.binary(max_size=8), RAW))
    def test_any_bytes_are_a_key_and_back(self, raw):
        assert encode_key(decode_key(raw)) == raw

    def test_text_is_its_own_key(self):
        assert decode_key("é/a") == "é/a" == decode_key("é/a".encode())

    @given(RANGES, KEYS)
    def test_contains_what_lies_between_in_byte_order(self, key_range, key):
        raw, high = encode_key(key), key_range.exclusive_max
        expected = key_range.inclusive_min <= raw and (high == b"" or raw < high)
        assert (key in key_range) == expected
        if key_range.empty:
            assert not expected

    @given(KEYS, KEYS)
    def test_a_prefix_is_the_range_of_the_keys_that_begin_with_it(self, prefix, key):
        begins = encode_key(key).startswith(encode_key(prefix))
        assert (key in KeyRange.prefix(prefix)) == begins

    @given(KEYS, RANGES, KEYS)
    def test_a_base_is_put_in_front(self, base, key_range, key):
        moved = key_range.with_base(base)
        assert (decode_key(encode_key(base) + encode_key(key)) in moved) == (key in key_range)

    @given(TEXT, RANGES, KEYS)
    def test_nothing_outside_the_base_comes_in(self, base, key_range, key):
        if not encode_key(key).startswith(encode_key(base)):
            assert key not in key_range.with_base(base)

    @given(RANGES, KEYS)
    def test_every_key_of_a_range_begins_with_its_common_prefix(self, key_range, key):
        if key in key_range:
            assert encode_key(key).startswith(encode_key(key_range.common_prefix()))

    @pytest.mark.parametrize(
        ("low", "high", "prefix"),
        [
            (b"\xffb", b"\xffba", "\udcffb"),
            ("aé".encode(), "aê".encode(), "aé"),
            ("aé".encode()[:2], "aé".encode(), "a"),
            (b"ab", b"ad", "a"),
            (b"ab", b"", ""),
        ],
    )
    def test_no_character_is_cut_in_two(self, low, high, prefix):
        assert KeyRange(low, high).common_prefix() == prefix

    @given(TEXT)
    def test_the_common_prefix_of_a_prefix_is_that(self, prefix):
        if not prefix.endswith("\U0010ffff"):
            assert KeyRange.prefix(prefix).common_prefix() == prefix

    @pytest.mark.parametrize(
        ("low", "high", "empty"),
        [(b"", b"", False), (b"a", b"", False), (b"a", b"b", False), (b"b", b"b", True),
         (b"b", b"a", True), (b"", b"a", False)],
    )  # fmt: skip
    def test_knows_when_no_key_can_be_inside(self, low, high, empty):
        assert KeyRange(low, high).empty == empty

    def test_everything(self):
        assert KeyRange.prefix("") == ALL
        assert all(key in ALL for key in ("", "a", "\U0010ffff", decode_key(b"\xff")))
        assert ALL.common_prefix() == ""


THEIRS = wheel.KvStore.TimestampedStorageGeneration


class TestGeneration:
    @pytest.mark.parametrize("arguments", [(), (b"abc",), ("abc",), (b"abc", 1.5), ("é", 2.0)])
    def test_is_that_of_the_reference(self, arguments):
        mine, theirs = TimestampedStorageGeneration(*arguments), THEIRS(*arguments)
        assert (mine.generation, mine.time) == (theirs.generation, theirs.time)

    def test_is_printed_alike(self):
        assert repr(TimestampedStorageGeneration(b"a\0", 1.5)) == repr(THEIRS(b"a\0", 1.5))

    def test_is_a_value_that_can_change(self):
        stamp = TimestampedStorageGeneration(b"a", 1.0)
        for made in (stamp.copy(), copy.copy(stamp), copy.deepcopy(stamp)):
            assert made == stamp
            made.generation = b"b"
            assert made != stamp
        assert stamp != TimestampedStorageGeneration(b"a", 2.0)
        assert stamp != "a"
        with pytest.raises(TypeError):
            hash(stamp)

    def test_now_is_now(self):
        before = time.time()
        stamp = TimestampedStorageGeneration.now(b"a")
        assert before <= stamp.time <= time.time()
        assert TimestampedStorageGeneration().time == -math.inf

    @pytest.mark.parametrize("generation", [NO_VALUE, b"a"])
    def test_no_condition_always_holds(self, generation):
        assert holds(None, generation)
        assert holds(UNKNOWN, generation)

    def test_a_condition_holds_for_its_own_generation_only(self):
        generations = [NO_VALUE, b"a", b"b"]
        for one in generations:
            assert [holds(one, other) for other in generations] == [
                one == other for other in generations
            ]

    def test_content_makes_a_generation(self):
        values = [b"", b"a", b"b", b"a\0"]
        made = [content_generation(value) for value in values]
        assert len({*made, UNKNOWN, NO_VALUE}) == len(values) + 2
        assert (
            content_generation(bytearray(b"a")) == content_generation(memoryview(b"a")) == made[1]
        )
        assert content_generation(None) == NO_VALUE
