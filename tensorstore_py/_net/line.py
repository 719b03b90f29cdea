"""One connection, and one exchange at a time over it.

The plain case is dealt with here, since it is nearly every one and the library's way through it is
three times as long: HTTP/1.1, a body of a known length that is wanted whole. It is received where
it is to stay. Any other answer is handed over, from its first byte on, to the library's own
protocol, which made the connection and is there still. The invariant: a line is used again only
after an answer that ended where it said, and that nothing followed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net.byte_ranges import Cut, cut_of
from tensorstore_py._net.failures import Failure, cut_off, damaged
from tensorstore_py._net.heads import parse_head
from tensorstore_py._net.library_answer import LibraryAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._net.heads import AnswerHead
    from tensorstore_py._net.stall import Watch

__all__ = ["CREDIT", "ERROR_BODY", "PIECE", "Desk", "Line"]

#: No more is allocated on the mere word of a server.
CREDIT: Final = 2**28
#: What may be read of an answer that is an error.
ERROR_BODY: Final = 2**16
#: Heads that are longer are the library's.
_LONGEST_HEAD: Final = 2**16
#: Of a body that is sent; what moves is seen in such steps.
PIECE: Final = 2**18
#: So many interim answers may come before one; those after them are the library's.
_INTERIM: Final = 16
_PLAIN: Final = b"HTTP/1.1 "
_END: Final = b"\r\n\r\n"
_EMPTY: Final = memoryview(bytearray())


class Desk:
    """Where the beginning of an answer arrives.

    Args:
        size: in bytes.
    """

    __slots__ = ("bytes", "view")

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(size)
        self.view = memoryview(self.bytes)


class Line(asyncio.BufferedProtocol):
    """A connection.

    Args:
        loop: the running one.
        connection: the library's, which is ours from now on.
        desk: may be one for all lines of a loop that reads and tells in one go.
        dropped: to be told when the connection ended while nobody used it.

    Attributes:
        head: of the answer; None if it is the library's matter.
        body: of the answer, whole.
        cut: which part of the body is wanted; None for all of it, and where there is no value.
        is_answered: whether the answer is here, or failed.
        is_excessive: whether more came than was to be.
        is_full: whether what was written has yet to leave.
        idle_since: the loop's time when it came to rest.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        desk: Desk,
        dropped: Callable[[Line], None],
    ) -> None:
        handler, transport = connection.protocol, connection.transport
        if handler is None or transport is None:
            raise cut_off(None)
        self._loop = loop
        self._connection = connection
        self._handler: ResponseHandler = handler
        self._transport = transport
        self._desk = desk
        self._dropped = dropped
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._watch: Watch | None = None
        self._method = ""
        self._byte_range = WHOLE
        self._unpack = False
        self._begun = b""
        self._interim = 0
        self._buffer: bytearray | None = None
        self._filled = 0
        self._length = 0
        self._lost = False
        self._is_sending = False
        self._space = desk.view
        self.is_excessive = False
        self.head: AnswerHead | None = None
        self.body: Buffer = b""
        self.cut: Cut | None = None
        self.is_answered = False
        self.is_full = False
        self.idle_since = 0.0
        transport.set_protocol(self)

    # Used by whoever talks.

    def begin(
        self, message: bytes, method: str, byte_range: ByteRange, unpack: bool, watch: Watch
    ) -> asyncio.Future[None]:
        """Send a request, or its beginning.

        Args:
            message: the first bytes of it.
            method: such as `"GET"`.
            byte_range: what it asks for.
            unpack: whether a `Content-Encoding` is to be undone.
            watch: to be told of whatever moves.

        Returns:
            Done when the answer is here, or the library has it; see `head`.
        """
        self._method, self._byte_range, self._unpack = method, byte_range, unpack
        self._watch = watch
        watch.move()
        self.head, self.body, self.cut = None, b"", None
        self.is_answered = False
        self._interim = _INTERIM
        self._waiter = waiter = self._loop.create_future()
        if self._lost:
            self._fail(cut_off(None))
        else:
            transport = self._transport
            transport.write(message)
            waiting = transport.get_write_buffer_size()
            if waiting:
                watch.sends(transport.get_write_buffer_size, waiting)
        return waiter

    async def send(self, part: Buffer) -> None:
        """Send more of the request, at the pace at which it leaves, until there is an answer."""
        view = memoryview(part).cast("B")
        self._is_sending = True
        transport, watch = self._transport, self._watch
        if watch is not None:
            watch.sends(transport.get_write_buffer_size, transport.get_write_buffer_size())
        for at in range(0, len(view), PIECE):
            if self.is_full and not self.is_answered:
                self._room = self._loop.create_future()
                await self._room
            # A transport that is closing takes what is written for a mistake, and says so in a log.
            if self.is_answered or transport.is_closing():
                return
            piece = view[at : at + PIECE]
            if watch is not None:
                watch.sent(len(piece))
            transport.write(piece)
        self._is_sending = False

    async def library_answer(self) -> LibraryAnswer:
        """The answer that was handed over, as soon as its head is here."""
        return await LibraryAnswer.of(self._connection, self.close)

    @property
    def is_usable(self) -> bool:
        """Whether another exchange can begin."""
        if self._lost or self.is_excessive or self._is_sending or self._transport.is_closing():
            return False
        return self.head is not None or not self._handler.should_close

    @property
    def is_resting(self) -> bool:
        """Whether no exchange goes over it."""
        return self._waiter is None

    def rest(self, now: float) -> None:
        """The exchange is over, and the answer was received to its end."""
        self.idle_since = now
        self._waiter = self._buffer = self._watch = None
        self._space = self._desk.view
        self.body = b""
        if self.head is None:
            self._transport.set_protocol(self)

    def close(self) -> None:
        """Close the connection."""
        waiter = self._waiter
        if waiter is not None and not waiter.cancel() and not waiter.cancelled():
            waiter.exception()  # or it would complain that nobody asked
        self._dropped(self)
        self._connection.close()

    # Called by the loop.

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        waiter = self._waiter
        if waiter is None or self.is_answered:
            self.is_excessive = True
            if waiter is None:
                self.close()
            return
        watch = self._watch
        if watch is not None:
            watch.moved = self._loop.time()
            watch.count += nbytes
        if self._buffer is None:
            if watch is not None:
                watch.receives()
            try:
                self._on_beginning(nbytes)
            except Failure as failure:
                self._fail(failure)
            return
        self._filled += nbytes
        if self._filled >= self._length:
            self._finish()
        else:
            self._make_space()

    def eof_received(self) -> None:
        return

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self._wake_writer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._handler.connection_lost(exc)
        if self._waiter is None:
            self.close()
        elif not self.is_answered:
            self._fail(cut_off(exc, is_within=bool(self._begun) or self._buffer is not None))
        self._wake_writer()

    # How an answer is taken.

    def _on_beginning(self, nbytes: int) -> None:
        desk = self._desk
        end = -1 if self._begun else desk.bytes.find(_END, 0, nbytes)
        if end < 0:
            # In several pieces, which is rare: put together until it is whole.
            self._begun += desk.view[:nbytes]
            self._on_pieces()
        else:
            self._on_head(desk.view[:nbytes], end + len(_END))

    def _on_pieces(self) -> None:
        whole = self._begun
        end = whole.find(_END)
        if end >= 0:
            self._begun = b""
            self._on_head(memoryview(whole), end + len(_END))
        elif not _may_become_plain(whole):
            self._hand_over(whole)

    def _on_head(self, view: memoryview, end: int) -> None:
        head = parse_head(bytes(view[:end]))
        if head is not None and head.status < 200 and head.status != 101 and self._interim:
            # The answer is yet to come, and perhaps waits for the rest of the request.
            self._interim -= 1
            if self._watch is not None:
                self._watch.awaits()
            self._begun = bytes(view[end:])
            if self._begun:
                self._on_pieces()
            return
        length = None if head is None else self._plain_length(head)
        if length is None:
            self._hand_over(bytes(view))
            return
        self.head = head
        self._take(view[end:], length)

    def _plain_length(self, head: AnswerHead) -> int | None:
        """How long the body is; None if there is more to it than to receive so many bytes."""
        status, fields = head.status, head.fields
        if status < 200:
            return None
        if self._method == "HEAD" or status in (204, 304):
            return 0
        length = head.length
        if length is None or status == 416:
            return None
        if self._unpack and "content-encoding" in fields:
            return None
        cut = cut_of(self._byte_range, status, fields)
        self.cut = cut
        # A small body is received whole, whatever is wanted of it: the connection is worth more.
        if length <= ERROR_BODY or (cut is not None and cut.take == length):
            return length
        return None

    def _take(self, piece: memoryview, length: int) -> None:
        size = len(piece)
        if size >= length:
            self.is_excessive = size > length
            self.body = bytes(piece[:length])
            self._answer()
            return
        # One byte more, to see whether there is more.
        self._buffer = buffer = bytearray(min(length, CREDIT) + 1)
        buffer[:size] = piece
        self._filled, self._length = size, length
        self._make_space()

    def _make_space(self) -> None:
        buffer = self._buffer
        assert buffer is not None
        if self._filled >= len(buffer) - 1 and len(buffer) <= self._length:
            self._space = _EMPTY
            grown = bytearray(min(self._length, 2 * len(buffer)) + 1)
            grown[: self._filled] = memoryview(buffer)[: self._filled]
            self._buffer = buffer = grown
        self._space = memoryview(buffer)[self._filled :]

    def _finish(self) -> None:
        buffer = self._buffer
        assert buffer is not None
        self.is_excessive = self._filled > self._length
        self.body = memoryview(buffer)[: self._length]
        self._answer()

    def _answer(self) -> None:
        # What comes before anybody looks would be more than was said.
        self._space = self._desk.view
        if self.is_excessive and self.cut is not None:
            self._fail(damaged("the server sent more than it said"))
            return
        self.is_answered = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        self._wake_writer()

    def _fail(self, failure: Failure) -> None:
        self.is_answered = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(failure)
        self._wake_writer()

    def _wake_writer(self) -> None:
        room = self._room
        if room is not None and not room.done():
            room.set_result(None)

    def _hand_over(self, beginning: bytes) -> None:
        """Leave the answer to the library's protocol."""
        self._begun = b""
        handler = self._handler
        handler.set_response_params(
            skip_payload=self._method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=2**16,
            max_line_size=_LONGEST_HEAD,
            max_field_size=_LONGEST_HEAD,
        )
        self._transport.set_protocol(handler)
        if self.is_full:
            handler.pause_writing()  # it will be told when that is over
        handler.data_received(beginning)
        self.is_answered = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._wake_writer()


def _may_become_plain(beginning: bytes) -> bool:
    """Whether it is worth waiting for the end of a head; of what it is not, it may never come."""
    return (
        len(beginning) <= _LONGEST_HEAD
        and beginning.startswith(_PLAIN[: len(beginning)])
        and beginning.count(b"\n") == beginning.count(b"\r\n")
    )
