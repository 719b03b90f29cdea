"""The kvstack store: several stores as one, each for a range of its keys.

A layer is for the keys that begin with a prefix, for one key, or for a range; later layers lie over
earlier ones. What is left of them is a list of ranges side by side, of which one is for a key; so a
listing asks each layer for its own keys only, and no layer is asked for what lies under another
one.

Specification: https://google.github.io/tensorstore/kvstore/kvstack/
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Sequence
from operator import attrgetter
from typing import ClassVar, NamedTuple

from tensorstore_py.errors import NotFoundError, SpecError
from tensorstore_py.plugin.codec import Model
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    WHOLE,
    Buffer,
    ByteRange,
    KeyRange,
    KvStore,
    KvStoreField,
    KvStoreSpec,
    ListEntry,
    NonNegativeInt,
    RangeRead,
    ReadResult,
    TimestampedStorageGeneration,
    encode_key,
    fan_out,
    in_one_mode,
    kvstore,
    model_validator,
    read_ranges,
)

__all__ = ["KvStack", "KvStackSpec", "StackLayer"]


class StackLayer(Model):
    """A store, and the keys that it is for; all keys if nothing is said of them.

    Attributes:
        base: the store.
        prefix: for keys that begin so.
        exact: for this key alone.
        inclusive_min: for keys from this one on.
        exclusive_max: for keys before this one.
        strip_prefix: how many first bytes of a key are left out in the store; by default those that
            all keys of the layer have in common.

    Example:
        >>> layer = {"base": "memory://", "inclusive_min": "a", "exclusive_max": "b"}
        >>> StackLayer.parse(layer).to_json()
        {'base': {'driver': 'memory'}, 'prefix': 'a'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "base", "prefix", "exact", "inclusive_min", "exclusive_max", "strip_prefix",
    })  # fmt: skip

    base: KvStoreField
    prefix: str | None = None
    exact: str | None = None
    inclusive_min: str | None = None
    exclusive_max: str | None = None
    strip_prefix: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _one_range(self) -> StackLayer:
        ways = (
            self.prefix is not None,
            self.exact is not None,
            self.inclusive_min is not None or self.exclusive_max is not None,
        )
        if sum(ways) > 1:
            raise SpecError(
                'at most one of "prefix", "exact" and "inclusive_min" with "exclusive_max" can say '
                "what a layer is for"
            )
        keys = self.keys
        if keys.empty:
            raise SpecError(
                f'no key is from "{self.inclusive_min}" to before "{self.exclusive_max}"'
            )
        common = common_prefix(keys)
        if (self.strip_prefix or 0) > len(common):
            raise SpecError(
                f"keys of the layer have {len(common)} bytes in common: no more can be left out",
                ("strip_prefix",),
            )
        return self

    @property
    def keys(self) -> KeyRange:
        """What it is for."""
        if self.exact is not None:
            key = encode_key(self.exact)
            return KeyRange(key, key + b"\0")
        if self.prefix:
            return KeyRange.prefix(self.prefix)
        return KeyRange(encode_key(self.inclusive_min or ""), encode_key(self.exclusive_max or ""))

    @property
    def stripped(self) -> bytes:
        """What keys begin with that the store does not have."""
        common = common_prefix(self.keys)
        return common if self.strip_prefix is None else common[: self.strip_prefix]

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        # Members that say nothing, or the same in another way, are printed in one way.
        for name in ("prefix", "inclusive_min", "exclusive_max"):
            if not json.get(name, True):
                del json[name]
        if "inclusive_min" in json and "exclusive_max" in json:
            low = encode_key(str(json["inclusive_min"]))
            if KeyRange.prefix(low.decode("utf-8", "surrogateescape")) == self.keys:
                json["prefix"] = json.pop("inclusive_min")
                del json["exclusive_max"]
        if self.strip_prefix == len(common_prefix(self.keys)):
            json.pop("strip_prefix", None)


def common_prefix(keys: KeyRange) -> bytes:
    """What all keys of a range begin with, as bytes."""
    low, high = keys.inclusive_min, keys.exclusive_max
    if high == low + b"\0":
        return low
    if not high:
        return b""
    for size in range(len(low), 0, -1):
        whole = KeyRange.prefix(low[:size].decode("utf-8", "surrogateescape"))
        if not whole.exclusive_max or high <= whole.exclusive_max:
            return low[:size]
    return b""


