"""The memory store, and how to write a store.

A store is three small things, all from `tensorstore_py.plugin.kvstore`:

1. a *spec*, the JSON that a user writes: a `KvStoreSpec` registered with `@kvstore("name")`,
   whose fields are the members and whose `open` makes the store, without any I/O;
2. a *store*, a `KvStore` with `read` and as many of `write`, `delete_range` and `list` as the
   medium has;
3. maybe *context resources*: what several specs share, here the map itself. Two memory specs
   see the same keys exactly if they are bound to the same `memory_key_value_store`. A pickle
   says where the map is: in the same process that map is found again, elsewhere
   operations on its keys say so.

Nothing here waits, so the store is `inline`: its methods are coroutines only in form, and run
on whichever thread calls. A store that talks to a network says `inline = False`.

The invariant to keep, here as in every store: a value and its generation change together, and
no generation is ever used twice for one key. Conditional writes rest on it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import ClassVar, NoReturn, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from tensorstore_py.errors import FailedPreconditionError
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    UNKNOWN,
    WHOLE,
    AtomicBatch,
    Buffer,
    BulkRead,
    ByteRange,
    DirectoryListing,
    KeyRange,
    KvStore,
    KvStoreSpec,
    ListEntry,
    Mutex,
    ReadResult,
    Resource,
    ResourceField,
    ResourceModel,
    SegmentedWrite,
    TimestampedStorageGeneration,
    context_resource,
    decode_path,
    encode_key,
    encode_path,
    holds,
    joined,
    kvstore,
    root_url_rest,
)

__all__ = ["MemoryKeyValueStore", "MemorySpec", "MemoryStore", "NonAtomicMemoryStore", "SharedMap"]


class SharedMap:
    """What the stores of one context resource share: key -> (value, generation).

    Attributes:
        place: the process that it is in, and its name there, once it was pickled.
    """

    place: tuple[int, str] | None = None

    def __init__(self) -> None:
        self.entries: dict[str, tuple[Buffer, bytes]] = {}
        self.mutex = Mutex()
        self._counter = 0

    def generation(self, key: str) -> bytes:
        """What is stored now. Call with the mutex held, as `put`."""
        return self.entries.get(key, (b"", NO_VALUE))[1]

    def put(self, key: str, value: Buffer | None) -> bytes:
        """Store a value, or delete it; gives a generation that was never used before."""
        if value is None:
            self.entries.pop(key, None)
            return NO_VALUE
        self._counter += 1
        generation = b"\0" + self._counter.to_bytes(8, "little")
        self.entries[key] = (value, generation)
        return generation


class MapElsewhere(SharedMap):
    """A map that this process has not, which each operation on it says.

    Args:
        place: where it was when it was pickled: the process, and the map's name there.
    """

    def __init__(self, place: tuple[int, str]) -> None:
        self.place = place
        self._process = place[0]

    def __getattr__(self, name: str) -> NoReturn:
        if name not in ("entries", "mutex", "_counter"):
            raise AttributeError(name)
        raise FailedPreconditionError(
            "the data of this memory store is not here: it is in the process that pickled the "
            f"handle, {self._process}, or gone with it; use a store that both processes reach, "
            "such as file://, or send the elements"
        )


#: The maps that were pickled, by process and name.
_pickled: WeakValueDictionary[tuple[int, str], SharedMap] = WeakValueDictionary()


@context_resource("memory_key_value_store")
class MemoryKeyValueStore(ResourceModel):
    """The context resource: it has no members, and stands for one map."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    def create(self) -> SharedMap:
        return SharedMap()

    def place_of(self, value: object) -> object:
        assert isinstance(value, SharedMap)
        # A forked child has a map of its own, a copy of what was there then.
        if not isinstance(value, MapElsewhere) and (
            value.place is None or value.place[0] != os.getpid()
        ):
            value.place = os.getpid(), uuid4().hex
            _pickled[value.place] = value
        return value.place

    def at_place(self, place: object) -> SharedMap:
        process, name = cast("tuple[int, str]", place)
        found = _pickled.get((process, name)) if process == os.getpid() else None
        return MapElsewhere((process, name)) if found is None else found


