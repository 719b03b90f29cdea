"""The codec promise, in three stages: asked, bound, run.

Asked: a `CodecSpec` model parsed from metadata JSON. Bound: once per array, against the shape
and data type that the codec will see; everything that can be wrong is found here. Run: once
per chunk, on any thread, as plain functions without checks, holding no state between calls.

Codecs never see a store and never wait. Three kinds, by what goes in and out:
array to array, array to bytes, bytes to bytes.
"""

from __future__ import annotations

import json as json_module
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, SupportsIndex, TypeVar

import numpy as np

from tensorstore_py._interface.kvstore import Buffer
from tensorstore_py._runtime.awaitable_bridge import run_coroutine
from tensorstore_py._spec.json_value import describe, freeze, thaw
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import codecs
from tensorstore_py.errors import DataLossError, MismatchError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from numpy.typing import NDArray

__all__ = [
    "OPAQUE",
    "Array",
    "ArrayToArray",
    "ArrayToArraySpec",
    "ArrayToBytes",
    "ArrayToBytesSpec",
    "BytesToBytes",
    "BytesToBytesSpec",
    "ChunkType",
    "CodecModel",
    "EncodedPart",
    "ForeignCodecModel",
    "TooLargeError",
    "check_characters",
    "size_error",
]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
T = TypeVar("T")
B = TypeVar("B", bytes, memoryview, Buffer)


@dataclass(frozen=True, slots=True)
class ChunkType:
    """What one chunk looks like at some point of a codec chain.

    Attributes:
        shape: extent of each dimension.
        dtype: element type in memory (native byte order).
        fill_value: array of `dtype`: a scalar (rank 0), or one that broadcasts to `shape` where
            the innermost dimensions belong to the element itself.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fill_value: NDArray[np.generic]

    @property
    def size_bytes(self) -> int:
        """Bytes of a whole chunk in memory."""
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size

    @property
    def is_opaque(self) -> bool:
        """Whether this is `OPAQUE`: bytes, and how many is not known."""
        return self is OPAQUE

    def recast(self, dtype: np.dtype[np.generic]) -> ChunkType:
        """The chunk with its elements, and the one for missing ones, converted to another type.

        Example:
            >>> chunk = ChunkType((2,), np.dtype("f4"), np.array(7.9, "f4"))
            >>> chunk.recast(np.dtype("u1")).fill_value
            array(7, dtype=uint8)
        """
        try:
            with np.errstate(all="ignore"):
                fill_value = self.fill_value.astype(dtype)
        except (TypeError, ValueError):  # text that is no number
            fill_value = np.zeros((), dtype)
        return ChunkType(self.shape, dtype, fill_value)

    def viewed_as(self, dtype: np.dtype[np.generic]) -> ChunkType:
        """The chunk with its bytes taken for elements of another type; `flat` makes such arrays.

        Elements of the same size keep the chunk's shape; others make it flat. The fill value is
        kept if it is of that type already.

        Raises:
            SpecError: the chunk's bytes are no whole number of such elements.

        Example:
            >>> chunk = ChunkType((2, 3), np.dtype("<f4"), np.zeros((), "<f4"))
            >>> chunk.viewed_as(np.dtype("<u4")).shape, chunk.viewed_as(np.dtype("<u2")).shape
            ((2, 3), (12,))
        """
        if self.dtype.hasobject:
            raise SpecError(
                f"expected chunks of {dtype} elements, but they are Python objects here: put a "
                "codec that stores objects in front"
            )
        if self.dtype == dtype:
            return self
        shape = self.shape
        if self.dtype.itemsize != dtype.itemsize:
            if not dtype.itemsize or self.size_bytes % dtype.itemsize:
                raise SpecError(
                    f"expected chunks of {dtype} elements, but {self.size_bytes} bytes are no "
                    "whole number of them"
                )
            shape = (self.size_bytes // dtype.itemsize,)
        return ChunkType(shape, dtype, np.zeros((), dtype))

    def check_elements(self, array: Array) -> None:
        """Refuse stored truth values other than 0 and 1, and text of what are no characters.

        Raises:
            DataLossError: there is one.
        """
        if self.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise DataLossError("a stored boolean is neither 0 nor 1")
        check_characters(array)

    def flat(self, array: Array) -> Array:
        """All bytes of an array, in C order, as flat elements of this chunk's type."""
        return np.ascontiguousarray(array).reshape(-1).view(self.dtype)


