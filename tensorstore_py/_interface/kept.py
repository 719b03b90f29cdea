"""`Kept`: a part of a value that stays as it is when the rest is replaced.

Values are replaced atomically and so as a whole. Who changes little of a large one says which parts
of it stay, so that a store may copy or share them without their passing through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["Kept", "Stretch", "coalesced"]


class Kept:
    """Bytes `[start, stop)` of the present value.

    Example:
        >>> len(Kept(3, 10))
        7
    """

    __slots__ = ("start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"Kept({self.start}, {self.stop})"


#: A part of a new value.
Stretch: TypeAlias = "Buffer | Kept"


def coalesced(parts: Iterable[Stretch]) -> list[Stretch]:
    """The same parts, with those kept that are neighbours as one, and none that are empty.

    Example:
        >>> coalesced([Kept(0, 2), Kept(2, 5), b"new", Kept(5, 5), Kept(9, 10)])
        [Kept(0, 5), b'new', Kept(9, 10)]
    """
    found: list[Stretch] = []
    for part in parts:
        last = found[-1] if found else None
        if not isinstance(part, Kept):
            found.append(part)
        elif isinstance(last, Kept) and last.stop == part.start:
            found[-1] = Kept(last.start, part.stop)
        elif len(part):
            found.append(part)
    return found
