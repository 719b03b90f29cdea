"""What every store must keep, as a test class to inherit.

A store's test class gives the fixture `store` (and `prefix`, if keys must begin with something)
and inherits the tests:

    class TestMyStore(KvStoreSuite):
        @pytest.fixture
        def store(self):
            return MyStore()

Stores that only list or only read inherit `KvStoreListSuite` or `KvStoreReadSuite` instead.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
)
from tensorstore_py._interface.key_range import ALL, KeyRange
from tensorstore_py._interface.kvstore import Buffer, KvStore
from tensorstore_py._interface.read_modify_write import (
    CopiedRange,
    ReadModifyWrite,
    Replace,
    Segment,
)
from tensorstore_py._interface.store_abilities import (
    AtomicBatch,
    copy_value,
    splice,
    update,
    update_values,
    write_segments,
    write_values,
)
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import SpecError
from tensorstore_py.testing.kvstore_reads import (
    LARGE,
    OTHER,
    VALUE,
    KvStoreListSuite,
    drive,
)

__all__ = ["KvStoreSuite"]


class Append(ReadModifyWrite):
    """Adds to the end of what is there."""

    def __init__(self, tail: bytes) -> None:
        self.tail = tail

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        return bytes(stored or b"") + self.tail


class KvStoreSuite(KvStoreListSuite):
    """Promises of reading, listing and writing.

    Attributes:
        writers: how many may write to one key at a time; 1 for stores that promise nothing there.
        gaps: whether a key whose value is being replaced may be missing for a moment.
    """

    writers: ClassVar[int] = 4
    gaps: ClassVar[bool] = False

    def set(
        self, store: KvStore, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """A write, driven to its end."""
        return drive(store, lambda: store.write(key, value, if_equal=if_equal))

    def test_a_write_tells_the_generation_of_what_it_wrote(
        self, store: KvStore, prefix: str
    ) -> None:
        stamp = self.set(store, prefix + "a", VALUE)

        assert stamp.generation == self.get(store, prefix + "a").stamp.generation
        assert math.isfinite(stamp.time)

    def test_a_write_replaces_the_value_and_its_generation(
        self, store: KvStore, prefix: str
    ) -> None:
        stamps = [self.set(store, prefix + "a", value) for value in (LARGE, VALUE, b"")]

        assert bytes(self.get(store, prefix + "a").value) == b""
        assert len({stamp.generation for stamp in stamps}) == 3

    @pytest.mark.parametrize(
        "make",
        [bytearray, memoryview, lambda value: memoryview(bytearray(value))[::1]],
        ids=["bytearray", "memoryview", "writable view"],
    )
    def test_writes_any_buffer(
        self, store: KvStore, prefix: str, make: Callable[[bytes], Buffer]
    ) -> None:
        self.set(store, prefix + "a", make(VALUE))

        assert bytes(self.get(store, prefix + "a").value) == VALUE

    def test_writes_buffers_of_wider_items(self, store: KvStore, prefix: str) -> None:
        numbers = array("H", [1, 2, 3, 4, 5, 6])

        self.set(store, prefix + "a", memoryview(numbers))
        self.set(store, prefix + "b", memoryview(numbers).cast("B").cast("H", (2, 3)))

        assert bytes(self.get(store, prefix + "a").value) == numbers.tobytes()
        assert bytes(self.get(store, prefix + "b").value) == numbers.tobytes()

    def test_a_buffer_is_the_callers_again_after_the_write(
        self, store: KvStore, prefix: str
    ) -> None:
        buffer = bytearray(VALUE)
        self.set(store, prefix + "a", buffer)

        buffer[:] = b"x" * len(buffer)

        assert bytes(self.get(store, prefix + "a").value) == VALUE

    def test_writes_several_values_and_deletes_where_there_is_none(
        self, store: KvStore, prefix: str
    ) -> None:
        self.filled(store, prefix, ["a", "gone", "d/gone"], b"old")
        names = ["a", "gone", "d/b", "nothing", "d/gone", "empty", "large"]
        values = [bytearray(VALUE), None, memoryview(VALUE)[2:5], None, None, b"", LARGE]

        drive(store, lambda: write_values(store, [prefix + name for name in names], values))

        assert self.keys(store, prefix) == ("a", "d/b", "empty", "large")
        kept = ["a", "gone", "d/b", "empty", "large"]
        found = self.values(store, prefix, kept, memoryview(bytearray(100)))
        assert found == [VALUE, None, VALUE[2:5], b"", LARGE]

    def test_writes_no_values(self, store: KvStore, prefix: str) -> None:
        drive(store, lambda: write_values(store, [], []))

        assert self.keys(store, prefix) == ()

    def test_several_values_have_generations_of_their_own(
        self, store: KvStore, prefix: str
    ) -> None:
        keys = [prefix + "a", prefix + "b"]
        first = self.set(store, keys[0], VALUE)

        drive(store, lambda: write_values(store, keys, [b"new", VALUE]))

        assert self.get(store, keys[0]).stamp.generation != first.generation
        assert self.set(store, keys[0], b"1", if_equal=first.generation).generation == UNKNOWN

    def test_buffers_of_several_values_are_the_callers_again_after_the_write(
        self, store: KvStore, prefix: str
    ) -> None:
        memory = bytearray(VALUE)
        views = [memoryview(memory)[:5], memoryview(memory)[5:]]

        drive(store, lambda: write_values(store, [prefix + "a", prefix + "b"], views))
        memory[:] = b"x" * len(memory)

        found = self.values(store, prefix, ["a", "b"], memoryview(bytearray(100)))
        assert found == [VALUE[:5], VALUE[5:]]

    @pytest.mark.parametrize("owned", [False, True])
    def test_writes_a_value_in_segments(self, store: KvStore, prefix: str, owned: bool) -> None:
        def write(
            segments: Sequence[Buffer] | None, if_equal: bytes
        ) -> TimestampedStorageGeneration:
            key = prefix + "a"
            return drive(
                store,
                lambda: write_segments(store, key, segments, if_equal=if_equal, owned=owned),
            )

        first = write([b"", VALUE[:4], memoryview(VALUE)[4:]], NO_VALUE)
        stale = write([b"stale"], NO_VALUE)
        found = self.get(store, prefix + "a")
        write(None, first.generation)

        assert bytes(found.value) == VALUE
        assert (found.stamp.generation, stale.generation) == (first.generation, UNKNOWN)
        assert self.keys(store, prefix) == ()

    def test_a_change_is_made_of_what_is_there(self, store: KvStore, prefix: str) -> None:
        self.set(store, prefix + "a", b"1")
        keys = [prefix + "a", prefix + "b"]
        changes = [Append(b"2"), Append(b"3")]

        drive(store, lambda: update_values(store, keys, changes))
        drive(store, lambda: update(store, keys[0], Append(b"4")))
        drive(store, lambda: update(store, keys[1], Replace(None)))

        assert self.values(store, prefix, "ab", memoryview(bytearray(9))) == [b"124", None]

    def test_a_batch_is_stored_at_once_or_not_at_all(self, store: KvStore, prefix: str) -> None:
        if not isinstance(store, AtomicBatch):
            return  # a transaction stores key after key
        stamp = self.set(store, prefix + "a", b"1")
        conditions = {prefix + "a": stamp.generation, prefix + "c": NO_VALUE}

        done = drive(store, lambda: store.write_batch({prefix + "b": b"2"}, conditions))
        values = {prefix + "a": None, prefix + "c": b"3"}
        failed = drive(store, lambda: store.write_batch(values, {prefix + "b": NO_VALUE}))

        assert (done, failed) == (None, prefix + "b")
        assert self.keys(store, prefix) == ("a", "b")

    def test_copies_or_says_that_it_did_not(self, store: KvStore, prefix: str) -> None:
        self.set(store, prefix + "a", VALUE)
        self.set(store, prefix + "b", b"old")

        done = drive(store, lambda: copy_value(store, prefix + "a", store, prefix + "b"))

        assert bytes(self.get(store, prefix + "b").value) == (VALUE if done else b"old")

    def test_as_many_keys_as_values(self, store: KvStore, prefix: str) -> None:
        with pytest.raises(ValueError, match="argument"):
            drive(store, lambda: write_values(store, [prefix + "a"], [VALUE, VALUE]))

    def test_creates_only_if_absent(self, store: KvStore, prefix: str) -> None:
        first = self.set(store, prefix + "a/b", VALUE, if_equal=NO_VALUE)
        second = self.set(store, prefix + "a/b", b"late", if_equal=NO_VALUE)

        found = self.get(store, prefix + "a/b")
        assert (bytes(found.value), found.stamp.generation) == (VALUE, first.generation)
        assert second.generation == UNKNOWN

    def test_replaces_only_the_generation_that_is_named(self, store: KvStore, prefix: str) -> None:
        first = self.set(store, prefix + "a", b"1")
        second = self.set(store, prefix + "a", b"2", if_equal=first.generation)
        stale = self.set(store, prefix + "a", b"3", if_equal=first.generation)
        nowhere = self.set(store, prefix + "b/c", b"4", if_equal=first.generation)

        found = self.get(store, prefix + "a")
        assert (bytes(found.value), found.stamp.generation) == (b"2", second.generation)
        assert (stale.generation, nowhere.generation) == (UNKNOWN, UNKNOWN)
        assert self.keys(store, prefix) == ("a",)

    def test_a_write_on_an_unknown_generation_is_unconditional(
        self, store: KvStore, prefix: str
    ) -> None:
        self.set(store, prefix + "a", b"1", if_equal=UNKNOWN)
        self.set(store, prefix + "a", b"2", if_equal=UNKNOWN)

        assert bytes(self.get(store, prefix + "a").value) == b"2"

    def test_keeps_parts_of_a_value(self, store: KvStore, prefix: str) -> None:
        first = self.set(store, prefix + "a", LARGE)

        def changed(*parts: Segment) -> TimestampedStorageGeneration:
            generation = first.generation
            return drive(store, lambda: splice(store, prefix + "a", parts, if_equal=generation))

        end = len(LARGE)
        second = changed(
            b"new",
            b"er",
            CopiedRange(9, end),
            b"",
            CopiedRange(4, 4),
            CopiedRange(0, 3),
            CopiedRange(3, 5),
            b"!",
        )
        stale = changed(CopiedRange(0, 4), b"stale")

        found = self.get(store, prefix + "a")
        assert bytes(found.value) == b"newer" + LARGE[9:] + LARGE[:5] + b"!"
        assert found.stamp.generation == second.generation != first.generation
        assert stale.generation == UNKNOWN

    def test_deletes(self, store: KvStore, prefix: str) -> None:
        self.set(store, prefix + "a/b", VALUE)

        stamp = self.set(store, prefix + "a/b", None)

        assert stamp.generation == NO_VALUE
        assert self.get(store, prefix + "a/b").state == "missing"
        assert self.keys(store, prefix) == ()

    def test_deleting_nothing_is_done_already(self, store: KvStore, prefix: str) -> None:
        for key in ("nothing", "no/thing"):
            assert self.set(store, prefix + key, None).generation == NO_VALUE
            assert self.set(store, prefix + key, None, if_equal=NO_VALUE).generation == NO_VALUE
            assert self.set(store, prefix + key, None, if_equal=OTHER).generation == UNKNOWN

    def test_deletes_only_the_generation_that_is_named(self, store: KvStore, prefix: str) -> None:
        stamp = self.set(store, prefix + "a", VALUE)

        stale = self.set(store, prefix + "a", None, if_equal=OTHER)
        absent = self.set(store, prefix + "a", None, if_equal=NO_VALUE)

        assert (stale.generation, absent.generation) == (UNKNOWN, UNKNOWN)
        assert bytes(self.get(store, prefix + "a").value) == VALUE
        assert self.set(store, prefix + "a", None, if_equal=stamp.generation).generation == NO_VALUE
        assert self.get(store, prefix + "a").state == "missing"

    def test_bad_keys_are_refused_for_writing_too(self, store: KvStore, prefix: str) -> None:
        for key in self.bad_keys:
            for value in (VALUE, None):
                with pytest.raises(SpecError, match="key"):
                    self.set(store, prefix + key, value)

        assert self.keys(store, prefix) == ()

    @pytest.mark.parametrize("start", ["", "a", "a/", "a/x/", "zz"])
    def test_deletes_what_begins_with_a_prefix(
        self, store: KvStore, prefix: str, start: str
    ) -> None:
        self.filled(store, prefix, self.tree, VALUE)

        drive(store, lambda: store.delete_range(KeyRange.prefix(start).with_base(prefix)))

        expected = tuple(key for key in self.tree if not key.startswith(start))
        assert self.keys(store, prefix) == expected

    @pytest.mark.parametrize(
        ("low", "high"), [("a/2", "c/d/e"), ("a", "a"), ("c", "b"), ("a/x", "a/x/4"), ("b", "")]
    )
    def test_deletes_a_range(self, store: KvStore, prefix: str, low: str, high: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)
        wanted = KeyRange(low.encode(), high.encode())

        drive(store, lambda: store.delete_range(wanted.with_base(prefix)))

        expected = tuple(key for key in self.tree if not (low <= key and (not high or key < high)))
        assert self.keys(store, prefix) == expected

    def test_writes_again_where_all_was_deleted(self, store: KvStore, prefix: str) -> None:
        self.filled(store, prefix, self.tree, VALUE)
        drive(store, lambda: store.delete_range(ALL.with_base(prefix)))

        self.filled(store, prefix, self.tree, b"again")

        assert self.keys(store, prefix) == self.tree
        assert bytes(self.get(store, prefix + "c/d/e/f").value) == b"again"

    def test_of_many_creators_one_wins(self, store: KvStore, prefix: str) -> None:
        won = []

        async def create(number: int) -> None:
            stamp = await store.write(f"{prefix}n/e/w", b"%d" % number, if_equal=NO_VALUE)
            if stamp.generation != UNKNOWN:
                won.append(b"%d" % number)

        drive(
            store,
            lambda: fan_out(store.inline, range(12), create, count=12, width=self.writers),
        )

        assert won == [bytes(self.get(store, prefix + "n/e/w").value)]

    def test_conditional_writers_lose_no_update(self, store: KvStore, prefix: str) -> None:
        self.set(store, prefix + "n", b"0")

        async def increment(_: int) -> None:
            stamp = TimestampedStorageGeneration()
            while stamp.generation == UNKNOWN:
                found = await store.read(prefix + "n")
                following = b"%d" % (int(bytes(found.value)) + 1)
                stamp = await store.write(prefix + "n", following, if_equal=found.stamp.generation)

        drive(
            store, lambda: fan_out(store.inline, range(40), increment, count=40, width=self.writers)
        )

        assert bytes(self.get(store, prefix + "n").value) == b"40"

    def test_a_reader_never_sees_half_a_value(self, store: KvStore, prefix: str) -> None:
        values = [bytes([letter]) * (1 + 5000 * (letter % 3)) for letter in b"abcdef"]
        self.set(store, prefix + "a", values[0])
        torn = []

        async def step(number: int) -> None:
            if number % 2:
                await store.write(prefix + "a", values[number % 6])
            else:
                found = await store.read(prefix + "a")
                in_a_gap = self.gaps and found.state == "missing"
                torn.extend([found] if bytes(found.value) not in values and not in_a_gap else [])

        drive(store, lambda: fan_out(store.inline, range(60), step, count=60, width=self.writers))

        assert torn == []
