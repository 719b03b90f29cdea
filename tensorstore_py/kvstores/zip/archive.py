"""An archive as it is stored now: its directory, looked up and kept, and the data of entries.

Finding the directory takes one request, or two if it is large. After that an entry takes one, on
the condition that the archive is still the one that the directory belongs to: so no look ahead is
needed, and a replaced archive is noticed. All who have an archive open share one such object.

A `Directory` is a snapshot: it belongs to one generation of the archive and does not change, but
for the time at which it was last known to be current.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError, OutOfRangeError, UnsupportedError
from tensorstore_py.kvstores.zip.methods import STORED, unpack
from tensorstore_py.kvstores.zip.records import (
    LOCAL_SIZE,
    TAIL_SIZE,
    Entry,
    end_records,
    find_end,
    parse_central,
)
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    WHOLE,
    Buffer,
    ByteRange,
    KeyedLock,
    KvStore,
    ReadResult,
    RetryPolicy,
    ThreadLimiter,
    offload,
    read_ranges,
)

__all__ = [
    "Archive",
    "Directory",
    "Fetched",
]

#: What an entry takes in memory beside its texts, about.
_SHARE: Final = 512


class Directory:
    """See the head of this file.

    Args:
        entries: all there are, also those that are no values.
        start: where the directory begins, and so where entries may be appended.
        comment: of the archive.
        generation: of the archive.
        time: when it was last known to be current, in s since 1970.
        before: how many bytes stand before the archive: a program that unpacks it, maybe.
        placed: whether that is certain.

    Attributes:
        keys: the entries that are values; of several with one name the last.
        doubted: whether nothing here is to be believed, since something does stand before it.
        data_starts: where the data of entries begins, by their offsets, as far as that was seen.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        start: int,
        *,
        comment: bytes = b"",
        generation: bytes = NO_VALUE,
        time: float,
        before: int = 0,
        placed: bool = True,
    ) -> None:
        self.entries = list(entries)
        self.start = start
        self.comment = comment
        self.generation = generation
        self.time = time
        self.before = before
        self.placed = placed
        self.doubted = False
        self.keys: dict[str, Entry] = {}
        for entry in self.entries:
            key = entry.key
            if key and not key.endswith("/"):
                self.keys[key] = entry
        self.data_starts: dict[int, int] = {}
        self._offsets = sorted({entry.offset for entry in self.entries})

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        return _SHARE + sum(_SHARE + 2 * len(entry.name) for entry in self.entries)

    def generation_of(self, key: str) -> bytes:
        """Of the value of a key; `NO_VALUE` if there is none."""
        entry = self.keys.get(key)
        return NO_VALUE if entry is None else entry.generation

    def end_of(self, entry: Entry) -> int:
        """Where an entry ends at the latest: where the next one or the directory begins.

        Raises:
            DataLossError: it is not large enough to hold what the directory says.
        """
        later = bisect_right(self._offsets, entry.offset)
        end = self._offsets[later] if later < len(self._offsets) else self.start
        end = min(end, self.start)
        if entry.offset + LOCAL_SIZE + len(entry.name) + entry.packed > end:
            raise DataLossError("it reaches into the next entry, or out of the archive")
        return end

    def guessed_start(self, entry: Entry) -> int:
        """Where the data of an entry begins, if it is packed as tight as most are."""
        known = self.data_starts.get(entry.offset)
        if known is not None:
            return known
        least = entry.offset + LOCAL_SIZE + len(entry.name)
        extra = self.end_of(entry) - entry.packed - least
        if entry.described_later or extra > 0xFFFF:
            extra = len(entry.extra)
        return least + extra

    def waste(self, kept: Iterable[Entry]) -> int:
        """How many bytes before the directory belong to no entry of `kept`, about."""
        sizes = {each.offset: LOCAL_SIZE + len(each.name) + len(each.extra) + each.packed
                 for each in kept}  # fmt: skip
        return self.start - self.before - sum(sizes.values())

    def first(self, data: bytes) -> int:
        """Where entries begin in what stands before the directory.

        A program in front may be counted by the offsets, and so not in `before`. What was left by
        deleted entries is none.
        """
        if data[self.before : self.before + 4] == b"PK\3\4" or not self._offsets:
            return self.before
        return min(self._offsets[0], self.start)

    def tail(self) -> bytes:
        """The directory and the end of the archive."""
        central = b"".join(entry.central_header() for entry in self.entries)
        return central + end_records(len(self.entries), len(central), self.start, self.comment)


