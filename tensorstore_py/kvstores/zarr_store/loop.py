"""The event loop that store objects of zarr-python live in.

zarr-python runs all of them in one loop of its own, and what they open (sockets, locks) belongs
there. That loop has no public name: a store that zarr-python is asked to look into is told.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.plugin import offload

if TYPE_CHECKING:
    from types import ModuleType

    from zarr.abc.store import Store

__all__ = ["opened", "zarr_abc", "zarr_loop"]

#: The loop, and the process that it runs in.
_found: list[tuple[asyncio.AbstractEventLoop, int]] = []


def zarr_abc() -> ModuleType:
    """The module that says what a store of zarr-python is.

    Raises:
        UnsupportedError: zarr-python 3 is not installed.
    """
    try:
        return import_module("zarr.abc.store")
    except ImportError:
        raise UnsupportedError(
            "stores of zarr-python need version 3 of it: pip install 'tensorstore-py[zarr]'"
        ) from None


async def opened(store: Store) -> None:
    """Open a store object, where it is not open yet; some can do nothing before."""
    await import_module("zarr.storage").StorePath.open(store, "", mode=None)


async def zarr_loop() -> asyncio.AbstractEventLoop:
    """The loop, which starts when it is first asked for."""
    if _found:
        loop, process = _found[0]
        if process == os.getpid() and not loop.is_closed():
            return loop
    # zarr-python is asked on a thread that may wait for it.
    loop = await offload(False, _told_by_zarr)
    _found[:] = [(loop, os.getpid())]
    return loop


def _told_by_zarr() -> asyncio.AbstractEventLoop:
    told: list[asyncio.AbstractEventLoop] = []
    memory: Any = import_module("zarr.storage").MemoryStore

    class Listener(memory):  # type: ignore[misc]
        """An empty store that notes in which loop it is asked."""

        async def get(self, *arguments: object, **options: object) -> None:
            told.append(asyncio.get_running_loop())

    with suppress(FileNotFoundError):
        import_module("zarr").open_group(Listener(), mode="r", zarr_format=3)
    return told[0]
