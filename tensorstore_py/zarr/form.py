"""How a stored array is laid out, in the words of zarr users, and parts of its elements.

The layout is read from the metadata document, which is the driver's, as a spec shows it; what a
format has that zarr users have no word for is left to `TensorStore.schema`. Parts of elements are
one field of records, and bytes that the engine has as one more dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec
from tensorstore_py._index import d
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.errors import IndexingError, UnsupportedError
from tensorstore_py.zarr.codecs import Codec, as_codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._api.tensorstore import TensorStore


__all__ = ["Form", "check_fields", "document_of", "form_of", "of_field", "whole_elements"]

# Any: a JSON document.
Json = dict[str, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How an array is laid out.

    Attributes:
        zarr_format: 2 or 3.
        metadata: the document.
        dtype: of the elements, as NumPy has it; byte order as stored in version 2.
        element: their type in the words of `create`.
        chunks: the shape of what is read at once.
        shards: the shape of what is stored under one key, if that is more than one chunk.
        order: of the elements in a chunk.
        filters: what is done to the elements of a chunk before it becomes bytes.
        serializer: how they become bytes; None in version 2.
        compressors: what is done to the bytes.
    """

    zarr_format: int
    metadata: Json
    dtype: np.dtype[Any]
    element: object
    chunks: Shape
    shards: Shape | None
    order: Literal["C", "F"]
    filters: tuple[Codec, ...]
    serializer: Codec | None
    compressors: tuple[Codec, ...]

    @property
    def grid(self) -> Shape:
        """The shape of what is stored under one key."""
        return self.chunks if self.shards is None else self.shards

    def cells(self, shape: Shape) -> Shape:
        """How many keys there are along each dimension of an array."""
        return tuple(ceil(extent / size) for extent, size in zip(shape, self.grid, strict=True))

    @property
    def chunks_per_cell(self) -> int:
        """How many chunks a shard has; else 1."""
        sizes = zip(self.grid, self.chunks, strict=True)
        return prod(outer // inner for outer, inner in sizes)


def form_of(store: TensorStore) -> Form:
    """The form of an open array.

    Raises:
        UnsupportedError: its format is not Zarr, or its chunks are of different sizes.
    """
    driver, metadata = document_of(store)
    dtype = store.dtype.array_dtype
    element = store.dtype if dtype.hasobject else dtype
    if driver == "zarr":
        return _form2(metadata, dtype, element)
    if driver == "zarr3":
        return _form3(metadata, dtype, element)
    raise UnsupportedError(
        f'an array of driver "{driver}" is no Zarr array; use ts.open and what it gives'
    )


def document_of(store: TensorStore) -> tuple[str, Json]:
    """The driver that stores an array, whatever adapts it, and its metadata document.

    Args:
        store: an open array; of drivers other than Zarr's the document is empty.
    """
    while store.base is not None:
        store = store.base
    model = store.spec().model
    # Not the whole spec's JSON, for which schemas are worked out.
    metadata = getattr(model, "metadata", None)
    return model.driver, {} if metadata is None else metadata.to_json()


def _form2(metadata: Json, dtype: np.dtype[Any], element: object) -> Form:
    compressor = metadata["compressor"]
    stated = metadata["dtype"]
    if isinstance(stated, str) and stated.startswith(">"):
        element = dtype = dtype.newbyteorder(">")
    filters = [as_codec(codec) for codec in metadata["filters"] or ()]
    return Form(
        zarr_format=2,
        metadata=metadata,
        dtype=dtype,
        element=element,
        chunks=tuple(metadata["chunks"]),
        shards=None,
        order=metadata["order"],
        filters=tuple(filters),
        serializer=None,
        compressors=() if compressor is None else (as_codec(compressor),),
    )


def _form3(metadata: Json, dtype: np.dtype[Any], element: object) -> Form:
    grid = metadata["chunk_grid"]
    if grid["name"] != "regular":
        raise UnsupportedError(
            f'a chunk grid "{grid["name"]}" has chunks of different sizes, which zarr-python has '
            "no words for; use ts.open, and chunk_layout of what it gives"
        )
    chunks: Shape = tuple(grid["configuration"]["chunk_shape"])
    shards = None
    codecs = metadata["codecs"]
    transposed = False
    for codec in list(codecs):
        if codec["name"] == "transpose":
            transposed = transposed or _reverses(codec)
        if codec["name"] == "sharding_indexed":
            shards, chunks = chunks, tuple(codec["configuration"]["chunk_shape"])
            codecs = codec["configuration"]["codecs"]
            if transposed:
                chunks = chunks[::-1]
            break
    before, serializer, after = _split(codecs)
    transposed = transposed or any(_reverses(codec) for codec in before)
    kept = [codec for codec in before if codec["name"] != "transpose"]
    return Form(
        zarr_format=3,
        metadata=metadata,
        dtype=dtype,
        element=element,
        chunks=chunks,
        shards=shards,
        order="F" if transposed and len(chunks) > 1 else "C",
        filters=tuple(as_codec(codec) for codec in kept),
        serializer=None if serializer is None else as_codec(serializer),
        compressors=tuple(as_codec(codec) for codec in after),
    )


def _reverses(codec: Json) -> bool:
    if codec["name"] != "transpose":
        return False
    order = codec["configuration"]["order"]
    return bool(order == "F" or order == sorted(order, reverse=True))


#: Codecs that make bytes of elements; what is before them are filters, what is after compresses.
_SERIALIZERS = ("bytes", "vlen-utf8", "vlen-bytes", "packbits", "sharding_indexed")


def _split(codecs: list[Json]) -> tuple[list[Json], Json | None, list[Json]]:
    for place, codec in enumerate(codecs):
        name = codec["name"].removeprefix("numcodecs.")
        if codec["name"] in _SERIALIZERS or name in ("zfpy", "pcodec", "json2", "msgpack2"):
            return codecs[:place], codec, codecs[place + 1 :]
    return codecs, None, []


def check_fields(names: Iterable[str], dtype: np.dtype[Any]) -> None:
    """Refuse names of fields that there are not.

    Raises:
        IndexingError: names one, and those that there are.
    """
    known = dtype.names
    for name in names:
        if known is None:
            raise IndexingError(f"{name!r} selects a field, but elements of {dtype} have none")
        if name not in known:
            raise IndexingError(f"there is no field {name!r}; there are {list(known)}")


def of_field(store: TensorStore, name: str) -> TensorStore:
    """One field of an array of records, to be read and written without the others.

    Raises:
        IndexingError: there is no such field.
    """
    check_fields([name], store.dtype.array_dtype)
    record: np.dtype[Any] = store.dtype.array_dtype
    dtype = record[name]
    plain = dtype.kind not in "SV" or dtype.names is not None or dtype.subdtype is not None
    if plain:
        return _reopened(store, field=name)
    if dtype.itemsize == 1:
        opened = _reopened(store, field=name)
        return opened if opened.rank == store.rank else opened[d[-1][0]]
    return _reopened(store, field=name, dtype=DType(f"{dtype.kind}{dtype.itemsize}"))


def whole_elements(store: TensorStore) -> TensorStore:
    """An open Zarr array whose elements are seen as zarr-python has them.

    The engine opens byte strings of a fixed length as characters in one more dimension, and a
    record's only field by itself, as TensorStore does.
    """
    _, metadata = document_of(store)
    stated = metadata.get("dtype", metadata.get("data_type"))
    whole = _whole_type(stated)
    if whole is not None and store.dtype.name in ("char", "byte"):
        if whole[1:] != "1":
            return _reopened(store, field=None, dtype=DType(whole))
        return store if store.rank == len(metadata["shape"]) else store[d[-1][0]]
    field = getattr(store.spec().model, "field", None) if store.base is None else None
    if field is not None and _count_fields(stated) == 1:
        record = np.dtype([(str(field), store.dtype.array_dtype)])
        return _reopened(store, field=None, dtype=DType(record))
    return store


def _count_fields(stated: object) -> int:
    if isinstance(stated, dict):
        stated = stated.get("configuration", {}).get("fields")
    return len(stated) if isinstance(stated, list) else 0


def _whole_type(stated: object) -> str | None:
    """The type of byte strings of a fixed length: `"S8"` or `"V8"`; None for others."""
    if isinstance(stated, dict):
        length = stated.get("configuration", {}).get("length_bytes")
        letter = {"null_terminated_bytes": "S", "raw_bytes": "V"}.get(stated["name"])
        return None if letter is None else f"{letter}{length}"
    if not isinstance(stated, str):
        return None
    if stated[:2] in ("|S", "|V"):
        return stated[1:]
    if stated[:1] == "r" and stated[1:].isdigit():
        return f"V{int(stated[1:]) // 8}"
    return None


def _reopened(store: TensorStore, **changes: object) -> TensorStore:
    model = store.spec(retain_context=True).model
    plain: dict[str, object] = {"dtype": None, "rank": None, "schema_": None, "transform": None}
    spec = Spec.of(model.replace(**{**plain, **changes}).checked())
    return open_array(
        spec,
        open=True,
        read=True,
        write=store.writable or None,
        transaction=store.transaction,
    ).result()
