"""What is served: groups and arrays by path, found once, when a server is started.

Whatever was named is made one tree: an open array, a group, what `ts.open` or `ts.Group.open` would
open, keys of a store, or several of these by path. An array counts from zero, in chunks that are
its own unless they are too large for an answer. What cannot be opened is left out, and named.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._conversion.endpoints import (
    FoundEndpoint,
    SourceArray,
    is_whole,
    node_attributes,
    open_source,
)
from tensorstore_py._conversion.endpoints import source as source_end
from tensorstore_py._hierarchy.path import join, normalised, parents
from tensorstore_py._hierarchy.walk import Walk
from tensorstore_py._index import IndexDomain, d, inf
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._serving.stored import StoredKeys
from tensorstore_py._spec.choose_chunks import chunk_extents
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py.errors import (
    NotFoundError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.multiscale.image import Multiscale
from tensorstore_py.orbax.checkpoint import Checkpoint
from tensorstore_py.orbax.opening import open as open_checkpoint

if TYPE_CHECKING:
    from tensorstore_py._conversion.endpoints import SourceEndpoint
    from tensorstore_py._hierarchy.node import Node
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.context import Context

__all__ = ["MOST_BYTES", "ServedArray", "ServedTree", "find_tree"]

#: What a chunk that is made has in bytes at most.
MOST_BYTES: Final = 2**22
#: What one has where an array has no chunks of its own.
_CHUNK_BYTES: Final = 2**19


class ServedArray(NamedTuple):
    """An array.

    Attributes:
        source: it, counting from zero, with its attributes.
        chunks: the extents of what is read for one answer.
        stored: where its keys are, if it is all of a stored array.
        zarr_format: the version of Zarr that it is stored in; None: of none, or it is a view.
        sharded: whether a stored key has many chunks.
    """

    source: SourceArray
    chunks: tuple[int, ...]
    stored: StoredKeys | None
    zarr_format: int | None
    sharded: bool

    @property
    def path(self) -> str:
        """Below what is served; `""` is that itself."""
        return self.source.path

    @property
    def array(self) -> TensorStore:
        """Its elements."""
        return self.source.array

    @property
    def chunk_bytes(self) -> int:
        """How much the elements of one chunk take."""
        return prod(self.chunks) * self.array.dtype.array_dtype.itemsize


class ServedTree(NamedTuple):
    """All of it.

    Attributes:
        groups: attributes by path; empty if a single array is served.
        arrays: by path.
        stored: where all of its keys are; None: there is no one such place, or it is a view.
        left_out: what could not be opened, by path, and why.
    """

    groups: dict[str, JsonObject]
    arrays: dict[str, ServedArray]
    stored: StoredKeys | None
    left_out: dict[str, str]


async def find_tree(given: object, context: Context) -> ServedTree:
    """What is to be served; runs on the library's loop.

    Args:
        given: what was named; a mapping that is no spec has several by path.
        context: that specs are opened in.

    Raises:
        SpecError: a path or a spec is wrong, or an array has no bounds.
        NotFoundError: nothing is there.
        TensorStoreError: why it could not be opened.
    """
    if isinstance(given, Checkpoint):
        given = await given.arrays()
    if not isinstance(given, Mapping) or "driver" in given:
        return await _found(given, context)
    trees = {normalised(str(path)): await find_tree(each, context) for path, each in given.items()}
    if not trees:
        raise SpecError("there is nothing to serve: name at least one array or group")
    return _joined(trees)


def _joined(trees: Mapping[str, ServedTree]) -> ServedTree:
    """Several trees as one, each at its path."""
    groups: dict[str, JsonObject] = {"": {}}
    arrays: dict[str, ServedArray] = {}
    left_out: dict[str, str] = {}
    for path, tree in trees.items():
        groups.update({above: {} for above in parents(path) if above not in groups})
        groups.update({join(path, inner): found for inner, found in tree.groups.items()})
        for inner, array in tree.arrays.items():
            where = join(path, inner)
            arrays[where] = array._replace(source=array.source._replace(path=where))
        left_out.update({join(path, inner): why for inner, why in tree.left_out.items()})
    for path in arrays:
        if path in groups or any(above in arrays for above in parents(path)):
            raise SpecError(f'"/{path}" cannot be served: an array is there, or above it', (path,))
    return ServedTree(groups, arrays, None, left_out)


async def _found(given: object, context: Context) -> ServedTree:
    if isinstance(given, Multiscale):
        given = given.group
    try:
        return await _at_end(source_end(given, context))
    except (NotFoundError, SpecError, UnsupportedError):
        if isinstance(given, TensorStore | Group):
            raise
    # No group of a known format, and nothing in one: an array by itself says what is wrong.
    try:
        array = await open_array(given, read=True, context=context)
    except NotFoundError:
        with suppress(NotFoundError, SpecError, UnsupportedError):
            return await find_tree(await open_checkpoint(given, context=context), context)
        if not isinstance(given, KvStore):
            raise
        return ServedTree({}, {}, StoredKeys.of((given.spec().model, given.store)), {})
    return await _at_end(source_end(array, context))


async def _at_end(end: SourceEndpoint) -> ServedTree:
    return await start(end.inline, partial(_collected, end))


async def _collected(end: SourceEndpoint) -> ServedTree:
    found = await end.find()
    if found.tree is None or found.node is None or found.node.kind == "array":
        single = await _single(found)
        return ServedTree({}, {"": single}, single.stored, {})
    tree, base = found.tree, len(found.path)
    nodes = await _nodes(found)
    groups: dict[str, JsonObject] = {}
    arrays: dict[str, ServedArray] = {}
    left_out: dict[str, str] = {}

    async def look(node: Node) -> None:
        path = node.path[base:].lstrip("/")
        if node.kind == "group":
            groups[path] = await node_attributes(tree, node)
            return
        try:
            arrays[path] = _served(await open_source(found, node, path))
        except TensorStoreError as error:
            left_out[path] = str(error)

    store = tree.store
    await fan_out(store.inline, nodes, look, count=len(nodes), width=store.width)
    place = found.place
    stored = None if place is None else StoredKeys.of((place.at(found.path), store))
    return ServedTree(groups, dict(sorted(arrays.items())), stored, left_out)


async def _nodes(found: FoundEndpoint) -> list[Node]:
    """All nodes, the outermost first."""
    assert found.tree is not None
    assert found.node is not None
    nodes = [found.node]
    walk = Walk(found.tree, found.path, found.node.consolidated, None)
    while (more := await walk.step()) is not None:
        nodes += more
    return nodes


async def _single(found: FoundEndpoint) -> ServedArray:
    if found.node is not None:
        return _served(await open_source(found, found.node, ""))
    assert found.array is not None
    return _served(SourceArray("", found.array, None, None, {}))


def _served(source: SourceArray) -> ServedArray:
    """How an array is served.

    Raises SpecError: it has no bounds.
    """
    array = source.array
    if any(
        abs(bound) >= inf
        for each in array.domain
        for bound in (each.inclusive_min, each.inclusive_max)
    ):
        raise SpecError(f"an array without bounds cannot be served: {array.domain}; select a part")
    whole = is_whole(array) and _shows_all(array)
    stored = StoredKeys.of(array._driver.kvstore) if whole and array.base is None else None
    if not whole:
        # Names of dimensions are in the view's domain; those that are stored are of the array.
        left = {
            name: value for name, value in source.attributes.items() if name != "_ARRAY_DIMENSIONS"
        }
        source = source._replace(document=None, attributes=left)
    form = source.form
    zarr_format = form.zarr_format if whole and form is not None and stored is not None else None
    if array.rank:
        source = source._replace(array=array[d[:].translate_to[(0,) * array.rank]])
    layout = array.chunk_layout
    sharded = layout.read_chunk.shape != layout.write_chunk.shape
    return ServedArray(source, _chunks(array), stored, zarr_format, sharded)


def _shows_all(array: TensorStore) -> bool:
    """Whether elements are seen as they are stored, and not one of their fields."""
    spec = array._driver.spec()
    return getattr(spec, "field", None) is None and not getattr(spec, "open_as_void", False)


def _chunks(array: TensorStore) -> tuple[int, ...]:
    """The extents of chunks: the array's own, cut in half where they are too large."""
    item = max(1, array.dtype.array_dtype.itemsize)
    shape = tuple(max(1, extent) for extent in array.shape)
    own = array.chunk_layout.read_chunk.shape
    if own is None or not any(own):
        layout = ChunkLayout(rank=array.rank, chunk_elements=max(1, _CHUNK_BYTES // item))
        own = chunk_extents(layout.read_chunk.constraints, IndexDomain(shape=shape))
    chunks = [min(size or extent, extent) for size, extent in zip(own, shape, strict=True)]
    while prod(chunks) * item > MOST_BYTES and max(chunks) > 1:
        largest = chunks.index(max(chunks))
        chunks[largest] = -(-chunks[largest] // 2)
    return tuple(chunks)
