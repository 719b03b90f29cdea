"""`save`: a tree of arrays as a checkpoint that Orbax restores.

What is stored is what Orbax stores of NumPy arrays: an OCDBT database of zarr3 arrays, which are
named by their keys, and the documents of the tree. Small arrays are encoded in memory and stored
many in a transaction, larger ones by themselves, so memory is bounded. The invariant: what is not
finished is no checkpoint. A local directory gets its name when all is in it; elsewhere the
documents that make it a checkpoint are stored last.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import parse_kvstore_spec
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import fan_out, to_thread
from tensorstore_py._runtime.future import Future, OnInterrupt
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.errors import AlreadyExistsError, SpecError, UnsupportedError
from tensorstore_py.orbax import documents
from tensorstore_py.orbax.blocks import block_bytes
from tensorstore_py.orbax.checkpoint import Checkpoint, raise_damaged
from tensorstore_py.orbax.leaves import Keys, Leaf, branches, fields_of, flat_name
from tensorstore_py.orbax.opening import directory_at

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._spec.context import Context
    from tensorstore_py.orbax.layout import Directory

__all__ = ["row_chunks", "save"]

#: Chunks are that large at most; those of the store `safetensors` are the same.
_CHUNK_BYTES: Final = 2**23
_AT_A_TIME: Final = 16
_DATABASE: Final = {
    "config": {
        "max_inline_value_bytes": 1024,
        "max_decoded_node_bytes": 100_000_000,
        "manifest_kind": "single",
    },
    "assume_config": True,
}
_CODECS: Final = (
    {"name": "bytes", "configuration": {"endian": "little"}},
    {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
)
_HANDLER: Final = "orbax.checkpoint._src.handlers.pytree_checkpoint_handler.PyTreeCheckpointHandler"


class _Entry(NamedTuple):
    """A leaf that is saved.

    Attributes:
        value_type: what Orbax calls it.
        array: what is stored of it as an array, if it is one.
        text: what it is, if it is a text.
    """

    keys: Keys
    value_type: str
    array: object = None
    text: str | None = None

    @property
    def value_metadata(self) -> dict[str, object]:
        """What `_METADATA` says of it besides its keys."""
        stored = self.array is not None or self.text is not None
        return {"value_type": self.value_type, "skip_deserialize": not stored}


def save(
    tree: object,
    where: object,
    *,
    compress: bool = True,
    context: Context | None = None,
) -> Future[None]:
    """Write a tree of arrays as a checkpoint, as Orbax would: OCDBT, zarr3.

    Args:
        tree: nested dicts, lists and tuples of NumPy arrays, `TensorStore`s, numbers, texts and
            None; or a `Checkpoint`. Keys are texts.
        where: a directory that is not there yet, as for `open`. Orbax restores it by its path;
            a step of a CheckpointManager is `where/7/default/`.
        compress: with zstd.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: (at once) something in the tree cannot be saved, or two leaves have one name.
        AlreadyExistsError: (by the Future) something is there.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context = ts.Context()
        >>> tree = {"w": np.arange(3), "layers": [np.ones(2), None]}
        >>> ts.orbax.save(tree, "memory://a/", context=context).result()
        >>> ts.orbax.open("memory://a/", context=context).result().read().result()
        {'w': array([0, 1, 2]), 'layers': [array([1., 1.]), None]}
    """
    shared = as_context(context)
    plan = _Plan(tree)
    directory = directory_at(where, shared)
    most = block_bytes(shared)

    async def body() -> None:
        if await directory.names():
            raise AlreadyExistsError(
                f"{directory.describe()} is there already; delete it, or name another directory"
            )
        local = _local_path(directory.model)
        if local is None:
            await _store(plan, directory, most, compress)
            return
        unfinished = f"{local}{documents.UNFINISHED}-{secrets.token_hex(6)}"
        model = directory.model.replace(path=f"{unfinished}/")
        try:
            await _store(plan, type(directory)(model, shared), most, compress)
            await to_thread(lambda: os.rename(unfinished, local))  # noqa: PTH104 - a path is text
        except BaseException:
            with suppress(OSError):
                shutil.rmtree(unfinished)
            raise

    # Cancelled, it leaves nothing under the final name.
    return start(False, body, on_interrupt=OnInterrupt.CANCEL)


def _local_path(model: KvStoreSpec) -> str | None:
    """The directory of this machine that a store is; None: it is elsewhere."""
    return model.path.rstrip("/") if model.driver == "file" else None


def row_chunks(shape: tuple[int, ...], item_size: int) -> tuple[int, ...]:
    """The shape of chunks of as many whole rows as are not too large.

    Example:
        >>> row_chunks((3, 4), 4), row_chunks((100, 2**20), 4), row_chunks((), 8)
        ((3, 4), (2, 1048576), ())
    """
    room = max(1, _CHUNK_BYTES // item_size)
    for dim, extent in enumerate(shape):
        below = prod(max(1, each) for each in shape[dim + 1 :])
        if below <= room:
            rest = (max(1, each) for each in shape[dim + 1 :])
            return (*(1,) * dim, max(1, min(extent, room // below)), *rest)
    return ()


# What there is to save.


class _Plan:
    """The leaves of a tree in order, and which containers it has.

    Args:
        tree: what a user passes.

    Raises SpecError: see `save`.
    """

    def __init__(self, tree: object) -> None:
        if isinstance(tree, TensorStore) or hasattr(tree, "dtype"):
            raise SpecError("a checkpoint is a tree: pass a dict with the array in it")
        self.entries: list[_Entry] = []
        self.has_tuples = False
        self.said = self._add(tree, ())
        _check_names(self.entries)

    def _add(self, node: object, keys: Keys, source: Checkpoint | None = None) -> object:
        """What is said of a node's containers; its leaves become entries."""
        if isinstance(node, Checkpoint):
            return self._add(node._node, keys, node)
        if isinstance(node, Leaf) and source is not None:
            if node.kind == "damaged":
                raise_damaged(node)
            if node.kind == "value":
                return self._add(node.value, keys)
            value_type = "scalar" if node.kind == "scalar" else "np.ndarray"
            return self._add_leaf(_Entry(keys, value_type, _Later(source, node)))
        if isinstance(node, Mapping | list | tuple) and not isinstance(node, Leaf):
            return self._add_container(node, keys, source)
        return self._add_leaf(_of_value(node, keys))

    def _add_container(
        self,
        node: Mapping[object, object] | list[object] | tuple[object, ...],
        keys: Keys,
        source: Checkpoint | None,
    ) -> object:
        if not node:
            return self._add_leaf(_Entry(keys, _empty_type(node)))
        inside = []
        pairs: list[tuple[Any, object]] = (
            list(node.items()) if isinstance(node, Mapping) else branches(node)
        )
        for key, below in pairs:
            if not isinstance(key, str | int) or key == "":
                raise SpecError(f"keys of a checkpoint are texts, but found {key!r} at {keys}")
            name = str(key) if isinstance(node, Mapping) else key
            inside.append((name, self._add(below, (*keys, name), source)))
        self.has_tuples |= isinstance(node, tuple)
        return documents.container_said(node, inside)

    def _add_leaf(self, entry: _Entry) -> object:
        self.entries.append(entry)
        return documents.leaf_said(entry.value_metadata)


