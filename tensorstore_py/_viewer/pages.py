"""What answers the page's requests: its files, what nodes are, tiles, texts, maps of chunks.

At most `_AT_ONCE` tiles are read at a time; who waits for its turn and goes away costs nothing, and
a read whose client has gone away is cancelled. Each is counted (`Counts`). A request that fails is
answered with the reason as text, which the page shows in the place of what it asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Final

from aiohttp import web

from tensorstore_py._viewer.chunk_map import chunk_map
from tensorstore_py._viewer.describe import described
from tensorstore_py._viewer.levels import Picture
from tensorstore_py._viewer.nodes import Nodes
from tensorstore_py._viewer.tiles import CellsRequest, TileRequest, read_cells, read_tile
from tensorstore_py.errors import MismatchError, NotFoundError, SpecError, TensorStoreError

__all__ = ["Counts", "Pages"]

_AT_ONCE: Final = 4

#: The page loads nothing from elsewhere, runs no script that is written in it, sends nothing away.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "": ("index.html", "text/html"),
    "viewer.js": ("viewer.js", "text/javascript"),
    "viewer.css": ("viewer.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    "LICENSES.txt": ("LICENSES.txt", "text/plain"),
}


@dataclass
class Counts:
    """What became of the tiles that were asked for.

    Attributes:
        asked: how many were.
        read: how many were read.
        failed: how many could not be.
        cancelled: of how many the client went away before they were there.
        under_way: how many are being read, or wait for their turn.
    """

    asked: int = 0
    read: int = 0
    failed: int = 0
    cancelled: int = 0
    under_way: int = 0


class Pages:
    """The handlers of a viewer.

    Args:
        nodes: what is shown.
        framed: whether pages of others may show it in a frame, as notebooks do.
    """

    def __init__(self, nodes: Nodes, *, framed: bool) -> None:
        self.counts = Counts()
        self._nodes = nodes
        self._policy = _POLICY if framed else f"{_POLICY}; frame-ancestors 'none'"
        self._free = asyncio.Semaphore(_AT_ONCE)

    def routes(self) -> list[tuple[str, str, Callable[[web.Request], Awaitable[web.Response]]]]:
        """Methods, paths and handlers."""
        found = [("GET", f"/{name}", self._file) for name in _FILES]
        asked = {
            "node": self._node, "members": self._members, "tile": self._tile,
            "cells": self._cells, "chunks": self._chunks, "status": self._status,
        }  # fmt: skip
        return [*found, *(("GET", f"/api/{name}", _told(each)) for name, each in asked.items())]

    async def _file(self, request: web.Request) -> web.Response:
        name, kind = _FILES[request.path.rpartition("/")[2]]
        body = files("tensorstore_py._viewer").joinpath("static", name).read_bytes()
        headers = {"Content-Security-Policy": self._policy, "Cache-Control": "no-cache"}
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    async def _node(self, request: web.Request) -> web.Response:
        path = request.query.get("path", "")
        return _json(await described(path, await self._nodes.at(path, again=True)))

    async def _members(self, request: web.Request) -> web.Response:
        members, complete = await self._nodes.members(request.query.get("path", ""))
        return _json({"members": [each._asdict() for each in members], "complete": complete})

    async def _tile(self, request: web.Request) -> web.Response:
        counts = self.counts
        counts.asked += 1
        counts.under_way += 1
        try:
            picture, query = await self._picture(request), _Query(request.query)
            asked = TileRequest(
                *query.dims(), query.offsets(picture.rank), query.pair("steps", (1, 1)),
                query.pair("tile", (0, 0)), query.dim("colour"), query.text("field"),
                query.text("part") or "magnitude",
            )  # fmt: skip
            async with self._free:
                body = await read_tile(picture, asked)
        except asyncio.CancelledError:
            counts.cancelled += 1
            raise
        except BaseException:
            counts.failed += 1
            raise
        finally:
            counts.under_way -= 1
        counts.read += 1
        return web.Response(
            body=body,
            content_type="application/octet-stream",
            headers={"Cache-Control": "no-store"},
        )

    async def _cells(self, request: web.Request) -> web.Response:
        picture, query = await self._picture(request), _Query(request.query)
        asked = CellsRequest(
            *query.dims(), query.offsets(picture.rank), query.pair("counts", (1, 1)),
            query.text("field"),
        )  # fmt: skip
        async with self._free:
            return _json({"cells": await read_cells(picture, asked)})

    async def _chunks(self, request: web.Request) -> web.Response:
        picture, query = await self._picture(request), _Query(request.query)
        number = query.dim("level") or 0
        if number >= len(picture.levels):
            raise NotFoundError(f"there is no level {number}")
        found = await chunk_map(picture.levels[number], *query.dims(), query.offsets(picture.rank))
        return _json(found._asdict())

    async def _status(self, request: web.Request) -> web.Response:
        return _json({"tiles": asdict(self.counts), "cached_bytes": self._nodes.cached_bytes})

    async def _picture(self, request: web.Request) -> Picture:
        found = await self._nodes.at(request.query.get("path", ""))
        if not isinstance(found, Picture):
            raise MismatchError("a group is there, which has no elements; name one of its arrays")
        return found


def _told(
    handler: Callable[[web.Request], Awaitable[web.Response]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler, whose errors are answered with their text: who has the token may know."""

    async def answer(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except NotFoundError as error:
            status, problem = 404, str(error)
        except (SpecError, MismatchError, IndexError) as error:
            status, problem = 400, str(error)
        except (TensorStoreError, OSError) as error:
            if isinstance(error, ConnectionError):
                raise
            status, problem = 502, str(error)
        except Exception as error:  # noqa: BLE001 - functions of virtual arrays raise what they like
            status, problem = 502, f"{type(error).__name__}: {error}"
        return _json({"error": problem}, status)

    return answer


def _json(document: object, status: int = 200) -> web.Response:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return web.json_response(text=text, status=status, headers={"Cache-Control": "no-store"})


class _Query:
    """The parameters of a request.

    Raises SpecError, from each method: one is not of its form; names it.
    """

    def __init__(self, query: Mapping[str, str]) -> None:
        self._query = query

    def text(self, name: str) -> str:
        return self._query.get(name, "")

    def dim(self, name: str) -> int | None:
        given = self._query.get(name, "")
        return self._numbers(name, given)[0] if given else None

    def dims(self) -> tuple[int | None, int | None]:
        return self.dim("rows"), self.dim("columns")

    def offsets(self, rank: int) -> tuple[int, ...]:
        given = self._query.get("at", "")
        return tuple(self._numbers("at", given)) if given else (0,) * rank

    def pair(self, name: str, default: tuple[int, int]) -> tuple[int, int]:
        given = self._query.get(name, "")
        if not given:
            return default
        numbers = self._numbers(name, given)
        if len(numbers) != 2:
            raise SpecError(f"expected two numbers for {name}, but found {given!r}")
        return numbers[0], numbers[1]

    def _numbers(self, name: str, given: str) -> list[int]:
        parts = given.split(",")
        if not all(part.isdecimal() and part.isascii() and len(part) <= 18 for part in parts):
            raise SpecError(f"expected whole numbers for {name}, but found {given!r}")
        return [int(part) for part in parts]
