"""`serve`: starting a server of arrays, groups and keys.

What serves is loaded when it is called: it takes aiohttp, which is an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._runtime.future import Future
    from tensorstore_py._serving.server import Server
    from tensorstore_py._spec.context import Context

__all__ = ["serve"]

_MEMORY: Final = 2**29


def serve(
    source: object,
    *,
    formats: Sequence[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | bool = True,
    cors: str | Sequence[str] | None = None,
    memory_limit: int = _MEMORY,
    context: Context | None = None,
) -> Future[Server]:
    """Serve arrays, groups and keys over HTTP, read-only, in formats that other programs read.

    It serves until it is closed, or the process ends.

    Args:
        source: an open array or a view of one, a group, an image of `ts.multiscale`, a
            checkpoint of `ts.orbax`, a `KvStore`, or whatever one of these is opened from; or a
            dict of such by path, which are served together.
        formats: some of `"zarr3"`, `"zarr2"`, `"precomputed"` and `"stored"` (the keys of the store
            as they are); by default all that can express it.
        host: the address to listen on; by default only programs of this machine reach it.
        port: to listen on; by default any that is free.
        token: the first part of each path, which keeps others out; True, the default: a new one,
            False: none.
        cors: origins whose web pages may read, `"*"` for all; by default all if there is a token,
            since a page must know that, and none otherwise.
        memory_limit: how many bytes answers and decoded chunks may take, about; 512 MiB.
        context: that specs are opened in; by default one with a cache pool of half of the memory.

    Returns:
        A Future of the server, which has `url`, `urls` (by format) and `close()`; the end of a
        `with` or `async with` block closes it, too.

    Raises:
        SpecError: an argument or a spec is wrong.
        UnsupportedError: aiohttp is missing; (by the Future) a format cannot express any of it.
        NotFoundError: (by the Future) nothing is there.
        UnavailableError: (by the Future) the port is taken.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> image = ts.array(np.arange(12, dtype="uint8").reshape(3, 4))
        >>> server = ts.serve(image[:, 1:]).result()
        >>> ts.open(server.urls["zarr3"]).result()[0].read().result()
        array([1, 2, 3], dtype=uint8)
        >>> server.close()
    """
    server: Any = import_module("tensorstore_py._serving.server")
    started: Future[Server] = server.start_server(
        source,
        formats,
        host=host,
        port=port,
        token=token,
        cors=cors,
        memory=memory_limit,
        context=context,
    )
    return started
