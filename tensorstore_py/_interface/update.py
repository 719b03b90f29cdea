"""Changes of one stored value that can be made again, on whatever is stored by then.

They are what conditional writes repeat until nobody was faster, what several writers of one value
merge into one, and what a transaction keeps until it is committed. The one invariant: applying one
changes nothing but its result, so that it can be applied any number of times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tensorstore_py._interface.generation import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.kept import Stretch
    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = ["Replace", "Update", "merged"]


class Update(ABC):
    """A change of one value.

    Attributes:
        replaces: what is stored does not matter, and need not be read.
    """

    __slots__ = ()
    replaces: bool = False

    @abstractmethod
    async def apply(self, stored: Buffer | None) -> Buffer | None:
        """The new value; None deletes it.

        Args:
            stored: the present value; None if there is none.

        Raises:
            DataLossError: it cannot be changed because it is corrupt; names its key.
        """

    async def parts(self, stored: Buffer | None) -> Sequence[Buffer] | None:
        """As `apply`, in parts that need not be one piece of memory to be stored."""
        value = await self.apply(stored)
        return None if value is None else (value,)

    async def parts_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Buffer] | None]:
        """The new value of a key in view of what is stored; who can do with less reads less.

        Returns:
            The generation that it was made from, and the value in parts.
        """
        result = await store.read(key)
        if result.state != "value":
            return NO_VALUE, await self.parts(None)
        return result.stamp.generation, await self.parts(result.value)

    async def splice_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Stretch] | None]:
        """As `parts_in`, for a store that can keep parts of a value by itself."""
        return await self.parts_in(store, key)

    def kept(self) -> Update:
        """The same change, without a reference to memory that its maker may change."""
        return self

    def then(self, later: Update) -> Update | None:
        """Both as one change, if they know each other; else None."""
        return later if later.replaces else None


class Replace(Update):
    """Store a value, whatever is there.

    Args:
        value: what to store; None to delete.

    Example:
        >>> Replace(b"1").then(Replace(b"2")).value
        b'2'
    """

    __slots__ = ("value",)
    replaces = True

    def __init__(self, value: Buffer | None) -> None:
        self.value = value

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        return self.value

    def kept(self) -> Replace:
        return self if self.value is None else Replace(bytes(self.value))


class _Sequence(Update):
    """Changes that do not know each other, one after the other."""

    __slots__ = ("replaces", "steps")

    def __init__(self, steps: Sequence[Update]) -> None:
        self.steps = list(steps)
        self.replaces = self.steps[0].replaces

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        for step in self.steps:
            stored = await step.apply(stored)
        return stored

    def kept(self) -> Update:
        return _Sequence([step.kept() for step in self.steps])

    def then(self, later: Update) -> Update:
        if later.replaces:
            return later
        last = self.steps[-1].then(later)
        if last is None:
            return _Sequence([*self.steps, later])
        return _Sequence([*self.steps[:-1], last])


def merged(updates: Sequence[Update]) -> Update:
    """One change that does what they do in turn.

    Args:
        updates: at least one.
    """
    whole = updates[0]
    for update in updates[1:]:
        whole = whole.then(update) or _Sequence([whole, update])
    return whole