def check_characters(array: Array) -> None:
    """Refuse an array of text, or of records with text, that holds anything but characters.

    NumPy takes any 32 bits for one, and fails only when it converts that one.

    Raises:
        DataLossError: a number that Unicode does not have.
    """
    for name in array.dtype.names or ():
        check_characters(array[name])  # type: ignore[call-overload]
    if array.dtype.kind == "U" and array.size:
        codes = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        largest = int(np.ascontiguousarray(array).reshape(-1).view(codes).max())
        if largest > sys.maxunicode:
            raise DataLossError(f"a stored character is {largest:#x}, which Unicode does not have")


#: What a bytes-to-bytes codec sees when it cannot know the size of an element: itemsize 0.
OPAQUE: Final = ChunkType((), np.dtype("V0"), np.zeros((), "V0"))


class ArrayToArray(ABC):
    """A bound array-to-array codec, such as a transpose."""

    encoded: ChunkType
    #: Whether decoding gives back, bit by bit, what was encoded.
    exact: bool = False

    @abstractmethod
    def encode(self, array: Array) -> Array:
        """`array` of the decoded type to one of `encoded`; a view where possible."""

    @abstractmethod
    def decode(self, array: Array) -> Array:
        """The inverse; a view where possible."""

    def view_of(self, out: Array) -> Array | None:
        """A writable view of decoded memory `out` in the encoded layout, if there is one.

        With it, a chunk is decoded straight to its destination. `None`: the codec changes values.
        """
        return None


class ArrayToBytes(ABC):
    """A bound array-to-bytes codec."""

    #: Size of every encoded chunk in bytes, or None if it depends on the values.
    encoded_size: int | None = None
    #: Where that is None: an upper bound on the size of a valid encoded chunk; None if there is
    #: none. It protects from data that unpacks to more than memory holds.
    most_bytes: int | None = None
    #: Whether encoded chunks hold more than the array, such as other fields of a record. Then a
    #: chunk is never written without a look at what is stored: see `encode_over`.
    partial: bool = False
    #: Whether decoding gives back, bit by bit, what was encoded.
    exact: bool = False

    @abstractmethod
    def encode(self, array: Array) -> Buffer:
        """Serialise `array`; its memory order may be anything."""

    def encode_over(self, array: Array, stored: Buffer | None, *, keep_fill: bool) -> Buffer | None:
        """Serialise `array` to where it belongs in `stored`; only asked of `partial` codecs.

        Args:
            array: as for `encode`.
            stored: the serialised chunk as it is; None if there is none.
            keep_fill: give the bytes even if all that they hold is fill values, not None.

        Raises:
            DataLossError: `stored` does not hold one whole chunk.
        """
        return self.encode(array)

    @abstractmethod
    def decode(self, data: Buffer) -> Array:
        """Deserialise to an array of the bound type; it may be a read-only view of `data`.

        Raises:
            DataLossError: the bytes do not hold one whole chunk.
        """

    def decode_into(self, data: Buffer, out: Array) -> None:
        """Deserialise to `out`, which has the bound shape and type, in any memory layout."""
        out[...] = self.decode(data)

    def of_rows(self, count: int) -> ArrayToBytes | None:
        """The codec of `count` positions of the first axis, if a chunk is those of each in turn.

        Then a part of a chunk can be read without the rest of it. None: it takes all of a chunk.
        """
        return None

    def unpacking(self, unpacked_bytes: int) -> ArrayToBytes:
        """The codec with another limit for data of variable length in its inner chunks."""
        return self

    def direct(self, out: Array) -> memoryview | None:
        """The memory of `out` as flat writable bytes, if the encoded bytes could land there as is.

        `None` if byte order or memory order differ, so that the values must be converted.
        """
        return None


