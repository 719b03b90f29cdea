"""What every store must keep of reading and listing, as test classes to inherit.

`KvStoreReadSuite` and `KvStoreListSuite` are for stores that cannot write: their test classes say
in `put` how a value gets into the store. `KvStoreSuite` in `kvstore` adds writing. Tests are driven
by the store's execution mode: inline stores without any event loop, others on the library's loop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import pytest

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
)
from tensorstore_py._interface.key_range import ALL, KeyRange, encode_key
from tensorstore_py._interface.kvstore import KvStore, ListEntry, ReadResult
from tensorstore_py._interface.store_abilities import (
    list_directory,
    list_keys,
    read_as_of,
    read_parts,
    read_ranges,
    read_values,
)
from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import OutOfRangeError, SpecError

__all__ = ["KvStoreListSuite", "KvStoreReadSuite", "drive"]

T = TypeVar("T")
VALUE = b"0123456789"
OTHER = b"\0some other generation"
LARGE = bytes(range(256)) * 4099 + b"end"


def drive(store: KvStore, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `body()` to its end as the store's execution mode demands.

    Example:
        >>> from tensorstore_py._api.kvstore import KvStore
        >>> store = KvStore.open("memory://").result().store
        >>> drive(store, lambda: store.read("a")).state
        'missing'
    """
    return run_inline(body()) if store.inline else start(False, body).result(timeout=60)


