"""Walking the directories that hold a range of keys: listing, and deleting.

A walk starts at the deepest directory that every key of the range lies in, and enters only
directories that can hold keys of the range. Lock files are no keys. What other processes remove
meanwhile is not an error, nor are links that lead nowhere. Symbolic links to directories are not
followed: no walk is endless.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from tensorstore_py.errors import FailedPreconditionError, UnavailableError
from tensorstore_py.kvstores.file.locking import acquire
from tensorstore_py.kvstores.file.paths import LOCK_SUFFIX
from tensorstore_py.plugin.kvstore import KeyRange, ListEntry, encode_key

__all__ = ["delete_tree", "names_in", "walk"]

_GONE = (FileNotFoundError, NotADirectoryError)


def walk(key_range: KeyRange) -> Iterator[ListEntry]:
    """The keys of the range with their sizes, directory by directory, sorted within each."""
    if not key_range.empty:
        yield from _walk(_start(key_range), key_range)


def names_in(directory: str) -> Iterator[str]:
    """The names in a directory, sorted; those of directories that hold a key end in `/`.

    Args:
        directory: ends in `/`, or is empty.
    """
    for entry in _scan(directory):
        try:
            if entry.is_dir(follow_symlinks=False):
                inner = f"{entry.name}/"
                if next(_walk(directory + inner, KeyRange.prefix(directory + inner)), None):
                    yield inner
            elif not entry.name.endswith(LOCK_SUFFIX) and _size(entry) is not None:
                yield entry.name
        except _GONE:
            continue


def delete_tree(key_range: KeyRange, *, break_locks: bool) -> None:
    """Delete the files of the range, then the directories that it empties.

    The directory where the walk starts stays. A directory that a writer puts something into
    meanwhile stays, too: the system refuses to remove it.

    Args:
        key_range: what to delete.
        break_locks: remove lock files that no writer holds; False where existing is holding.
    """
    if not key_range.empty:
        _delete(_start(key_range), key_range, break_locks)


def _start(key_range: KeyRange) -> str:
    """The directory in which all keys of the range are; `""` or with a final `/`."""
    directory, slash, _ = key_range.common_prefix().rpartition("/")
    return directory + slash


def _walk(directory: str, key_range: KeyRange) -> Iterator[ListEntry]:
    for entry in _scan(directory):
        key = directory + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if _may_hold(key + "/", key_range):
                    yield from _walk(key + "/", key_range)
            elif key in key_range and not key.endswith(LOCK_SUFFIX):
                size = _size(entry)
                if size is not None:
                    yield ListEntry(key, size)
        except _GONE:
            continue


def _delete(directory: str, key_range: KeyRange, break_locks: bool) -> None:
    for entry in _scan(directory):
        key = directory + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                inner = key + "/"
                if _may_hold(inner, key_range):
                    _delete(inner, key_range, break_locks)
                    if _holds_all(inner, key_range):
                        _remove_if_empty(key)
            elif key in key_range:
                if not key.endswith(LOCK_SUFFIX):
                    os.unlink(key)
                elif break_locks:
                    _remove_if_unheld(key)
        except _GONE:
            continue


def _scan(directory: str) -> list[os.DirEntry[str]]:
    """The entries in key order, in which `a/` comes after `a.b`; none if it is no directory."""
    try:
        with os.scandir(directory or ".") as entries:
            found = list(entries)
    except _GONE:
        return []
    return sorted(found, key=lambda entry: entry.name + "/" * entry.is_dir(follow_symlinks=False))


def _size(entry: os.DirEntry[str]) -> int | None:
    """The size of a file, behind links; None: it is none, or its links lead nowhere."""
    try:
        status = entry.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _may_hold(directory: str, key_range: KeyRange) -> bool:
    """Whether some key below `directory` (with its final `/`) can be in the range."""
    low = encode_key(directory)
    below_max = not key_range.exclusive_max or low < key_range.exclusive_max
    return below_max and (key_range.inclusive_min <= low or key_range.inclusive_min.startswith(low))


def _holds_all(directory: str, key_range: KeyRange) -> bool:
    """Whether every key below `directory` is in the range."""
    inside = KeyRange.prefix(directory)
    return key_range.inclusive_min <= inside.inclusive_min and (
        not key_range.exclusive_max or inside.exclusive_max <= key_range.exclusive_max
    )


def _remove_if_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        # Not empty: a writer came first, or holds a lock in it. It will use the directory.
        return


def _remove_if_unheld(path: str) -> None:
    """Remove what a killed writer left; taking the lock shows that no writer is alive."""
    try:
        fd = acquire(path, 0)
    except UnavailableError:
        return
    except FailedPreconditionError:
        os.unlink(path)  # whatever it is, no writer holds it
        return
    try:
        os.unlink(path)
    finally:
        os.close(fd)