class BytesToBytes(ABC):
    """A bound bytes-to-bytes codec, such as a compressor or a checksum."""

    #: Whether decoding gives back the very bytes that were encoded.
    exact: bool = True
    #: Whether some data have parts that can be decoded without the rest (`part`).
    has_parts: bool = False

    @abstractmethod
    def encode(self, data: Buffer) -> Buffer:
        """The stored form of `data`."""

    @abstractmethod
    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        """The original bytes.

        Args:
            data: the stored form.
            size: the decoded size in bytes where it is known beforehand.

        Raises:
            DataLossError: corrupt, truncated, or not of `size` bytes.
        """

    def decode_within(self, data: Buffer, most: int) -> Buffer:
        """`decode` where the size is not known, but that it is not more than `most` bytes.

        Codecs that make little data into much must not take memory for more than that.

        Raises:
            TooLargeError: it is more.
            DataLossError: corrupt or truncated.
        """
        decoded = self.decode(data)
        if len(decoded) > most:
            raise TooLargeError(most)
        return decoded

    @staticmethod
    def checked(decoded: B, size: int | None) -> B:
        """What was decoded, if it has the size that is known beforehand.

        Raises:
            DataLossError: it has another one.
        """
        if size is not None and len(decoded) != size:
            raise size_error(len(decoded), size)
        return decoded

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Decode exactly `out.nbytes` bytes to `out`.

        Raises:
            DataLossError: corrupt, or the decoded size differs.
        """
        decoded = self.decode(data, out.nbytes)
        if len(decoded) != out.nbytes:
            raise size_error(len(decoded), out.nbytes)
        out[:] = decoded

    def part(self, data: Buffer, size: int, low: int, high: int) -> EncodedPart | None:
        """What of `data` holds the decoded bytes `[low, high)`; None if that is all of it.

        Formats that compress block by block have such parts. Nothing is wrong with the others:
        they are decoded as a whole.

        Args:
            data: the stored form.
            size: the decoded size in bytes.
            low: the first byte that is wanted; less than `high`.
            high: the one after the last; at most `size`.

        Raises:
            DataLossError: corrupt, or not of `size` bytes.
        """
        return None

    def encoded_size(self, size: int | None) -> int | None:
        """Encoded size of `size` input bytes, where it does not depend on their values."""
        return None


class EncodedPart(NamedTuple):
    """Stored data that `BytesToBytes` decodes by themselves, to bytes `[low, high)` of the whole.

    Example:
        >>> EncodedPart(b"ab", 4, 6)
        EncodedPart(data=b'ab', low=4, high=6)
    """

    data: Buffer
    low: int
    high: int


class TooLargeError(DataLossError):
    """A chunk decodes to more bytes than there may be.

    Args:
        most: how many there may be.

    Example:
        >>> str(TooLargeError(100))
        'decoded to more than 100 bytes'
    """

    def __init__(self, most: int) -> None:
        super().__init__(f"decoded to more than {most} bytes")
        self.most = most

    def __reduce__(self) -> tuple[type[TooLargeError], tuple[int]]:
        return TooLargeError, (self.most,)


def size_error(found: int, expected: int) -> DataLossError:
    """The error for a chunk that decodes to the wrong number of bytes."""
    return DataLossError(f"decoded to {found} bytes, expected {expected}")


class CodecModel(Model):
    """What was asked of a codec: its members in metadata JSON.

    Attributes:
        codec_id: the registered name, as written in metadata.
        codec_family: the metadata format that it is registered for under that name.
        nullable: members that metadata may write as null, which means that they are left out.
        any_size: a serializer that can be bound to `OPAQUE`, too: then it takes and gives bytes of
            any number, so that it may stand among bytes to bytes codecs.
        runs_code: decoding runs whatever program the data contains, so that only trusted data may
            be decoded; such a codec is bound only where the user opted in.
    """

    codec_id: ClassVar[str]
    codec_family: ClassVar[str]
    nullable: ClassVar[frozenset[str]] = frozenset()
    any_size: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False

    @classmethod
    def harmless_members(cls) -> frozenset[str] | None:
        """All: a codec turns bytes into others, unless it says that it runs what they contain."""
        return None if cls.runs_code else frozenset(cls.model_fields)

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if cls.nullable and isinstance(json, dict):
            json = {
                name: value
                for name, value in json.items()
                if value is not None or name not in cls.nullable
            }
        return super().parse_frozen(json).completed()

    def completed(self) -> Self:
        """This spec in the one form that all specs have that mean the same, so that they are equal.

        Asked of every parsed spec, before the chunk is known.
        """
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Pickled by its registered name: a variant of a class has none in a module."""
        if "codec_family" not in type(self).__dict__:
            return super().__reduce_ex__(protocol)
        return _registered, (self.codec_family, self.codec_id), self.__getstate__()

    @property
    def object_type(self) -> str | None:
        """Name of the data type of the Python objects that it takes, such as `"ustring"`.

        None: elements of a fixed size only.
        """
        return None

    def resolved(self, chunk: ChunkType) -> Self:
        """This spec with every member explicit, the way new metadata states it.

        Args:
            chunk: what the codec will see; `OPAQUE` if that is bytes of unknown element size.

        Raises:
            SpecError: a member does not fit the chunk, or cannot be derived from it.
        """
        return self

    def merged(self, other: Self) -> Self:
        """This spec with the members that only `other` states.

        Raises:
            MismatchError: both state a member, and differ.
        """
        members = {
            name: self.agreed(field.alias or name, getattr(self, name), getattr(other, name))
            for name, field in type(self).model_fields.items()
        }
        return self.replace(**members)

    def agreed(self, member: str, mine: object, theirs: object) -> object:
        """The value that both give a member; None is given where one says nothing.

        Raises:
            MismatchError: they differ.
        """
        if mine is None or theirs is None or mine == theirs:
            return theirs if mine is None else mine
        raise MismatchError(f'codec "{self.codec_id}": "{member}" is both {mine!r} and {theirs!r}')


