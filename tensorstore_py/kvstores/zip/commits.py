"""Changing an archive: whatever waits is put into it together, by one replacement of the archive.

New entries are put where the directory was, and a new directory behind them; what is in the archive
already stays where it is. Once a quarter of an archive belongs to no entry any more, it is packed
anew. Every replacement is on the condition that the archive is still the one that was changed; so
any number of processes may write, and none undoes what another one did.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from tensorstore_py.kvstores.zip.archive import Archive, Directory
from tensorstore_py.kvstores.zip.methods import Packed
from tensorstore_py.kvstores.zip.records import Entry, encode_name, ntfs_times
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    ByteRange,
    CopiedRange,
    GroupCommit,
    KeyRange,
    PendingChange,
    RetryPolicy,
    holds,
    splice,
)

__all__ = ["Change", "Commits"]

#: 1601 to 1970 in 100 ns.
_EPOCH_TICKS: Final = 116_444_736_000_000_000
_WASTEFUL: Final = 4
#: What may stand behind data: a signature, a checksum, two wide sizes.
_LONGEST_DESCRIPTION: Final = 24


class Change(PendingChange):
    """What a writer wants: all of it at once, or nothing.

    Args:
        values: by key; None deletes.
        conditions: generations that must be the stored ones.
        removed: a range to delete.

    Attributes:
        failed: a key whose condition did not hold; then nothing of it was done.
        generations: of what was stored.
        time: when that was current, in s since 1970.
    """

    def __init__(
        self,
        values: Mapping[str, Packed | None],
        conditions: Mapping[str, bytes],
        removed: KeyRange | None = None,
    ) -> None:
        super().__init__()
        self.values = values
        self.conditions = conditions
        self.removed = removed
        self.failed: str | None = None
        self.generations: dict[str, bytes] = {}
        self.time = 0.0


class _Draft:
    """A directory while changes are made to it."""

    def __init__(self, directory: Directory, now_s: float) -> None:
        self.base = directory
        self.entries = dict(directory.keys)
        self.data: dict[str, Packed] = {}
        self.changed = False
        self._ticks = _EPOCH_TICKS + int(now_s * 1e7)
        self._now = _dos_time(now_s)

    def generation_of(self, key: str) -> bytes:
        entry = self.entries.get(key)
        return NO_VALUE if entry is None else entry.generation

    def apply(self, change: Change) -> None:
        change.failed = None
        for key, generation in change.conditions.items():
            if not holds(generation, self.generation_of(key)):
                change.failed = key
                return
        gone = [key for key in self.entries if change.removed and key in change.removed]
        for key in gone:
            self._remove(key)
        for key, packed in change.values.items():
            if packed is None:
                self._remove(key)
            else:
                self._put(key, packed)
            change.generations[key] = self.generation_of(key)

    def _remove(self, key: str) -> None:
        self.changed |= self.entries.pop(key, None) is not None
        self.data.pop(key, None)

    def _put(self, key: str, packed: Packed) -> None:
        replaced = self.entries.get(key)
        # Two values of a key never have one generation: the later one is dated later.
        ticks = self._ticks if replaced is None else max(self._ticks, replaced.ticks + 1)
        name, flags = encode_name(key)
        self.entries[key] = Entry(
            name, flags, packed.method, self._now, packed.crc, len(packed.data), packed.size,
            ntfs_times(ticks), (0, 0, 0), b"", 0,
        )  # fmt: skip
        self.data[key] = packed
        self.changed = True

    def kept(self) -> list[Entry]:
        """Entries whose data is in the archive already, those that are no values included."""
        current = {entry for key, entry in self.entries.items() if key not in self.data}
        return [
            entry
            for entry in self.base.entries
            if entry in current or self.base.keys.get(entry.key) is None
        ]


class Commits(GroupCommit[Change]):
    """All writers of one archive in this process.

    Args:
        archive: which.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        super().__init__(inline=archive.base.inline)

    async def commit(self, batch: list[Change]) -> None:
        began = time.time()
        directory = await self._archive.latest()
        archive = self._archive
        attempts = RetryPolicy().begin("change", archive.describe, inline=archive.base.inline)
        while True:
            now = time.time()
            draft = _Draft(directory, now)
            for change in batch:
                draft.apply(change)
            if draft.changed and (
                directory.time >= began or not any(change.failed for change in batch)
            ):
                new = await self._store(draft, now)
                if new is not None:
                    self._archive.learn(new)
                    break
                await attempts.lost(directory.generation)
            elif directory.time >= began:
                break
            began = time.time()
            directory = await self._archive.since(began)
        for change in batch:
            change.time = time.time()

    async def _store(self, draft: _Draft, now: float) -> Directory | None:
        """Replace the archive; None if it is not the one any more that the draft began as."""
        old, kept = draft.base, draft.kept()
        if not await self._archive.locate(old):
            return None
        base, key = self._archive.base, self._archive.key
        pack_anew = old.waste(kept) * _WASTEFUL > old.start - old.before
        pieces: list[bytes] = []
        entries, position = kept, old.start
        if pack_anew:
            whole = await self._read_entries(old)
            if whole is None:
                return None
            pieces, entries, position = _moved(whole, old, kept)
        for name, packed in draft.data.items():
            entry = draft.entries[name]._replace(offset=position)
            head = entry.local_header()
            pieces += (head, packed.data)
            position += len(head) + len(packed.data)
            entries.append(entry)
        entries.sort(key=lambda entry: entry.name)
        new = Directory(entries, position, comment=old.comment, before=old.before, time=now)
        tail = b"".join((*pieces, new.tail()))
        if pack_anew or not old.start:
            stamp = await base.write(key, tail, if_equal=old.generation)
        else:
            stamp = await splice(
                base, key, (CopiedRange(0, old.start), tail), if_equal=old.generation
            )
        if stamp.generation == UNKNOWN:
            return None
        new.generation = stamp.generation
        return new

    async def _read_entries(self, directory: Directory) -> bytes | None:
        """All that stands before the directory; None if the archive was replaced."""
        base, key = self._archive.base, self._archive.key
        result = await base.read(key, ByteRange(0, directory.start), if_equal=directory.generation)
        return bytes(result.value) if result.state == "value" else None


def _moved(whole: bytes, old: Directory, kept: list[Entry]) -> tuple[list[bytes], list[Entry], int]:
    """What is kept of an archive, packed tight: its pieces, where its entries are now, its size."""
    position = old.first(whole)
    pieces, entries = [whole[:position]], []
    moved: dict[int, int] = {}
    for entry in sorted(kept, key=lambda entry: entry.offset):
        if entry.offset not in moved:
            end = entry.offset + entry.data_start(whole[entry.offset : old.end_of(entry)])
            end += entry.packed
            if entry.described_later:
                end = min(end + _LONGEST_DESCRIPTION, old.end_of(entry))
            moved[entry.offset] = position
            pieces.append(whole[entry.offset : end])
            position += len(pieces[-1])
        entries.append(entry._replace(offset=moved[entry.offset]))
    return pieces, entries, position


def _dos_time(now_s: float) -> int:
    """Date and time in the words of the format, in UTC."""
    year, month, day, hour, minute, second = time.gmtime(now_s)[:6]
    date = (max(0, min(127, year - 1980)) << 9) | (month << 5) | day
    return date << 16 | hour << 11 | minute << 5 | second >> 1
