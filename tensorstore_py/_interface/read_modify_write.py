"""Changes of one stored value that can be made again.

A `ReadModifyWrite` is what conditional writes repeat until no other writer was faster, what several
writers of one value merge into one, and what a transaction keeps until it is committed. Applying
one changes nothing but its result, so that it can be applied any number of times.
`store_abilities.update` makes one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py._interface.kvstore import Buffer, KvStore

__all__ = [
    "CheckedChange",
    "Copied",
    "CopiedRange",
    "ReadModifyWrite",
    "Replace",
    "ReplaceOwned",
    "Segment",
    "StoredValue",
    "coalesced",
    "merged",
]


class CopiedRange:
    """Bytes `[start, stop)` of the present value, as a part of the value that replaces it.

    Example:
        >>> len(CopiedRange(3, 10))
        7
    """

    __slots__ = ("start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"CopiedRange({self.start}, {self.stop})"


#: A part of a new value.
Segment: TypeAlias = "Buffer | CopiedRange"


def coalesced(segments: Iterable[Segment]) -> list[Segment]:
    """The same segments, with neighbouring copied ranges as one, and none of these empty.

    Example:
        >>> new = [CopiedRange(0, 2), CopiedRange(2, 5), b"new", CopiedRange(5, 5)]
        >>> coalesced(new)
        [CopiedRange(0, 5), b'new']
    """
    found: list[Segment] = []
    for segment in segments:
        last = found[-1] if found else None
        if not isinstance(segment, CopiedRange):
            found.append(segment)
        elif isinstance(last, CopiedRange) and last.stop == segment.start:
            found[-1] = CopiedRange(last.start, segment.stop)
        elif len(segment):
            found.append(segment)
    return found


class ReadModifyWrite(ABC):
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
        """As `apply`, in segments that need not be one piece of memory to be stored."""
        value = await self.apply(stored)
        return None if value is None else (value,)

    async def parts_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Buffer] | None]:
        """The new value of a key in view of what is stored; override it to read less.

        Returns:
            The generation that it was made from, and the value in segments.
        """
        result = await store.read(key)
        if result.state != "value":
            return NO_VALUE, await self.parts(None)
        return result.stamp.generation, await self.parts(result.value)

    async def splice_in(self, store: KvStore, key: str) -> tuple[bytes, Sequence[Segment] | None]:
        """As `parts_in`, for a store that can keep parts of a value by itself (`Splice`)."""
        return await self.parts_in(store, key)

    def kept(self) -> ReadModifyWrite:
        """The same change, without a reference to memory that its maker may change."""
        return self

    def then(self, later: ReadModifyWrite) -> ReadModifyWrite | None:
        """Both as one change, if they know each other; else None."""
        return later if later.replaces else None


class Replace(ReadModifyWrite):
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


class ReplaceOwned(Replace):
    """The same, by a value whose memory nobody changes."""

    __slots__ = ()

    def kept(self) -> Replace:
        return self


class CheckedChange(ReadModifyWrite):
    """A change that may be impossible; a transaction finds out when it is asked for.

    What two of them of one key merge into by `then` is another one, which remembers what it was
    checked with. So each change of many is checked by itself.

    Attributes:
        checked: the generation of the value that it was checked with last; None if it never was.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def checked(self) -> bytes | None: ...

    @abstractmethod
    def check(self, generation: bytes, stored: Buffer | None) -> None:
        """Raise what `apply` would, if it would.

        Args:
            generation: of what is stored.
            stored: the value; not looked at if the generation is the one of the last check.

        Raises:
            TensorStoreError: the change cannot be made.
        """


class StoredValue(ABC):
    """A value that is stored somewhere, and that a store can have under another key as it is.

    See `store_abilities.ReferenceCopy`.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """Its length, in bytes."""

    @abstractmethod
    async def read(self, byte_range: ByteRange = WHOLE) -> Buffer:
        """All of it, or a part.

        Raises:
            DataLossError: it is not there any more.
        """


class Copied(ReadModifyWrite):
    """Have a value that is stored already, whatever is there.

    Args:
        value: which.
    """

    __slots__ = ("value",)
    replaces = True

    def __init__(self, value: StoredValue) -> None:
        self.value = value

    async def apply(self, stored: Buffer | None) -> Buffer:
        return await self.value.read()


class _Sequence(ReadModifyWrite):
    """Changes that do not know each other, one after the other."""

    __slots__ = ("replaces", "steps")

    def __init__(self, steps: Sequence[ReadModifyWrite]) -> None:
        self.steps = list(steps)
        self.replaces = self.steps[0].replaces

    async def apply(self, stored: Buffer | None) -> Buffer | None:
        for step in self.steps:
            stored = await step.apply(stored)
        return stored

    def kept(self) -> ReadModifyWrite:
        return _Sequence([step.kept() for step in self.steps])

    def then(self, later: ReadModifyWrite) -> ReadModifyWrite:
        if later.replaces:
            return later
        last = self.steps[-1].then(later)
        if last is None:
            return _Sequence([*self.steps, later])
        return _Sequence([*self.steps[:-1], last])


def merged(changes: Sequence[ReadModifyWrite]) -> ReadModifyWrite:
    """One change that does what they do in turn; there is at least one."""
    whole = changes[0]
    for change in changes[1:]:
        whole = whole.then(change) or _Sequence([whole, change])
    return whole