def _empty_type(node: object) -> str:
    if isinstance(node, tuple):
        return "Tuple" if fields_of(node) is None else "NamedTuple"
    return "List" if isinstance(node, list) else "Dict"


def _check_names(entries: list[_Entry]) -> None:
    """Raises SpecError: two leaves have one name, or one cannot be named in a store."""
    seen: dict[str, Keys] = {}
    for entry in entries:
        name = flat_name(entry.keys)
        if name in seen:
            raise SpecError(
                f"{seen[name]} and {entry.keys} have the same name in a checkpoint, {name!r}; "
                "rename one"
            )
        if "" in name.split("/") or not {".", ".."}.isdisjoint(name.split("/")):
            raise SpecError(f"{entry.keys} cannot be named in a store: {name!r}; rename it")
        seen[name] = entry.keys


class _Later(NamedTuple):
    """An array of a checkpoint that is opened when it is its turn."""

    checkpoint: Checkpoint
    leaf: Leaf


def _of_value(value: object, keys: Keys) -> _Entry:
    if value is None:
        return _Entry(keys, "None")
    if isinstance(value, str):
        return _Entry(keys, "string", text=value)
    if isinstance(value, bool | int | float | complex | np.generic):
        return _Entry(keys, "scalar", np.asarray(value))
    if isinstance(value, TensorStore):
        return _Entry(keys, "np.ndarray", value)
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            return _Entry(keys, "np.ndarray", array)
    raise SpecError(
        f"{flat_name(keys)} is of type {type(value).__name__}, which a checkpoint cannot have; "
        "it has arrays of numbers, numbers, texts and None"
    )


# Storing it.


async def _store(plan: _Plan, directory: Directory, most: int, compress: bool) -> None:
    started = time.time_ns()
    database = bind(
        parse_kvstore_spec({"driver": "ocdbt", "base": directory.model, **_DATABASE}),
        directory.context,
    )
    store = KvStore.of(database, database.open())
    batch: dict[str, Any] = {}
    held = 0
    for entry in plan.entries:
        if entry.array is None:
            continue
        array = await _opened(entry.array)
        name = flat_name(entry.keys)
        size = prod(array.shape) * array.dtype.itemsize
        if size > most:
            await _store_array(database, directory, name, array, compress)
            continue
        if held + size > most:
            await _store_batch(store, batch, compress)
            batch, held = {}, 0
        batch[name] = array
        held += size
    await _store_batch(store, batch, compress)
    await store.store.aclose()
    files = KvStore.of(directory.model, directory.model.open())
    for name, text in _documents(plan, started):
        await files.write(name, text.encode())


async def _opened(array: object) -> Any:  # noqa: ANN401 - an array of either kind
    if isinstance(array, _Later):
        return await array.checkpoint._opened(array.leaf)
    return array


