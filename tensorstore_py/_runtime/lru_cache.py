"""A cache of the last results of a pure function, which threads share.

Two threads that ask for the same new result at a time both make it, and neither waits; both get the
one that was there first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from tensorstore_py._runtime.keyed_lock import Mutex

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["LruCache"]

T = TypeVar("T")


class LruCache(Generic[T]):
    """The last results of a pure function of hashable content, least recently used dropped first.

    Example:
        >>> seen = LruCache(2)
        >>> seen.get("a", lambda: 1), seen.get("a", lambda: 2)
        (1, 1)
    """

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._results: OrderedDict[Hashable, T] = OrderedDict()
        self._mutex = Mutex()

    def get(self, content: Hashable, make: Callable[[], T]) -> T:
        """The result for `content`, made now if it is not remembered."""
        results = self._results
        with self._mutex:
            if content in results:
                results.move_to_end(content)
                return results[content]
        made = make()
        with self._mutex:
            made = self._results.setdefault(content, made)
            while len(self._results) > self._limit:
                self._results.popitem(last=False)
        return made
