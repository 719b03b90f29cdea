"""An answer that the library's protocol receives: chunks, no length, interim ones before it.

It has the form of what the library's own client gives, so that both are read in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp
    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage

__all__ = ["LibraryAnswer"]


class LibraryAnswer:
    """An answer, of which the head is here.

    Args:
        connection: the library's.
        message: the head.
        content: the body.
        close: closes the connection.

    Attributes:
        connection: as given.
        content: as given.
        status: the status code.
        reason: the words beside it.
        headers: by name, in any case.
        close: what is left of it is not waited for.
    """

    __slots__ = ("close", "connection", "content", "headers", "reason", "status")

    def __init__(
        self,
        connection: Connection,
        message: RawResponseMessage,
        content: aiohttp.StreamReader,
        close: Callable[[], None],
    ) -> None:
        self.connection = connection
        self.content = content
        self.status = message.code
        self.reason = message.reason
        self.headers = message.headers
        self.close = close

    @classmethod
    async def of(cls, connection: Connection, close: Callable[[], None]) -> Self:
        """The answer that comes over a connection, as soon as its head is here.

        Args:
            connection: its protocol was told what to expect.
            close: closes it.
        """
        handler = connection.protocol
        assert handler is not None
        while True:
            message, content = await handler.read()
            if not 100 <= message.code <= 199 or message.code == 101:
                return cls(connection, message, content, close)

    def release(self) -> None:
        """Nothing more of it is wanted."""
