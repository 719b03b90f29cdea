"""Writing safetensors files: into a local directory, or into any store that can be written.

A local file is written where its bytes are, block after block of whole chunks, of which a few are
read ahead. A file in a store is sent in parts, if the store takes values so, each made of the
ranges of tensors that it is; else it is made whole, if it may be in memory. The invariant: no file
has its name before all of it is there, and an index is written after what it names.
"""

from __future__ import annotations

import io
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._interface.store_abilities import write_parts
from tensorstore_py._runtime.fan_out import to_thread
from tensorstore_py._spec.context import bind
from tensorstore_py.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    OutOfRangeError,
    SpecError,
    UnsupportedError,
)
from tensorstore_py.kvstores.safetensors.header import DATA_TYPES, NAMES, Tensor, make_header
from tensorstore_py.orbax.blocks import block_bytes, blocks_of, boxes_of

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context

__all__ = ["WIDER", "FileDirectory", "files_at", "write_files"]

#: So many reads of blocks are under way, of so many times the bytes of one block.
_AHEAD: Final = 16
_AHEAD_BLOCKS: Final = 2
_UNFINISHED: Final = ".tensorstore-part"
#: Types without a counterpart there whose values another one has.
WIDER: Final[Mapping[str, str]] = {
    "int4": "int8",
    "int2": "int8",
    "float4_e2m1fn": "float8_e4m3fn",
}
_MANY: Final = 10**15


class _Content(NamedTuple):
    """One file: its header, and its tensors in the order of their bytes."""

    head: bytes
    tensors: Mapping[str, Tensor]
    arrays: Mapping[str, TensorStore]

    @property
    def size(self) -> int:
        return max([len(self.head), *(tensor.stop for tensor in self.tensors.values())])


class FileDirectory(ABC):
    """Where files are written.

    Attributes:
        name: of the file that a user names.
    """

    name: str

    @abstractmethod
    async def check(self, name: str, *, replace: bool) -> None:
        """Look whether a file can be written.

        Raises:
            AlreadyExistsError: it is there, and is not to be replaced.
            FailedPreconditionError: it is a directory.
        """

    @abstractmethod
    async def write(self, name: str, content: _Content) -> None:
        """Write a file of tensors."""

    @abstractmethod
    async def write_text(self, name: str, text: str) -> None:
        """Write a text."""

    @abstractmethod
    def place(self, name: str) -> Path | str:
        """How to name a file to a program."""


def files_at(dest: object, context: Context) -> FileDirectory:
    """The directory of a file that a user names.

    Raises SpecError: something is wrong with it.
    """
    if isinstance(dest, os.PathLike):
        return _LocalFiles(Path(os.fspath(dest)), context)
    if isinstance(dest, str) and "://" not in dest and dest.lstrip()[:1] != "{":
        return _LocalFiles(Path(dest), context)
    given = dest.model if isinstance(dest, KvStore | KvStore.Spec) else KvStore.Spec(dest).model
    model = bind(given, context)
    if model.path[-1:] in ("", "/"):
        raise SpecError(
            f"{place(model)} is a directory; name a file in it, such as model.safetensors",
            ("dest",),
        )
    if model.driver == "file":
        return _LocalFiles(Path(model.path), context)
    return _StoredFiles(model, context)


async def write_files(
    files: FileDirectory,
    arrays: Mapping[str, TensorStore],
    *,
    tree: Mapping[str, str],
    metadata: Mapping[str, str],
    shard_bytes: int | None,
    replace: bool,
) -> list[Path | str]:
    """Write arrays into one file or several; where these are.

    Args:
        files: where.
        arrays: by the names of tensors.
        tree: what is said of their tree, in the file, or in the index of several.
        metadata: of each file.
        shard_bytes: as for `to_safetensors`.
        replace: whether files may be replaced.
    """
    typed = {name: _stored(name, array) for name, array in arrays.items()}
    # Large elements first, so that all begin where they are aligned.
    order = sorted(typed, key=lambda name: (-typed[name].dtype.itemsize, name))
    shards = _shards(files.name, [(name, typed[name]) for name in order], shard_bytes)
    several = len(shards) > 1
    index = f"{files.name}.index.json"
    names = [*shards, index] if several else list(shards)
    for name in names:
        await files.check(name, replace=replace)
    for name, inside in shards.items():
        head, tensors = make_header(
            ((each, NAMES[array.dtype.name], tuple(array.shape)) for each, array in inside.items()),
            metadata if several else {**tree, **metadata},
        )
        await files.write(name, _Content(head, tensors, inside))
    if several:
        await files.write_text(index, _index(shards, tree))
    return [files.place(name) for name in names]


