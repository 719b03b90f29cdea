"""The file store: keys are paths, values are whole files.

Reading is open, fstat, pread; a writer holds the key's lock, checks its condition, writes a file
beside the key and renames it over the key. Every method blocks and never suspends. The hot path
is `_read`: it makes the result and its stamp, and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from stat import S_ISDIR, S_ISREG
from typing import Final, TypeVar

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.file.errors import translate
from tensorstore_py.kvstores.file.generations import advance_mtime, generation_at, generation_of
from tensorstore_py.kvstores.file.locking import CREATE_FLAGS
from tensorstore_py.kvstores.file.paths import WINDOWS, check_key
from tensorstore_py.kvstores.file.reading import FETCHERS, fetch, fetch_whole
from tensorstore_py.kvstores.file.resources import FileIoLocking, FileIoMode, FileIoRetries
from tensorstore_py.kvstores.file.staging import (
    Stage,
    make_parents,
    open_stage,
    sync_directory,
    write_all,
    write_parts,
)
from tensorstore_py.kvstores.file.tree import delete_tree, names_in, walk
from tensorstore_py.plugin import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    KeyRange,
    KvStore,
    ListEntry,
    Places,
    ReadResult,
    Stretch,
    TimestampedStorageGeneration,
    Turns,
    Update,
)

__all__ = ["FileStore"]

T = TypeVar("T")

#: Inside the class `list` is a method.
Results = list[ReadResult]
Outcomes = Sequence[TimestampedStorageGeneration | Exception]
_UNCONDITIONAL: Final = (None, UNKNOWN)
_STAGE_ATTEMPTS: Final = 100
_TURNS: Final = Turns()


class FileStore(KvStore):
    """Files of the local (or a mounted) file system.

    Args:
        sync: whether a write is on the disk when it returns.
        locking: how writers exclude each other.
        mode: how values are fetched.
        retries: how often to try again after errors that may pass.
        concurrency: places for operations; each holds one while it runs.
    """

    inline = True
    splices = True
    place = "file"  # keys are whole paths

    def __init__(
        self,
        *,
        sync: bool = True,
        locking: FileIoLocking | None = None,
        mode: FileIoMode | None = None,
        retries: FileIoRetries | None = None,
        concurrency: Places | None = None,
    ) -> None:
        locking = FileIoLocking() if locking is None else locking
        self._sync = sync
        self._mode = locking.mode
        self._timeout_s = locking.acquire_timeout.seconds
        self._open, self._fetch = FETCHERS["default" if mode is None else mode.mode]
        self._retries = FileIoRetries() if retries is None else retries
        self._places = Places(1) if concurrency is None else concurrency
        self.width = self._places.limit

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        self._places.enter()
        try:
            return self._read(key, byte_range, if_equal, if_not_equal)
        except OSError as error:
            return self._retry(
                error, "read", key, lambda: self._read(key, byte_range, if_equal, if_not_equal)
            )
        finally:
            self._places.leave()

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        with self._places:
            try:
                return self._read_ranges(key, ranges)
            except OSError as error:
                return self._retry(error, "read", key, lambda: self._read_ranges(key, ranges))

    async def read_parts(
        self, key: str, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        with self._places:
            try:
                return self._read_parts(key, ranges, size)
            except OSError as error:
                again = partial(self._read_parts, key, ranges, size)
                return self._retry(error, "read", key, again)

    async def read_values(self, keys: Sequence[str], room: memoryview) -> Sequence[Buffer | None]:
        if self._fetch is not fetch:
            return await super().read_values(keys, room)
        values: list[Buffer | None] = []
        with self._places:
            for key in keys:
                check_key(key)
                try:
                    value = self._value(key, room)
                except OSError as error:
                    again = partial(self._value, key, room)
                    value = self._retry(error, "read", key, again)
                if isinstance(value, memoryview):
                    room = room[len(value) :]
                values.append(value)
        return values

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        check_key(key)
        action = "delete" if value is None else "write"
        return self._stamped(action, key, partial(self._change, key, value, if_equal))

    async def write_parts(
        self, key: str, parts: Sequence[Buffer] | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        if parts is None or len(parts) == 1 or self._mode == "non_atomic":
            return await super().write_parts(key, parts, if_equal=if_equal)
        check_key(key)
        return self._stamped("write", key, partial(self._write, key, parts, if_equal))

    async def write_values(self, keys: Sequence[str], values: Sequence[Buffer | None]) -> None:
        # What waits for the disk, or copies much, keeps nobody from anything: it takes no turns.
        short = len(keys) > 1 and not self._sync
        with _TURNS.mine() if short else nullcontext(), self._places:
            for key, value in zip(keys, values, strict=True):
                check_key(key)
                try:
                    self._change(key, value, None)
                except OSError as error:
                    action = "delete" if value is None else "write"
                    self._retry(error, action, key, partial(self._change, key, value, None))

    async def update_values(self, keys: Sequence[str], updates: Sequence[Update]) -> Outcomes:
        if self._sync:  # what waits for the disk keeps nobody from anything
            return await super().update_values(keys, updates)
        with _TURNS.mine(), self._places:
            found = [_tried(partial(self._read, key, WHOLE, None, None)) for key in keys]
        made: list[Callable[[], bytes] | Exception] = []
        for key, update, result in zip(keys, updates, found, strict=True):
            if isinstance(result, Exception):
                made.append(result)
                continue
            try:
                there = result.state == "value"
                value = await update.apply(result.value if there else None)
            except Exception as error:  # noqa: BLE001 - it is that key's
                made.append(error)
            else:
                made.append(partial(self._change, key, value, result.stamp.generation))
        with _TURNS.mine(), self._places:
            changed = [each if isinstance(each, Exception) else _tried(each) for each in made]
        outcomes: list[TimestampedStorageGeneration | Exception] = []
        for key, update, generation in zip(keys, updates, changed, strict=True):
            if isinstance(generation, OSError) or generation == UNKNOWN:  # it may work later
                outcomes += await super().update_values([key], [update])
            elif isinstance(generation, Exception):
                outcomes.append(generation)
            else:
                outcomes.append(TimestampedStorageGeneration.now(generation))
        return outcomes

    async def splice(
        self, key: str, parts: Sequence[Stretch], *, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        if self._mode == "non_atomic":
            return await super().splice(key, parts, if_equal=if_equal)
        check_key(key)
        return self._stamped("write", key, partial(self._write, key, parts, if_equal))

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

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        try:
            for entry in walk(key_range):
                yield entry
        except OSError as error:
            raise translate(error, "list", error.filename or "") from error

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        try:
            for name in names_in(prefix):
                yield name
        except OSError as error:
            raise translate(error, "list", error.filename or "") from error

    def describe_key(self, key: str) -> str:
        return f"local file {super().describe_key(key)}"

    def _read(
        self, key: str, byte_range: ByteRange, if_equal: bytes | None, if_not_equal: bytes | None
    ) -> ReadResult:
        check_key(key)
        now = time.time()
        fd = self._open_for_reading(key)
        if fd < 0:
            return ReadResult("missing", b"", TimestampedStorageGeneration(NO_VALUE, now))
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode):
                return _not_a_file(key, status.st_mode, now)
            stamp = TimestampedStorageGeneration(generation_of(status), now)
            if if_equal is not None or if_not_equal is not None:
                generation = stamp.generation
                if generation == if_not_equal or if_equal not in (None, UNKNOWN, generation):
                    return ReadResult("unspecified", b"", stamp)
            size = status.st_size
            if byte_range is WHOLE:
                return ReadResult("value", self._fetch(fd, 0, size, size), stamp)
            start, stop = byte_range.resolve(size)
            return ReadResult("value", self._fetch(fd, start, stop, size), stamp)
        finally:
            os.close(fd)

    def _read_parts(
        self, key: str, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        check_key(key)
        fd = self._open_for_reading(key)
        if fd < 0:
            return [None] * len(ranges)
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode) or status.st_size != size:
                return None
            return [self._fetch(fd, *each.resolve(size), size) for each in ranges]
        finally:
            os.close(fd)

    def _value(self, key: str, room: memoryview) -> Buffer | None:
        """A whole value; in the given room if there is enough, and nowhere else a memoryview."""
        fd = self._open_for_reading(key)
        if fd < 0:
            return None
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode):
                _not_a_file(key, status.st_mode, 0.0)
                return None
            return fetch_whole(fd, status.st_size, room)
        finally:
            os.close(fd)

    def _read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> Results:
        check_key(key)
        now = time.time()
        fd = self._open_for_reading(key)
        if fd < 0:
            stamp = TimestampedStorageGeneration(NO_VALUE, now)
            return [ReadResult("missing", b"", stamp.copy()) for _ in ranges]
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode):
                return [_not_a_file(key, status.st_mode, now) for _ in ranges]
            generation, size, results = generation_of(status), status.st_size, []
            for byte_range in ranges:
                start, stop = byte_range.resolve(size)
                value = self._fetch(fd, start, stop, size)
                stamp = TimestampedStorageGeneration(generation, now)
                results.append(ReadResult("value", value, stamp))
            return results
        finally:
            os.close(fd)

    def _open_for_reading(self, key: str) -> int:
        """A descriptor, or -1 if there is no such file."""
        try:
            return self._open(key)
        except (FileNotFoundError, NotADirectoryError):
            return -1
        except PermissionError:
            # Windows says this of directories.
            if WINDOWS and os.path.isdir(key):
                return -1
            raise

    def _change(self, key: str, value: Buffer | None, if_equal: bytes | None) -> bytes:
        if value is None:
            return self._delete(key, if_equal)
        if self._mode == "non_atomic":
            return self._write_in_place(key, value, if_equal)
        return self._write(key, (value,), if_equal)

    def _write(self, key: str, parts: Sequence[Stretch], if_equal: bytes | None) -> bytes:
        stage = self._stage(key, create=if_equal in (None, UNKNOWN, NO_VALUE))
        if stage is None:
            return UNKNOWN
        try:
            present, mtime_ns = generation_at(key)
            if if_equal not in (None, UNKNOWN, present):
                return UNKNOWN
            write_parts(stage.fd, parts, key)
            generation = advance_mtime(stage.fd, stage.path, mtime_ns)
            if self._sync:
                os.fsync(stage.fd)
            stage.publish(key)
            # The old value's name is gone already: an error from here on is about durability.
            if self._sync:
                self._sync_name(key)
            return generation
        finally:
            stage.release()

    def _write_in_place(self, key: str, value: Buffer, if_equal: bytes | None) -> bytes:
        present, mtime_ns = generation_at(key)
        if if_equal not in (None, UNKNOWN, present):
            return UNKNOWN
        try:
            fd = os.open(key, CREATE_FLAGS | os.O_TRUNC, 0o666)
        except FileNotFoundError:
            make_parents(key, sync=self._sync)
            fd = os.open(key, CREATE_FLAGS | os.O_TRUNC, 0o666)
        try:
            write_all(fd, value)
            generation = advance_mtime(fd, key, mtime_ns)
            if self._sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        if self._sync:
            self._sync_name(key)
        return generation

    def _delete(self, key: str, if_equal: bytes | None) -> bytes:
        locks = self._mode in ("os", "lockfile")
        stage = self._stage(key, create=False) if locks else None
        try:
            present, _ = generation_at(key)
            if if_equal not in (None, UNKNOWN, present):
                return UNKNOWN
            try:
                os.unlink(key)
            except (FileNotFoundError, NotADirectoryError):
                return NO_VALUE
        finally:
            if stage is not None:
                stage.release()
        if self._sync:
            self._sync_name(key)
        return NO_VALUE

    def _sync_name(self, key: str) -> None:
        """Make what the key's directory says survive, tried again by itself.

        The whole change, tried again, would not find its condition any more.
        """
        try:
            sync_directory(key)
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

    def _retry(self, error: OSError, action: str, key: str, again: Callable[[], T]) -> T:
        """Try again while that may help, then raise the typed error."""
        attempt = 0
        while True:
            typed = translate(error, action, key, attempt + 1)
            if attempt >= self._retries.max_retries or not isinstance(typed, UnavailableError):
                raise typed from error
            time.sleep(self._retries.delay_s(attempt))
            attempt += 1
            try:
                return again()
            except OSError as next_error:
                error = next_error


def _tried(action: Callable[[], T]) -> T | Exception:
    """What an action gives, or how it failed."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the caller says whose it is
        return error


def _not_a_file(key: str, mode: int, now: float) -> ReadResult:
    """What a directory reads as; pipes and devices are no values."""
    if S_ISDIR(mode):
        return ReadResult("missing", b"", TimestampedStorageGeneration(NO_VALUE, now))
    raise FailedPreconditionError(
        f'cannot read "{key}": it is neither a file nor a directory; use another key'
    )