#: How much longer than in the directory an entry's extra fields may be without a second request.
_SLACK = 96


class Fetched(NamedTuple):
    """Values, or parts of one, and when they were current, in s since 1970."""

    values: list[Buffer]
    time: float


class Archive:
    """See the head of this file."""

    def __init__(
        self, base: KvStore, key: str, keep: Callable[[Directory], None] | None = None
    ) -> None:
        self.base = base
        self.key = key
        self._keep = keep
        self._directory: Directory | None = None
        self._gate = KeyedLock(inline=base.inline)

    def describe(self) -> str:
        """How to name the archive to a person."""
        return self.base.describe_key(self.key)

    async def latest(self) -> Directory:
        """The directory as it was last seen; looked up if it never was."""
        return self._directory or await self.since(float("-inf"))

    async def since(self, time_s: float) -> Directory:
        """The directory as it was at `time_s` or later, in s since 1970.

        Of any number who ask for it at a time one looks it up.

        Raises:
            DataLossError: this is no archive, or a damaged one; names it.
        """
        async with self._gate.acquire(None):
            known = self._directory
            if known is None or known.time < time_s or known.doubted:
                known = self.learn(await self._look_up(known))
            return known

    def learn(self, directory: Directory) -> Directory:
        """Use a directory from now on, unless a later one is known."""
        known = self._directory
        if known is None or known.time <= directory.time:
            self._directory = directory
            if self._keep is not None and known is not directory:
                self._keep(directory)
        return directory

    async def fetch(
        self, directory: Directory, entry: Entry, ranges: Sequence[ByteRange], places: ThreadLimiter
    ) -> Fetched | None:
        """Parts of the value of an entry; None if the archive was replaced meanwhile.

        Raises:
            OutOfRangeError: a range reaches outside the value.
            DataLossError: the entry is damaged; names it and the archive.
            UnsupportedError: it is encrypted, or compressed in a way that is not known here.
        """
        spans = [each.resolve(entry.size) for each in ranges]
        try:
            if entry.encrypted:
                raise UnsupportedError(
                    "it is encrypted, which is not supported; pack the archive again without that"
                )
            if entry.method == STORED and all(stop - start < entry.size for start, stop in spans):
                return await self._fetch_parts(directory, entry, spans)
            packed = await self._fetch_packed(directory, entry)
            if packed is None:
                return None

            def decode() -> Buffer:
                with places:
                    return unpack(entry.method, packed.values[0], entry.size, entry.crc)

            value = await offload(self.base.inline, decode)
            parts = [value if each is WHOLE else value[slice(*span)]
                     for each, span in zip(ranges, spans, strict=True)]  # fmt: skip
            return Fetched(parts, packed.time)
        except (DataLossError, UnsupportedError) as error:
            raise type(error)(self._complaint(entry, error)) from error

    async def locate(self, directory: Directory) -> bool:
        """Make sure where the directory of the archive begins; False to look it up again."""
        if directory.placed:
            return True
        result = await self._read(directory, directory.start, None)
        if result is None:
            return False
        end = find_end(bytes(result.value))
        directory.placed = end.position == end.size
        directory.doubted = not directory.placed
        return directory.placed

    def _complaint(self, entry: Entry, error: Exception) -> str:
        return f'Error reading "{entry.key}" in the zip archive {self.describe()}: {error}'

    async def _look_up(self, known: Directory | None) -> Directory:
        """The directory as it is now; the known one again, if it is still current."""
        doubted = known is not None and known.doubted
        small = known is not None and known.start < TAIL_SIZE // 2
        before = None if known is None or doubted else known.generation
        whole = small or doubted
        attempts = RetryPolicy().begin("read", self.describe, inline=self.base.inline)
        while True:
            # What a cache on the way says of its age is of no interest: it was asked to look again.
            now = time.time()
            wanted = WHOLE if whole else ByteRange(-TAIL_SIZE)
            try:
                result = await self.base.read(self.key, wanted, if_not_equal=before)
            except OutOfRangeError:
                whole = True  # it is shorter than that
                continue
            if result.state == "missing":
                return Directory((), 0, time=now)
            if result.state == "unspecified":
                assert known is not None
                known.time = max(known.time, now)
                return known
            found = await self._parse(result, now, whole or len(result.value) < TAIL_SIZE)
            if found is not None:
                return found
            # Replaced between two requests, or something stands before it.
            if whole:
                await attempts.lost()
            before, whole = None, True

    async def _parse(self, result: ReadResult, now: float, whole: bool) -> Directory | None:
        """The directory from the end of an archive; None to begin again with all of it."""
        tail = bytes(result.value)
        try:
            end = find_end(tail)
            place = end.position - end.size
            # Where the directory says that it is, and where it is, differ by what stands before.
            shift = place - end.offset if whole else 0
            if shift < 0 or (whole and place < 0):
                raise DataLossError("it is truncated: its directory would begin before it does")
            central = tail[max(0, place) : end.position]
            if place < 0:
                missing = await self.base.read(
                    self.key,
                    ByteRange(end.offset, end.offset - place),
                    if_equal=result.stamp.generation,
                )
                if missing.state != "value":
                    return None
                central = bytes(missing.value) + central
            if not whole and end.entries and central[:4] != b"PK\1\2":
                return None
            generation = result.stamp.generation

            def parse() -> Directory:
                return Directory(
                    parse_central(central, end.entries, shift),
                    end.offset + shift,
                    comment=end.comment,
                    generation=generation,
                    time=now,
                    before=shift,
                    placed=whole,
                )

            return await offload(self.base.inline, parse)
        except OutOfRangeError:
            return None
        except (DataLossError, UnsupportedError) as error:
            raise type(error)(
                f"Error reading the zip archive {self.describe()}: {error}"
            ) from error

    async def _fetch_packed(self, directory: Directory, entry: Entry) -> Fetched | None:
        """The data of an entry as it is stored."""
        least = entry.offset + LOCAL_SIZE + len(entry.name)
        stop = min(directory.end_of(entry), least + len(entry.extra) + _SLACK + entry.packed)
        head = await self._read(directory, entry.offset, stop)
        if head is None:
            return None
        start = self._see_start(directory, entry, bytes(head.value[: LOCAL_SIZE + len(entry.name)]))
        if start is None:
            return None
        data = memoryview(head.value)[start - entry.offset :][: entry.packed]
        if data.nbytes < entry.packed:
            rest = await self._read(directory, start, start + entry.packed)
            if rest is None:
                return None
            data = memoryview(rest.value)
        whole = bytes(data) if entry.method == STORED else data
        return Fetched([whole], head.stamp.time)

    async def _fetch_parts(
        self, directory: Directory, entry: Entry, spans: Sequence[tuple[int, int]]
    ) -> Fetched | None:
        """Parts of a value that is stored as it is."""
        while True:
            start = directory.guessed_start(entry)
            seen = entry.offset in directory.data_starts
            directory.end_of(entry)
            header = [] if seen else [
                ByteRange(entry.offset, entry.offset + LOCAL_SIZE + len(entry.name))
            ]  # fmt: skip
            wanted = [ByteRange(start + low, start + high) for low, high in spans]
            try:
                results = await read_ranges(self.base, self.key, [*header, *wanted])
            except OutOfRangeError:
                await self._check_changed(directory)
                return None
            if any(each.stamp.generation != directory.generation for each in results):
                return None
            if seen:
                return Fetched([each.value for each in results], results[0].stamp.time)
            found = self._see_start(directory, entry, bytes(results[0].value))
            if found is None:
                return None
            if found == start:
                return Fetched([each.value for each in results[1:]], results[0].stamp.time)

    def _see_start(self, directory: Directory, entry: Entry, head: bytes) -> int | None:
        """Where the data begins; None to look the directory up again, with all of the archive."""
        try:
            start = entry.offset + entry.data_start(head)
        except DataLossError:
            if directory.placed:
                raise
            # Maybe something stands before the archive, so that all offsets are too small.
            directory.doubted = True
            return None
        if start + entry.packed > directory.start:
            raise DataLossError("it reaches out of the archive")
        directory.data_starts[entry.offset] = start
        return start

    async def _read(self, directory: Directory, start: int, stop: int | None) -> ReadResult | None:
        """A part of the archive; None if it was replaced."""
        try:
            result = await self.base.read(
                self.key, ByteRange(start, stop), if_equal=directory.generation
            )
        except OutOfRangeError:
            await self._check_changed(directory)
            return None
        return result if result.state == "value" else None

    async def _check_changed(self, directory: Directory) -> None:
        """Make sure that the archive was replaced, since it is shorter than it was.

        Raises:
            DataLossError: it is still the same.
        """
        # The next number: a fixed small step is none at all, this far from 1970.
        found = await self.since(math.nextafter(directory.time, math.inf))
        if found.generation == directory.generation:
            raise DataLossError("the archive ends before it does")