@kvstore("memory", schemes=["memory"])
class MemorySpec(KvStoreSpec):
    """`{"driver": "memory", "path": ...}`, or `memory://path`.

    Attributes:
        memory_key_value_store: the map; by default the one of the context.
        atomic: whether a transaction may write several keys at once.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"memory_key_value_store", "atomic"})

    memory_key_value_store: Resource[SharedMap] = ResourceField("memory_key_value_store")
    atomic: bool = True

    @classmethod
    def path_of(cls, text: str) -> str:
        return text

    def open(self) -> NonAtomicMemoryStore:
        kind = MemoryStore if self.atomic else NonAtomicMemoryStore
        return kind(self.memory_key_value_store.value)

    def to_url(self) -> str:
        return f"memory://{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        return {"driver": "memory", "path": decode_path(root_url_rest(url, "memory"))}


class NonAtomicMemoryStore(BulkRead, SegmentedWrite, DirectoryListing, KvStore):
    """Keys and values in this process; transactions store key after key.

    Args:
        shared: the map to work on.
    """

    inline = True

    def __init__(self, shared: SharedMap) -> None:
        self._shared = shared

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        # One dictionary lookup is atomic, and what it finds is immutable: no lock is needed.
        value, generation = self._shared.entries.get(key, (None, NO_VALUE))
        return ReadResult.of(
            value, generation, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
        )

    async def read_values(self, keys: Sequence[str], room: memoryview) -> Sequence[Buffer | None]:
        entries = self._shared.entries
        return [entries.get(key, (None,))[0] for key in keys]

    async def read_parts(
        self, key: str, ranges: Sequence[ByteRange], size: int
    ) -> Sequence[Buffer | None] | None:
        value, _ = self._shared.entries.get(key, (None, NO_VALUE))
        if value is None:
            return [None] * len(ranges)
        if len(value) != size:
            return None
        view = memoryview(value)
        return [view[slice(*each.resolve(size))] for each in ranges]

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        # `bytes` are kept as they are; other buffers belong to the caller and are copied.
        return self._put(key, None if value is None else bytes(value), if_equal)

    async def write_segments(
        self,
        key: str,
        segments: Sequence[Buffer],
        *,
        if_equal: bytes | None = None,
        owned: bool = False,
    ) -> TimestampedStorageGeneration:
        value = segments[0] if len(segments) == 1 else joined(segments)
        return self._put(key, value if owned else bytes(value), if_equal)

    def _put(
        self, key: str, value: Buffer | None, if_equal: bytes | None
    ) -> TimestampedStorageGeneration:
        shared = self._shared
        with shared.mutex:
            if not holds(if_equal, shared.generation(key)):
                return TimestampedStorageGeneration.now(UNKNOWN)
            return TimestampedStorageGeneration.now(shared.put(key, value))

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        with self._shared.mutex:
            for key in [key for key in self._shared.entries if key in key_range]:
                del self._shared.entries[key]

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        # A snapshot: writers may go on while the caller looks at what there was.
        with self._shared.mutex:
            sizes = {key: len(value) for key, (value, _) in self._shared.entries.items()}
        for key in sorted(sizes, key=encode_key):
            if key in key_range:
                yield ListEntry(key, sizes[key])

    async def list_directory(self, prefix: str) -> AsyncIterator[str]:
        with self._shared.mutex:
            keys = [key for key in self._shared.entries if key.startswith(prefix)]
        size = len(prefix)
        parts = (key[size:].partition("/") for key in keys)
        for name in sorted({first + slash for first, slash, _ in parts if first or slash}):
            yield name


class MemoryStore(NonAtomicMemoryStore, AtomicBatch):
    """The same, and transactions store all their keys at once."""

    async def write_batch(
        self, values: Mapping[str, Buffer | None], conditions: Mapping[str, bytes]
    ) -> str | None:
        kept = {key: None if value is None else bytes(value) for key, value in values.items()}
        shared = self._shared
        with shared.mutex:
            for key, generation in conditions.items():
                if shared.generation(key) != generation:
                    return key
            for key, value in kept.items():
                shared.put(key, value)
        return None
