"""What of an array is stored: which chunks, how many bytes, a digest. Decodes nothing."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, cast

from tensorstore_py._interface.chunk_keys import ChunkKeyEncodingModel, ChunkKeys, SeparatedKeys
from tensorstore_py._spec.registry import chunk_key_encodings

if TYPE_CHECKING:
    from tensorstore_py.zarr.form import Form
    from tensorstore_py.zarr.store import Store

__all__ = ["StoredBytes", "chunk_keys", "digest", "initialized"]

Shape = tuple[int, ...]


class StoredBytes(int):
    """A number of bytes that may be called.

    In zarr-python 2 it is an attribute, and in zarr-python 3 a method.

    Example:
        >>> StoredBytes(5), StoredBytes(5)()
        (5, 5)
    """

    __slots__ = ()

    def __call__(self) -> int:
        """The number."""
        return int(self)


def chunk_keys(form: Form) -> ChunkKeys:
    """The names of chunks, or of shards."""
    rank = len(form.chunks)
    if form.zarr_format == 2:
        return SeparatedKeys(rank, form.metadata["dimension_separator"])
    encoding = form.metadata["chunk_key_encoding"]
    found = cast("type[ChunkKeyEncodingModel]", chunk_key_encodings.get(encoding["name"]))
    return found.parse(encoding.get("configuration", {})).bind(rank)


def initialized(store: Store, form: Form, shape: Shape) -> int:
    """How many chunks something was stored of.

    Args:
        store: of the array's keys.
        form: of the array.
        shape: of the array.
    """
    keys, cells = chunk_keys(form), form.cells(shape)
    found = 0
    for name in store.sizes():
        cell = keys.decode(name)
        if cell is not None and all(map(int.__lt__, cell, cells)):
            found += 1
    return found * form.chunks_per_cell


def digest(store: Store, form: Form, shape: Shape, hashname: str) -> bytes:
    """A digest of all that is stored: chunks in order, the metadata, the attributes.

    Args:
        store: of the array's keys.
        form: of the array.
        shape: of the array.
        hashname: the name of an algorithm of `hashlib`.
    """
    made = hashlib.new(hashname)
    keys = chunk_keys(form)
    for cell in itertools.product(*map(range, form.cells(shape))):
        made.update(store.get(keys.encode(cell), b""))
    for key in (".zarray", ".zattrs") if form.zarr_format == 2 else ("zarr.json",):
        made.update(store.get(key, b""))
    return made.digest()
