"""`download` and `upload`: the values of a store as files of a local directory, and back.

These run in the event loop of the caller, and their files are touched by aiofiles, on
threads of its own, so that the loop is held up by neither disk nor network. The invariants: no key
leads out of the directory, and a file has its name only once all of it is there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, ParamSpec, Self

import aiofiles
import aiofiles.os

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._interface.key_range import encode_key
from tensorstore_py._runtime.progress import ProgressLike, Reporter
from tensorstore_py.errors import AbortedError, FailedPreconditionError, OutOfRangeError, SpecError

if TYPE_CHECKING:
    from aiofiles.threadpool.binary import AsyncBufferedIOBase

    from tensorstore_py._api.kvstore_arguments import KeyRange

__all__ = ["download", "upload"]

P = ParamSpec("P")

#: Larger values are read in pieces, and larger files are written one at a time.
_PIECE_BYTES: Final = 2**25
_AT_A_TIME: Final = 16
_ROUNDS: Final = 8
_UNFINISHED: Final = ".tensorstore-part"
_NO_NAMES: Final = frozenset({"", ".", ".."})
_SPECIAL: Final = frozenset('\\:*?"<>|').union(map(chr, range(32)))
#: On Windows these are devices in every directory, whatever ending they have.
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{kind}{number}" for kind in ("com", "lpt") for number in "123456789\xb9\xb2\xb3"}
)


async def download(
    store: KvStore,
    directory: str | os.PathLike[str],
    range: KeyRange | None = None,
    *,
    progress: ProgressLike = None,
) -> int:
    """Write the values of a store into files of a directory: `a/b` goes to `directory/a/b`.

    Args:
        store: keys are relative to its `path`.
        directory: made if it is not there. Files of it that are no keys stay as they are.
        range: only these keys.
        progress: called with a `Progress`, of the values, each a chunk, that were listed so far;
            True: draws a bar, with tqdm or rich if one is installed.

    Returns:
        How many files were written. A key that was deleted meanwhile is none.

    Raises:
        SpecError: a key cannot be the name of a file, such as `../a`; names it.
        FailedPreconditionError: a file cannot be written, or would be written through a symbolic
            link of the directory; names it.
        AbortedError: a large value was replaced again and again.
        UnsupportedError: the store cannot list its keys.

    Example:
        >>> import asyncio, tempfile
        >>> import tensorstore_py as ts
        >>> store = ts.KvStore.open("memory://").result()
        >>> store["a/b"] = b"1"
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     print(asyncio.run(ts.download(store, directory)), os.listdir(directory))
        1 ['a']
    """
    root, skipped = os.fspath(directory), len(encode_key(store.path))
    count, reporter = 0, Reporter(progress, "download")

    async def fetch(key: str, size: int) -> None:
        nonlocal count
        name = encode_key(key)[skipped:]
        path = f"{root}/{_path(name)}"
        # Not made of the key: its name may be as long as names can be.
        unfinished = f"{path.rpartition('/')[0]}/{secrets.token_hex(8)}{_UNFINISHED}"
        try:
            await asyncio.to_thread(_make_directories, root, path.rpartition("/")[0])
            try:
                if await _write(store, name, size, unfinished):
                    await aiofiles.os.replace(unfinished, path)
                    count += 1
            finally:
                # At once: the next failure must not interrupt the clean-up.
                with suppress(OSError):
                    os.unlink(unfinished)  # noqa: PTH108 - a path is text here
        except OSError as error:
            raise FailedPreconditionError(f'cannot write "{path}": {error}') from error
        reporter.advance(max(0, size), 1)

    async with (
        reporter.closing(),
        _Several() as several,
        aclosing(store.keys(range).entries()) as entries,
    ):
        async for entry in entries:
            reporter.more(1, max(0, entry.size))
            await several.begin(fetch, entry.key, entry.size)
    return count


async def upload(
    directory: str | os.PathLike[str], store: KvStore, *, progress: ProgressLike = None
) -> int:
    """Store the files of a directory: `directory/a/b` goes to `a/b`.

    Args:
        directory: with all that is below it; links to directories are not followed.
        store: keys are relative to its `path`. Those that are no files stay as they are.
        progress: called with a `Progress`, of the files, each a chunk, that were found so far;
            True: draws a bar, with tqdm or rich if one is installed.

    Returns:
        How many there were.

    Raises:
        FailedPreconditionError: a file cannot be read; names it.
        UnsupportedError: the store is read-only.

    Example:
        >>> import asyncio, tempfile
        >>> from pathlib import Path
        >>> import tensorstore_py as ts
        >>> store = ts.KvStore.open("memory://").result()
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     _ = Path(directory, "a").write_bytes(b"1")
        ...     print(asyncio.run(ts.upload(directory, store / "in/")), store["in/a"])
        1 b'1'
    """
    count, large, reporter = 0, asyncio.Lock(), Reporter(progress, "upload")

    async def send(key: str, path: str, size: int) -> None:
        nonlocal count
        if size > _PIECE_BYTES:
            async with large:
                await _send(store, key, path)
        else:
            await _send(store, key, path)
        count += 1
        reporter.advance(size, 1)

    async with (
        reporter.closing(),
        _Several() as several,
        aclosing(_files(os.fspath(directory), "")) as found,
    ):
        async for key, path, size in found:
            reporter.more(1, size)
            await several.begin(send, key, path, size)
    return count


class _Several:
    """Some tasks at a time; the first error stops all, and is raised as it is."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._places = asyncio.Semaphore(_AT_A_TIME)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def begin(
        self, work: Callable[P, Coroutine[None, None, None]], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Begin a task as soon as there is a place for it."""
        await self._places.acquire()
        task = self._group.create_task(work(*args, **kwargs))
        task.add_done_callback(lambda _: self._places.release())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from group.exceptions[0].__cause__


def _path(name: bytes) -> str:
    """The path of a key's file.

    Raises SpecError: it can have none.
    """
    parts = os.fsdecode(name).split("/")
    allowed = _windows_allows if os.name == "nt" else _posix_allows
    if not all(map(allowed, parts)):
        raise SpecError(
            f'the key "{name.decode("utf-8", "backslashreplace")}" cannot be the name of a file; '
            "download a range of keys without it"
        )
    return "/".join(parts)


def _make_directories(root: str, directory: str) -> None:
    """Make a directory below the root, through no link: that may lead anywhere.

    Raises FailedPreconditionError: a link is in the way; names it.
    """
    os.makedirs(root, exist_ok=True)  # noqa: PTH103 - a path is text here
    below = root
    for part in directory[len(root) :].split("/"):
        if not part:
            continue
        below = f"{below}/{part}"
        with suppress(FileExistsError):
            os.mkdir(below)  # noqa: PTH102
            continue
        if os.path.realpath(below) != os.path.join(os.path.realpath(root), below[len(root) + 1 :]):  # noqa: PTH118
            raise FailedPreconditionError(
                f'cannot write to "{below}": it is a link, which may lead out of the directory; '
                "delete it, or download to where it leads"
            )


def _posix_allows(part: str) -> bool:
    return part not in _NO_NAMES and "\0" not in part


def _windows_allows(part: str) -> bool:
    """Whether a file can have that name; of others, Windows drops the end or opens a device."""
    device = part.partition(".")[0].rstrip(" ").lower()
    return (
        part not in _NO_NAMES
        and part[-1] not in ". "
        and device not in _DEVICES
        and _SPECIAL.isdisjoint(part)
    )


@asynccontextmanager
async def _created(path: str) -> AsyncIterator[AsyncBufferedIOBase]:
    """A new file, closed in the end whenever it is cancelled."""

    async def create() -> AsyncBufferedIOBase:
        return await aiofiles.open(path, "wb")

    creating = asyncio.ensure_future(create())
    try:
        yield await asyncio.shield(creating)
    finally:
        closing = asyncio.ensure_future(_close(creating))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing
            raise


async def _close(creating: asyncio.Future[AsyncBufferedIOBase]) -> None:
    try:
        file = await creating
    except OSError:
        return  # the caller was told
    await file.close()


async def _write(store: KvStore, name: bytes, size: int, path: str) -> bool:
    """Write a value to a file; whether there is one."""
    async with _created(path) as file:
        for _ in range(_ROUNDS):
            await file.seek(0)
            await file.truncate()
            generations = set()
            try:
                for start in range(0, max(size, 1), _PIECE_BYTES):
                    # The last piece is all that is left, whatever was listed.
                    last = start + _PIECE_BYTES >= size
                    wanted = slice(start, None if last else start + _PIECE_BYTES)
                    piece = await store.read(name, byte_range=wanted)
                    if piece.state == "missing":
                        return False
                    generations.add(piece.stamp.generation)
                    await file.write(piece.value)
            except OutOfRangeError:
                size = -1  # it got shorter
                continue
            if len(generations) == 1:
                return True
    raise AbortedError(
        f'cannot download "{name.decode("utf-8", "backslashreplace")}": it was replaced {_ROUNDS} '
        "times meanwhile; try again when its writer is done"
    )


async def _files(directory: str, prefix: str) -> AsyncGenerator[tuple[str, str, int], None]:
    """Keys, paths and sizes of the files below a directory."""
    for name, is_directory, size in await asyncio.to_thread(_entries, directory):
        path = f"{directory}/{name}"
        if is_directory:
            async for found in _files(path, f"{prefix}{name}/"):
                yield found
        elif not name.endswith(_UNFINISHED):
            yield prefix + name, path, size


def _entries(directory: str) -> list[tuple[str, bool, int]]:
    try:
        with os.scandir(directory) as found:
            return sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.stat().st_size)
                for entry in found
                if entry.is_file() or entry.is_dir(follow_symlinks=False)
            )
    except OSError as error:
        raise FailedPreconditionError(f'cannot read "{directory}": {error}') from error


async def _send(store: KvStore, key: str, path: str) -> None:
    try:
        async with aiofiles.open(path, "rb") as file:
            value = await file.read()
    except OSError as error:
        raise FailedPreconditionError(f'cannot read "{path}": {error}') from error
    await store.write(os.fsencode(key), value)
