"""The element types that codecs name in their own members, such as delta's `"dtype": "<i4"`.

They are written in NumPy's notation, with or without a byte order, and describe bytes: which of
TensorStore's data types correspond is not asked here. Only plain types of a fixed size pass, since
NumPy reads much more into a string than metadata should say.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated

import numpy as np

from tensorstore_py._interface.codec import Array, ChunkType
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import BeforeValidator, JsonForm
from tensorstore_py._spec.parametric import LARGEST_ELEMENT
from tensorstore_py.errors import DataLossError, SpecError

__all__ = [
    "ElementType",
    "check_characters",
    "element_type",
    "flat_view",
    "native_type",
    "recast",
    "viewed_as",
]

_PLAIN = re.compile(
    r"[<>|=]?(\?|[biufcSUV]\d{1,9}|[mM]8\[\d{0,9}[a-zA-Zμ]{1,2}\])|(bool|u?int|float|complex)\d{0,3}",
    re.ASCII,
)


def element_type(json: object) -> str:
    """The type in NumPy's shortest notation, byte order included.

    Raises:
        SpecError: not a plain type of a fixed size.

    Example:
        >>> element_type("int16"), element_type(">f4"), element_type("u1")
        ('<i2', '>f4', '|u1')
    """
    if isinstance(json, str) and _PLAIN.fullmatch(json):
        try:
            found = np.dtype(json)
        except TypeError:
            found = np.dtype("V0")
        if 0 < found.itemsize <= LARGEST_ELEMENT:
            return found.str
    raise SpecError(f'expected an element type such as "<i4", but found {describe(json)}')


#: A member that names an element type; its value is what `element_type` returns.
ElementType = Annotated[
    str,
    BeforeValidator(element_type),
    JsonForm({"type": "string", "examples": ["<i4", "<f8", "|u1"]}),
]


def native_type(text: str | None, chunk: ChunkType) -> np.dtype[np.generic]:
    """The type that a member names where chunks are arrays in memory, in native byte order.

    Args:
        text: what `element_type` returned; None if the member is left out.
        chunk: its own type is what a member that is left out means.

    Raises:
        SpecError: the member is left out, and the chunk's type is none that it could name.

    Example:
        >>> chunk = ChunkType((2, 3), np.dtype("f4"), np.zeros((), "f4"))
        >>> native_type(">i2", chunk), native_type(None, chunk)
        (dtype('int16'), dtype('float32'))
    """
    if text is None:
        text = element_type(chunk.dtype.str)
    return np.dtype(text).newbyteorder("=")


def recast(chunk: ChunkType, dtype: np.dtype[np.generic]) -> ChunkType:
    """The chunk with its elements, and the one that stands for missing ones, as another type.

    Example:
        >>> recast(ChunkType((2,), np.dtype("f4"), np.array(7.9, "f4")), np.dtype("u1")).fill_value
        array(7, dtype=uint8)
    """
    try:
        with np.errstate(all="ignore"):
            fill_value = chunk.fill_value.astype(dtype)
    except (TypeError, ValueError):  # text that is no number
        fill_value = np.zeros((), dtype)
    return ChunkType(chunk.shape, dtype, fill_value)


def viewed_as(chunk: ChunkType, dtype: np.dtype[np.generic]) -> ChunkType:
    """The chunk with its bytes taken for elements of another type.

    Elements of the same size keep the chunk's shape; others make it flat. The fill value is kept
    if it is of that type already.

    Raises:
        SpecError: the chunk's bytes are no whole number of such elements.

    Example:
        >>> chunk = ChunkType((2, 3), np.dtype("<f4"), np.zeros((), "<f4"))
        >>> viewed_as(chunk, np.dtype("<u4")).shape, viewed_as(chunk, np.dtype("<u2")).shape
        ((2, 3), (12,))
    """
    if chunk.dtype.hasobject:
        raise SpecError(
            f"expected chunks of {dtype} elements, but they are Python objects here: put a codec "
            "that stores objects in front"
        )
    if chunk.dtype == dtype:
        return chunk
    shape = chunk.shape
    if chunk.dtype.itemsize != dtype.itemsize:
        if not dtype.itemsize or chunk.size_bytes % dtype.itemsize:
            raise SpecError(
                f"expected chunks of {dtype} elements, but {chunk.size_bytes} bytes are no whole "
                "number of them"
            )
        shape = (chunk.size_bytes // dtype.itemsize,)
    return ChunkType(shape, dtype, np.zeros((), dtype))


def flat_view(array: Array, dtype: np.dtype[np.generic]) -> Array:
    """All bytes of an array, in C order, as flat elements of another type."""
    return np.ascontiguousarray(array).reshape(-1).view(dtype)


def check_characters(array: Array) -> None:
    """Whether an array of text, or of records with text, holds nothing but characters.

    NumPy takes any 32 bits for one, and fails only where somebody looks at it.

    Raises:
        DataLossError: a number that Unicode does not have.
    """
    for name in array.dtype.names or ():
        check_characters(array[name])  # type: ignore[call-overload]
    if array.dtype.kind == "U" and array.size:
        codes = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        largest = int(flat_view(array, codes).max())
        if largest > sys.maxunicode:
            raise DataLossError(f"a stored character is {largest:#x}, which Unicode does not have")