async def _store_batch(store: KvStore, batch: dict[str, Any], compress: bool) -> None:
    """Store small arrays together, in one transaction."""
    arrays = dict(batch)

    async def load(name: str) -> None:
        if isinstance(arrays[name], TensorStore):
            arrays[name] = await arrays[name].read()

    await fan_out(False, list(arrays), load, count=len(arrays), width=_AT_A_TIME)
    values = await to_thread(lambda: _Encoder(compress).values(arrays))
    if not values:
        return
    transaction = Transaction()
    within = store.with_transaction(transaction)
    try:
        for key, value in values.items():
            await within.write(key, value)
    except BaseException:
        transaction.abort()
        raise
    await transaction.commit_async()


class _Encoder:
    """Makes of small arrays what is stored of them.

    Arrays of one type and one shape have one document, and chunks of the same names: so one array
    in memory is made for all of them, each is written to it, and what it then has is theirs.
    Nothing is looked up in the database, which is new.

    Args:
        compress: with zstd.
    """

    def __init__(self, compress: bool) -> None:
        self._compress = compress
        self._targets: dict[tuple[DType, tuple[int, ...]], TensorStore] = {}
        self._keys: dict[tuple[DType, tuple[int, ...]], list[bytes]] = {}

    def values(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, bytes]:
        """The values of arrays, by name, by key."""
        found: dict[str, bytes] = {}
        for name, array in arrays.items():
            kind = DType(array.dtype), array.shape
            target = self._targets.get(kind)
            if target is None:
                spec = {**_array_spec(name, array, self._compress), "kvstore": "memory://"}
                target = self._targets[kind] = open_array(spec, create=True, dtype=kind[0]).result()
            target.write(array).result()
            stored = target.kvstore
            assert stored is not None  # it is a zarr3 array
            keys = self._keys.get(kind)
            if keys is None:
                keys = self._keys[kind] = stored.list().result()
            for key in keys:
                found[f"{name}/{key.decode()}"] = bytes(stored.read(key).result().value)
        return found


async def _store_array(
    database: KvStoreSpec,
    directory: Directory,
    name: str,
    array: TensorStore | np.ndarray[Any, Any],
    compress: bool,
) -> None:
    """Store a large array by itself."""
    json_spec = _array_spec(name, array, compress)
    spec = parse_spec({**json_spec, "kvstore": database.replace(path=f"{name}/")})
    target = await open_array(
        Spec.of(spec), create=True, dtype=DType(array.dtype), context=directory.context
    )
    await target.write(array)


def _array_spec(
    name: str, array: TensorStore | np.ndarray[Any, Any], compress: bool
) -> dict[str, Any]:
    """How an array is stored.

    Raises UnsupportedError: a checkpoint has none of its type; names it.
    """
    data_type = DType(array.dtype)
    if data_type.numpy_dtype.hasobject or data_type.numpy_dtype.names is not None:
        raise UnsupportedError(f"{name} is of type {data_type.name}: a checkpoint has numbers only")
    shape = tuple(array.shape)
    grid = {"chunk_shape": row_chunks(shape, data_type.numpy_dtype.itemsize)}
    return {
        "driver": "zarr3",
        "metadata": {
            "shape": shape,
            "chunk_grid": {"name": "regular", "configuration": grid},
            "codecs": list(_CODECS[: 1 + compress]),
        },
        # Orbax takes a chunk that is not there for one that was lost.
        "store_data_equal_to_fill_value": True,
    }


def _documents(plan: _Plan, started: int) -> Iterator[tuple[str, str]]:
    """The documents of a tree; what makes it a checkpoint comes last."""
    dumps: Callable[[object], str] = json.dumps
    texts = {flat_name(entry.keys): entry.text for entry in plan.entries if entry.text is not None}
    if texts:
        strings: dict[str, Any] = {}
        for name, text in texts.items():
            *above, last = name.split("/")
            inner = strings
            for part in above:
                inner = inner.setdefault(part, {})
            inner[last] = text
        yield documents.STRINGS, dumps(strings)
    yield documents.METADATA, dumps({
        "tree_metadata": {
            str(tuple(map(str, entry.keys))): {
                "key_metadata": [
                    {"key": str(key), "key_type": 1 if isinstance(key, int) else 2}
                    for key in entry.keys
                ],
                "value_metadata": entry.value_metadata,
            }
            for entry in plan.entries
        },
        "use_ocdbt": True,
        "use_zarr3": True,
        "store_array_data_equal_to_fill_value": True,
        "custom_metadata": None,
        # Without it, Orbax takes tuples for lists, and named ones for dicts.
        **({"value_metadata_tree": dumps(plan.said)} if plan.has_tuples else {}),
    })  # fmt: skip
    yield documents.CHECKPOINT_METADATA, dumps({
        "item_handlers": _HANDLER,
        "metrics": {},
        "performance_metrics": {},
        "init_timestamp_nsecs": started,
        "commit_timestamp_nsecs": time.time_ns(),
        "custom_metadata": {},
    })  # fmt: skip
    yield documents.COMMITTED, "Checkpoint commit was successful"
