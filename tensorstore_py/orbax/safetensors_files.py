"""`to_safetensors` and `from_safetensors`: checkpoints as safetensors files, and back.

A file is written from its beginning to its end, tensor by tensor, each in blocks of whole chunks,
of which a few are read ahead; so memory is bounded whatever is converted. The invariant: no file
has its name before all of it is on the disk, and an index is written after what it names.

What safetensors cannot say (lists, numbers, texts, None) is in the metadata of the file, so that a
checkpoint made of it has the same tree again.
"""

from __future__ import annotations

import io
import json
import os
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore_spec import parse_kvstore_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import to_thread
from tensorstore_py._runtime.future import Future, OnInterrupt
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    SpecError,
    UnsupportedError,
)
from tensorstore_py.kvstores.safetensors.header import DATA_TYPES, NAMES, Tensor, make_header
from tensorstore_py.orbax.blocks import block_bytes, blocks_of
from tensorstore_py.orbax.checkpoint import Checkpoint
from tensorstore_py.orbax.documents import parse_containers, tuples_said
from tensorstore_py.orbax.leaves import (
    Keys,
    flat_name,
    leaves_of,
    matching,
    nest,
    selected,
    shaped,
)
from tensorstore_py.orbax.opening import directory_at, open
from tensorstore_py.orbax.saving import save

if TYPE_CHECKING:
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.dtype import DTypeLike

__all__ = ["from_safetensors", "to_safetensors"]

#: In the metadata of a file: the tree that its tensors are of, and which containers of it are
#: tuples.
_TREE: Final = "orbax_tree"
_TUPLES: Final = "orbax_tuples"
_UNFINISHED: Final = ".tensorstore-part"
#: So many reads of blocks are under way, of so many times the bytes of one block.
_AHEAD: Final = 16
_AHEAD_BLOCKS: Final = 2
#: Types without a counterpart there whose values another one has.
_WIDER: Final[Mapping[str, str]] = {
    "int4": "int8",
    "int2": "int8",
    "float4_e2m1fn": "float8_e4m3fn",
}


def to_safetensors(
    source: object,
    dest: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    dtype: DTypeLike | None = None,
    shard_bytes: int | None = None,
    metadata: Mapping[str, str] | None = None,
    replace: bool = False,
    context: Context | None = None,
) -> Future[list[Path]]:
    """Write the arrays of a checkpoint into a safetensors file, or into several.

    Args:
        source: a `Checkpoint`, or its directory, as for `open`.
        dest: a local file, such as `model.safetensors`.
        names: only these: flat names, branches or patterns such as `"params.*"`.
        dtype: convert floating-point arrays to this type.
        shard_bytes: of several files that are so large at most, unless a single tensor is larger.
            They are called `model-00001-of-00003.safetensors`, and `model.safetensors.index.json`
            tells which of them has which tensor.
        metadata: texts to store with the tensors.
        replace: replace files that are there.
        context: shared resources; its `memory_limit` bounds what is in memory.

    Returns:
        A Future of the files that were written.

    Raises:
        SpecError: (at once) the place is wrong, or `dtype`.
        AlreadyExistsError: (by the Future) a file is there, and `replace` is off.
        NotFoundError: (by the Future) there is no checkpoint, or no array in it of such a name.
        UnsupportedError: (by the Future) an array has a type that safetensors has not; names both.
        FailedPreconditionError: (by the Future) a file cannot be written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context, where = ts.Context(), Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> ts.orbax.save({"a": {"w": np.ones(3, "f")}}, "memory://a/", context=context).result()
        >>> files = ts.orbax.to_safetensors("memory://a/", where, context=context).result()
        >>> [file.name for file in files]
        ['model.safetensors']
        >>> ts.Group.open(where).result()["a.w"].read().result()
        array([1., 1., 1.], dtype=float32)
    """
    shared = as_context(context)
    asked = None if names is None else list(names)
    wanted = None if dtype is None else DType(dtype)
    if "://" in os.fspath(dest):
        raise SpecError(
            f"{dest} is a URL; safetensors files are written to local files: name one, and "
            "copy it from there",
            ("dest",),
        )
    if shard_bytes is not None and shard_bytes < 1:
        raise SpecError("must be positive", ("shard_bytes",))
    if not isinstance(source, Checkpoint):
        directory_at(source, shared)  # what is wrong with it is raised at once

    async def body() -> list[Path]:
        checkpoint = (
            source if isinstance(source, Checkpoint) else await open(source, context=shared)
        )
        arrays = await checkpoint._as_type(wanted).arrays(asked)
        if not arrays:
            raise NotFoundError(
                _nothing(f"{checkpoint!r}", "array", asked, checkpoint.array_names())
            )
        types = {n: a.dtype.name for n, a in arrays.items() if a.dtype.name in _WIDER}
        tree = _tree_texts(checkpoint, asked, types)
        writer = _Writer(Path(dest), tree, metadata or {}, block_bytes(shared), replace)
        return await writer.write(arrays, shard_bytes)

    # Cancelled, it leaves nothing under the final name.
    return start(False, body, on_interrupt=OnInterrupt.CANCEL)