def _registered(family: str, name: str) -> CodecModel:
    """A spec without members yet, for `pickle`."""
    cls = codecs.get(family, name)
    assert issubclass(cls, CodecModel)
    return cls.__new__(cls)


class ForeignCodecModel(CodecModel):
    """What was asked of a codec of another library, whose members only that library knows.

    Attributes:
        configuration: the members, as JSON text.
    """

    configuration: str = "{}"

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if isinstance(json, cls):
            return json
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        spec = super().parse_frozen({"configuration": json_module.dumps(thaw(json))})
        try:
            spec.made()
        except Exception as error:
            raise SpecError(f'codec "{cls.codec_id}" refuses its members: {error}') from error
        return spec

    def with_members(self, members: object) -> Self:
        """The spec with other members."""
        return self.replace(configuration=json_module.dumps(thaw(freeze(members))))

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        members: dict[str, object] = json_module.loads(self.configuration)
        return members

    @abstractmethod
    def made(self) -> object:
        """That library's codec, with these members; whatever it raises refuses them."""

    @staticmethod
    def run(coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of that library to its end, on the calling thread."""
        return run_coroutine(coroutine)


class ArrayToArraySpec(CodecModel):
    """Asked: an array-to-array codec.

    Attributes:
        keeps_dimensions: what it gives has the dimensions of what it takes, if in another order.
            Of what stands behind another codec, nothing can be said in terms of the array.
    """

    keeps_dimensions: ClassVar[bool] = True

    def permutation(self, rank: int) -> tuple[int, ...]:
        """Which decoded dimension each encoded one is, for chunks of a rank.

        Raises:
            SpecError: the codec is for another rank.
        """
        return tuple(range(rank))

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        """Check against the chunk and prepare to run.

        Raises:
            SpecError: a member does not fit the chunk's rank, shape or type.
            UnsupportedError: the codec only exists as a name.
        """
        raise UnsupportedError(f'codec "{self.codec_id}" cannot be bound')


class ArrayToBytesSpec(CodecModel):
    """Asked: an array-to-bytes codec."""

    def bind(self, chunk: ChunkType) -> ArrayToBytes:
        """Check against the chunk and prepare to run.

        Raises:
            SpecError: a member does not fit the chunk's rank, shape or type.
            UnsupportedError: the codec only exists as a name.
        """
        raise UnsupportedError(f'codec "{self.codec_id}" cannot be bound')


class BytesToBytesSpec(CodecModel):
    """Asked: a bytes-to-bytes codec."""

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        """Check against the chunk (element size matters to shuffles) and prepare to run.

        Raises:
            SpecError: a member is not possible for this chunk.
            UnsupportedError: the codec only exists as a name.
        """
        raise UnsupportedError(f'codec "{self.codec_id}" cannot be bound')
