"""`to_safetensors` and `from_safetensors`: checkpoints as safetensors files, and back.

Memory is bounded whatever is converted; how files are written is in `safetensors_writing`.

What safetensors cannot say (lists, numbers, texts, None) is in the metadata of the file, so that a
checkpoint made of it has the same tree again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore_spec import parse_kvstore_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import Future, OnInterrupt
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.errors import (
    DataLossError,
    NotFoundError,
    SpecError,
)
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
from tensorstore_py.orbax.safetensors_writing import WIDER, files_at, write_files
from tensorstore_py.orbax.saving import save

if TYPE_CHECKING:
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.dtype import DTypeLike

__all__ = ["from_safetensors", "to_safetensors"]

#: In the metadata of a file: the tree that its tensors are of, and which containers of it are
#: tuples.
_TREE: Final = "orbax_tree"
_TUPLES: Final = "orbax_tuples"


def to_safetensors(
    source: object,
    dest: object,
    *,
    names: Iterable[str] | None = None,
    dtype: DTypeLike | None = None,
    shard_bytes: int | None = None,
    metadata: Mapping[str, str] | None = None,
    replace: bool = False,
    context: Context | None = None,
) -> Future[list[Any]]:
    """Write the arrays of a checkpoint into a safetensors file, or into several.

    Args:
        source: a `Checkpoint`, or its directory, as for `open`.
        dest: a local file, such as `model.safetensors`, or a file in any store: a URL, a JSON
            spec, a `KvStore`. S3 is sent it in parts; other stores but local files take a value as
            a whole, which must then fit `memory_limit`.
        names: only these: flat names, branches or patterns such as `"params.*"`.
        dtype: convert floating-point arrays to this type.
        shard_bytes: of several files that are so large at most, unless a single tensor is larger.
            They are called `model-00001-of-00003.safetensors`, and `model.safetensors.index.json`
            tells which of them has which tensor.
        metadata: texts to store with the tensors.
        replace: replace files that are there.
        context: shared resources; its `memory_limit` bounds what is in memory.

    Returns:
        A Future of the files that were written: paths of local files, URLs of others.

    Raises:
        SpecError: (at once) the place is wrong, or `dtype`.
        AlreadyExistsError: (by the Future) a file is there, and `replace` is off.
        NotFoundError: (by the Future) there is no checkpoint, or no array in it of such a name.
        UnsupportedError: (by the Future) an array has a type that safetensors has not; names both.
        FailedPreconditionError: (by the Future) a file cannot be written, or is a directory.
        ResourceExhaustedError: (by the Future) a file is larger than `memory_limit`, and the store
            takes values as a whole; `shard_bytes` makes several.

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
    files = files_at(dest, shared)
    if shard_bytes is not None and shard_bytes < 1:
        raise SpecError("must be positive", ("shard_bytes",))
    if not isinstance(source, Checkpoint):
        directory_at(source, shared)  # what is wrong with it is raised at once

    async def body() -> list[Any]:
        checkpoint = (
            source if isinstance(source, Checkpoint) else await open(source, context=shared)
        )
        arrays = await checkpoint._as_type(wanted).arrays(asked)
        if not arrays:
            raise NotFoundError(
                _nothing(f"{checkpoint!r}", "array", asked, checkpoint.array_names())
            )
        types = {n: a.dtype.name for n, a in arrays.items() if a.dtype.name in WIDER}
        return await write_files(
            files,
            arrays,
            tree=_tree_texts(checkpoint, asked, types),
            metadata=metadata or {},
            shard_bytes=shard_bytes,
            replace=replace,
        )

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