class Segment(NamedTuple):
    """Keys that one layer is for, without those that a later one is for.

    Attributes:
        keys: which.
        store: where they are.
        base: what their keys begin with there.
        stripped: what they begin with here, instead.
    """

    keys: KeyRange
    store: KvStore
    base: str
    stripped: bytes

    def key_of(self, key: str) -> str:
        """A key as the store has it."""
        rest = encode_key(key)[len(self.stripped) :]
        return self.base + rest.decode("utf-8", "surrogateescape")

    def range_of(self, keys: KeyRange) -> KeyRange:
        """A range within the segment as the store has it."""
        size = len(self.stripped)
        low, high = keys.inclusive_min[size:], keys.exclusive_max
        high = high[size:] if high.startswith(self.stripped) else b""
        return KeyRange(low, high).with_base(self.base)

    def listed(self, entry: ListEntry) -> ListEntry:
        """An entry of the store's listing as the stack has it."""
        key = self.stripped + encode_key(entry.key)[len(encode_key(self.base)) :]
        return ListEntry(key.decode("utf-8", "surrogateescape"), entry.size)


def _intersection(one: KeyRange, other: KeyRange) -> KeyRange | None:
    low = max(one.inclusive_min, other.inclusive_min)
    ends = [end for end in (one.exclusive_max, other.exclusive_max) if end]
    found = KeyRange(low, min(ends, default=b""))
    return None if found.empty else found


def _around(keys: KeyRange, hole: KeyRange) -> Iterable[KeyRange]:
    """What is left of a range without another one."""
    if _intersection(keys, hole) is None:
        yield keys
        return
    if keys.inclusive_min < hole.inclusive_min:
        yield KeyRange(keys.inclusive_min, hole.inclusive_min)
    end = keys.exclusive_max
    if hole.exclusive_max and (not end or hole.exclusive_max < end):
        yield KeyRange(hole.exclusive_max, end)


class KvStack(RangeRead, KvStore):
    """See the head of this file.

    Args:
        layers: stores with the keys that they are for; later ones lie over earlier ones.
    """

    def __init__(self, layers: Iterable[Segment]) -> None:
        segments: list[Segment] = []
        layers = list(layers)
        stores = in_one_mode(*(layer.store for layer in layers))
        for layer, store in zip(layers, stores, strict=True):
            segments = [
                segment._replace(keys=left)
                for segment in segments
                for left in _around(segment.keys, layer.keys)
            ]
            segments.append(layer._replace(store=store))
        self._segments = sorted(segments, key=lambda segment: segment.keys.inclusive_min)
        self._starts = [segment.keys.inclusive_min for segment in self._segments]
        self.inline = all(store.inline for store in stores)
        self.width = max(map(attrgetter("width"), stores), default=1)

    def _segment_of(self, key: str) -> Segment | None:
        place = bisect_right(self._starts, encode_key(key)) - 1
        if place < 0 or key not in self._segments[place].keys:
            return None
        return self._segments[place]

    async def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        segment = self._segment_of(key)
        if segment is None:
            return _nothing()
        return await segment.store.read(
            segment.key_of(key), byte_range, if_equal=if_equal, if_not_equal=if_not_equal
        )

    async def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[ReadResult]:
        segment = self._segment_of(key)
        if segment is None:
            return [_nothing() for _ in ranges]
        return await read_ranges(segment.store, segment.key_of(key), ranges)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        segment = self._segment_of(key)
        if segment is None:
            raise NotFoundError(
                f"{self.describe_key(key)} is in no layer of the stack: add one that is for it"
            )
        return await segment.store.write(segment.key_of(key), value, if_equal=if_equal)

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        parts = list(self._parts(key_range))

        async def delete(part: tuple[Segment, KeyRange]) -> None:
            segment, keys = part
            await segment.store.delete_range(segment.range_of(keys))

        await fan_out(self.inline, parts, delete, count=len(parts), width=self.width)

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        for segment, keys in self._parts(key_range):
            async for entry in segment.store.list(segment.range_of(keys)):
                yield segment.listed(entry)

    def _parts(self, key_range: KeyRange) -> Iterable[tuple[Segment, KeyRange]]:
        for segment in self._segments:
            keys = _intersection(segment.keys, key_range)
            if keys is not None:
                yield segment, keys

    def describe_key(self, key: str) -> str:
        segment = self._segment_of(key)
        if segment is None:
            return super().describe_key(key)
        return segment.store.describe_key(segment.key_of(key))


def _nothing() -> ReadResult:
    return ReadResult("missing", b"", TimestampedStorageGeneration(NO_VALUE, math.inf))


@kvstore("kvstack")
class KvStackSpec(KvStoreSpec):
    """`{"driver": "kvstack", "layers": ["LAYER", "LAYER"]}`; for layers see `StackLayer`.

    Attributes:
        layers: the stores; later ones lie over earlier ones.

    Example:
        >>> spec = {"driver": "kvstack", "layers": [{"base": "memory://b/", "prefix": "x/"}]}
        >>> KvStackSpec.parse(spec).layers[0].base.path
        'b/'
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"layers"})
    keeps_values: ClassVar[bool] = False

    layers: tuple[StackLayer, ...]

    def open(self) -> KvStack:
        return KvStack(
            Segment(layer.keys, layer.base.open(), layer.base.path, layer.stripped)
            for layer in self.layers
        )