def from_safetensors(
    source: object,
    dest: object,
    *,
    names: Iterable[str] | None = None,
    dtype: DTypeLike | None = None,
    compress: bool = True,
    context: Context | None = None,
) -> Future[None]:
    """Write the tensors of a safetensors file, or of several, as a checkpoint of Orbax.

    Args:
        source: the file, or the index of several: a URL, or a local path as `os.PathLike`.
        dest: a directory that is not there yet, as for `save`.
        names: only these: names of tensors, what they begin with up to a dot, or patterns.
        dtype: convert floating-point tensors to this type.
        compress: with zstd.
        context: shared resources; its `memory_limit` bounds what is in memory.

    Names are cut at their dots: `a.w` is `tree["a"]["w"]`. Where a file was made by
    `to_safetensors` it has the tree that it was made of again.

    Raises:
        SpecError: (at once) a place is wrong, or `dtype`.
        AlreadyExistsError: (by the Future) something is there.
        NotFoundError: (by the Future) there is no file, or no tensor in it of such a name.
        DataLossError: (by the Future) a file is damaged; names it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context, where = ts.Context(), Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> ts.orbax.save({"a": [np.ones(3)]}, "memory://a/", context=context).result()
        >>> files = ts.orbax.to_safetensors("memory://a/", where, context=context).result()
        >>> ts.orbax.from_safetensors(where, "memory://b/", context=context).result()
        >>> ts.orbax.open("memory://b/", context=context).result().read().result()
        {'a': [array([1., 1., 1.])]}
    """
    shared = as_context(context)
    asked = None if names is None else list(names)
    wanted = None if dtype is None else DType(dtype)
    where = source.absolute().as_uri() if isinstance(source, Path) else source
    file = parse_kvstore_spec({"driver": "safetensors", "base": where})
    directory_at(dest, shared)

    async def body() -> None:
        bound = bind(file, shared)
        try:
            group = await Group.open({"driver": "zarr3", "kvstore": bound}, context=shared)
        except NotFoundError as error:
            raise NotFoundError(
                f"{bound.open().describe_key('')} is not there; name a safetensors file, or the "
                "index of several"
            ) from error
        tensors = [each for each in await group.members(None) if isinstance(each[1], TensorStore)]
        found = {
            name: array
            for name, array in tensors
            if isinstance(array, TensorStore) and matching(name, asked)
        }
        if not found:
            there = [name for name, _ in tensors]
            raise NotFoundError(_nothing(f"{group!r}", "tensor", asked, there))
        if wanted is not None:
            found = {name: _as_type(array, wanted) for name, array in found.items()}
        said = await group.attrs.read() if asked is None else {}
        tree = await _tree_of(found, said.get(_TREE))
        where = f'the metadata "{_TUPLES}" of the file'
        tree = shaped(tree, parse_containers(said.get(_TUPLES), where))
        await save(tree, dest, compress=compress, context=shared)

    # Cancelled, it leaves nothing under the final name.
    return start(False, body, on_interrupt=OnInterrupt.CANCEL)