def _shards(
    name: str, arrays: Sequence[tuple[str, TensorStore]], shard_bytes: int | None
) -> dict[str, dict[str, TensorStore]]:
    """Which arrays are in which file, by its name."""
    parts: list[dict[str, TensorStore]] = [{}]
    held = 0
    for each, array in arrays:
        size = _size(array)
        if parts[-1] and shard_bytes is not None and held + size > shard_bytes:
            parts.append({})
            held = 0
        parts[-1][each] = array
        held += size
    if len(parts) == 1:
        return {name: parts[0]}
    stem = name.removesuffix(".safetensors")
    return {
        f"{stem}-{at:05}-of-{len(parts):05}.safetensors": part for at, part in enumerate(parts, 1)
    }


def _index(shards: Mapping[str, Mapping[str, TensorStore]], tree: Mapping[str, str]) -> str:
    total = sum(_size(array) for inside in shards.values() for array in inside.values())
    weights = {name: file for file, inside in shards.items() for name in inside}
    metadata = {"total_size": total, **tree}
    return json.dumps({"metadata": metadata, "weight_map": weights}, indent=2)


def _stored(name: str, array: TensorStore) -> TensorStore:
    """An array as a type that the format has.

    Raises UnsupportedError: there is none.
    """
    known = array.dtype.name
    if known in NAMES:
        return array
    if known in WIDER:
        return array.astype(WIDER[known])
    raise UnsupportedError(
        f'"{name}" is of type {known}, which safetensors does not have; convert it to another one, '
        "or leave it out"
    )


def _size(array: TensorStore) -> int:
    return prod(array.shape) * DATA_TYPES[NAMES[array.dtype.name]][1]


# Local files.


class _LocalFiles(FileDirectory):
    """A directory of this machine.

    Args:
        file: that a user names.
        context: its `memory_limit` bounds what is in memory.
    """

    def __init__(self, file: Path, context: Context) -> None:
        self.name = file.name
        self._file = file
        self._most = block_bytes(context)

    def place(self, name: str) -> Path:
        return self._file.with_name(name)

    async def check(self, name: str, *, replace: bool) -> None:
        path = self.place(name)
        if path.is_dir():
            raise FailedPreconditionError(
                f"{path} is a directory; name a file in it, such as {path / 'model.safetensors'}"
            )
        if not replace and path.exists():
            raise AlreadyExistsError(f"{path} is there already; name another file, or replace it")

    async def write(self, name: str, content: _Content) -> None:
        path = self.place(name)
        unfinished = path.with_name(f".{secrets.token_hex(8)}{_UNFINISHED}")
        try:
            file = await to_thread(lambda: _begun(unfinished, content))
            try:
                await self._copy(content.arrays, content.tensors, file)
                await to_thread(lambda: _finished(file))
            finally:
                file.close()
            await to_thread(lambda: unfinished.replace(path))
        except OSError as error:
            raise FailedPreconditionError(f'cannot write "{path}": {error}') from error
        finally:
            with suppress(OSError):
                unfinished.unlink()

    async def write_text(self, name: str, text: str) -> None:
        await to_thread(lambda: _write_text(self.place(name), text))

    async def _copy(
        self, arrays: Mapping[str, TensorStore], tensors: Mapping[str, Tensor], file: io.FileIO
    ) -> None:
        """Copy all blocks, a few of them read ahead."""
        ahead: deque[tuple[Tensor, tuple[slice, ...], int, Future[Any]]] = deque()
        held = 0
        blocks = blocks_of(arrays, self._most)
        more = True
        try:
            while True:
                while more and (not ahead or (
                    held < _AHEAD_BLOCKS * self._most and len(ahead) < _AHEAD
                )):  # fmt: skip
                    block = next(blocks, None)
                    if block is None:
                        more = False
                        break
                    name, region, size = block
                    future = arrays[name][region].read()
                    future.force()
                    ahead.append((tensors[name], region, size, future))
                    held += size
                if not ahead:
                    return
                tensor, region, size, future = ahead.popleft()
                data = await future
                del future
                await to_thread(lambda: _put(file, tensor, region, data))  # noqa: B023 - awaited
                del data
                held -= size
        finally:
            for *_, future in ahead:
                future.cancel()


