"""Which zarr3 keys a safetensors file has, and which bytes of the file are their values.

A tensor is an array of uncompressed chunks. A chunk is a run of whole rows, so it is one range of
the file; the last one of several may reach beyond its rows, and is filled up with zeros.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from typing import Final, NamedTuple

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.safetensors.header import DATA_TYPES, Tensor

__all__ = ["Hierarchy", "Part"]

#: Chunks are that large at most, unless a single element is larger.
_CHUNK_BYTES: Final = 2**23
_ARRAY: Final = "/zarr.json"


class Part(NamedTuple):
    """A value that is a range of a file, and then so many zeros.

    Attributes:
        file: which one of several.
    """

    file: str
    start: int
    stop: int
    zeros: int

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return self.stop - self.start + self.zeros


class Hierarchy:
    """See the head of this file.

    Args:
        tensors: by name, each with the file it is in.
        metadata: texts, the attributes of the group.

    Raises:
        UnsupportedError: a tensor has a name that is no path.
    """

    def __init__(
        self, tensors: Mapping[str, tuple[str, Tensor]], metadata: Mapping[str, str]
    ) -> None:
        self._tensors = tensors
        self._metadata = metadata
        self._groups = {""}
        for name in tensors:
            parts = name.split("/")
            if not {"", ".", "..", "zarr.json"}.isdisjoint(parts):
                raise UnsupportedError(
                    f'the name of its tensor "{name}" cannot be that of an array'
                )
            self._groups.update("/".join(parts[:depth]) for depth in range(1, len(parts)))

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        return 1024 + sum(512 + len(name) for name in self._tensors)

    def value(self, key: str) -> bytes | Part | None:
        """The value of a key: it, or where it is; None if there is none.

        Raises:
            UnsupportedError: a tensor's data type is not known here; names both.
        """
        if key == "zarr.json" or (key.endswith(_ARRAY) and key[: -len(_ARRAY)] in self._groups):
            return self._group_document(key[: -len(_ARRAY)] if "/" in key else "")
        if key.endswith(_ARRAY):
            found = self._tensors.get(key[: -len(_ARRAY)])
            return None if found is None else _dumped(_array_document(found[1]))
        name, slash, cell = key.rpartition("/c/")
        if not slash:
            name, cell = key[:-2] if key.endswith("/c") else "", ""
        found = self._tensors.get(name)
        return None if found is None else _chunk(*found, cell)

    def entries(self) -> Iterator[tuple[str, int]]:
        """All keys, and the sizes of their values; of documents -1."""
        for group in self._groups:
            yield (f"{group}/zarr.json" if group else "zarr.json"), -1
        for name, (file, tensor) in self._tensors.items():
            yield name + _ARRAY, -1
            if tensor.dtype not in DATA_TYPES or 0 in tensor.shape:
                continue
            for cell in _cells(tensor):
                part = _chunk(file, tensor, cell)
                assert part is not None
                yield (f"{name}/c/{cell}" if cell else f"{name}/c"), part.size

    def _group_document(self, path: str) -> bytes:
        """Of the root with all arrays in it, so that one request tells what there is."""
        document: dict[str, object] = {"zarr_format": 3, "node_type": "group"}
        if not path:
            document["attributes"] = dict(self._metadata)
            known: dict[str, object] = {
                group: {"zarr_format": 3, "node_type": "group", "attributes": {}}
                for group in sorted(self._groups - {""})
            }
            for name, (_, tensor) in self._tensors.items():
                if tensor.dtype in DATA_TYPES:
                    known[name] = _array_document(tensor)
            document["consolidated_metadata"] = {
                "kind": "inline",
                "must_understand": False,
                "metadata": known,
            }
        return _dumped(document)


def _dumped(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _item_size(tensor: Tensor) -> int:
    return DATA_TYPES[tensor.dtype][1]


def _chunk_shape(tensor: Tensor) -> tuple[int, ...]:
    """As many whole rows as are not too large: ones, a part of one extent, whole extents."""
    shape = [max(1, extent) for extent in tensor.shape]
    room = max(1, _CHUNK_BYTES // _item_size(tensor))
    for dim, extent in enumerate(shape):
        below = prod(shape[dim + 1 :])
        if below <= room:
            return (*(1,) * dim, min(extent, room // below), *shape[dim + 1 :])
    return ()


def _cells(tensor: Tensor) -> Iterator[str]:
    counts = [-(-n // c) for n, c in zip(tensor.shape, _chunk_shape(tensor), strict=True)]
    for number in range(prod(counts)):
        cell = []
        for count in reversed(counts):
            number, at = divmod(number, count)
            cell.append(str(at))
        yield "/".join(reversed(cell))


def _chunk(file: str, tensor: Tensor, cell: str) -> Part | None:
    """Where a chunk is; None if there is no such one."""
    if tensor.dtype not in DATA_TYPES:
        return None
    chunks, at = _chunk_shape(tensor), cell.split("/") if cell else []
    if len(at) != len(chunks) or not all(each.isascii() and each.isdigit() for each in at):
        return None
    first, stride = 0, 1
    for index, extent, chunk in zip(
        map(int, at[::-1]), tensor.shape[::-1], chunks[::-1], strict=True
    ):
        if index * chunk >= extent:
            return None
        first += index * chunk * stride
        stride *= extent
    start = tensor.start + first * _item_size(tensor)
    size = prod(chunks) * _item_size(tensor)
    # Only along the dimension that is cut may a chunk reach beyond its row.
    end = tensor.start + _row_end(tensor, chunks, first) * _item_size(tensor)
    stop = min(start + size, end)
    return Part(file, start, stop, start + size - stop)


def _row_end(tensor: Tensor, chunks: tuple[int, ...], first: int) -> int:
    """The element after the last one that shares the indices along leading dimensions."""
    cut = next((dim for dim, chunk in enumerate(chunks) if chunk > 1), len(chunks))
    row = prod(tensor.shape[cut:])
    return (first // row + 1) * row


def _array_document(tensor: Tensor) -> dict[str, object]:
    known = DATA_TYPES.get(tensor.dtype)
    if known is None:
        raise UnsupportedError(
            f'its tensor "{tensor.name}" has the type {tensor.dtype}, which has no counterpart '
            "here; the other tensors can be read"
        )
    name, size = known
    bytes_codec: dict[str, object] = {"name": "bytes"}
    if size > 1:
        bytes_codec["configuration"] = {"endian": "little"}
    fill: object = False if name == "bool" else 0
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(tensor.shape),
        "data_type": name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": list(_chunk_shape(tensor))},
        },
        "chunk_key_encoding": {"name": "default"},
        "codecs": [bytes_codec],
        "fill_value": [0, 0] if name == "complex64" else fill,
        "attributes": {},
    }