def _nothing(where: str, what: str, asked: list[str] | None, there: list[str]) -> str:
    """That no name is one of those asked for, and which names there are."""
    if not there:
        return f"{where} has no {what}"
    few = ", ".join(there[:8]) + ", …" * (len(there) > 8)
    return f"{where} has no {what} named {', '.join(asked or ())}; it has {few}"


def _as_type(array: TensorStore, wanted: DType) -> TensorStore:
    return array.astype(wanted) if array.dtype.name.lstrip("b").startswith("float") else array


# The tree.


def _tree_texts(
    checkpoint: Checkpoint, names: list[str] | None, types: Mapping[str, str]
) -> dict[str, str]:
    """The keys of all leaves, values of those that are no arrays, and tuples, as JSON.

    `types` are those of arrays that the format has under another one.
    """
    said: list[object] = []
    for keys, leaf in leaves_of(checkpoint._node):
        if not matching(flat_name(keys), names):
            continue
        if leaf.kind != "value" or hasattr(leaf.value, "__array__"):
            said.append([keys, leaf.kind, types.get(flat_name(keys))])
            continue
        with suppress(TypeError, ValueError):  # what JSON cannot say is left out
            value = list(leaf.value) if isinstance(leaf.value, tuple) else leaf.value
            said.append(json.loads(json.dumps([keys, "value", value])))
    texts = {_TREE: json.dumps(said, separators=(",", ":"))}
    node = checkpoint._node if names is None else selected(checkpoint._node, names)
    tuples = tuples_said(node)
    return texts if tuples is None else {**texts, _TUPLES: tuples}


async def _tree_of(tensors: Mapping[str, TensorStore], text: object) -> Any:  # noqa: ANN401
    """Tensors as the tree that was told, or cut at the dots of their names.

    Raises DataLossError: the metadata is damaged.
    """
    if isinstance(text, str):
        return nest([leaf async for leaf in _told(tensors, text)])
    inner = {name[:at] for name in tensors for at, letter in enumerate(name) if letter == "."}
    leaves: list[tuple[Keys, object]] = []
    for name, array in tensors.items():
        parts = tuple(name.split("."))
        above = {".".join(parts[:size]) for size in range(1, len(parts))}
        cut = name not in inner and above.isdisjoint(tensors) and "" not in parts
        leaves.append((parts if cut else (name,), array))
    return nest(leaves)


