"""The file store: keys are paths, values are whole files.

A writer holds the key's lock, checks its condition, writes a file beside the key and renames it
over the key. Reading is in `reads`. Every method blocks and never suspends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

from tensorstore_py.kvstores.file.paths import check_key
from tensorstore_py.kvstores.file.reading import FileReads, open_file
from tensorstore_py.kvstores.file.resources import FileIoLocking, FileIoMode, FileIoRetries
from tensorstore_py.kvstores.file.staging import (
    Segment,
    Stage,
    make_parents,
    open_in_place,
    open_stage,
    sync_directory,
    write_all,
    write_parts,
)
from tensorstore_py.kvstores.file.status import advance_mtime, generation_of, present_at
from tensorstore_py.kvstores.file.tree import delete_tree
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    BulkWrite,
    ByteRange,
    CopiedRange,
    IoLock,
    KeyRange,
    ReadModifyWrite,
    ReadResult,
    SegmentedWrite,
    Splice,
    ThreadLimiter,
    TimestampedStorageGeneration,
    joined,
    update_each,
)

__all__ = ["FileStore"]

T = TypeVar("T")

Outcomes = Sequence[TimestampedStorageGeneration | Exception]
#: Directories to synchronize once, after several changes: by path, with a key of each.
Unsynced = dict[str, str]

_STAGE_ATTEMPTS: Final = 100
_TURNS: Final = IoLock()


class FileStore(FileReads, BulkWrite, SegmentedWrite, Splice):
    """Files of the local (or a mounted) file system.

    Args:
        sync: whether a write is on the disk when it returns.
        locking: how writers exclude each other.
        mode: how values are fetched.
        retries: how often to try again after errors that may pass.
        concurrency: places for operations; each holds one while it runs.
    """

    def __init__(
        self,
        *,
        sync: bool = True,
        locking: FileIoLocking | None = None,
        mode: FileIoMode | None = None,
        retries: FileIoRetries | None = None,
        concurrency: ThreadLimiter | None = None,
    ) -> None:
        super().__init__(mode=mode, retries=retries, concurrency=concurrency)
        locking = FileIoLocking() if locking is None else locking
        self._sync = self.writes_wait = sync
        self._mode = locking.mode
        self._timeout_s = locking.acquire_timeout.seconds

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        check_key(key)
        action = "delete" if value is None else "write"
        return self._stamped(action, key, partial(self._change, key, value, if_equal))

    async def write_segments(
        self,
        key: str,
        segments: Sequence[Buffer],
        *,
        if_equal: bytes | None = None,
        owned: bool = False,
    ) -> TimestampedStorageGeneration:
        check_key(key)
        if self._mode == "non_atomic":
            change = partial(self._write_in_place, key, joined(segments), if_equal)
        else:
            change = partial(self._write, key, segments, if_equal)
        return self._stamped("write", key, change)

    async def write_values(self, keys: Sequence[str], values: Sequence[Buffer | None]) -> None:
        # Writes that wait for the disk, or copy much, leave the interpreter to others: no I/O lock.
        short = len(keys) > 1 and not self._sync
        unsynced: Unsynced = {}
        with _TURNS.acquire() if short else nullcontext(), self._places:
            try:
                for key, value in zip(keys, values, strict=True):
                    check_key(key)
                    try:
                        self._change(key, value, None, unsynced)
                    except OSError as error:
                        action = "delete" if value is None else "write"
                        again = partial(self._change, key, value, None, unsynced)
                        self._retry(error, action, key, again)
            finally:
                for key in unsynced.values():
                    self._sync_name(key)

    async def update_values(
        self, keys: Sequence[str], changes: Sequence[ReadModifyWrite]
    ) -> Outcomes:
        if self._sync:  # writes that wait for the disk leave the interpreter to others
            return await update_each(self, keys, changes)
        began = perf_counter()
        with _TURNS.acquire(), self._places:
            found = [_tried(partial(self._read, key, WHOLE, None, None)) for key in keys]
        self._note(
            "read",
            began,
            len(keys),
            [
                len(result.value)
                for result in found
                if isinstance(result, ReadResult) and result.state == "value"
            ],
        )
        sizes: dict[str, int] = {}
        made: list[Callable[[], bytes] | Exception] = []
        for key, change, result in zip(keys, changes, found, strict=True):
            if isinstance(result, Exception):
                made.append(result)
                continue
            try:
                there = result.state == "value"
                value = await change.apply(result.value if there else None)
            except Exception as error:  # noqa: BLE001 - it is that key's
                made.append(error)
            else:
                made.append(partial(self._change, key, value, result.stamp.generation))
                if value is not None:
                    sizes[key] = memoryview(value).nbytes
        began = perf_counter()
        with _TURNS.acquire(), self._places:
            changed = [each if isinstance(each, Exception) else _tried(each) for each in made]
        self._note(
            "write",
            began,
            len(keys),
            [
                sizes[key]
                for key, generation in zip(keys, changed, strict=True)
                if key in sizes and isinstance(generation, bytes) and generation != UNKNOWN
            ],
        )
        outcomes: list[TimestampedStorageGeneration | Exception] = []
        for key, change, generation in zip(keys, changes, changed, strict=True):
            if isinstance(generation, OSError) or generation == UNKNOWN:  # it may work later
                outcomes += await update_each(self, [key], [change])
            elif isinstance(generation, Exception):
                outcomes.append(generation)
            else:
                outcomes.append(TimestampedStorageGeneration.now(generation))
        return outcomes

    def _note(self, kind: str, began: float, asked: int, sizes: Sequence[int]) -> None:
        """Count what is not done by operations of the store that are counted."""
        if self.metrics is not None:
            elapsed = perf_counter() - began
            self.metrics.note((kind, asked, len(sizes), sum(sizes), elapsed))

    async def splice(
        self, key: str, segments: Sequence[Segment], *, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        check_key(key)
        kind = self._splice_in_place if self._mode == "non_atomic" else self._write
        return self._stamped("write", key, partial(kind, key, segments, if_equal))

    def _stamped(
        self, action: str, key: str, change: Callable[[], bytes]
    ) -> TimestampedStorageGeneration:
        """Make a change, which gives the new generation."""
        with self._places:
            try:
                generation = change()
            except OSError as error:
                generation = self._retry(error, action, key, change)
        return TimestampedStorageGeneration.now(generation)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        with self._places:
            try:
                self._delete_range(key_range)
            except OSError as error:
                where = error.filename or ""
                self._retry(error, "delete", where, lambda: self._delete_range(key_range))

    def _change(
        self,
        key: str,
        value: Buffer | None,
        if_equal: bytes | None,
        unsynced: Unsynced | None = None,
    ) -> bytes:
        if value is None:
            return self._delete(key, if_equal, unsynced)
        if self._mode == "non_atomic":
            return self._write_in_place(key, value, if_equal, unsynced)
        return self._write(key, (value,), if_equal, unsynced)

    def _write(
        self,
        key: str,
        parts: Sequence[Segment],
        if_equal: bytes | None,
        unsynced: Unsynced | None = None,
    ) -> bytes:
        stage = self._stage(key, create=if_equal in (None, UNKNOWN, NO_VALUE))
        if stage is None:
            return UNKNOWN
        try:
            present = present_at(key)
            if if_equal not in (None, UNKNOWN, present.generation):
                return UNKNOWN
            stage.keep_access(key, present)
            if any(isinstance(part, CopiedRange) for part in parts):
                if not _splice(stage.fd, key, parts, present.generation):
                    return UNKNOWN
            else:
                write_parts(stage.fd, parts)
            generation = advance_mtime(stage.fd, stage.path, present.mtime_ns)
            if self._sync:
                os.fsync(stage.fd)
            stage.publish(key)
            # The old value's name is gone already: an error from here on is about durability.
            self._name_changed(key, unsynced)
            return generation
        finally:
            stage.release()

    def _write_in_place(
        self,
        key: str,
        value: Buffer,
        if_equal: bytes | None,
        unsynced: Unsynced | None = None,
    ) -> bytes:
        present = present_at(key)
        if if_equal not in (None, UNKNOWN, present.generation):
            return UNKNOWN
        try:
            fd = open_in_place(key, present)
        except FileNotFoundError:
            make_parents(key, sync=self._sync)
            fd = open_in_place(key, present)
        try:
            write_all(fd, value)
            generation = advance_mtime(fd, key, present.mtime_ns)
            if self._sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        self._name_changed(key, unsynced)
        return generation

    def _splice_in_place(self, key: str, segments: Sequence[Segment], if_equal: bytes) -> bytes:
        present = memoryview(b"")
        if any(isinstance(segment, CopiedRange) for segment in segments):
            result = self._read(key, WHOLE, if_equal, None)
            if result.state != "value":
                return UNKNOWN
            present = memoryview(result.value)
        found: list[Buffer] = []
        for segment in segments:
            if isinstance(segment, CopiedRange):
                start, stop = ByteRange(segment.start, segment.stop).resolve(len(present))
                found.append(present[start:stop])
            else:
                found.append(segment)
        return self._write_in_place(key, joined(found), if_equal)

    def _delete(self, key: str, if_equal: bytes | None, unsynced: Unsynced | None = None) -> bytes:
        locks = self._mode in ("os", "lockfile")
        stage = self._stage(key, create=False) if locks else None
        try:
            if if_equal not in (None, UNKNOWN, present_at(key).generation):
                return UNKNOWN
            try:
                os.unlink(key)
            except (FileNotFoundError, NotADirectoryError):
                return NO_VALUE
        finally:
            if stage is not None:
                stage.release()
        self._name_changed(key, unsynced)
        return NO_VALUE

    def _name_changed(self, key: str, unsynced: Unsynced | None) -> None:
        """Make a new or removed name survive: now, or when the caller is done with its others."""
        if not self._sync:
            return
        if unsynced is None:
            self._sync_name(key)
        else:
            unsynced[os.path.dirname(key)] = key

    def _sync_name(self, key: str) -> None:
        """Make what the key's directory says survive, tried again by itself.

        The whole change, tried again, would not find its condition any more.
        """
        try:
            sync_directory(key)
        except FileNotFoundError:
            return  # a concurrent delete_range removed the directory, and the name with it
        except OSError as error:
            self._retry(error, "sync the directory of", key, lambda: sync_directory(key))

    def _delete_range(self, key_range: KeyRange) -> None:
        delete_tree(key_range, break_locks=self._mode == "os")

    def _stage(self, key: str, *, create: bool) -> Stage | None:
        """The stage for the key; None if its directory is missing and not to be created."""
        for attempt in range(_STAGE_ATTEMPTS):
            try:
                return open_stage(self._mode, key, self._timeout_s)
            except FileNotFoundError:
                # A concurrent delete_range may remove the directory that we just made: again.
                if not create:
                    return None
                if attempt == _STAGE_ATTEMPTS - 1:
                    raise
                make_parents(key, sync=self._sync)
        return None


def _splice(fd: int, key: str, parts: Sequence[Segment], generation: bytes) -> bool:
    """Write parts, some of them of a key's file; False if it is of another generation.

    Raises:
        OutOfRangeError: the file is shorter than what is kept.
    """
    kept_fd = open_file(key)
    try:
        status = os.fstat(kept_fd)
        if generation_of(status) != generation:
            return False  # a writer that ignores locks replaced it
        for part in parts:
            if isinstance(part, CopiedRange):
                ByteRange(part.start, part.stop).resolve(status.st_size)
        write_parts(fd, parts, kept_fd)
        return True
    finally:
        os.close(kept_fd)


def _tried(action: Callable[[], T]) -> T | Exception:
    """What an action gives, or how it failed."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the caller says whose it is
        return error
