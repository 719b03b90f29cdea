"""`serve`: begins to serve the page for an array, a group or a directory.

The page is for this machine's user: on the loopback address, behind a token, for no other origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py._serving.local_server import LocalServer  # says what to install, so comes first
from tensorstore_py._viewer.nodes import Nodes
from tensorstore_py._viewer.pages import Pages

if TYPE_CHECKING:
    from tensorstore_py._viewer.nodes import Found

__all__ = ["serve"]

#: How much decoded data is kept.
_CACHE_BYTES: Final = 2**28


def serve(root: Found, *, port: int, framed: bool, cache_bytes: int = _CACHE_BYTES) -> LocalServer:
    """Begin to serve the page.

    Args:
        root: what is shown; nothing can be asked for but that and what is below it.
        port: 0: any that is free.
        framed: whether pages of others may show it in a frame.
        cache_bytes: how much decoded data is kept at most.

    Raises:
        SpecError, UnavailableError: as by `LocalServer.start`.
    """
    pages = Pages(Nodes(root, cache_bytes), framed=framed)
    return LocalServer.start(pages.routes(), port=port, cors=()).result()
