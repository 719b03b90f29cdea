"""Blosc, by numcodecs: shuffled blocks, each compressed by one of several fast compressors.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/
Example: `{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle",
"typesize": 4, "blocksize": 0}}`; in version 2 `{"id": "blosc", "cname": "zstd", "shuffle": 1}`.
Limits: 2 GiB a chunk; `snappy` is read, slowly, and written only by a library that has it. The
library trusts the sizes in a buffer's header and reads where they point; the invariant: it never
sees a buffer whose header does not agree with the buffer's own length and with the size that the
chunk must have. It takes no threads of its own: chunks are already worked on in parallel, and its
pool is one global that all callers would wait for.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate, pairwise
from struct import Struct, pack, unpack_from
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple, cast

from tensorstore_py.codecs.blosc.snappy import FORMAT_SHIFT, SNAPPY, decode_snappy, is_snappy
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    EncodedPart,
    Field,
    Level,
    SizedCodec,
    codec,
    share_numcodecs,
    size_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Blosc", "BloscSpec"]

_LARGEST_TYPE = 255
_LARGEST_BUFFER = 2**31 - 1 - 16
#: version, compressor's version, flags, typesize, decoded size, block size, encoded size
_HEADER = Struct("<BBBBIII")
_NOT_COMPRESSED = 0x02
#: What version 2 and n5 number.
_SHUFFLES: Final = ("noshuffle", "shuffle", "bitshuffle")

Compressor = Literal["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]


_V2: dict[str, Any] = {
    "numbered": True,
    "cname": "lz4",
    "clevel": 5,
    "shuffle": Annotated[
        int,
        Level(-1, 2),
        Field(
            default=-1,
            description="0 none, 1 by bytes, 2 by bits; -1: by bits for one-byte elements, else "
            "by bytes.",
        ),
    ],
    "blocksize": 0,
}


@codec("blosc", family="zarr3")
@codec("blosc", family="zarr", without=["typesize"], **_V2)
@codec("numcodecs.blosc", family="zarr3", nullable=frozenset({"typesize"}), **_V2)
@codec(
    "blosc",
    family="n5",
    without=["typesize"],
    numbered=True,
    cname=Field(),
    clevel=Field(),
    shuffle=Annotated[int, Level(0, 2), Field(description="0 none, 1 by bytes, 2 by bits.")],
    blocksize=0,
)
class BloscSpec(BytesToBytesSpec):
    """Asked: `blosc`.

    Attributes:
        numbered: whether `shuffle` is a number, as in version 2 and n5, which leave nothing open
            but the size of an element.
        cname: the compressor inside; lz4 if nothing is asked.
        clevel: 0 (store) to 9 (smallest); 5 if nothing is asked.
        shuffle: how the bytes of elements are regrouped first; by bits for one-byte elements
            and by bytes for larger ones if nothing is asked.
        typesize: size in bytes of an element for the shuffle; the data type's by default.
        blocksize: bytes per block; 0 leaves it to the library.

    Example:
        >>> BloscSpec.parse({"cname": "zstd", "clevel": 3}).to_json()
        {'clevel': 3, 'cname': 'zstd'}
    """

    numbered: ClassVar[bool] = False

    cname: Compressor | None = None
    clevel: Annotated[int, Level(0, 9)] | None = None
    shuffle: Literal["noshuffle", "shuffle", "bitshuffle"] | None = None
    typesize: Annotated[int, Level(1, _LARGEST_TYPE)] | None = None
    blocksize: Annotated[int, Level(0, 2**31 - 1)] | None = None

    def resolved(self, chunk: ChunkType) -> BloscSpec:
        if self.numbered:
            return self
        typesize = self.typesize
        if typesize is None and 1 <= chunk.dtype.itemsize <= _LARGEST_TYPE:
            typesize = chunk.dtype.itemsize
        shuffle = self.shuffle
        if shuffle is None:
            shuffle = _SHUFFLES[_natural_shuffle(typesize)]
        elif shuffle != "noshuffle" and typesize is None:
            raise SpecError(
                f'the size of an element is not known here, which "{shuffle}" needs: '
                f'state "typesize" (1 to {_LARGEST_TYPE}), or ask for "noshuffle"',
                ("configuration", "typesize"),
            )
        return self.replace(
            cname=self.cname or "lz4",
            clevel=5 if self.clevel is None else self.clevel,
            shuffle=shuffle,
            # Without a shuffle the element size changes nothing, and metadata leaves it out.
            typesize=self.typesize if shuffle == "noshuffle" else typesize,
            blocksize=self.blocksize or 0,
        )

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        spec = self.resolved(chunk)
        size = chunk.dtype.itemsize
        typesize = spec.typesize or (size if 1 <= size <= _LARGEST_TYPE else 1)
        shuffle = cast("int", spec.shuffle) if self.numbered else _SHUFFLES.index(spec.shuffle)
        return Blosc(
            cname=spec.cname or "lz4",
            clevel=5 if spec.clevel is None else spec.clevel,
            shuffle=_natural_shuffle(typesize) if shuffle == -1 else shuffle,
            typesize=typesize,
            blocksize=spec.blocksize or 0,
        )


def _natural_shuffle(typesize: int | None) -> int:
    if typesize is None:
        return 0
    return 2 if typesize == 1 else 1


class Blosc(SizedCodec):
    """The bound codec; `shuffle` is 0 none, 1 by bytes, 2 by bits.

    Raises:
        UnsupportedError: the installed library was built without that compressor.
    """

    has_parts = True

    def __init__(
        self, *, cname: str, clevel: int, shuffle: int, typesize: int, blocksize: int
    ) -> None:
        library = _library()
        if cname not in library.compressors and cname != "snappy":
            raise UnsupportedError(_not_built_in(cname, library))
        super().__init__("blosc", library.decompress)
        self._compress = library.compress
        self._asked = (cname.encode(), clevel, shuffle, blocksize, typesize)

    def encode(self, data: Buffer) -> bytes:
        if len(data) > _LARGEST_BUFFER:
            raise UnsupportedError(
                f"blosc cannot hold {len(data)} bytes, only {_LARGEST_BUFFER}: use smaller chunks"
            )
        cname = self._asked[0].decode()
        if cname not in _library().compressors:
            raise UnsupportedError(f"{_not_built_in(cname, _library())}: it can only be read")
        return self._compress(data, *self._asked)

    def stated_size(self, data: Buffer) -> int:
        """The decoded size that the header states.

        Raises:
            DataLossError: the header cannot be that of this buffer.
        """
        if len(data) < _HEADER.size:
            raise DataLossError(f"{len(data)} bytes are too few for a blosc header")
        version, _, flags, typesize, decoded, block, encoded = _HEADER.unpack_from(data)
        if encoded != len(data):
            raise DataLossError(f"blosc header states {encoded} bytes, but there are {len(data)}")
        if (
            not 1 <= version <= 2
            or not typesize
            or (decoded and not 1 <= block <= decoded)
            or (flags & _NOT_COMPRESSED and encoded != decoded + _HEADER.size)
            or decoded > _LARGEST_BUFFER
        ):
            raise DataLossError("corrupt blosc header")
        if not flags & _NOT_COMPRESSED and decoded:
            # one offset a block stands behind the header
            blocks = -(-decoded // block)
            if encoded < _HEADER.size + 4 * blocks:
                raise DataLossError("corrupt blosc header: more blocks than the data can hold")
        size: int = decoded
        return size

    def part(self, data: Buffer, size: int, low: int, high: int) -> EncodedPart | None:
        """The blocks that hold the decoded bytes `[low, high)`, behind a header of their own."""
        stated = self.stated_size(data)
        if stated != size:
            raise size_error(stated, size)
        *head, _, block, encoded = _HEADER.unpack_from(data)
        memory = memoryview(data)
        if head[2] & _NOT_COMPRESSED:
            if 2 * (high - low) > size:
                return None
            stored = memory[_HEADER.size + low : _HEADER.size + high]
            header = _HEADER.pack(*head, high - low, high - low, _HEADER.size + len(stored))
            return EncodedPart(b"".join((header, stored)), low, high)
        first, stop, count = low // block, -(-high // block), -(-size // block)
        if first == size // block and first:
            # The short block at the end would be read in another way if it were all there is.
            first -= 1
        if 2 * (stop - first) > count:
            return None
        pieces = _blocks(memory, count, range(first, stop), encoded)
        start, end = first * block, min(stop * block, size)
        behind = _HEADER.size + 4 * len(pieces)
        *offsets, length = accumulate(map(len, pieces), initial=behind)
        header = _HEADER.pack(*head, end - start, block, length)
        table = pack(f"<{len(offsets)}I", *offsets)
        return EncodedPart(b"".join((header, table, *pieces)), start, end)


def _blocks(data: memoryview, count: int, wanted: range, end: int) -> list[memoryview]:
    """Some of the compressed blocks.

    Raises:
        DataLossError: they are not all behind the offsets.
    """
    offsets = unpack_from(f"<{count}I", data, _HEADER.size)
    # Several threads write blocks in the order in which they have them.
    ordered = sorted(offsets)
    if ordered[0] < _HEADER.size + 4 * count or ordered[-1] > end:
        raise DataLossError("corrupt blosc data: an offset of a block is outside of them")
    ends = dict(pairwise((*ordered, end)))
    return [data[offsets[number] : ends[offsets[number]]] for number in wanted]


def _not_built_in(cname: str, library: _Library) -> str:
    return (
        f'blosc compressor "{cname}" is not built into the installed numcodecs, which has '
        f"{', '.join(library.compressors)}"
    )


class _Library(NamedTuple):
    compress: Callable[..., bytes]
    decompress: Callable[..., bytes]
    compressors: tuple[str, ...]


@cache
def _library() -> _Library:
    from numcodecs import blosc  # noqa: PLC0415 - takes 60 ms

    share_numcodecs()
    blosc.use_threads = False  # see the head of this file

    def decompress(data: Buffer, out: memoryview | None = None) -> bytes:
        found: bytes
        if data[2] >> FORMAT_SHIFT != SNAPPY or not is_snappy(data):
            found = blosc.decompress(data, out)
            return found
        found = decode_snappy(data)
        if out is not None:
            out[:] = found
        return found

    return _Library(blosc.compress, decompress, tuple(blosc.list_compressors()))
