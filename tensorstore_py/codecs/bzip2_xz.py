"""Bzip2 and LZMA: small and slow.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/bz2.html,
https://numcodecs.readthedocs.io/en/stable/compress/lzma.html, and
https://docs.python.org/3/library/lzma.html for the numbers of LZMA's formats, checks and filters.
Example: `{"id": "bz2", "level": 1}`, `{"id": "lzma", "format": 1, "check": -1, "preset": 6,
"filters": null}`; in n5 `{"type": "xz", "preset": 6}`.
Limits: a block of bzip2, up to `level` times 100 kB, is one unit of work and of loss. LZMA takes up
to 1 GiB of memory beyond the chunk's to decode, whatever the data asks for. A value may be several
streams one behind the other, as parallel compressors write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Field,
    Level,
    StreamCodec,
    codec,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Bz2Spec", "LzmaSpec"]

_MOST_MEMORY = 1 << 30
_RAW = 3
_EXTREME = 1 << 31


@codec("bz2", family="zarr")
@codec("numcodecs.bz2", family="zarr3")
@codec("bzip2", family="n5", level=Field(default=9, alias="blockSize"))
class Bz2Spec(BytesToBytesSpec):
    """Asked: `bz2`.

    Attributes:
        level: block size in units of 100 kB, 1 to 9.
    """

    level: Annotated[int, Level(1, 9)] = 1

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        import bz2  # noqa: PLC0415 - at first use

        return StreamCodec(
            "bzip2",
            lambda data: bz2.compress(data, self.level),
            bz2.BZ2Decompressor,
            (OSError, ValueError),
            unlimited=-1,
        )


@codec("lzma", family="zarr")
@codec("numcodecs.lzma", family="zarr3")
@codec(
    "xz",
    family="n5",
    without=["format", "check", "filters"],
    nullable=frozenset(),
    preset=Annotated[int, Level(0, 9), Field(default=6, description="0 (fast) to 9 (small).")],
)
class LzmaSpec(BytesToBytesSpec):
    """Asked: `lzma`.

    Attributes:
        format: 1 xz, 2 the old .lzma, 3 raw.
        check: the checksum of the xz format; -1 leaves it to the library.
        preset: 0 (fast) to 9 (small), with 2**31 added for more effort.
        filters: the library's own chain of filters, instead of a preset.
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"preset", "filters"})

    format: Annotated[int, Level(1, 3)] = 1
    check: Annotated[int, Level(-1, 15)] = -1
    preset: Annotated[int, Level(0, _EXTREME + 9)] | None = None
    filters: tuple[dict[str, int], ...] | None = None

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        import lzma  # noqa: PLC0415 - at first use

        bound = self._bound()
        try:
            bound.decode(bound.encode(b""), 0)
        except MemoryError:
            raise SpecError("lzma takes more memory than there is with these members") from None
        except (lzma.LZMAError, ValueError, TypeError, OverflowError) as error:
            raise SpecError(f"lzma has no such combination of members: {error}") from None
        return bound

    def _bound(self) -> StreamCodec:
        import lzma  # noqa: PLC0415 - at first use

        filters: list[Mapping[str, int]] | None = (
            None if self.filters is None else [dict(each) for each in self.filters]
        )

        def compress(data: Buffer) -> bytes:
            return lzma.compress(
                data, format=self.format, check=self.check, preset=self.preset, filters=filters
            )

        def start() -> lzma.LZMADecompressor:
            if self.format == _RAW:
                return lzma.LZMADecompressor(format=_RAW, filters=filters)
            return lzma.LZMADecompressor(format=self.format, memlimit=_MOST_MEMORY)

        return StreamCodec("lzma", compress, start, (lzma.LZMAError,), unlimited=-1)
