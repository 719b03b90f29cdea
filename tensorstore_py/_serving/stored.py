"""Stored keys as they are: whole values, parts of them, and what is asked about them.

The invariant: only values of keys below the place that is served are read. A key that is no plain
path is refused, and so is one that a symbolic link leads to from outside of that place.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from aiohttp import web

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._serving.answers import (
    JSON,
    OCTETS,
    Head,
    Piece,
    asked_range,
    clamped,
    is_current,
    not_modified,
    respond,
    send,
    tag,
    unsatisfiable,
)
from tensorstore_py.errors import NotFoundError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tensorstore_py._interface.kvstore import Buffer, KvStore, KvStoreSpec
    from tensorstore_py._serving.admission import Admission

__all__ = ["StoredKeys", "plain_key"]

#: As much of a value is held at a time.
_PIECE: Final = 2**23
_NOTHING: Final = ByteRange(0, 0)


def plain_key(path: str) -> str:
    """The key that the end of a request's path says, as it was sent.

    Raises HTTPBadRequest: it is no plain path.

    Example:
        >>> plain_key("a%20b/c/0"), plain_key("")
        ('a b/c/0', '')
    """
    try:
        key = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise web.HTTPBadRequest(text="the path is not encoded as UTF-8") from None
    parts = key.removesuffix("/").split("/") if key else []
    wrong = any(part in ("", ".", "..") for part in parts) or any(each in key for each in "\0\\")
    if wrong or key.count("/") != path.count("/"):
        raise web.HTTPBadRequest(text="the path is not that of a key")
    return key


class StoredKeys(NamedTuple):
    """The keys below a place.

    Attributes:
        store: that they are in.
        prefix: what they begin with.
        is_files: whether they are local files, of which some may be symbolic links.
    """

    store: KvStore
    prefix: str
    is_files: bool

    @classmethod
    def of(cls, where: tuple[KvStoreSpec, KvStore] | None) -> StoredKeys | None:
        """Those below the path of a store's bound spec; None: there is no store."""
        if where is None:
            return None
        model, store = where
        return cls(store, model.path, model.driver == "file")

    def below(self, path: str) -> StoredKeys:
        """Those below a path."""
        return self._replace(prefix=f"{self.prefix}{path}/") if path else self

    async def answer(
        self, request: web.Request, key: str, admission: Admission, *, most: int | None = None
    ) -> web.StreamResponse:
        """Answer a request for a key, relative to the place.

        Args:
            request: with a range and conditions, maybe.
            key: a plain one.
            admission: what there is room for.
            most: what the value has in bytes at most, if that is known.

        Raises:
            NotFoundError: nothing is stored there.
        """
        name = self.prefix + key
        etag = await self._etag(name) if "If-Range" in request.headers else ""
        asked = asked_range(request, etag)
        if request.method == "GET" and most is not None and asked.is_whole and most <= _PIECE:
            async with admission.holding(most):
                async with admission.making:
                    found = await self._read(name)
                return await respond(request, found.value, _head(key, found.stamp))
        return await self._answer_part(request, key, asked, admission)

    async def _answer_part(
        self, request: web.Request, key: str, asked: ByteRange, admission: Admission
    ) -> web.StreamResponse:
        name = self.prefix + key
        stamp = (await self._read(name, _NOTHING)).stamp
        head = _head(key, stamp)
        if is_current(request, head.etag):
            return not_modified(head)
        size = await self._size(name)
        if size is None:
            return await self._answer_whole(request, key, admission)
        piece = clamped(asked, size)
        if piece is None:
            return unsatisfiable(size)
        held = min(_PIECE, piece.stop - piece.start)
        async with admission.holding(held):
            pieces = self._pieces(name, piece, stamp, admission)
            return await send(request, head, piece, pieces)

    async def _answer_whole(
        self, request: web.Request, key: str, admission: Admission
    ) -> web.StreamResponse:
        """From a store that does not say how large its values are: read, and cut here."""
        async with admission.making:
            found = await self._read(self.prefix + key)
        async with admission.holding(len(found.value)):
            return await respond(request, found.value, _head(key, found.stamp))

    async def _pieces(
        self, name: str, piece: Piece, stamp: TimestampedStorageGeneration, admission: Admission
    ) -> AsyncIterator[Buffer]:
        for start in range(piece.start, piece.stop, _PIECE):
            part = ByteRange(start, min(start + _PIECE, piece.stop))
            async with admission.making:
                found = await self._read(name, part, if_equal=stamp.generation)
            yield found.value

    async def _etag(self, name: str) -> str:
        return _tag((await self._read(name, _NOTHING)).stamp)

    async def _read(
        self, name: str, part: ByteRange = WHOLE, *, if_equal: bytes | None = None
    ) -> ReadResult:
        found = await within(
            False,
            self.store.inline,
            partial(self._read_checked, name, part, if_equal),
        )
        if found.state == "missing":
            raise NotFoundError("nothing is stored there")
        if found.state == "unspecified":
            raise web.HTTPServiceUnavailable(text="it was changed while it was read; ask again")
        return found

    async def _read_checked(self, name: str, part: ByteRange, if_equal: bytes | None) -> ReadResult:
        if self.is_files and not _is_inside(self.prefix, name):
            return ReadResult("missing")
        try:
            return await self.store.read(name, part, if_equal=if_equal)
        except SpecError:  # the store has no such keys
            return ReadResult("missing")

    async def _size(self, name: str) -> int | None:
        """How large a value is; None: the store does not say."""

        async def body() -> int | None:
            first = encode_key(name)
            async for entry in self.store.list(KeyRange(first, first + b"\0")):
                return entry.size if entry.size >= 0 else None
            return None

        try:
            return await within(False, self.store.inline, body)
        except UnsupportedError:
            return None


def _is_inside(prefix: str, name: str) -> bool:
    """Whether a file is below a directory when all links are followed."""
    root = os.path.realpath(prefix)
    return os.path.commonpath((root, os.path.realpath(name))) == root


def _head(key: str, stamp: TimestampedStorageGeneration) -> Head:
    return Head(_tag(stamp), _content_type(key))


def _tag(stamp: TimestampedStorageGeneration) -> str:
    """The tag of a generation; empty if the store has none."""
    return "" if stamp.generation == UNKNOWN else tag(stamp.generation)


def _content_type(key: str) -> str:
    name = key.rpartition("/")[2]
    documents = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "info")
    return JSON if name.endswith(".json") or name in documents else OCTETS
