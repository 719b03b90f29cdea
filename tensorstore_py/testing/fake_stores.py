"""Stores around stores, for tests: one counts, one fails on demand, one suspends.

Each keeps the whole promise of `KvStore` apart from what it is for, which the conformance suite
is run over them to show. They add nothing that the store underneath does not have.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeVar

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import TimestampedStorageGeneration
from tensorstore_py._interface.key_range import ALL, KeyRange
from tensorstore_py._interface.kvstore import Buffer, KvStore, ListEntry, ReadResult
from tensorstore_py._interface.store_abilities import (
    AtomicBatch,
    DirectoryListing,
    RangeRead,
    list_directory,
    read_ranges,
)

__all__ = ["CountingStore", "FaultyStore", "LoopStore", "StoreAround"]

Operation = Literal["read", "write", "delete", "delete_range", "list"]
Results = list[ReadResult]


class StoreAround(RangeRead, DirectoryListing, KvStore):
    """Passes everything on to another store. It stores several keys at once if the base can.

    Args:
        base: the store underneath.
    """

    def __init__(self, base: KvStore) -> None:
        self.base = base
        self.inline = base.inline
        self.width = base.width
        self.identity = base.identity
        if isinstance(base, AtomicBatch):
            self.__class__ = _with_batches(type(self))

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """Read from the base."""
        return await self.base.read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        """Read several parts from the base, in one call."""
        return await read_ranges(self.base, key, ranges)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Write to the base."""
        return await self.base.write(key, value, if_equal=if_equal)

    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        """Write several keys to the base, which must be able to."""
        assert isinstance(self.base, AtomicBatch)
        return await self.base.write_batch(values, conditions)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Delete from the base."""
        await self.base.delete_range(key_range)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        """List the base."""
        async for entry in self.base.list(key_range):
            yield entry

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """List one level of the base."""
        async for name in list_directory(self.base, prefix):
            yield name

    def describe_key(self, key: str) -> str:
        """What the base calls the key."""
        return self.base.describe_key(key)

    async def aclose(self) -> None:
        """Close the base."""
        await self.base.aclose()


_S = TypeVar("_S", bound=StoreAround)


@cache
def _with_batches(kind: type[_S]) -> type[_S]:
    """The class, with the ability that is told by a base class."""
    return (
        kind
        if AtomicBatch in kind.__mro__
        else type(kind.__name__, (kind, AtomicBatch), {"__module__": kind.__module__})
    )


class CountingStore(StoreAround):
    """Counts what is asked of a store, by key: laws are tested by counting, not by timing.

    Attributes:
        reads: calls of `read`, and of `read_ranges` as one each.
        bytes_read: bytes that reads returned.
        writes: calls of `write` with a value.
        bytes_written: bytes that writes were given.
        deletes: calls of `write` with None.
        lists: the ranges that were listed.
        directories: the prefixes of which one level was listed.
        delete_ranges: the ranges that were deleted.

    Example:
        >>> from tensorstore_py._api.kvstore import KvStore
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> store = CountingStore(KvStore.open("memory://").result().store)
        >>> _ = run_inline(store.write("a", b"123"))
        >>> _ = run_inline(store.read("a", ByteRange(1)))
        >>> store.writes["a"], store.reads["a"], store.bytes_read["a"]
        (1, 1, 2)
    """

    def __init__(self, base: KvStore) -> None:
        super().__init__(base)
        self.reset()

    def reset(self) -> None:
        """Begin again at zero."""
        self.reads: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.bytes_written: Counter[str] = Counter()
        self.deletes: Counter[str] = Counter()
        self.lists: Counter[KeyRange] = Counter()
        self.directories: Counter[str] = Counter()
        self.delete_ranges: Counter[KeyRange] = Counter()

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """Read from the base, and count."""
        self.reads[key] += 1
        result = await super().read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)
        self.bytes_read[key] += memoryview(result.value).nbytes
        return result

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        """Read several parts from the base, and count one read."""
        self.reads[key] += 1
        results = await super().read_ranges(key, ranges)
        self.bytes_read[key] += sum(memoryview(result.value).nbytes for result in results)
        return results

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Write to the base, and count."""
        if value is None:
            self.deletes[key] += 1
        else:
            self.writes[key] += 1
            self.bytes_written[key] += memoryview(value).nbytes
        return await super().write(key, value, if_equal=if_equal)

    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        """Write several keys to the base, and count each."""
        for key, value in values.items():
            if value is None:
                self.deletes[key] += 1
            else:
                self.writes[key] += 1
                self.bytes_written[key] += memoryview(value).nbytes
        return await super().write_batch(values, conditions)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Delete from the base, and count."""
        self.delete_ranges[key_range] += 1
        await super().delete_range(key_range)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        """List the base, and count."""
        self.lists[key_range] += 1
        async for entry in super().list(key_range):
            yield entry

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """List one level of the base, and count."""
        self.directories[prefix] += 1
        async for name in super().list_directory(prefix):
            yield name


@dataclass(slots=True)
class _Fault:
    operation: Operation
    error: Exception
    key: str | None
    times: int
    afterwards: bool


class FaultyStore(StoreAround):
    """Fails where a test says so.

    Example:
        >>> from tensorstore_py._api.kvstore import KvStore
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> store = FaultyStore(KvStore.open("memory://").result().store)
        >>> store.fail("read", OSError("unplugged"), key="a")
        >>> run_inline(store.read("a"))
        Traceback (most recent call last):
        OSError: unplugged
        >>> run_inline(store.read("a")).state
        'missing'
    """

    def __init__(self, base: KvStore) -> None:
        super().__init__(base)
        self._faults: list[_Fault] = []
        self._altered: dict[str, Callable[[bytes], bytes]] = {}

    def fail(
        self,
        operation: Operation,
        error: Exception,
        *,
        key: str | None = None,
        times: int = 1,
        afterwards: bool = False,
    ) -> None:
        """Make coming calls fail.

        Args:
            operation: which method; a `write` of None is a `"delete"`.
            error: what is raised.
            key: only for this key; any by default.
            times: how often.
            afterwards: do the operation, then fail: the answer that got lost on its way.
        """
        self._faults.append(_Fault(operation, error, key, times, afterwards))

    def alter(self, key: str, change: Callable[[bytes], bytes]) -> None:
        """Make every read of a key return `change(value)`: rot, truncation, a stale copy."""
        self._altered[key] = change

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """Read from the base, unless told otherwise."""
        self._raise_before("read", key)
        result = await super().read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)
        self._raise_afterwards("read", key)
        return self._as_altered(key, result)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        """Read several parts from the base, unless told otherwise."""
        self._raise_before("read", key)
        results = await super().read_ranges(key, ranges)
        self._raise_afterwards("read", key)
        return [self._as_altered(key, result) for result in results]

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Write to the base, unless told otherwise."""
        operation: Operation = "delete" if value is None else "write"
        self._raise_before(operation, key)
        stamp = await super().write(key, value, if_equal=if_equal)
        self._raise_afterwards(operation, key)
        return stamp

    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        """Write several keys to the base, unless told otherwise of one of them."""
        operations: list[tuple[Operation, str]] = [
            ("delete" if value is None else "write", key) for key, value in values.items()
        ]
        for operation, key in operations:
            self._raise_before(operation, key)
        failed = await super().write_batch(values, conditions)
        for operation, key in operations:
            self._raise_afterwards(operation, key)
        return failed

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Delete from the base, unless told otherwise."""
        self._raise_before("delete_range")
        await super().delete_range(key_range)
        self._raise_afterwards("delete_range")

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        """List the base, unless told otherwise."""
        self._raise_before("list")
        async for entry in super().list(key_range):
            yield entry
        self._raise_afterwards("list")

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """List one level of the base, unless told otherwise."""
        self._raise_before("list")
        async for name in super().list_directory(prefix):
            yield name
        self._raise_afterwards("list")

    def _as_altered(self, key: str, result: ReadResult) -> ReadResult:
        change = self._altered.get(key)
        if change is not None and result.state == "value":
            result.value = change(bytes(result.value))
        return result

    def _raise_before(self, operation: Operation, key: str | None = None) -> None:
        self._raise(operation, key, False)

    def _raise_afterwards(self, operation: Operation, key: str | None = None) -> None:
        self._raise(operation, key, True)

    def _raise(self, operation: Operation, key: str | None, afterwards: bool) -> None:
        for fault in self._faults:
            if (
                fault.times > 0
                and fault.operation == operation
                and fault.afterwards == afterwards
                and fault.key in (None, key)
            ):
                fault.times -= 1
                raise fault.error


class LoopStore(StoreAround):
    """An inline store that suspends before each operation, as a remote one would.

    Lets tests take the loop's paths without a network.

    Args:
        base: an inline store that does not block for long.
        width: how many requests in flight it claims to like.

    Example:
        >>> from tensorstore_py._api.kvstore import KvStore
        >>> store = LoopStore(KvStore.open("memory://").result().store)
        >>> asyncio.run(store.read("a")).state
        'missing'
    """

    def __init__(self, base: KvStore, width: int = 8) -> None:
        super().__init__(base)
        self.inline = False
        self.width = width

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """Suspend, then read from the base."""
        await asyncio.sleep(0)
        return await super().read(key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        """Suspend, then read several parts from the base."""
        await asyncio.sleep(0)
        return await super().read_ranges(key, ranges)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Suspend, then write to the base."""
        await asyncio.sleep(0)
        return await super().write(key, value, if_equal=if_equal)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Suspend, then delete from the base."""
        await asyncio.sleep(0)
        await super().delete_range(key_range)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        """Suspend, then list the base."""
        await asyncio.sleep(0)
        async for entry in super().list(key_range):
            yield entry

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """Suspend, then list one level of the base."""
        await asyncio.sleep(0)
        async for name in super().list_directory(prefix):
            yield name
