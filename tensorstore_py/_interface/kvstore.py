"""The store promise: an ordered map from keys to byte strings.

A store implements `read` and, as far as its medium can, `write`, `delete_range` and `list`; else
they raise a typed `UnsupportedError`. What only some media can do is in `store_abilities`. Keys are
whole (the user's path is already joined in front). A store never interprets values and never
retries on behalf of the engine's own conditions.

`inline` is its execution mode. True: methods never suspend (they may block the worker thread
they run on). False: methods never block; they run on the library's event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeVar

from tensorstore_py._display.public_name import public_in
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.execution_mode import HasExecutionMode
from tensorstore_py._interface.generation import TimestampedStorageGeneration, holds
from tensorstore_py._interface.key_range import ALL, KeyRange, encode_key
from tensorstore_py._interface.store_metrics import count_operations, metrics_of
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.handle import stands_for
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import kvstores
from tensorstore_py._spec.resource import NO_CONTEXT, ContextSpec
from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tensorstore_py._interface.store_metrics import StoreMetrics


__all__ = ["Buffer", "KvStore", "KvStoreSpec", "ListEntry", "ReadResult"]

Buffer = bytes | bytearray | memoryview
#: How many keys of a listing are held while they are deleted.
_PAGE: Final = 1000
S = TypeVar("S", bound="KvStoreSpec")
State = Literal["unspecified", "missing", "value"]


@stands_for
@public_in("KvStore")
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


class KvStore(HasExecutionMode, ABC):
    """An ordered map from keys to bytes.

    Attributes:
        inline: the execution mode, see the head of this file.
        width: how many operations at a time the store makes good use of, or allows.
        writes_wait: whether writes wait for a device, so that an inline store makes good use of
            more threads than there are cores.
        identity: equal for stores whose equal keys are one value, however they were opened; None if
            only their specs can tell.
        metrics: where its operations are counted; None: they are not. Set when it is opened.
        made_of_others: operations that are made of others of the same store, and counted as these.
    """

    inline: bool
    width: int = 64
    writes_wait: bool = False
    identity: str | None = None
    metrics: StoreMetrics | None = None
    made_of_others: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        count_operations(cls, KvStore)

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

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        """Delete every key of the range. Not atomic over keys.

        Raises:
            UnsupportedError: the store is read-only, or cannot list its keys.
        """

        async def delete(key: str) -> None:
            await self.write(key, None)

        keys = []
        async for entry in self.list(key_range):
            keys.append(entry.key)
            if len(keys) == _PAGE:
                await fan_out(self.inline, keys, delete, count=len(keys), width=self.width)
                keys = []
        await fan_out(self.inline, keys, delete, count=len(keys), width=self.width)

    def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        """Yield the keys of the range, in no promised order.

        Raises:
            UnsupportedError: the store cannot list its keys.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot list its keys")

    @property
    def writable(self) -> bool:
        """Whether there are writes at all: a class that defines none is read-only."""
        return type(self).write is not KvStore.write

    @property
    def listable(self) -> bool:
        """Whether its keys can be listed at all."""
        return type(self).list is not KvStore.list

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
        keeps_values: whether its bytes are its own, and not those of stores underneath.
        verbose_flag: what switches its log on; None: its driver's name.
        detected_by: a key that is in each directory that is a store of this kind, for the driver
            `auto`; only of stores that have a `base`.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"context"})
    detected_by: ClassVar[str | None] = None
    is_store: ClassVar[bool] = True
    keeps_values: ClassVar[bool] = True
    verbose_flag: ClassVar[str | None] = None

    json_tag: ClassVar[str | None] = "driver"
    driver: ClassVar[str]

    path: str = ""
    context: ContextSpec = NO_CONTEXT

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "open" in vars(cls):
            cls.open = _with_metrics(cls.open)  # type: ignore[assignment,method-assign]

    def open(self) -> KvStore:
        """The live store for this bound spec. No I/O; equal specs may share one store.

        Raises:
            UnsupportedError: the store cannot be opened in this installation.
        """
        raise UnsupportedError(
            f'kvstore driver "{self.driver}" cannot be opened by this version: '
            "only its spec is known"
        )

    @property
    def inline(self) -> bool:
        """The execution mode of the live store, see `KvStore`."""
        return self.open().inline

    @classmethod
    def path_of(cls, text: str) -> str | None:  # noqa: ARG003 - what its overrides need
        """The path that the member `path` says, if nothing else of a spec follows from it.

        Then specs that differ in nothing else are parsed, checked and bound once. None, which is
        the default: each is by itself.

        Raises:
            SpecError: it says none.
        """
        return None

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
    def detectable(cls) -> Iterator[type[KvStoreSpec]]:
        """The classes that have `detected_by`, or a `detects` of their own."""
        for found in kvstores.detecting():
            assert issubclass(found, KvStoreSpec)
            has_own = found.detects.__func__ is not KvStoreSpec.detects.__func__  # type: ignore[attr-defined]
            if has_own or found.detected_by is not None:
                yield found

    @staticmethod
    def detected(head: bytes) -> type[KvStoreSpec] | None:
        """The class that `detects` what a value begins with."""
        return next((cls for cls in KvStoreSpec.detectable() if cls.detects(head)), None)

    @staticmethod
    def in_directories() -> Iterator[tuple[type[KvStoreSpec], str]]:
        """The classes that have `detected_by`, with that."""
        for cls in KvStoreSpec.detectable():
            if cls.detected_by is not None:
                yield cls, cls.detected_by

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        """The JSON spec for a URL of one of the registered schemes.

        Raises:
            UnsupportedError: the store has no URL form.
        """
        raise UnsupportedError(f'kvstore driver "{cls.driver}" has no URL form like {url}')


def _with_metrics(opening: Callable[[S], KvStore]) -> Callable[[S], KvStore]:
    """`KvStoreSpec.open` of one class, which tells the store whose counts are its own."""

    @wraps(opening)
    def open_(spec: S) -> KvStore:
        store = opening(spec)
        store.metrics = metrics_of(spec.driver, spec.verbose_flag, keeps_values=spec.keeps_values)
        return store

    return open_
