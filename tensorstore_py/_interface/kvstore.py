"""The store promise: an ordered map from keys to byte strings.

A store implements `read` and whatever else it can; every other operation has a default that
is written in terms of the others or raises a typed `UnsupportedError`. Keys are whole (the
user's path is already joined in front). A store never interprets values and never retries
on behalf of the engine's own conditions.

`inline` is its temperament. True: methods never suspend (they may block the worker thread
they run on). False: methods never block; they run on the library's event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.conditional_update import conditional_update
from tensorstore_py._interface.generation import UNKNOWN, TimestampedStorageGeneration, holds
from tensorstore_py._interface.kept import Kept, coalesced
from tensorstore_py._interface.key_range import ALL, KeyRange, encode_key
from tensorstore_py._interface.temperament import SaysTemperament
from tensorstore_py._runtime.large import joined
from tensorstore_py._spec.context_spec import NO_CONTEXT, ContextSpec
from tensorstore_py._spec.model import Model
from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from tensorstore_py._interface.kept import Stretch
    from tensorstore_py._interface.update import Update

__all__ = ["Buffer", "KvStore", "KvStoreSpec", "ListEntry", "ReadResult"]

Buffer = bytes | bytearray | memoryview
State = Literal["unspecified", "missing", "value"]


class ReadResult:
    """What a read found.

    `state` is `"value"` (then `value` holds the bytes), `"missing"` (no such key), or
    `"unspecified"` (the condition made the store send nothing: what the caller has is current).

    Args:
        state: see above.
        value: the bytes read.
        stamp: the generation of what was read, and when it was current.
    """

    __slots__ = ("stamp", "state", "value")
    state: State
    value: Buffer
    stamp: TimestampedStorageGeneration

    def __init__(
        self,
        state: State = "unspecified",
        value: str | Buffer = b"",
        stamp: TimestampedStorageGeneration | None = None,
    ) -> None:
        self.state = state
        self.value = value.encode() if isinstance(value, str) else value
        self.stamp = TimestampedStorageGeneration() if stamp is None else stamp

    @classmethod
    def of(
        cls,
        value: Buffer | None,
        generation: bytes,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """The answer of a store that has the whole value at hand.

        Args:
            value: what is stored; None if nothing is.
            generation: of what is stored.
            byte_range: what the caller of `KvStore.read` asked for.
            if_equal: the caller's condition.
            if_not_equal: the caller's condition.

        Raises:
            OutOfRangeError: the byte range reaches outside the value.

        Example:
            >>> ReadResult.of(b"abcdef", b"1", ByteRange(2, 4)).value
            b'cd'
            >>> ReadResult.of(b"abcdef", b"1", if_not_equal=b"1").state
            'unspecified'
        """
        stamp = TimestampedStorageGeneration.now(generation)
        if value is None:
            return cls("missing", b"", stamp)
        if generation == if_not_equal or not holds(if_equal, generation):
            return cls("unspecified", b"", stamp)
        if not byte_range.is_whole:
            start, stop = byte_range.resolve(len(value))
            value = value[start:stop]
        return cls("value", value, stamp)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReadResult):
            return NotImplemented
        return (
            self.state == other.state
            and bytes(self.value) == bytes(other.value)
            and self.stamp == other.stamp
        )

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __copy__(self) -> ReadResult:
        return ReadResult(self.state, self.value, self.stamp.copy())

    def __deepcopy__(self, memo: dict[int, object]) -> ReadResult:
        return ReadResult(self.state, bytes(self.value), self.stamp.copy())

    def __reduce__(self) -> tuple[type[ReadResult], tuple[object, ...]]:
        return ReadResult, (self.state, bytes(self.value), self.stamp)

    def __repr__(self) -> str:
        return (
            f"KvStore.ReadResult(state={self.state!r}, value={bytes(self.value)!r}, "
            f"stamp={self.stamp!r})"
        )


class ListEntry(NamedTuple):
    """One key of a listing, and the size of its value in bytes (-1 when the store can't say)."""

    key: str
    size: int = -1


class KvStore(SaysTemperament, ABC):
    """An ordered map from keys to bytes.

    Attributes:
        inline: the temperament, see the head of this file.
        width: how many operations at a time the store makes good use of, or allows.
        atomic: whether several values can be stored at once, by `write_together`.
        place: equal for stores whose equal keys are one value, however they were opened; None if
            only their specs can tell.
        writable: whether there are writes at all.
        listable: whether its keys can be listed at all.
        stages: changes are kept and made later, so a condition must hold until then.
        rewritten: each change costs as much as the whole store, so those that belong together had
            better be stored together.
        splices: keeping parts of a large value takes less than reading and writing them, see
            `splice`.
    """

    inline: bool
    width: int = 64
    atomic: bool = False
    place: str | None = None
    writable: bool = True
    listable: bool = True
    stages: bool = False
    rewritten: bool = False
    splices: bool = False

    @abstractmethod
    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """Read a value or a part of it.

        Args:
            key: the whole key.
            byte_range: which bytes; the whole value by default.
            if_equal: answer `"unspecified"` unless the stored generation is this one.
            if_not_equal: answer `"unspecified"` if the stored generation is still this one.

        Raises:
            OutOfRangeError: the byte range reaches outside the value.
            UnavailableError, PermissionDeniedError: the store's own troubles.
        """

    async def read_as_of(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float,
        *,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        """`read` where an answer will do that was true at some time or later.

        The default reads what is there now, as it is right for whoever keeps no old answers. Stores
        behind caches override it.

        Args:
            key: as for `read`.
            byte_range: as for `read`.
            staleness_bound: that time, in seconds since the epoch.
            if_not_equal: as for `read`.
        """
        return await self.read(key, byte_range, if_not_equal=if_not_equal)

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        """Read several parts of one value; all results have one generation or are missing.

        The default reads them one by one. Stores override it to open once or to coalesce.

        Raises:
            OutOfRangeError: a byte range reaches outside the value.
        """
        return [await self.read(key, byte_range) for byte_range in ranges]

    async def read_values(self, keys: Sequence[str], room: memoryview) -> Sequence[Buffer | None]:
        """The whole values of several keys, None where there is none; as they are found.

        The default reads them one by one. A store for which a call costs about as much as a small
        value may override it.

        Args:
            keys: whole keys.
            room: memory that values may be put in, as long as it lasts.
        """
        results = [await self.read(key) for key in keys]
        return [result.value if result.state == "value" else None for result in results]

    async def read_parts(
        self, key: str, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        """Parts of a value that must have `size` bytes; each is None if there is no value.

        None if it has another size, or if the store cannot tell: then all of it is to be read.
        """
        return None

    async def write_values(self, keys: Sequence[str], values: Sequence[Buffer | None]) -> None:
        """Store several values, each as `write` does; after an error some may be stored.

        Args:
            keys: whole keys.
            values: for each, contiguous bytes as in `write`, or None to delete.
        """
        for key, value in zip(keys, values, strict=True):
            await self.write(key, value)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """Store a value atomically; `None` deletes the key.

        Args:
            key: the whole key.
            value: contiguous bytes, not kept by reference after the call returns.
            if_equal: only if the stored generation is this one (`NO_VALUE`: only if absent).

        Returns:
            The new stamp; its generation is `UNKNOWN` (`b""`) if the condition did not hold.

        Raises:
            UnsupportedError: the store is read-only.
        """
        raise UnsupportedError(f"{type(self).__name__} is read-only: cannot write {key!r}")

    async def write_parts(
        self, key: str, parts: Sequence[Buffer] | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """`write` of a value that is in several pieces of memory.

        The default puts them together first.
        """
        value = None if parts is None else parts[0] if len(parts) == 1 else joined(parts)
        return await self.write(key, value, if_equal=if_equal)

    async def keep(
        self, key: str, value: Buffer, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        """`write` of bytes that never change, so that the store may keep them by reference.

        The default writes them like any others.
        """
        return await self.write(key, value, if_equal=if_equal)

    async def update(self, key: str, update: Update) -> TimestampedStorageGeneration:
        """Change a value, however often others change it meanwhile.

        The default reads, and stores on condition that nobody else did, until that holds.

        Args:
            key: the whole key.
            update: what to make of the present value.

        Returns:
            The new stamp.

        Raises:
            AbortedError: others changed it first each of the many times that it was tried.
            UnavailableError: it was refused again and again although nothing had changed.
        """
        return await conditional_update(self, key, update)

    async def update_values(
        self, keys: Sequence[str], updates: Sequence[Update]
    ) -> Sequence[TimestampedStorageGeneration | Exception]:
        """`update` of several keys, each for itself; what failed has its error in place of a stamp.

        The default makes one after the other.
        """
        outcomes: list[TimestampedStorageGeneration | Exception] = []
        for key, update in zip(keys, updates, strict=True):
            try:
                outcomes.append(await self.update(key, update))
            except Exception as error:  # noqa: BLE001 - it is that key's
                outcomes.append(error)
        return outcomes

    async def splice(
        self, key: str, parts: Sequence[Stretch], *, if_equal: bytes
    ) -> TimestampedStorageGeneration:
        """Store a value that is made of parts of the present one and of new bytes, atomically.

        For what grows at its end, such as an archive, and for what changes little. The default
        reads what is kept and writes all of it; stores override it to move the bytes themselves.

        Args:
            key: the whole key.
            parts: in their order.
            if_equal: only if the stored generation is this one, and so has what is kept.

        Returns:
            As `write`.
        """
        found: list[Buffer] = []
        for part in coalesced(parts):
            if isinstance(part, Kept):
                kept = await self.read(key, ByteRange(part.start, part.stop), if_equal=if_equal)
                if kept.state != "value":
                    return TimestampedStorageGeneration.now(UNKNOWN)
                found.append(kept.value)
            else:
                found.append(part)
        return await self.write(key, joined(found), if_equal=if_equal)

    async def write_together(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        """Store several values at once: either all of them or, if a condition fails, none.

        Args:
            values: by whole key; None deletes.
            conditions: generations that must be the stored ones; of any keys.

        Returns:
            None when it is done; else the key of a condition that did not hold.

        Raises:
            UnsupportedError: the store is not `atomic`.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot store several keys at once")

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Delete every key of the range. Not atomic over keys.

        Raises:
            UnsupportedError: the store is read-only, or cannot list its keys.
        """
        async for entry in self.list(key_range):
            await self.write(entry.key, None)

    async def copy_to(self, key: str, target: KvStore, target_key: str) -> bool:
        """Copy a value without moving its bytes through here, where the medium can do that.

        Args:
            key: the whole key; it is no error if nothing is there any more.
            target: any store.
            target_key: the whole key there; what it has is replaced.

        Returns:
            Whether that was done. If not, the caller reads and writes; so does the default.
        """
        return False

    def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        """Yield the keys of the range, in no promised order.

        Raises:
            UnsupportedError: the store cannot list its keys.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot list its keys")

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        """Yield what is right below a prefix, each name once, in no promised order.

        The default lists all keys with the prefix. Stores that can tell names without that, which
        is nearly all, override it: whoever looks for the arrays of a group does not want to hear
        of their chunks.

        Args:
            prefix: ends in `/`, or is empty.

        Yields:
            The rest of a key, or its first part with the `/` after it if it has several. A key
            that is the prefix itself has no name.

        Raises:
            UnsupportedError: the store cannot list its keys.
        """
        seen = set()
        async for entry in self.list(KeyRange.prefix(prefix)):
            first, slash, _ = entry.key[len(prefix) :].partition("/")
            name = first + slash
            if name and name not in seen:
                seen.add(name)
                yield name

    def describe_key(self, key: str) -> str:
        """How to name `key` to a person, in error messages."""
        return repr(encode_key(key).decode("utf-8", "backslashreplace")).replace("'", '"')

    async def aclose(self) -> None:
        """Let go of connections and handles. A second call does nothing."""
        return


class KvStoreSpec(Model):
    """What was asked of a store: the JSON members common to all of them.

    A concrete class adds its members, registers with `@kvstore("id", schemes=[...])`, and says
    how to open. Resource members must be bound to a context before `open`.

    Attributes:
        path: what all keys begin with.
        context: shared resources that are defined here, for this spec and all inside it.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"context"})
    is_store: ClassVar[bool] = True

    json_tag: ClassVar[str | None] = "driver"
    driver: ClassVar[str]

    path: str = ""
    context: ContextSpec = NO_CONTEXT

    def open(self) -> KvStore:
        """The live store for this bound spec. No I/O; equal specs may share one store.

        Raises:
            UnsupportedError: the store cannot be opened in this installation.
        """
        raise UnsupportedError(
            f'kvstore driver "{self.driver}" cannot be opened by this version: '
            "only its spec is known"
        )

    def to_url(self) -> str:
        """This spec as a URL.

        Raises:
            UnsupportedError: the spec has members that no URL can carry.
        """
        raise UnsupportedError(f'kvstore driver "{self.driver}" has no URL form')

    @classmethod
    def detects(cls, head: bytes) -> bool:  # noqa: ARG003 - what its overrides need
        """Whether a value that begins so is a store of this kind, such as an archive.

        Only asked of stores that have a `base`, by the driver `auto`.
        """
        return False

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        """The JSON spec for a URL of one of the registered schemes.

        Raises:
            UnsupportedError: the store has no URL form.
        """
        raise UnsupportedError(f'kvstore driver "{cls.driver}" has no URL form like {url}')
