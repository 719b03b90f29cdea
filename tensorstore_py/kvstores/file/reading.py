"""The reading half of the file store: open, fstat, pread; and what directories hold.

Every method blocks and never suspends. The hot path is `_read`: it makes the result and its stamp,
and nothing else. Each fetch function takes `(fd, start, stop, size)`, with `0 <= start <= stop <=
size`, and gives exactly `stop - start` bytes: read, mapped, or read past the page cache. Files are
replaced, never changed, by careful writers, so an open file keeps its size; one that shrank under
a reader is an error, never a short value.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from stat import S_ISDIR, S_ISREG
from typing import Final, TypeVar

from tensorstore_py.errors import AbortedError, FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.file.errors import translate
from tensorstore_py.kvstores.file.paths import WINDOWS, check_key
from tensorstore_py.kvstores.file.resources import FileIoMode, FileIoRetries, ReadMode
from tensorstore_py.kvstores.file.status import generation_of
from tensorstore_py.kvstores.file.tree import names_in, walk
from tensorstore_py.plugin.codec import huge_page_buffer
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    Buffer,
    BulkRead,
    ByteRange,
    DirectoryListing,
    KeyRange,
    KvStore,
    ListEntry,
    RangeRead,
    ReadResult,
    ThreadLimiter,
    TimestampedStorageGeneration,
    counter,
    pause,
)

__all__ = [
    "FETCHERS",
    "OPEN_FLAGS",
    "Fetch",
    "FileReads",
    "fetch",
    "fetch_whole",
    "open_direct",
    "open_file",
]

Fetch = Callable[[int, int, int, int], Buffer]

# Without O_NONBLOCK, opening a named pipe would wait for a writer that never comes.
OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_DIRECT: Final = getattr(os, "O_DIRECT", 0)
_PAGE: Final = mmap.PAGESIZE
#: From this size on, memory of large pages pays.
_LARGE: Final = 2**22

if sys.platform == "win32":

    def _read_at(fd: int, size: int, start: int) -> bytes:
        os.lseek(fd, start, os.SEEK_SET)
        return os.read(fd, size)

    def _read_into(fd: int, memory: memoryview, start: int) -> int:
        data = _read_at(fd, memory.nbytes, start)
        memory[: len(data)] = data
        return len(data)

    def _leave_direct(fd: int) -> None:
        """Nothing to leave: there is no direct mode here."""

else:
    import fcntl

    _read_at = os.pread

    def _read_into(fd: int, memory: memoryview, start: int) -> int:
        return os.preadv(fd, [memory], start)

    def _leave_direct(fd: int) -> None:
        """Go on through the page cache."""
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~_DIRECT)


def open_file(path: str) -> int:
    """Open for reading."""
    return os.open(path, OPEN_FLAGS)


def open_direct(path: str) -> int:
    """Open for reading past the page cache; plainly, where platform or file system cannot."""
    try:
        return os.open(path, OPEN_FLAGS | _DIRECT)
    except OSError as error:
        if not _DIRECT or isinstance(error, FileNotFoundError):
            raise
        return os.open(path, OPEN_FLAGS)


def fetch(fd: int, start: int, stop: int, size: int) -> Buffer:
    """Read into memory."""
    wanted = stop - start
    if wanted >= _LARGE:
        return _fetch_large(fd, start, stop, size)
    data = _read_at(fd, wanted, start)
    if len(data) == wanted:
        return data
    # Some network file systems read less in one call.
    parts = [data]
    while data and (start := start + len(data)) < stop:
        data = _read_at(fd, stop - start, start)
        parts.append(data)
    whole = b"".join(parts)
    if len(whole) != wanted:
        raise _shrunk(size, stop - wanted + len(whole))
    return whole


def _fetch_large(fd: int, start: int, stop: int, size: int) -> memoryview:
    """Read into memory of large pages."""
    memory = huge_page_buffer(stop - start)
    filled = 0
    # One call reads 2 GiB at most, and less on some network file systems.
    while filled < len(memory):
        count = _read_into(fd, memory[filled:], start + filled)
        if not count:
            raise _shrunk(size, start + filled)
        filled += count
    return memory.toreadonly()


def fetch_whole(fd: int, size: int, room: memoryview) -> Buffer:
    """Read a whole file of that size: to the beginning of `room` if there is enough of it."""
    if size <= len(room):
        value = room[:size]
        if _read_into(fd, value, 0) == size:
            return value
    return fetch(fd, 0, size, size)


def _fetch_mapped(fd: int, start: int, stop: int, size: int) -> Buffer:
    """Map the file; its pages are read when touched, and stay valid after it is replaced."""
    if start == stop:
        return b""
    return memoryview(mmap.mmap(fd, size, access=mmap.ACCESS_READ))[start:stop]


def _fetch_direct(fd: int, start: int, stop: int, size: int) -> Buffer:
    """Read whole pages into page-aligned memory, as O_DIRECT demands, and cut out the range."""
    if start == stop or not _DIRECT:
        return fetch(fd, start, stop, size)
    first = start - start % _PAGE
    memory = mmap.mmap(-1, -(-(stop - first) // _PAGE) * _PAGE)
    view = memoryview(memory)
    filled = 0
    while filled < stop - first:
        try:
            count = _read_into(fd, view[filled:], first + filled)
        except OSError:
            count = 0
        filled += count
        if count == 0 or filled % _PAGE:
            break
    if filled < stop - first:
        # The end of the file, or a device with larger blocks than pages: the plain way decides.
        _leave_direct(fd)
        return fetch(fd, start, stop, size)
    return view[start - first : stop - first].toreadonly()


def _shrunk(expected: int, found: int) -> AbortedError:
    return AbortedError(
        f"the file shrank from {expected} to {found} bytes while it was read; some writer "
        f"changes files in place: write with another file_io_locking mode than "
        f'"non_atomic", or read again'
    )


FETCHERS: Final[dict[ReadMode, tuple[Callable[[str], int], Fetch]]] = {
    "default": (open_file, fetch),
    "memmap": (open_file, _fetch_mapped),
    "direct": (open_direct, _fetch_direct),
}


T = TypeVar("T")
_RETRIES: Final = counter("/tensorstore/kvstore/file/retries", "file: operations tried again")

#: Inside the class `list` is a method.
Results = list[ReadResult]


class FileReads(RangeRead, BulkRead, DirectoryListing, KvStore):
    """What can be read of a file system."""

    inline = True
    identity = "file"  # keys are whole paths

    def __init__(
        self,
        *,
        mode: FileIoMode | None = None,
        retries: FileIoRetries | None = None,
        concurrency: ThreadLimiter | None = None,
    ) -> None:
        self._open, self._fetch = FETCHERS["default" if mode is None else mode.mode]
        self._retries = FileIoRetries() if retries is None else retries
        self._places = ThreadLimiter(1) if concurrency is None else concurrency
        self.width = self._places.limit

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        self._places.acquire()
        try:
            return self._read(key, byte_range, if_equal, if_not_equal)
        except OSError as error:
            return self._retry(
                error, "read", key, lambda: self._read(key, byte_range, if_equal, if_not_equal)
            )
        finally:
            self._places.release()

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
            if self._fetch is not fetch:
                return self._fetch(fd, 0, status.st_size, status.st_size)
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
            _RETRIES.note(1)
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
