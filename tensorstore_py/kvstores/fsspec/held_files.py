"""File systems that the user made, and mappers and paths of them.

An asynchronous one has a loop of its own, with its connections: its calls run there. It stays the
user's: it is not closed here, and in a forked child, where it could not be used, another one of the
same options takes its place, as fsspec itself would have it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorstore_py.kvstores.fsspec.files import Files
from tensorstore_py.plugin import Held, in_other_loop, kvstore_object

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = ["HeldFiles", "protocol_of"]


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
