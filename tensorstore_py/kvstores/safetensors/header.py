"""A safetensors header: which tensors a file has, of which types, and where their bytes are.

A file is the size of its header (8 bytes, little-endian), the header (JSON), and the tensors, each
in row-major order and little-endian. Format: https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import prod
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError

__all__ = [
    "DATA_TYPES",
    "LARGEST_HEADER",
    "NAMES",
    "Header",
    "Tensor",
    "header_size",
    "make_header",
]

#: Names of data types here, and the size of an element, by those of the format.
DATA_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "BOOL": ("bool", 1),
    "U8": ("uint8", 1),
    "I8": ("int8", 1),
    "U16": ("uint16", 2),
    "I16": ("int16", 2),
    "U32": ("uint32", 4),
    "I32": ("int32", 4),
    "U64": ("uint64", 8),
    "I64": ("int64", 8),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F32": ("float32", 4),
    "F64": ("float64", 8),
    "C64": ("complex64", 8),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "F8_E8M0": ("float8_e8m0fnu", 1),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 1),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 1),
}
#: The other way round.
NAMES: Final[Mapping[str, str]] = {here: there for there, (here, _) in DATA_TYPES.items()}

#: The format allows no larger one.
LARGEST_HEADER: Final = 100_000_000
#: Tensors begin where any element is aligned.
_ALIGNMENT: Final = 8


class Tensor(NamedTuple):
    """What a header says of one tensor.

    Attributes:
        dtype: the format's name of its data type.
        start, stop: where its bytes are in the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """A header: its tensors by name, in the order of their bytes, and what else it says."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]

    @classmethod
    def parse(cls, text: bytes) -> Header:
        """Raises DataLossError: it is damaged; says what is wrong with it.

        Example:
            >>> found = Header.parse(b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}')
            >>> found.tensors["a"]
            Tensor(name='a', dtype='U8', shape=(2,), start=61, stop=63)
        """
        try:
            json_header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataLossError(f"its header is no JSON: {error}") from None
        if not isinstance(json_header, dict):
            raise DataLossError("its header is no JSON object")
        metadata = json_header.pop("__metadata__", None)
        if metadata is None:
            metadata = {}
        if not isinstance(metadata, dict):
            raise DataLossError('"__metadata__" of its header is no JSON object')
        first = 8 + len(text)
        found = [_tensor(name, entry, first) for name, entry in json_header.items()]
        found.sort(key=lambda tensor: (tensor.start, tensor.stop))
        end = first
        for tensor in found:
            if tensor.start < end:
                raise DataLossError(f'its tensor "{tensor.name}" overlaps another one')
            end = tensor.stop
        return cls({tensor.name: tensor for tensor in found}, metadata)


def _tensor(name: str, entry: object, first: int) -> Tensor:
    match entry:
        case {
            "dtype": str(dtype),
            "shape": [*shape],
            "data_offsets": [int(start), int(stop)],
        } if all(type(extent) is int and extent >= 0 for extent in shape) and 0 <= start <= stop:
            pass
        case _:
            raise DataLossError(
                f'its header says of "{name}" {json.dumps(entry)[:200]}, '
                "and not a dtype, a shape and data_offsets"
            )
    known = DATA_TYPES.get(dtype)
    if known is not None and prod(shape) * known[1] != stop - start:
        raise DataLossError(
            f'its tensor "{name}" of shape {shape} and type {dtype} should have '
            f"{prod(shape) * known[1]} bytes, but has {stop - start}"
        )
    return Tensor(name, dtype, tuple(shape), first + start, first + stop)


def header_size(head: bytes) -> int:
    """The size of the header of a file that begins so.

    Raises:
        DataLossError: no safetensors file begins so.
    """
    size = int.from_bytes(head[:8], "little")
    if len(head) < 8 or not 2 <= size <= LARGEST_HEADER:
        raise DataLossError("it does not begin with the size of a header")
    return size


def make_header(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]], metadata: Mapping[str, str]
) -> tuple[bytes, dict[str, Tensor]]:
    """The beginning of a file of tensors that follow each other, and where they are.

    Args:
        tensors: name, type (the format's name) and shape of each.
        metadata: texts, stored as `__metadata__`.

    Example:
        >>> head, found = make_header([("a", "U8", (2,))], {})
        >>> head[8:].decode(), found["a"].start == len(head)
        ('{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   ', True)
    """
    json_header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, dtype, shape in tensors:
        start, end = end, end + prod(shape) * DATA_TYPES[dtype][1]
        json_header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(json_header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text, Header.parse(text).tensors
