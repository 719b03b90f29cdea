"""Reads of data files: parts that are wanted together and lie close together are one request.

What many readers on the event loop ask for in the same moment, or within an interval, is gathered
first; a reader that blocks its thread says by itself what it wants together, and small values that
are read one after the other are read ahead. Each request answers its readers as soon as it is done.
Data files never change, so all answers are of one version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from tensorstore_py.errors import (
    DataLossError,
    OutOfRangeError,
    SpecError,
    TensorStoreError,
)
from tensorstore_py.kvstores.ocdbt.read_ahead import SMALL_BYTES, Block, ReadAhead, block_of
from tensorstore_py.plugin.kvstore import (
    Buffer,
    ByteRange,
    Forkable,
    KvStore,
    RangeGroup,
    ReadResult,
    coalesce,
    fan_out,
    read_ranges,
)

__all__ = ["AS_USUAL", "Coalescing", "DataReads", "Extent"]


class Coalescing(NamedTuple):
    """Which reads of a file become one.

    Attributes:
        gap: how many bytes that nobody wants may lie between two.
        limit: how many bytes are read at once by merging, at most.
        interval_s: how long a reader on the event loop waits for others.
    """

    gap: int
    limit: int
    interval_s: float = 0.0


#: Small values that are side by side; large ones come sooner by several requests at a time.
AS_USUAL: Final = Coalescing(4095, 2**20)


class Extent(NamedTuple):
    """A part of a data file that is not empty.

    Attributes:
        key: of the file.
        start: of the first byte.
        stop: after the last.
    """

    key: str
    start: int
    stop: int


class _Waiting(NamedTuple):
    """Who waits for what."""

    extent: Extent
    found: asyncio.Future[Buffer]


class DataReads(Forkable):
    """Reads data files.

    Args:
        store: where they are.
        coalescing: what is read together.
    """

    def __init__(self, store: KvStore, coalescing: Coalescing = AS_USUAL) -> None:
        self._store = store
        self._coalescing = coalescing
        self._ahead = ReadAhead()
        self.after_fork()
        super().__init__()

    def after_fork(self) -> None:
        # Those who wait, and the loop, are in the parent.
        self._asked: list[_Waiting] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def describe(self, extent: Extent) -> str:
        """How to name a part of a file to a person."""
        return f"{self._store.describe_key(extent.key)}, bytes {extent.start} to {extent.stop}"

    async def read(self, extent: Extent) -> Buffer:
        """A part of a file.

        Raises:
            DataLossError: the file is gone, or too short; names it.
        """
        if self._store.inline:
            return await self._fetch(extent)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(extent, loop.create_future())
        if not self._asked:
            # After all readers that are ready to ask, too.
            loop.call_later(self._coalescing.interval_s, self._ask)
        self._asked.append(waiting)
        return await waiting.found

    async def read_value(self, extent: Extent) -> Buffer:
        """A part of a file, which may have been read ahead: the file itself may be gone since.

        Raises:
            DataLossError: as for `read`.
        """
        if not self._store.inline or extent.stop - extent.start > SMALL_BYTES:
            return await self.read(extent)
        ahead = self._ahead
        block = block_of(extent.key, extent.start)
        data = ahead.get(block)
        if data is not None and extent.stop - block.start <= len(data):
            return _copied(data, block, extent)
        if not ahead.touch(block):
            return await self._fetch(extent)
        data = await self._fetch_block(block, extent.stop)
        if data is None or extent.stop - block.start > len(data):
            return await self._fetch(extent)  # which says what is wrong
        ahead.keep(block, data)
        return _copied(data, block, extent)

    async def read_several(self, extents: Sequence[Extent]) -> list[Buffer]:
        """Several parts of files.

        Raises:
            DataLossError: as for `read`.
        """
        found: list[Buffer] = [b""] * len(extents)
        merged = self._merged(extents)
        if self._store.inline:
            by_key: dict[str, list[RangeGroup]] = {}
            for key, group in merged:
                by_key.setdefault(key, []).append(group)
            for key, groups in by_key.items():
                for group, value in zip(groups, await self._fetch_all(key, groups), strict=True):
                    _share_out(extents, group, value, found)
            return found

        async def fetch(each: tuple[str, RangeGroup]) -> None:
            key, group = each
            _share_out(extents, group, await self._fetch(_extent(key, group)), found)

        await fan_out(False, merged, fetch, count=len(merged), width=self._store.width)
        return found

    def _merged(self, extents: Sequence[Extent]) -> list[tuple[str, RangeGroup]]:
        by_key: dict[str, list[int]] = {}
        for number, extent in enumerate(extents):
            by_key.setdefault(extent.key, []).append(number)
        merged = []
        for key, numbers in by_key.items():
            ranges = [ByteRange(extents[number].start, extents[number].stop) for number in numbers]
            for wanted, members in coalesce(ranges, self._coalescing.gap, self._coalescing.limit):
                merged.append((key, RangeGroup(wanted, [numbers[member] for member in members])))
        return merged

    # ------------------------------------------------------------------- readers on the event loop

    def _ask(self) -> None:
        asked, self._asked = self._asked, []
        asked = [each for each in asked if not each.found.done()]
        extents = [each.extent for each in asked]
        for key, group in self._merged(extents):
            readers = [asked[member] for member in group.members]
            task = asyncio.ensure_future(self._answer(_extent(key, group), readers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            for reader in readers:
                reader.found.add_done_callback(partial(_given_up, task, readers))

    async def _answer(self, extent: Extent, readers: Sequence[_Waiting]) -> None:
        try:
            value = await self._fetch(extent)
        except BaseException as error:  # noqa: BLE001 - handed to those who wait
            for each in readers:
                if not each.found.done():
                    each.found.set_exception(error)
            return
        for each in readers:
            if not each.found.done():
                each.found.set_result(_part(value, extent.start, each.extent))

    # ---------------------------------------------------------------------------- one request each

    async def _fetch(self, extent: Extent) -> Buffer:
        try:
            result = await self._store.read(extent.key, ByteRange(extent.start, extent.stop))
        except OutOfRangeError as error:
            raise DataLossError(f"{self.describe(extent)}: the file is shorter") from error
        except SpecError as error:  # no key of the store
            raise DataLossError(f"{self.describe(extent)}: {error}") from error
        return self._value(extent, result)

    async def _fetch_block(self, block: Block, least: int) -> Buffer | None:
        """A block, up to its end and to `least`, or to that of the file; None for any error."""
        stop = max(block.stop, least)
        try:
            result = await self._store.read(block.key, ByteRange(block.start, stop))
        except OutOfRangeError:
            pass  # the file ends in this block
        except (TensorStoreError, OSError):
            return None
        else:
            return result.value if result.state == "value" else None
        try:
            result = await self._store.read(block.key, ByteRange(block.start))
        except (TensorStoreError, OSError):
            return None
        return result.value if result.state == "value" else None

    async def _fetch_all(self, key: str, groups: Sequence[RangeGroup]) -> list[Buffer]:
        try:
            results = await read_ranges(self._store, key, [group.byte_range for group in groups])
        except (OutOfRangeError, SpecError):
            return [await self._fetch(_extent(key, group)) for group in groups]  # says which
        return [
            self._value(_extent(key, group), result)
            for group, result in zip(groups, results, strict=True)
        ]

    def _value(self, extent: Extent, result: ReadResult) -> Buffer:
        if result.state != "value":
            raise DataLossError(f"{self.describe(extent)}: the file is missing")
        return result.value


def _given_up(task: asyncio.Task[None], readers: Sequence[_Waiting], _: object) -> None:
    """One of those who wait is gone; a request that nobody waits for any more is not made."""
    if all(each.found.cancelled() for each in readers):
        task.cancel()


def _extent(key: str, group: RangeGroup) -> Extent:
    stop = group.byte_range.stop
    assert stop is not None
    return Extent(key, group.byte_range.start, stop)


def _part(value: Buffer, start: int, extent: Extent) -> Buffer:
    """What somebody wants of what was read from `start` on; no copy."""
    if extent.stop - extent.start == len(value):
        return value
    return memoryview(value)[extent.start - start : extent.stop - start]


def _copied(data: Buffer, block: Block, extent: Extent) -> Buffer:
    """A small part of a block, which stays no longer because of it."""
    part = data[extent.start - block.start : extent.stop - block.start]
    return part if isinstance(part, bytes) else bytes(part)


def _share_out(
    extents: Sequence[Extent], group: RangeGroup, value: Buffer, found: list[Buffer]
) -> None:
    for member in group.members:
        found[member] = _part(value, group.byte_range.start, extents[member])
