"""Listings in pages: whether a service gets on with one.

Each page says what to ask for the next one with. A service in trouble, or one that means no good,
can lead round and round that way; here is remembered what was seen, which is a number for each page
and token. The invariant: of any listing, no page is asked for twice, and no more than `MOST_EMPTY`
pages with nothing in them follow each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tensorstore_py.errors import DataLossError

__all__ = ["Paging"]


class Paging:
    """The pages of one listing so far.

    Args:
        what: names the listing, for errors.

    Example:
        >>> paging = Paging('"s3://bucket/"')
        >>> paging.page(["a", "b"], "token 1")
        >>> paging.page(["c"], "token 1")
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.DataLossError: cannot list "s3://bucket/": the service leads ...
    """

    MOST_EMPTY: Final = 100

    def __init__(self, what: str) -> None:
        self._what = what
        self._tokens: set[int] = set()
        self._pages: set[int] = set()
        self._empty = 0
        self._count = 0

    def page(self, names: Sequence[str], token: str | None) -> None:
        """A page came.

        Args:
            names: what it lists.
            token: what to ask for the next one with; None or empty after the last.

        Raises:
            DataLossError: the listing would not end.
        """
        self._count += 1
        self._empty = 0 if names else self._empty + 1
        if not token:
            return
        seen = bool(names) and _seen(self._pages, (names[0], names[-1], len(names)))
        if _seen(self._tokens, token) or seen or self._empty > self.MOST_EMPTY:
            raise DataLossError(
                f"cannot list {self._what}: the service leads from page to page without an end "
                f"({self._count} pages, of which the last repeats what came before, or has nothing "
                f"in it); nothing of the listing can be relied upon"
            )


def _seen(before: set[int], thing: object) -> bool:
    """Whether something came before; it will have from now on."""
    number = hash(thing)
    if number in before:
        return True
    before.add(number)
    return False
