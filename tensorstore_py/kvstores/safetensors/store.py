"""The safetensors store: reads the headers of a file or of several, and ranges of their tensors.

Its base is one `.safetensors` file, or the index of several (`model.safetensors.index.json`), whose
files are beside it. What it answers is what the file has at that time: the header is kept with the
generation of the file, and a range is good only if it is of the same one. `auto` knows a file by
its first bytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Hashable, Sequence
from functools import partial
from typing import ClassVar, Final, Literal, NamedTuple

from tensorstore_py.errors import DataLossError, OutOfRangeError, UnsupportedError
from tensorstore_py.kvstores.safetensors.header import LARGEST_HEADER, Header, Tensor, header_size
from tensorstore_py.kvstores.safetensors.hierarchy import Hierarchy, Part
from tensorstore_py.plugin.kvstore import (
    ALL,
    NO_VALUE,
    Buffer,
    ByteRange,
    ChunkCache,
    KeyedLock,
    KeyRange,
    KvStore,
    KvStoreField,
    KvStoreSpec,
    ListEntry,
    RangeReadAsOf,
    ReadResult,
    Resource,
    ResourceField,
    RetryPolicy,
    TimestampedStorageGeneration,
    adapter_url_rest,
    encode_path,
    fan_out,
    holds,
    kvstore,
    read_ranges,
)

__all__ = ["SafetensorsSpec", "SafetensorsStore"]

#: So much is read to find a header: more than most of them have.
_HEAD_BYTES: Final = 2**16


class _Found(NamedTuple):
    """What was found at a time (s since 1970): the hierarchy, and the generations of its files."""

    hierarchy: Hierarchy
    generations: dict[str, bytes]
    generation: bytes
    time: float


class _Kept(NamedTuple):
    """What the cache pool keeps."""

    headers: Headers
    size_bytes: int


class Headers:
    """What is known of a file or of several, shared by all stores that have it open.

    Args:
        base: where the file is.
        key: of it.
        cache: keeps it when no store is open.
        name: under which.
    """

    def __init__(
        self, base: KvStore, key: str, cache: ChunkCache | None = None, name: Hashable = None
    ) -> None:
        self.base = base
        self.key = key
        self._cache = cache
        self._name = name
        self._found: _Found | None = None
        self._gate = KeyedLock(inline=base.inline)

    def describe(self) -> str:
        """How to name the file to a person."""
        return f"the safetensors file {self.base.describe_key(self.key)}"

    async def latest(self) -> _Found | None:
        """What was found last; looked up if nothing was. None: there is no such file."""
        return self._found or await self.since(float("-inf"))

    async def since(self, time_s: float, changed: bool = False) -> _Found | None:
        """What is there at `time_s` or later, in s since 1970; `changed`: a file did.

        Raises:
            DataLossError: it is no such file, or damaged; names it.
        """
        async with self._gate.acquire(None):
            known = self._found
            if known is not None and known.time >= time_s:
                return known
            now = time.time()
            if known is not None and not changed:
                same = await self.base.read(
                    self.key, ByteRange(0, 1), if_not_equal=known.generation
                )
                if same.state == "unspecified":
                    self._found = known._replace(time=now)
                    return self._found
            self._found = found = await self._look_up(now)
            if found is not None and self._cache is not None and self._cache.limit_bytes:
                self._cache.put(self._name, _Kept(self, found.hierarchy.size_bytes))
            return found

    async def _look_up(self, now: float) -> _Found | None:
        head = await self._head(self.key)
        if head is None:
            return None
        try:
            if bytes(head.value[:1]) == b"{":
                return await self._several(head, now)
            header = await self._header(self.key, head)
            generation = head.stamp.generation
            placed = {name: (self.key, tensor) for name, tensor in header.tensors.items()}
            hierarchy = Hierarchy(placed, header.metadata)
            return _Found(hierarchy, {self.key: generation}, generation, now)
        except (DataLossError, UnsupportedError) as error:
            raise type(error)(f"Error reading {self.describe()}: {error}") from error

    async def _several(self, head: ReadResult, now: float) -> _Found:
        """Of an index: the headers of all files that it names."""
        whole = await self.base.read(self.key)
        weights, metadata = _parse_index(bytes(whole.value))
        directory = self.key[: self.key.rfind("/") + 1]
        headers: dict[str, Header] = {}
        generations: dict[str, bytes] = {}

        async def load(file: str) -> None:
            first = await self._head(directory + file)
            if first is None:
                raise DataLossError(
                    f'the index names the file "{file}", which is not there; store it beside'
                )
            generations[directory + file] = first.stamp.generation
            try:
                headers[file] = await self._header(directory + file, first)
            except DataLossError as error:
                raise DataLossError(f'"{file}": {error}') from error

        files = sorted(set(weights.values()))
        await fan_out(self.base.inline, files, load, count=len(files), width=self.base.width)
        placed: dict[str, tuple[str, Tensor]] = {}
        for name, file in weights.items():
            tensor = headers[file].tensors.get(name)
            if tensor is None:
                raise DataLossError(f'the index says that "{name}" is in "{file}", and it is not')
            placed[name] = (directory + file, tensor)
        return _Found(Hierarchy(placed, metadata), generations, whole.stamp.generation, now)

    async def _head(self, key: str) -> ReadResult | None:
        """The beginning of a file; None if there is none."""
        try:
            found = await self.base.read(key, ByteRange(0, _HEAD_BYTES))
        except OutOfRangeError:  # it is shorter than that
            found = await self.base.read(key)
        return found if found.state == "value" else None

    async def _header(self, key: str, head: ReadResult) -> Header:
        size = header_size(bytes(head.value[:8]))
        text = bytes(head.value[8 : 8 + size])
        if len(text) < size:
            generation = head.stamp.generation
            try:
                found = await self.base.read(key, ByteRange(8, 8 + size), if_equal=generation)
            except OutOfRangeError:
                raise DataLossError("it is truncated: its header is longer than it") from None
            if found.state != "value":
                raise DataLossError("it was replaced while it was read; read it again")
            text = bytes(found.value)
        return Header.parse(text)


def _parse_index(text: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """Which file each tensor is in, and the metadata."""
    try:
        index = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"it is no index of safetensors files: {error}") from None
    weights = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weights, dict) or not all(
        isinstance(file, str) and file and "/" not in file for file in weights.values()
    ):
        raise DataLossError('it is no index of safetensors files: no "weight_map" of file names')
    metadata = index.get("metadata")
    return weights, metadata if isinstance(metadata, dict) else {}


class SafetensorsStore(RangeReadAsOf, KvStore):
    """See the head of this file."""

    def __init__(self, headers: Headers) -> None:
        self._headers = headers
        self._base = headers.base
        self.inline = self._base.inline
        self.width = self._base.width
        if self._base.identity is not None:
            self.identity = f"{self._base.identity}|{headers.key}|safetensors"

    async def read_ranges_as_of(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> list[ReadResult]:
        found = await self._headers.latest()
        attempts = RetryPolicy().begin("read", partial(self.describe_key, key), inline=self.inline)
        while True:
            value = None if found is None else found.hierarchy.value(key)
            if found is not None and isinstance(value, Part):
                generation = found.generations[value.file]
                if generation != if_not_equal and holds(if_equal, generation):
                    results = await self._fetch(value, generation, ranges)
                    if results is not None:
                        return results
                    await attempts.lost(generation)
                    found = await self._headers.since(time.time(), changed=True)
                    continue
            else:
                generation = NO_VALUE if found is None or value is None else found.generation
            if found is not None and found.time >= staleness_bound:
                if isinstance(value, Part):
                    return [_answer("unspecified", generation, found.time) for _ in ranges]
                return _of_document(value, generation, ranges, if_equal, if_not_equal, found.time)
            found = await self._headers.since(staleness_bound)
            if found is None:
                return [_answer("missing", NO_VALUE, time.time()) for _ in ranges]

    async def _fetch(
        self, part: Part, generation: bytes, ranges: Sequence[ByteRange]
    ) -> list[ReadResult] | None:
        """Parts of a value that is a range of a file; None if the file was replaced."""
        stored = part.stop - part.start
        spans = [each.resolve(part.size) for each in ranges]
        wanted = [
            ByteRange(part.start + min(first, stored), part.start + min(last, stored))
            for first, last in spans
        ]
        try:
            results = await read_ranges(self._base, part.file, wanted)
        except OutOfRangeError:
            same = await self._base.read(part.file, ByteRange(0, 1), if_not_equal=generation)
            if same.state != "unspecified":
                return None
            raise DataLossError(
                f"Error reading {self._headers.describe()}: it is truncated, and ends before byte "
                f"{part.stop} of {self._base.describe_key(part.file)}; copy it again"
            ) from None
        for result, (first, last), there in zip(results, spans, wanted, strict=True):
            if result.state != "value" or result.stamp.generation != generation:
                return None
            assert there.stop is not None
            missing = (last - first) - (there.stop - there.start)
            if missing:
                result.value = bytes(result.value) + bytes(missing)
        return results

    async def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        found = await self._headers.since(time.time())
        if found is not None:
            for key, size in found.hierarchy.entries():
                if key in key_range:
                    yield ListEntry(key, size)

    def describe_key(self, key: str) -> str:
        file = self._headers.describe()
        return f"{super().describe_key(key)} in {file}" if key else file


def _answer(state: Literal["missing", "unspecified"], generation: bytes, when: float) -> ReadResult:
    return ReadResult(state, b"", TimestampedStorageGeneration(generation, when))


def _of_document(
    value: Buffer | None,
    generation: bytes,
    ranges: Sequence[ByteRange],
    if_equal: bytes | None,
    if_not_equal: bytes | None,
    when: float,
) -> list[ReadResult]:
    results = [
        ReadResult.of(value, generation, each, if_equal=if_equal, if_not_equal=if_not_equal)
        for each in ranges
    ]
    for result in results:
        result.stamp.time = when
    return results


@kvstore("safetensors", schemes=["safetensors"])
class SafetensorsSpec(KvStoreSpec):
    """`{"driver": "safetensors", "base": "file:///model.safetensors"}`; read-only.

    As a URL `file:///model.safetensors|safetensors:`. The base may also be the index of several
    files, `model.safetensors.index.json`.

    Attributes:
        base: the file: a store whose path is its key.
        cache_pool: where headers are kept.

    Example:
        >>> SafetensorsSpec.from_url("safetensors:wte.weight/")
        {'driver': 'safetensors', 'path': 'wte.weight/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"base", "cache_pool"})

    base: KvStoreField
    cache_pool: Resource[ChunkCache] = ResourceField("cache_pool")

    @classmethod
    def detects(cls, head: bytes) -> bool:
        size = int.from_bytes(head[:8], "little")
        return head[8:9] == b"{" and 2 <= size <= LARGEST_HEADER

    def open(self) -> SafetensorsStore:
        cache, where = self.cache_pool.value, self.base
        scope = cache.scope(where.path, where, "safetensors")
        headers = cache.companion(
            scope, lambda: Headers(where.open(), where.path, cache, (scope, "header"))
        )
        return SafetensorsStore(headers)

    def to_url(self) -> str:
        return f"{self.base.to_url()}|safetensors:{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        path = adapter_url_rest(url, "safetensors")
        return {"driver": "safetensors", "path": path} if path else {"driver": "safetensors"}
