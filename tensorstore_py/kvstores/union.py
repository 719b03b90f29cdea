"""The union store: several stores read as one; each key is looked for in all of them, in order.

It is for what several writers stored apart, such as the databases that the processes of a job
write; what is for keys of different ranges is a `kvstack`. Nothing is written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import ClassVar

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.kvstore import (
    ALL,
    WHOLE,
    ByteRange,
    KeyRange,
    KvStore,
    KvStoreField,
    KvStoreSpec,
    ListEntry,
    RangeRead,
    ReadResult,
    in_one_mode,
    kvstore,
    model_validator,
    read_ranges,
)

__all__ = ["UnionSpec", "UnionStore"]


class UnionStore(RangeRead, KvStore):
    """See the head of this file.

    Args:
        bases: stores, with what their keys begin with in place of nothing.
    """

    def __init__(self, bases: Iterable[tuple[KvStore, str]]) -> None:
        bases = list(bases)
        stores = in_one_mode(*(store for store, _ in bases))
        self._bases = [(store, path) for store, (_, path) in zip(stores, bases, strict=True)]
        self.inline = all(store.inline for store in stores)
        self.width = max(store.width for store in stores)

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        result = ReadResult("missing")
        for store, path in self._bases:
            result = await store.read(
                path + key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
            )
            if result.state != "missing":
                break
        return result

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        results: list[ReadResult] = []
        for store, path in self._bases:
            results = await read_ranges(store, path + key, ranges)
            if any(result.state != "missing" for result in results):
                break
        return results

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        seen = set()
        for store, path in self._bases:
            async for entry in store.list(key_range.with_base(path)):
                key = entry.key[len(path) :]
                if key not in seen:
                    seen.add(key)
                    yield ListEntry(key, entry.size)

    def describe_key(self, key: str) -> str:
        store, path = self._bases[0]
        more = len(self._bases) - 1
        return (
            f"{store.describe_key(path + key)} or in {more} more"
            if more
            else (store.describe_key(path + key))
        )


@kvstore("union")
class UnionSpec(KvStoreSpec):
    """`{"driver": "union", "bases": ["file:///a/", "file:///b/"]}`; read-only.

    Attributes:
        bases: the stores; a key is read from the first one that has it.

    Example:
        >>> UnionSpec.parse({"driver": "union", "bases": ["memory://a/", "memory://b/"]}).bases[
        ...     1
        ... ].path
        'b/'
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"bases"})

    bases: tuple[KvStoreField, ...]

    @model_validator(mode="after")
    def _check_bases(self) -> UnionSpec:
        if not self.bases:
            raise SpecError("at least one store is needed", ("bases",))
        return self

    def open(self) -> UnionStore:
        return UnionStore((base.open(), base.path) for base in self.bases)