class KvStoreReadSuite:
    """Promises of reading.

    Attributes:
        odd_keys: keys that must work although they look special somewhere.
        bad_keys: keys that the store refuses with a `SpecError`.
    """

    odd_keys: ClassVar[tuple[str, ...]] = (
        "a b",
        "é",
        "日本/語",
        "😀",
        "%2F",
        "a%20b+c",
        "a&b=c",
        "q?d#e",
        "~!@$'()*,;:",
        "[x]{y}^`|<>",
        '"',
        "a.b",
        "..a",
        "a..b/.c",
        "x" * 200,
    )
    bad_keys: ClassVar[tuple[str, ...]] = ()

    @pytest.fixture
    def store(self) -> KvStore:
        """The store under test, empty below `prefix`. To be overridden."""
        pytest.fail(f"{type(self).__name__} must have a fixture `store`")

    @pytest.fixture
    def prefix(self) -> str:
        """What the keys of the tests begin with."""
        return ""

    async def put(self, store: KvStore, key: str, value: bytes) -> None:
        """Get a value into the store; read-only stores override this."""
        await store.write(key, value)

    def filled(self, store: KvStore, prefix: str, keys: Iterable[str], value: bytes) -> None:
        """Get the same value under several keys."""

        async def fill() -> None:
            for key in keys:
                await self.put(store, prefix + key, value)

        drive(store, fill)

    def get(
        self,
        store: KvStore,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """A read, driven to its end."""
        return drive(
            store,
            lambda: store.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal),
        )

    def values(
        self, store: KvStore, prefix: str, names: Iterable[str], room: memoryview
    ) -> list[bytes | None]:
        """The values below `prefix`, all of them held at one time and then copied."""
        keys = [prefix + name for name in names]
        found = drive(store, lambda: read_values(store, keys, room))
        return [None if value is None else bytes(value) for value in found]

    def test_parts_of_a_value_of_another_size_are_not_told(
        self, store: KvStore, prefix: str
    ) -> None:
        self.filled(store, prefix, ["a"], VALUE)
        ranges = [ByteRange(2, 5), ByteRange(-1)]

        def parts(name: str, size: int) -> list[bytes | None] | None:
            found = drive(store, lambda: read_parts(store, prefix + name, ranges, size))
            if found is None:
                return None  # the store cannot tell, or the size is another one
            return [None if value is None else bytes(value) for value in found]

        assert parts("a", len(VALUE)) in (None, [VALUE[2:5], VALUE[-1:]])
        assert parts("a", len(VALUE) + 1) is None
        assert parts("nothing", len(VALUE)) in (None, [None, None])

    def test_an_answer_is_never_older_than_asked(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a"], VALUE)
        key, now = prefix + "a", time.time()

        for bound in (-math.inf, now):
            found = drive(store, partial(read_as_of, store, key, WHOLE, bound))

            assert bytes(found.value) == VALUE

    def test_a_key_that_is_not_there_is_missing(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["there/x"], VALUE)

        for key in ("nothing", "not/hing", "there/y", "there/x/y", "ther", "there"):
            result = self.get(store, prefix + key)

            assert (result.state, bytes(result.value)) == ("missing", b"")
            assert result.stamp.generation == NO_VALUE
            assert math.isfinite(result.stamp.time)

    @pytest.mark.parametrize(
        "value", [VALUE, b"", b"\0", LARGE], ids=["short", "empty", "nul", "large"]
    )
    def test_reads_what_was_stored(self, store: KvStore, prefix: str, value: bytes) -> None:
        self.filled(store, prefix, ["a/b"], value)

        result = self.get(store, prefix + "a/b")

        assert result.state == "value"
        assert bytes(result.value) == value
        assert result.stamp.generation not in (UNKNOWN, NO_VALUE)
        assert math.isfinite(result.stamp.time)

    def test_a_generation_lasts_as_long_as_its_value(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a"], VALUE)

        first, second = (self.get(store, prefix + "a").stamp for _ in range(2))

        assert first.generation == second.generation

    @pytest.mark.parametrize(
        ("start", "stop"),
        [(0, None), (0, 10), (2, 5), (3, None), (0, 0), (4, 4), (10, 10), (10, None), (9, 10),
         (-1, None), (-3, None), (-10, None)],
    )  # fmt: skip
    def test_reads_a_range(self, store: KvStore, prefix: str, start: int, stop: int | None) -> None:
        self.filled(store, prefix, ["a"], VALUE)

        result = self.get(store, prefix + "a", ByteRange(start, stop))

        assert (result.state, bytes(result.value)) == ("value", VALUE[start:stop])
        assert result.stamp.generation == self.get(store, prefix + "a").stamp.generation

    @pytest.mark.parametrize(
        ("start", "stop"), [(0, 11), (3, 100), (11, None), (11, 12), (-11, None)]
    )
    def test_a_range_outside_the_value_is_an_error(
        self, store: KvStore, prefix: str, start: int, stop: int | None
    ) -> None:
        self.filled(store, prefix, ["a"], VALUE)

        with pytest.raises(OutOfRangeError):
            self.get(store, prefix + "a", ByteRange(start, stop))

    @pytest.mark.parametrize("byte_range", [ByteRange(2, 5), ByteRange(-3), ByteRange(0, 0)])
    def test_a_range_of_nothing_is_missing(
        self, store: KvStore, prefix: str, byte_range: ByteRange
    ) -> None:
        result = self.get(store, prefix + "nothing", byte_range)

        assert (result.state, result.stamp.generation) == ("missing", NO_VALUE)

    def test_the_present_generation_need_not_be_sent_again(
        self, store: KvStore, prefix: str
    ) -> None:
        self.filled(store, prefix, ["a"], VALUE)
        present = self.get(store, prefix + "a").stamp.generation

        same = self.get(store, prefix + "a", if_not_equal=present)
        other = self.get(store, prefix + "a", if_not_equal=OTHER)
        absent = self.get(store, prefix + "a", if_not_equal=NO_VALUE)

        assert (same.state, bytes(same.value)) == ("unspecified", b"")
        assert same.stamp.generation == present
        assert (other.state, bytes(other.value)) == ("value", VALUE)
        assert (absent.state, bytes(absent.value)) == ("value", VALUE)

    def test_reads_only_the_generation_that_is_asked_for(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a"], VALUE)
        present = self.get(store, prefix + "a").stamp.generation

        same = self.get(store, prefix + "a", ByteRange(1, 3), if_equal=present)
        other = self.get(store, prefix + "a", if_equal=OTHER)

        assert (same.state, bytes(same.value)) == ("value", VALUE[1:3])
        assert (other.state, bytes(other.value)) == ("unspecified", b"")

    def test_an_unknown_generation_is_no_condition(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a"], VALUE)

        results = [
            self.get(store, prefix + "a", if_equal=UNKNOWN),
            self.get(store, prefix + "a", if_not_equal=UNKNOWN),
        ]

        assert [bytes(result.value) for result in results] == [VALUE, VALUE]

    def test_what_is_missing_is_missing_under_any_condition(
        self, store: KvStore, prefix: str
    ) -> None:
        for generation in (OTHER, NO_VALUE):
            result = self.get(store, prefix + "nothing", if_not_equal=generation)

            assert (result.state, result.stamp.generation) == ("missing", NO_VALUE)

    def test_reads_several_ranges_of_one_value(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a"], VALUE)
        ranges = [ByteRange(7, 9), ByteRange(0, 3), ByteRange(2, 4), ByteRange(-1), WHOLE]

        results = drive(store, lambda: read_ranges(store, prefix + "a", ranges))

        assert [bytes(result.value) for result in results] == [
            b"78", b"012", b"23", b"9", VALUE
        ]  # fmt: skip
        assert {result.state for result in results} == {"value"}
        assert len({result.stamp.generation for result in results}) == 1

    def test_several_ranges_of_nothing_are_missing(self, store: KvStore, prefix: str) -> None:
        ranges = [ByteRange(0, 3), ByteRange(-1)]

        results = drive(store, lambda: read_ranges(store, prefix + "nothing", ranges))

        assert [result.state for result in results] == ["missing", "missing"]
        assert drive(store, lambda: read_ranges(store, prefix + "nothing", [])) == []

    def test_several_ranges_stay_inside_the_value(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a"], VALUE)

        with pytest.raises(OutOfRangeError):
            drive(
                store,
                lambda: read_ranges(store, prefix + "a", [ByteRange(0, 3), ByteRange(5, 11)]),
            )

    @pytest.mark.parametrize("size", [0, 1, len(VALUE), 2 * len(VALUE), 1000])
    def test_reads_several_values_whatever_room_there_is(
        self, store: KvStore, prefix: str, size: int
    ) -> None:
        self.filled(store, prefix, ["a", "d/b", "d/c"], VALUE)
        drive(store, lambda: self.put(store, prefix + "empty", b""))
        drive(store, lambda: self.put(store, prefix + "large", LARGE[:333]))
        names = ["d/b", "nothing", "large", "empty", "a", "d/nothing", "d/c", "d/b"]

        found = self.values(store, prefix, names, memoryview(bytearray(size)))

        assert found == [VALUE, None, LARGE[:333], b"", VALUE, None, VALUE, VALUE]

    def test_what_is_below_a_value_or_above_one_is_missing(
        self, store: KvStore, prefix: str
    ) -> None:
        self.filled(store, prefix, ["d/b"], VALUE)

        found = self.values(store, prefix, ["d", "d/b/c", "d/b"], memoryview(bytearray(100)))

        assert found == [None, None, VALUE]

    def test_no_values_of_no_keys(self, store: KvStore, prefix: str) -> None:
        assert self.values(store, prefix, [], memoryview(bytearray(100))) == []

    def test_values_stay_inside_the_room(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, ["a", "b"], VALUE)
        memory = bytearray(b"x" * 100)

        found = self.values(store, prefix, ["a", "b", "a"], memoryview(memory)[20:45])

        assert found == [VALUE, VALUE, VALUE]
        assert bytes(memory[:20] + memory[45:]) == b"x" * 75

    def test_odd_keys_are_told_apart(self, store: KvStore, prefix: str) -> None:
        async def fill() -> None:
            for number, key in enumerate(self.odd_keys):
                await self.put(store, f"{prefix}{key}", b"%d" % number)

        drive(store, fill)

        for number, key in enumerate(self.odd_keys):
            assert bytes(self.get(store, prefix + key).value) == b"%d" % number, key

    def test_bad_keys_are_refused_by_name(self, store: KvStore, prefix: str) -> None:
        for key in self.bad_keys:
            with pytest.raises(SpecError, match="key"):
                self.get(store, prefix + key)

    def test_many_may_read_at_a_time(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, [f"k/{number}" for number in range(8)], VALUE)
        found = []

        async def look(number: int) -> None:
            result = await store.read(f"{prefix}k/{number % 8}", ByteRange(number % 10, 10))
            found.append(bytes(result.value) == VALUE[number % 10 :])

        drive(store, lambda: fan_out(store.inline, range(40), look, count=40, width=8))

        assert found == [True] * 40

    def test_closing_twice_is_closing_once(self, store: KvStore) -> None:
        drive(store, store.aclose)
        drive(store, store.aclose)

    def test_describes_a_key_by_its_name(self, store: KvStore, prefix: str) -> None:
        assert "some/key" in store.describe_key(prefix + "some/key")


class KvStoreListSuite(KvStoreReadSuite):
    """Promises of reading and listing."""

    tree: ClassVar[tuple[str, ...]] = ("a.b", "a/1", "a/2", "a/x/3", "ab/1", "b", "c/d/e/f", "é")

    def entries(self, store: KvStore, key_range: KeyRange = ALL) -> tuple[ListEntry, ...]:
        """A listing, driven to its end."""

        async def collect() -> tuple[ListEntry, ...]:
            return tuple([entry async for entry in store.list(key_range)])

        return drive(store, collect)

    def keys(self, store: KvStore, prefix: str, key_range: KeyRange = ALL) -> tuple[str, ...]:
        """The keys of a range below the prefix, sorted, without the prefix."""
        found = self.entries(store, key_range.with_base(prefix))
        assert all(entry.key.startswith(prefix) for entry in found)
        return tuple(sorted(entry.key.removeprefix(prefix) for entry in found))

    def test_an_empty_store_lists_nothing(self, store: KvStore, prefix: str) -> None:
        assert self.keys(store, prefix) == ()

    def test_lists_every_key_once_with_its_size(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)

        assert self.keys(store, prefix) == self.tree
        sizes = {entry.size for entry in self.entries(store, ALL.with_base(prefix))}
        assert sizes in ({-1}, {len(VALUE)})

    @pytest.mark.parametrize("start", ["", "a", "a/", "a/x", "a/x/", "ab", "b", "c/d/", "zz", "é"])
    def test_lists_what_begins_with_a_prefix(self, store: KvStore, prefix: str, start: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)

        expected = tuple(key for key in self.tree if key.startswith(start))
        assert self.keys(store, prefix, KeyRange.prefix(start)) == expected

    @pytest.mark.parametrize(
        ("low", "high"),
        [("a/2", "b"), ("a/2", "c/d/e"), ("", "a/x/3"), ("a/x/3", ""), ("a", "a"), ("c", "b"),
         ("a/1", "a/1\0"), ("a/x", "a/x/4"), ("ab", "c/d/e/g"), ("b\0", "c")],
    )  # fmt: skip
    def test_lists_a_range(self, store: KvStore, prefix: str, low: str, high: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)
        wanted = KeyRange(low.encode(), high.encode())

        expected = tuple(key for key in self.tree if low <= key and (not high or key < high))
        assert self.keys(store, prefix, wanted) == expected

    def test_lists_odd_keys_as_they_are(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, self.odd_keys, VALUE)

        assert self.keys(store, prefix) == tuple(sorted(self.odd_keys))

    @pytest.mark.parametrize("start", ["", "a/", "a/x/", "b/", "c/", "zz/"])
    def test_lists_one_level(self, store: KvStore, prefix: str, start: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)

        async def collect() -> list[str]:
            return [name async for name in list_directory(store, prefix + start)]

        below = [key[len(start) :] for key in self.tree if key.startswith(start)]
        expected = {first + slash for first, slash, _ in (key.partition("/") for key in below)}
        assert sorted(drive(store, collect)) == sorted(expected)

    @pytest.mark.parametrize("start", ["", "a/", "b/", "zz/"])
    def test_lists_many_keys_at_a_time(self, store: KvStore, prefix: str, start: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)
        skipped = len(encode_key(prefix))

        async def collect() -> list[Sequence[bytes]]:
            return [
                page async for page in list_keys(store, KeyRange.prefix(prefix + start), skipped)
            ]

        pages = drive(store, collect)
        expected = sorted(encode_key(key) for key in self.tree if key.startswith(start))
        assert all(pages)
        assert sorted(key for page in pages for key in page) == expected

    def test_a_listing_may_be_left_early(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)

        async def first() -> str:
            async for entry in store.list(ALL.with_base(prefix)):
                return entry.key
            return "none"

        assert drive(store, first).removeprefix(prefix) in self.tree
