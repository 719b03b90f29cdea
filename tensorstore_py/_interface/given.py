"""`Given`: what the caller of a write says of the memory that the new values are in.

A driver may leave it unread: it then copies what it keeps, and the caller learns at the end of the
write that its memory is its own again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Given"]


class Given(NamedTuple):
    """See the head of this file.

    Attributes:
        lasting: the values never change, so a store may keep the very memory.
        taken: to be called, once or more often, as soon as the values are not read any more.
    """

    lasting: bool = False
    taken: Callable[[], None] | None = None
