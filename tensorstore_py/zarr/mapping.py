"""A store of keys and bytes in a mapping of the user's: a `dict`, or whatever behaves like one.

Versions are made from the values themselves, since a mapping has none. A lock makes comparing and
storing one step for all who write through it; a change made in the mapping directly is not seen
before the next read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, MutableMapping
from typing import Annotated

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.generation import (
    UNKNOWN,
    TimestampedStorageGeneration,
    content_generation,
    holds,
)
from tensorstore_py._interface.key_range import ALL, KeyRange, encode_key
from tensorstore_py._interface.kvstore import Buffer, KvStore, KvStoreSpec, ListEntry, ReadResult
from tensorstore_py._runtime.keyed_lock import Mutex
from tensorstore_py._spec.held import Held
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import PlainValidator
from tensorstore_py.errors import SpecError

__all__ = ["MappingSpec", "MappingStore"]

#: One for all: a mapping may be opened any number of times, and has no place for a lock.
_mutex = Mutex()


def _held(value: object) -> Held[MutableMapping[str, bytes]]:
    if not isinstance(value, Held):
        raise SpecError(f"expected a mapping in memory, but found {describe(value)}")
    return value


class MappingSpec(KvStoreSpec):
    """What opens a mapping; it has no JSON form.

    Attributes:
        held: the mapping.
    """

    driver = "mapping"

    held: Annotated[Held[MutableMapping[str, bytes]], PlainValidator(_held)]

    def open(self) -> MappingStore:
        return MappingStore(self.held)


class MappingStore(KvStore):
    """Keys and values in a mapping.

    Args:
        held: the mapping.

    Example:
        >>> import tensorstore_py as ts
        >>> files = {}
        >>> _ = ts.zarr.ones(4, store=files, dtype="i1", zarr_format=2, compressor=None)
        >>> sorted(files)
        ['.zarray']
    """

    inline = True

    def __init__(self, held: Held[MutableMapping[str, bytes]]) -> None:
        self._held = held

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        value = self._value(key)
        generation = content_generation(value)
        return ReadResult.of(
            value, generation, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
        )

    def _value(self, key: str) -> bytes | None:
        # Not every mapping has a cheap `in`, and the key may be deleted in between.
        try:
            return bytes(self._held.value[key])
        except KeyError:
            return None

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        kept = None if value is None else bytes(value)
        with _mutex:
            if if_equal and not holds(if_equal, content_generation(self._value(key))):
                return TimestampedStorageGeneration.now(UNKNOWN)
            if kept is None:
                self._held.value.pop(key, None)
            else:
                self._held.value[key] = kept
        return TimestampedStorageGeneration.now(content_generation(kept))

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        with _mutex:
            keys = [key for key in self._held.value if key in key_range]
        for key in sorted(keys, key=encode_key):
            value = self._value(key)
            if value is not None:
                yield ListEntry(key, len(value))
