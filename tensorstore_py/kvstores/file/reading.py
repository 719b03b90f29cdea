"""How the bytes of an open file are fetched: read, mapped, or read past the page cache.

Each fetch function takes `(fd, start, stop, size)`, with `0 <= start <= stop <= size`, and gives
exactly `stop - start` bytes. Files are replaced, never changed, by careful writers, so an open
file keeps its size; a file that shrank under a reader is an error, never a short value.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from typing import Final

from tensorstore_py.errors import AbortedError
from tensorstore_py.kvstores.file.resources import ReadMode
from tensorstore_py.plugin import LARGE_BYTES, Buffer, large_memory

__all__ = ["FETCHERS", "OPEN_FLAGS", "Fetch", "fetch", "fetch_whole", "open_direct", "open_file"]

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
    if wanted >= LARGE_BYTES:
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
    memory = large_memory(stop - start)
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
