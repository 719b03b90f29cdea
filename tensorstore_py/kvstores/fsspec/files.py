"""One way to call file systems, asynchronous ones and those that block, ours and the user's.

fsspec has asynchronous file systems, which run on the library's loop, and others, whose calls block
the worker that makes them. An instance is made at first use, since some connect when they are made,
and again in a forked child. What fsspec remembers of directories is forgotten before every look.
Connections of asynchronous ones are closed on the loop that they were made on, before it ends.

A file system that the user made (`HeldFiles`) stays the user's: an asynchronous one is called in
its own loop and not closed here; a forked child uses another one of the same options.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet, finalize

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.plugin.kvstore import (
    Buffer,
    Held,
    Mutex,
    in_other_loop,
    kvstore_object,
    on_loop_end,
)

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


__all__ = [
    "Files",
    "HeldFiles",
    "open_files",
    "protocol_of",
]

Info = Mapping[str, Any]

#: One connection, one conversation at a time.
_ONE_AT_A_TIME: Final = frozenset({"ftp"})
#: Where asynchronous file systems keep what has to be closed.
_CLIENTS: Final = ("_s3", "_session", "service_client")


class Files:
    """The files below a URL.

    Args:
        connect: makes the file system, and tells the path of the URL on it.
        protocol: which kind it is.
        inline: its calls block.

    Attributes:
        inline: see `KvStore`.
        protocol: as given.
    """

    def __init__(
        self,
        connect: Callable[[], tuple[AbstractFileSystem, str]],
        protocol: str,
        *,
        inline: bool,
    ) -> None:
        self.inline = inline
        self.protocol = protocol
        self._connect = connect
        self._connected: tuple[AbstractFileSystem, str] | None = None
        self._pid = 0
        self._mutex = Mutex()
        self._turn: AbstractContextManager[None] = (
            Mutex() if protocol in _ONE_AT_A_TIME else nullcontext()
        )

    def path(self, key: str) -> str:
        """The path of a key; of a directory, without its `/` at the end."""
        root = self._system()[1].rstrip("/")
        return f"{root}/{key}" if key else root or "/"

    def key(self, path: str) -> str:
        """The key of a path, as the file system prints it; empty for what is not below the root."""
        root = self._system()[1].strip("/")
        path = path.lstrip("/")
        if not root:
            return path
        return path[len(root) + 1 :] if path.startswith(f"{root}/") else ""

    async def info(self, key: str) -> Info | None:
        """What is known of a file; None if there is none."""
        try:
            self._system()[0].invalidate_cache()
            found: Info = await self._call("info", self.path(key))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None if found.get("type") == "directory" else found

    async def cat(self, key: str, start: int | None, stop: int | None) -> bytes:
        """A part of a file, or all of it."""
        data: bytes = await self._call("cat_file", self.path(key), start=start, end=stop)
        return data

    async def pipe(self, key: str, value: Buffer, *, create: bool = False) -> None:
        """Write a file.

        Raises:
            FileExistsError: it is to be created and exists.
        """
        mode = {"mode": "create"} if create else {}
        data, path = bytes(value), self.path(key)
        try:
            await self._call("pipe_file", path, data, **mode)
        except FileNotFoundError:
            await self._call("makedirs", path.rpartition("/")[0], exist_ok=True)
            await self._call("pipe_file", path, data, **mode)

    async def remove(self, key: str) -> None:
        """Delete a file; it is no error if there is none."""
        try:
            await self._call("rm_file", self.path(key))
        except (FileNotFoundError, NotADirectoryError):
            return

    async def entries(self, directory: str) -> Sequence[Info]:
        """What is right in a directory, without the `/` at its end; nothing if there is none."""
        path = self.path(directory)
        try:
            self._system()[0].invalidate_cache()
            found: Sequence[Info] = await self._call("ls", path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        # Of a file, some say the file.
        return [entry for entry in found if entry["name"].strip("/") != path.strip("/")]

    async def aclose(self) -> None:
        """Close connections; what is used again makes new ones."""
        connected, self._connected = self._connected, None
        if connected is not None and not self.inline:
            await _close(connected[0])

    async def _call(self, name: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - as the library has it
        system = self._system()[0]
        if self.inline:
            with self._turn:
                return getattr(system, name)(*arguments, **options)
        return await getattr(system, f"_{name}")(*arguments, **options)

    def _system(self) -> tuple[AbstractFileSystem, str]:
        connected = self._connected
        if connected is None or self._pid != os.getpid():
            with self._mutex:
                if self._connected is None or self._pid != os.getpid():
                    self._connected, self._pid = self._connect(), os.getpid()
                    if not self.inline:
                        _alive.add(self)
                        end = finalize(self, _end, asyncio.get_running_loop(), self._connected[0])
                        end.atexit = False  # the loop's own end comes first
                connected = self._connected
        return connected


#: Those with connections on the library's loop.
_alive: WeakSet[Files] = WeakSet()


def _end(loop: asyncio.AbstractEventLoop, system: AbstractFileSystem) -> None:
    if not loop.is_closed():
        asyncio.run_coroutine_threadsafe(_close(system), loop)


async def _close(system: AbstractFileSystem) -> None:
    for name in _CLIENTS:
        close = getattr(getattr(system, name, None), "close", None)
        if close is not None:
            closing = close()
            if inspect.isawaitable(closing):
                await closing


async def _close_all() -> None:
    for files in [*_alive]:
        await files.aclose()


on_loop_end(_close_all)


def open_files(url: str, options: Mapping[str, object]) -> Files:
    """The files below a URL of any scheme that fsspec knows, chained ones (`a::b`) included.

    Raises:
        UnsupportedError: fsspec, or what it needs for that scheme, is not installed.
    """
    try:
        import fsspec.core  # noqa: PLC0415 - only who needs it pays for it
    except ImportError:
        raise UnsupportedError(
            f'cannot open "{url}": that takes the library fsspec; pip install '
            "'tensorstore-py[fsspec]'"
        ) from None
    protocol = url.partition("://")[0].partition("::")[0]
    try:
        kind = fsspec.get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise UnsupportedError(f'fsspec cannot open "{url}": {error}') from None
    chained = "::" in url
    inline = chained or not kind.async_impl

    def connect() -> tuple[AbstractFileSystem, str]:
        if chained:
            system, path = fsspec.core.url_to_fs(url, **options)
            return system, path
        told = {**kind._get_kwargs_from_urls(url), **options}
        if not inline:
            told["asynchronous"] = True  # it lives on the library's loop
        return kind(**told, skip_instance_cache=True), kind._strip_protocol(url)

    return Files(connect, protocol, inline=inline)


def protocol_of(system: AbstractFileSystem) -> str:
    """The kind of a file system, by the scheme of its URLs."""
    protocol: object = system.protocol
    return str(protocol[0] if isinstance(protocol, tuple | list) else protocol)


class HeldFiles(Files):
    """The files of a file system.

    Args:
        system: the file system.
        root: what paths begin with on it, for one whose paths are URLs.
    """

    def __init__(self, system: AbstractFileSystem, root: str = "") -> None:
        inline = not _awaits(system)
        super().__init__(self._connect_again, protocol_of(system), inline=inline)
        self._here: tuple[AbstractFileSystem, int] | None = None
        self._given = system
        self._begin = f"{root}/" if root else str(system.root_marker)
        self._root = root

    def path(self, key: str) -> str:
        return self._begin + key

    def key(self, path: str) -> str:
        return path.removeprefix(self._root).lstrip("/")

    async def aclose(self) -> None:
        """Nothing: the file system is the user's."""

    async def _call(self, name: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - as the library has it
        if self.inline:
            return await super()._call(name, *arguments, **options)
        system = self._system()[0]
        call = getattr(system, f"_{name}")
        return await in_other_loop(system.loop, lambda: call(*arguments, **options))

    def _system(self) -> tuple[AbstractFileSystem, str]:
        here = self._here
        if here is None or here[1] != os.getpid():
            here = self._here = self._connect_again()[0], os.getpid()
        return here[0], ""

    def _connect_again(self) -> tuple[AbstractFileSystem, str]:
        """The file system, or one like it that has a loop in this process."""
        given = self._given
        usable = self.inline or (not given.asynchronous and given._pid == os.getpid())
        if usable:
            return given, ""
        options = {**given.storage_options, "asynchronous": False}
        return type(given)(*given.storage_args, **options), ""


def _awaits(system: Any) -> bool:  # noqa: ANN401 - a class of fsspec
    """Whether it is asynchronous, and so is what it may be over."""
    inner = getattr(system, "fs", None)
    return bool(system.async_impl) and (not hasattr(inner, "async_impl") or _awaits(inner))


@kvstore_object("fsspec", "AbstractFileSystem")
def _of_system(system: AbstractFileSystem) -> dict[str, object]:
    return {"driver": "fsspec", "filesystem": Held(system)}


@kvstore_object("fsspec", "FSMap")
def _of_mapper(mapper: Any) -> dict[str, object]:  # noqa: ANN401 - a class of fsspec
    return _at(mapper.fs, mapper.root)


@kvstore_object("upath", "UPath")
def _of_path(path: Any) -> dict[str, object]:  # noqa: ANN401 - a class of universal-pathlib
    return _at(path.fs, path.path)


def _at(system: AbstractFileSystem, path: str) -> dict[str, object]:
    spec = _of_system(system)
    scheme, is_url, rest = path.partition("://")
    if is_url:  # as those on web servers are
        host, _, path = rest.partition("/")
        spec["url"] = f"{scheme}://{host}"
    path = path.removeprefix(str(system.root_marker)).strip("/")
    return {**spec, **({"path": f"{path}/"} if path else {})}
