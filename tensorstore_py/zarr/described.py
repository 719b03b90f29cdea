"""`Described`: what there is to say of an array, the half of `ts.zarr.Array` that tells.

Shape, chunks, codecs and attributes come from the metadata; what is stored from a list of keys.
Nothing is decoded.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from tensorstore_py._display.info import Info
from tensorstore_py._interface.chunk_keys import ChunkKeyEncodingModel, ChunkKeys, SeparatedKeys
from tensorstore_py.zarr.attributes import Attributes
from tensorstore_py.zarr.selectable import Selectable
from tensorstore_py.zarr.store import Store

if TYPE_CHECKING:
    import numpy as np

    from tensorstore_py.zarr.codecs import Codec
    from tensorstore_py.zarr.form import Form


__all__ = ["Described", "Info", "StoredBytes", "chunk_keys", "digest", "human_size", "initialized"]


def human_size(size: int) -> str:
    """A number of bytes for people.

    Example:
        >>> human_size(800), human_size(400_000_000)
        ('800', '381.5M')
    """
    if size < 1024:
        return str(size)
    scaled = float(size)
    for unit in "KMGTPE":
        scaled /= 1024
        if scaled < 1024 or unit == "E":
            break
    return f"{scaled:.1f}{unit}"


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
    return ChunkKeyEncodingModel.parse_named(form.metadata["chunk_key_encoding"]).bind(rank)


def initialized(store: Store, form: Form, shape: Shape) -> int:
    """How many chunks of an array something was stored of; `store` has the array's keys."""
    keys, cells = chunk_keys(form), form.cells(shape)
    found = 0
    for name in store.sizes():
        cell = keys.decode(name)
        if cell is not None and all(map(int.__lt__, cell, cells)):
            found += 1
    return found * form.chunks_per_cell


def digest(store: Store, form: Form, shape: Shape, hashname: str) -> bytes:
    """A digest of all that is stored: chunks in order, the metadata, the attributes."""
    made = hashlib.new(hashname)
    keys = chunk_keys(form)
    for cell in itertools.product(*map(range, form.cells(shape))):
        made.update(store.get(keys.encode(cell), b""))
    for key in (".zarray", ".zattrs") if form.zarr_format == 2 else ("zarr.json",):
        made.update(store.get(key, b""))
    return made.digest()


# Any: whichever type the elements are of.
Scalar: TypeAlias = Any


class Described(Selectable):
    """What tells of itself as zarr-python's arrays do.

    Attributes:
        path: of the array in its store; `""` if it is all of it.
    """

    __slots__ = ()
    path: str

    @property
    @abstractmethod
    def store(self) -> Store:
        """The store that the array is in."""

    @property
    def own_store(self) -> Store:
        """The store of the array's own keys."""
        kvstore = self.ts.kvstore
        assert kvstore is not None
        return Store(kvstore)

    @property
    def name(self) -> str:
        """The path with a `/` in front, as in h5py."""
        return f"/{self.path}"

    @property
    def basename(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements; arrays of version 2 tell the byte order that is stored."""
        return self.form.dtype

    @property
    def zarr_format(self) -> int:
        """The version of the format: 2 or 3."""
        return self.form.zarr_format

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata document, with the shape that is known here."""
        return {**self.form.metadata, "shape": list(self.ts.shape)}

    @property
    def chunks(self) -> Shape:
        """The shape of what is read at once."""
        return self.form.chunks

    @property
    def shards(self) -> Shape | None:
        """The shape of what is stored under one key, if that is more than a chunk."""
        return self.form.shards

    @property
    def order(self) -> str:
        """How elements are ordered in a chunk, and in what is read: `"C"` or `"F"`."""
        return self.form.order

    @property
    def filters(self) -> tuple[Codec, ...] | None:
        """What is done to elements before they become bytes; None in version 2 if nothing is."""
        return self.form.filters or (None if self.zarr_format == 2 else ())

    @property
    def serializer(self) -> Codec | None:
        """How elements become bytes; None in version 2."""
        return self.form.serializer

    @property
    def compressors(self) -> tuple[Codec, ...]:
        """What is done to the bytes of a chunk."""
        return self.form.compressors

    @property
    def compressor(self) -> Codec | None:
        """What compresses chunks, if it is one codec; None if nothing does.

        Raises:
            TypeError: several do.
        """
        if len(self.compressors) > 1:
            raise TypeError("this array has several compressors; see compressors")
        return self.compressors[0] if self.compressors else None

    @property
    def fill_value(self) -> Scalar:
        """What was never written reads as this; None if the format leaves it open."""
        found = self.ts.fill_value
        return None if found is None else found[()]

    @property
    def attrs(self) -> Attributes:
        """The attributes."""
        return Attributes(self.ts.attrs, self.check_writable)

    def update_attributes(self, new_attributes: dict[str, object]) -> Self:
        """Set some attributes; the others stay."""
        self.attrs.update(new_attributes)
        return self

    @property
    def cdata_shape(self) -> Shape:
        """How many chunks there are along each dimension."""
        sizes = zip(self.shape, self.chunks, strict=True)
        return tuple(-(-extent // size) for extent, size in sizes)

    @property
    def nchunks(self) -> int:
        """How many chunks there are."""
        return prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """How many chunks something was stored of; asks the store for its keys."""
        return initialized(self.own_store, self.form, self.shape)

    @property
    def nbytes_stored(self) -> StoredBytes:
        """How many bytes are stored, metadata included; asks the store for its keys."""
        return StoredBytes(self.own_store.getsize())

    @property
    def info(self) -> Info:
        """All of this as a table, with what is stored; asks the store for its keys."""
        form, stored = self.form, int(self.nbytes_stored)
        sizes = [("Chunk shape", self.chunks)]
        if self.shards is not None:
            sizes.append(("Shard shape", self.shards))
        items: list[tuple[str, object]] = [
            ("Type", "Array"),
            ("Zarr format", self.zarr_format),
            ("Data type", self.dtype),
            ("Fill value", self.fill_value),
            ("Shape", self.shape),
            *sizes,
            ("Order", self.order),
            ("Read-only", self.read_only),
            ("Store type", type(self.store).__name__),
            ("Filters", form.filters),
            *([("Serializer", form.serializer)] if form.serializer is not None else []),
            ("Compressors", form.compressors),
            ("No. bytes", _with_words(self.nbytes)),
            ("No. bytes stored", _with_words(stored)),
            ("Storage ratio", f"{self.nbytes / stored:.1f}" if stored else "none stored"),
            ("Chunks initialized", f"{self.nchunks_initialized}/{self.nchunks}"),
        ]
        return Info([("Name", self.name), *items] if self.path else items)

    def info_complete(self) -> Info:
        """`info`, which is complete here."""
        return self.info

    def digest(self, hashname: str = "sha1") -> bytes:
        """A digest of all that is stored: chunks, metadata, attributes.

        Args:
            hashname: the name of an algorithm of `hashlib`.
        """
        return digest(self.own_store, self.form, self.shape, hashname)

    def hexdigest(self, hashname: str = "sha1") -> str:
        """`digest` as text."""
        return self.digest(hashname).hex()


def _with_words(size: int) -> str:
    words = human_size(size)
    return words if words == str(size) else f"{size} ({words})"