async def _told(
    tensors: Mapping[str, TensorStore], text: str
) -> AsyncIterator[tuple[Keys, object]]:
    left = dict(tensors)
    try:
        said = [(tuple(keys), kind, what) for keys, kind, what in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise DataLossError(f'the metadata "{_TREE}" of the file is damaged: {error}') from None
    for keys, kind, what in said:
        array = left.pop(flat_name(keys), None)
        if kind == "value":
            yield keys, what
        elif array is not None:
            typed = array if what is None else array.astype(what)
            yield keys, (await typed.read())[()] if kind == "scalar" else typed
    for name, array in left.items():
        yield (name,), array


# Writing files.


class _Shard(NamedTuple):
    """One of the files."""

    path: Path
    arrays: dict[str, TensorStore]


class _Writer:
    """Writes arrays into files.

    Args:
        dest: the file, or what the files are named after.
        tree: what is said of the tree, in the file, or in the index of several.
        metadata: of each.
        most: how many bytes a block has, about.
        replace: whether files may be replaced.
    """

    def __init__(
        self,
        dest: Path,
        tree: Mapping[str, str],
        metadata: Mapping[str, str],
        most: int,
        replace: bool,
    ) -> None:
        self._dest = dest
        self._tree = tree
        self._metadata = metadata
        self._most = most
        self._replace = replace

    async def write(self, arrays: Mapping[str, TensorStore], shard_bytes: int | None) -> list[Path]:
        """Write all of them; the paths of the files."""
        typed = {name: _stored(name, array) for name, array in arrays.items()}
        # Large elements first, so that all begin where they are aligned.
        order = sorted(typed, key=lambda name: (-typed[name].dtype.itemsize, name))
        shards = self._shards([(name, typed[name]) for name in order], shard_bytes)
        index = self._dest.with_name(f"{self._dest.name}.index.json")
        paths = [shard.path for shard in shards] + ([index] if len(shards) > 1 else [])
        for path in paths:
            if not self._replace and path.exists():
                raise AlreadyExistsError(
                    f"{path} is there already; name another file, or replace it"
                )
        for shard in shards:
            await self._write_shard(shard, len(shards) > 1)
        if len(shards) > 1:
            await to_thread(lambda: _write_text(index, _index(shards, self._tree)))
        return paths

    def _shards(
        self, arrays: Sequence[tuple[str, TensorStore]], shard_bytes: int | None
    ) -> list[_Shard]:
        parts: list[dict[str, TensorStore]] = [{}]
        held = 0
        for name, array in arrays:
            size = _size(array)
            if parts[-1] and shard_bytes is not None and held + size > shard_bytes:
                parts.append({})
                held = 0
            parts[-1][name] = array
            held += size
        if len(parts) == 1:
            return [_Shard(self._dest, parts[0])]
        stem = self._dest.name.removesuffix(".safetensors")
        return [
            _Shard(self._dest.with_name(f"{stem}-{at:05}-of-{len(parts):05}.safetensors"), part)
            for at, part in enumerate(parts, 1)
        ]

    async def _write_shard(self, shard: _Shard, several: bool) -> None:
        head, tensors = make_header(
            (
                (name, NAMES[array.dtype.name], tuple(array.shape))
                for name, array in shard.arrays.items()
            ),
            self._metadata if several else {**self._tree, **self._metadata},
        )
        unfinished = shard.path.with_name(f".{secrets.token_hex(8)}{_UNFINISHED}")
        try:
            file = await to_thread(lambda: _begun(unfinished, head, tensors))
            try:
                await self._copy(shard.arrays, tensors, file)
                await to_thread(lambda: _finished(file))
            finally:
                file.close()
            await to_thread(lambda: unfinished.replace(shard.path))
        except OSError as error:
            raise FailedPreconditionError(f'cannot write "{shard.path}": {error}') from error
        finally:
            with suppress(OSError):
                unfinished.unlink()

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


def _stored(name: str, array: TensorStore) -> TensorStore:
    """An array as a type that the format has.

    Raises UnsupportedError: there is none.
    """
    known = array.dtype.name
    if known in NAMES:
        return array
    if known in _WIDER:
        return array.astype(_WIDER[known])
    raise UnsupportedError(
        f'"{name}" is of type {known}, which safetensors does not have; convert it to another one, '
        "or leave it out"
    )


def _size(array: TensorStore) -> int:
    return prod(array.shape) * DATA_TYPES[NAMES[array.dtype.name]][1]


def _begun(path: Path, head: bytes, tensors: Mapping[str, Tensor]) -> io.FileIO:
    """A new file with its header, as large as it will be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = io.FileIO(path, "x+")
    try:
        _write_all(file, 0, head)
        file.truncate(max([len(head), *(tensor.stop for tensor in tensors.values())]))
    except BaseException:
        file.close()
        raise
    return file


def _put(
    file: io.FileIO, tensor: Tensor, region: tuple[slice, ...], data: np.ndarray[Any, Any]
) -> None:
    """Write a block where it is in a tensor: in runs that are contiguous there."""
    little = data.dtype.newbyteorder("<") if data.dtype.byteorder == ">" else data.dtype
    plain = np.ascontiguousarray(data, little)
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


def _index(shards: Sequence[_Shard], tree: Mapping[str, str]) -> str:
    total = sum(_size(array) for shard in shards for array in shard.arrays.values())
    weights = {name: shard.path.name for shard in shards for name in shard.arrays}
    metadata = {"total_size": total, **tree}
    return json.dumps({"metadata": metadata, "weight_map": weights}, indent=2)


def _write_text(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{secrets.token_hex(8)}{_UNFINISHED}")
    try:
        unfinished.write_text(text)
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink()
