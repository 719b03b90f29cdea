"""Elements of a new array: what zarr users say of their type, and what the engine calls it.

NumPy's types say more than the engine's in one respect, byte order, and less in another: objects
may be anything, and only a codec or the data tells what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.zarr.codecs import Codec, as_codec

__all__ = ["Element", "as_element"]

#: What codecs of objects store, as the engine calls it, and for each its codec.
_OBJECTS = {"vlen-utf8": "ustring", "vlen-bytes": "string", "json2": "json", "msgpack2": "json"}
_CODECS = {"ustring": "vlen-utf8", "string": "vlen-bytes", "json": "json2"}


@dataclass(frozen=True, slots=True)
class Element:
    """The type of the elements.

    Attributes:
        data_type: the engine's; None: only the codecs tell.
        dtype: NumPy's, in native byte order.
        stored: how NumPy and version 2 write it, if the data type does not say that.
        object_codec: what stores the objects, if they are some.
    """

    data_type: DType | None
    dtype: np.dtype[Any]
    stored: str | None = None
    object_codec: Codec | None = None

    @property
    def engine_type(self) -> DType:
        """The engine's type of one.

        Raises:
            ValueError: only the codecs tell, or it has none.
        """
        return DType(self.dtype) if self.data_type is None else self.data_type

    @property
    def kind(self) -> str:
        """NumPy's letter."""
        return self.dtype.kind

    @property
    def itemsize(self) -> int:
        """Bytes of one."""
        return max(1, self.dtype.itemsize)

    @property
    def big_endian(self) -> bool:
        """Whether they are stored with the most significant byte first."""
        return self.stored is not None and self.stored.startswith(">")

    def fill_value(self, value: object, default: object, zarr_format: int) -> object:
        """A fill value as the engine takes it; None: none, or the format's own.

        Args:
            value: what was asked for.
            default: stands for whatever is usual.
            zarr_format: 2 or 3.

        Raises:
            ValueError, TypeError: it is no value of this type.
        """
        if value is None:
            return None
        if value is default:
            return None if zarr_format == 3 or self.kind in "OMm" else self._zero()
        if self.kind == "O":
            return None if isinstance(value, int) and value == 0 else value
        # A time compared to a plain number is deprecated by NumPy.
        number = not isinstance(value, str | bytes | np.datetime64 | np.timedelta64)
        if number and np.ndim(value) == 0 and value == 0:  # type: ignore[arg-type]
            return self._zero()
        if self.dtype.names is not None and isinstance(value, bytes):
            return np.frombuffer(value, self.dtype)[0]
        return np.array(value, dtype=self.dtype)[()]

    def _zero(self) -> object:
        return np.zeros((), self.dtype)[()]


def as_element(dtype: object, object_codec: object = None) -> Element:
    """The type that something says.

    Args:
        dtype: whatever NumPy takes, or a data type's name.
        object_codec: what stores objects.

    Raises:
        TypeError, ValueError: it is no type, or does not tell what the objects are.
    """
    if isinstance(dtype, DType):
        return _of_engine(dtype)
    if dtype is str or (isinstance(dtype, str) and dtype in ("str", "string", "T")):
        return _of_engine(DType("ustring"))
    if dtype is bytes:
        return _of_engine(DType("string"))
    try:
        found = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        return _of_engine(DType(dtype))  # type: ignore[arg-type]
    if found.kind == "T":
        return _of_engine(DType("ustring"))
    if found.kind == "O":
        return _of_objects(object_codec)
    native = found.newbyteorder("=")
    if found.names is None and found.type in (np.bytes_, np.void) and found.subdtype is None:
        return _of_bytes(found)
    if found.kind == "U" and not found.itemsize:
        return _of_engine(DType("ustring"))
    stored = found.str if found.byteorder == ">" else None
    return Element(DType(native), native, stored)


def _of_bytes(dtype: np.dtype[Any]) -> Element:
    if not dtype.itemsize:
        raise ValueError(f"dtype {dtype} has no length; say one, such as 'S8', or pass bytes")
    if dtype.itemsize == 1:
        # For the engine that is a character or a byte, in one more dimension.
        return Element(None, dtype, dtype.str)
    return Element(DType(f"{dtype.kind}{dtype.itemsize}"), dtype)


def _of_engine(data_type: DType) -> Element:
    name = _CODECS.get(data_type.name)
    codec = None if name is None else Codec({"id": name})
    return Element(data_type, data_type.array_dtype, None, codec)


def _of_objects(object_codec: object) -> Element:
    if object_codec is not None:
        codec = as_codec(object_codec)
        name = _OBJECTS.get(codec.codec_id)
        data_type = None if name is None else DType(name)
        return Element(data_type, np.dtype(object), "|O", codec)
    raise ValueError(
        "dtype=object says not what the objects are; pass dtype=str for text, dtype=bytes for byte "
        "strings, or object_codec="
    )
