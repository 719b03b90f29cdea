"""The reading half of the file store: open, fstat, pread; and what directories hold.

Every method blocks and never suspends. The hot path is `_read`: it makes the result and its stamp,
and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from stat import S_ISDIR, S_ISREG
from typing import TypeVar

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.file.errors import translate
from tensorstore_py.kvstores.file.generations import generation_of
from tensorstore_py.kvstores.file.paths import WINDOWS, check_key
from tensorstore_py.kvstores.file.reading import FETCHERS, fetch, fetch_whole
from tensorstore_py.kvstores.file.resources import FileIoMode, FileIoRetries
from tensorstore_py.kvstores.file.tree import names_in, walk
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
    TimestampedStorageGeneration,
    pause,
)

__all__ = ["FileReads"]

T = TypeVar("T")

#: Inside the class `list` is a method.
Results = list[ReadResult]


class FileReads(KvStore):
    """What can be read of a file system.

    Args:
        mode: how values are fetched.
        retries: how often to try again after errors that may pass.
        concurrency: places for operations; each holds one while it runs.
    """

    inline = True
    place = "file"  # keys are whole paths

    def __init__(
        self,
        *,
        mode: FileIoMode | None = None,
        retries: FileIoRetries | None = None,
        concurrency: Places | None = None,
    ) -> None:
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

    def _retry(self, error: OSError, action: str, key: str, again: Callable[[], T]) -> T:
        """Try again while that may help, then raise the typed error."""
        attempt = 0
        while True:
            typed = translate(error, action, key, attempt + 1)
            if attempt >= self._retries.max_retries or not isinstance(typed, UnavailableError):
                raise typed from error
            pause(self._retries.delay_s(attempt))
            attempt += 1
            try:
                return again()
            except OSError as next_error:
                error = next_error


def _not_a_file(key: str, mode: int, now: float) -> ReadResult:
    """What a directory reads as; pipes and devices are no values."""
    if S_ISDIR(mode):
        return ReadResult("missing", b"", TimestampedStorageGeneration(NO_VALUE, now))
    raise FailedPreconditionError(
        f'cannot read "{key}": it is neither a file nor a directory; use another key'
    )