def _begun(path: Path, content: _Content) -> io.FileIO:
    """A new file with its header, as large as it will be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = io.FileIO(path, "x+")
    try:
        _write_all(file, 0, content.head)
        file.truncate(content.size)
    except BaseException:
        file.close()
        raise
    return file


def _put(
    file: io.FileIO, tensor: Tensor, region: tuple[slice, ...], data: np.ndarray[Any, Any]
) -> None:
    """Write a block where it is in a tensor: in runs that are contiguous there."""
    plain = _little(data)
    item_size, shape = plain.dtype.itemsize, tensor.shape
    cut = 0  # dimensions from here on are whole, but for the first of them
    for dim, each in enumerate(region):
        if each.stop - each.start < shape[dim]:
            cut = dim
    runs = plain.reshape(prod(plain.shape[:cut]), -1).view(np.uint8) if plain.size else ()
    strides = [prod(shape[dim + 1 :]) * item_size for dim in range(len(shape))]
    first = tensor.start + sum(s.start * k for s, k in zip(region, strides, strict=True))
    for run, at in zip(runs, np.ndindex(*plain.shape[:cut]), strict=False):
        offset = first + sum(i * k for i, k in zip(at, strides, strict=False))
        _write_all(file, offset, run.data)


def _write_all(file: io.FileIO, offset: int, data: bytes | memoryview) -> None:
    file.seek(offset)
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _finished(file: io.FileIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _little(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Contiguous and little-endian."""
    little = data.dtype.newbyteorder("<") if data.dtype.byteorder == ">" else data.dtype
    return np.ascontiguousarray(data, little)


def _write_text(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{secrets.token_hex(8)}{_UNFINISHED}")
    try:
        unfinished.write_text(text)
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink()


# Files in stores.


class _StoredFiles(FileDirectory):
    """A directory of a store.

    Args:
        model: the bound spec of the store, at the file that a user names.
        context: its `memory_limit` bounds what is in memory.
    """

    def __init__(self, model: KvStoreSpec, context: Context) -> None:
        self._directory, _, self.name = model.path.rpartition("/")
        self._model = model
        self._store = KvStore.of(model, model.open()).store
        self._most = block_bytes(context)
        self._limit: int = min(context["memory_limit"].value.limit, _MANY)

    def _key(self, name: str) -> str:
        return f"{self._directory}/{name}" if self._directory else name

    def _at(self, name: str) -> KvStore:
        model = self._model.replace(path=self._key(name))
        return KvStore.of(model, self._store)

    def place(self, name: str) -> str:
        return place(self._model.replace(path=self._key(name)))

    async def check(self, name: str, *, replace: bool) -> None:
        if replace:
            return
        try:
            there = (await self._at(name).read("", byte_range=slice(0, 1))).state == "value"
        except OutOfRangeError:
            there = True  # and it is empty
        if there:
            where = self._store.describe_key(self._key(name))
            raise AlreadyExistsError(f"{where} is there already; name another file, or replace it")

    async def write(self, name: str, content: _Content) -> None:
        async def load(start: int, stop: int) -> bytearray:
            return await _loaded(content, start, stop)

        await write_parts(
            self._store, self._key(name), content.size, load,
            part_bytes=self._most, most=self._limit,
        )  # fmt: skip

    async def write_text(self, name: str, text: str) -> None:
        await self._at(name).write("", text.encode())


async def _loaded(content: _Content, start: int, stop: int) -> bytearray:
    """The bytes of a range of a file."""
    found = bytearray(stop - start)
    out = memoryview(found)
    head = content.head[start:stop]
    out[: len(head)] = head
    for name, tensor in content.tensors.items():
        first, last = max(start, tensor.start), min(stop, tensor.stop)
        if first < last:
            part = out[first - start : last - start]
            await _fill(part, content.arrays[name], first - tensor.start)
    return found


async def _fill(out: memoryview, array: TensorStore, start: int) -> None:
    """Fill memory with the bytes of an array from the `start`-th on, row-major, little-endian."""
    size = array.dtype.itemsize
    first, last = start // size, -(-(start + len(out)) // size)
    reads: list[Future[Any]] = []
    for box in boxes_of(tuple(array.shape), first, last):
        future = array[box].read()
        future.force()
        reads.append(future)
    reads.reverse()
    at = first * size - start  # before the beginning, if that is within an element
    while reads:
        data = _little(await reads.pop()).reshape(-1).view(np.uint8).data
        low, high = max(0, -at), min(len(data), len(out) - at)
        out[at + low : at + high] = data[low:high]
        at += len(data)
