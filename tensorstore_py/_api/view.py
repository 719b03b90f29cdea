"""`View`: a page in a browser that shows an array or a group, as users hold it.

What serves the page is the viewer's room, which is loaded when the first view begins. What is shown
stays the caller's: closing a view closes no array.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self

from tensorstore_py._display.public_name import public
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Server", "View", "view"]


class Server(Protocol):
    """What serves a page."""

    url: str

    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...
    def wait(self) -> None: ...


@public
class View:
    """A page in a browser that shows an array or a group, made by `store.view()`.

    In a notebook it shows itself, in a frame. It is served until `close`, or as long as the process
    lives. It can be used in `with` and `async with`.

    Attributes:
        url: where the page is; has a token, without which nothing is answered.
        height: of the frame in a notebook, in pixels.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> with ts.array(np.arange(12).reshape(3, 4)).view() as view:
        ...     view.url.startswith("http://127.0.0.1:")
        True
        >>> view.closed
        True
    """

    def __init__(self, server: Server, height: int) -> None:
        self.url = server.url
        self.height = height
        self._server = server

    @property
    def closed(self) -> bool:
        """Whether the page is served no more."""
        return self._server.closed

    def close(self) -> None:
        """Stop serving the page; again it is without effect."""
        self._server.close()

    async def aclose(self) -> None:
        """`close` in any event loop."""
        await self._server.aclose()

    def wait(self) -> None:
        """Block until it is closed by another thread, or a signal's exception is raised here."""
        self._server.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"View({self.url!r}{', closed' if self.closed else ''})"

    def _repr_html_(self) -> str:
        if self.closed:
            return "<p>This view is closed; call <code>view()</code> again.</p>"
        url = escape(self.url, quote=True)
        return (
            f'<iframe src="{url}" width="100%" height="{self.height}" title="array viewer" '
            'style="border: 1px solid #8885; border-radius: 6px"></iframe>'
            f'<div><a href="{url}" target="_blank" rel="noopener">open in a tab</a></div>'
        )


def view(root: object, *, port: int = 0, height: int = 600, framed: bool = True) -> View:
    """Begin to serve a page that shows an array, a group or a directory.

    Args:
        root: what is shown; nothing can be asked for but that and what is below it.
        port: 0: any that is free.
        height: of the frame in a notebook, in pixels.
        framed: whether pages of others may show it in a frame.

    Raises:
        SpecError: an argument is wrong.
        UnavailableError: the port cannot be had.
        UnsupportedError: aiohttp is not installed.
    """
    if not 100 <= height <= 10_000:
        raise SpecError(f"a height of 100 to 10000 pixels is possible, not {height!r}")
    room: Any = import_module("tensorstore_py._viewer.server")
    return View(room.serve(root, port=port, framed=framed), height)
