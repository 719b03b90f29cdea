"""Batches: reads that are begun together, so that what they want of one key is asked for at once.

A store seen through a batch answers what several readers want of a key in the same moment with one
call of `read_ranges`, and what they want twice only once. Inline readers come one after the other:
for them small parts, such as the index of a shard, are remembered as long as the batch runs.
Nothing here changes what a read finds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tensorstore_py._display.public_name import public
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import holds
from tensorstore_py._interface.kvstore import KvStore, ReadResult
from tensorstore_py._interface.store_abilities import read_ranges
from tensorstore_py._runtime.execution import Deferred
from tensorstore_py._runtime.handle import Handle
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py.errors import FailedPreconditionError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from tensorstore_py._runtime.future import Future

__all__ = ["Batch", "BatchedReads"]

T = TypeVar("T")
#: What is remembered for readers that come later: parts up to this size, and so many of them.
_SMALL_BYTES = 2**20
_MANY = 64


@public
class Batch(Handle):
    """Reads that are begun together when it is submitted, and send fewer requests for it.

    It is submitted by `submit()`, at the end of its `with` block, or when there is no reference to
    it any more.
    Waiting for the result of a read of it before that begins that read alone.

    Example:
        >>> import tensorstore_py as ts
        >>> spec = {"driver": "zarr3", "kvstore": "memory://"}
        >>> store = ts.open(spec, create=True, dtype="int32", shape=[4]).result()
        >>> with ts.Batch() as batch:
        ...     low, high = store[:2].read(batch=batch), store[2:].read(batch=batch)
        >>> low.result().tolist(), high.result().tolist()
        ([0, 0], [0, 0])
    """

    __slots__ = ("__weakref__", "_mutex", "_running", "_stores", "_waiting")

    def __init__(self) -> None:
        self._mutex = Mutex()
        self._waiting: list[Deferred[Any]] | None = []
        self._running = False
        self._stores: dict[KvStore, BatchedReads] = {}

    @uninterrupted
    def submit(self) -> None:
        """Begin the reads. A second time has no effect."""
        with self._mutex:
            waiting, self._waiting = self._waiting, None
        Deferred.begin_all(waiting or ())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.submit()

    def __del__(self) -> None:
        self.submit()

    def running(self) -> Batch:
        """The same batch for the operations that it runs: what they add begins at once."""
        inner = Batch.__new__(Batch)
        inner._mutex = self._mutex
        inner._waiting = None
        inner._running = True
        inner._stores = self._stores
        return inner

    def check_open(self) -> None:
        """Refuse what is added too late.

        Raises:
            FailedPreconditionError: it was submitted.
        """
        if self._waiting is None and not self._running:
            raise FailedPreconditionError("batch was already submitted; make another ts.Batch()")

    @uninterrupted
    def add(self, inline: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run `body()` when the batch is submitted.

        Raises:
            FailedPreconditionError: it was.
        """
        read = Deferred(inline, body)
        with self._mutex:
            self.check_open()
            if self._waiting is not None:
                self._waiting.append(read)
                return read.future
        Deferred.begin_all([read])
        return read.future

    def store(self, base: KvStore) -> BatchedReads:
        """A store as the batch reads it."""
        with self._mutex:
            if base not in self._stores:
                self._stores[base] = BatchedReads(base)
            return self._stores[base]


class _Waiting:
    """Who waits for a part of a key, and under which condition."""

    __slots__ = ("byte_range", "found", "if_equal")

    def __init__(
        self, byte_range: ByteRange, if_equal: bytes | None, found: asyncio.Future[ReadResult]
    ) -> None:
        self.byte_range = byte_range
        self.if_equal = if_equal
        self.found = found


class BatchedReads(KvStore):
    """A store as a batch reads it; see the head of this file.

    Args:
        base: the store.
    """

    def __init__(self, base: KvStore) -> None:
        self.base = base
        self.inline = base.inline
        self.width = base.width
        self._asked: dict[str, list[_Waiting]] = {}
        self._known: dict[tuple[str, ByteRange], ReadResult] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        if if_not_equal is not None:  # which may cost no body at all
            return await self.base.read(
                key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
            )
        if self.inline:
            result = await self._remembered(key, byte_range)
        else:
            result = await self._gathered(key, byte_range, if_equal)
        if result.state == "value" and not holds(if_equal, result.stamp.generation):
            # It was changed: what is remembered of it would only be contradicted again.
            self._known = {each: kept for each, kept in self._known.items() if each[0] != key}
            return ReadResult("unspecified", b"", result.stamp)
        return result

    async def _remembered(self, key: str, byte_range: ByteRange) -> ReadResult:
        wanted = (key, byte_range)
        found = self._known.get(wanted)
        if found is None:
            found = await self.base.read(key, byte_range)
            if memoryview(found.value).nbytes <= _SMALL_BYTES and len(self._known) < _MANY:
                self._known[wanted] = found
        return found

    async def _gathered(
        self, key: str, byte_range: ByteRange, if_equal: bytes | None
    ) -> ReadResult:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(byte_range, if_equal, loop.create_future())
        if not self._asked:
            loop.call_soon(self._ask)  # after all readers that are ready to ask, too
        self._asked.setdefault(key, []).append(waiting)
        return await waiting.found

    def _ask(self) -> None:
        asked, self._asked = self._asked, {}
        for key, waiting in asked.items():
            task = asyncio.ensure_future(self._answer(key, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, key: str, waiting: list[_Waiting]) -> None:
        ranges = list(dict.fromkeys(each.byte_range for each in waiting))
        try:
            if len(ranges) == 1:
                conditions = {each.if_equal for each in waiting}
                if_equal = conditions.pop() if len(conditions) == 1 else None
                results = [await self.base.read(key, ranges[0], if_equal=if_equal)]
            else:
                results = await read_ranges(self.base, key, ranges)
        except OutOfRangeError:
            await self._answer_one_by_one(key, waiting)
            return
        except BaseException as error:  # noqa: BLE001 - handed to those that wait
            for each in waiting:
                if not each.found.done():
                    each.found.set_exception(error)
            return
        by_range = dict(zip(ranges, results, strict=True))
        for each in waiting:
            if not each.found.done():
                each.found.set_result(by_range[each.byte_range])

    async def _answer_one_by_one(self, key: str, waiting: list[_Waiting]) -> None:
        """One reader asks for what is not there, which is no error of the others."""
        for each in waiting:
            try:
                found = await self.base.read(key, each.byte_range, if_equal=each.if_equal)
            except BaseException as error:  # noqa: BLE001 - handed to those that wait
                if not each.found.done():
                    each.found.set_exception(error)
            else:
                if not each.found.done():
                    each.found.set_result(found)

    def describe_key(self, key: str) -> str:
        return self.base.describe_key(key)
