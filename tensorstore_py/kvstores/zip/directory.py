"""What is in an archive: its entries by key, and where each of them is.

A snapshot: it belongs to one generation of the archive and does not change, but for the time at
which it was last known to be current. Nothing here reads or writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.zip.records import LOCAL_SIZE, Entry, end_records
from tensorstore_py.plugin import NO_VALUE

__all__ = ["Directory"]

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
