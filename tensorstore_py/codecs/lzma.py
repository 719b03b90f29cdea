"""LZMA: small and slow, in xz's wrapper or another of the library's.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/lzma.html, and
https://docs.python.org/3/library/lzma.html for the numbers of formats, checks and filters.
Names: `lzma` (zarr), `numcodecs.lzma` (zarr3), `xz` (n5).
Example: `{"id": "lzma", "format": 1, "check": -1, "preset": 6, "filters": null}`.
Limits: decoding may take 1 GiB of memory beyond the chunk's, whatever the data asks for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    StreamCodec,
    StreamDecoder,
    codec,
)

if TYPE_CHECKING:
    import lzma
    from collections.abc import Mapping
    from types import ModuleType

__all__ = ["Lzma", "LzmaSpec", "N5XzSpec", "NumcodecsLzmaSpec"]

_MOST_MEMORY = 1 << 30
_RAW = 3
_EXTREME = 1 << 31


@codec("lzma", family="zarr")
class LzmaSpec(BytesToBytesSpec):
    """Asked: `lzma`.

    Attributes:
        format: 1 xz, 2 the old .lzma, 3 raw.
        check: the checksum of the xz format; -1 leaves it to the library.
        preset: 0 (fast) to 9 (small), with 2**31 added for more effort.
        filters: the library's own chain of filters, instead of a preset.

    Example:
        >>> LzmaSpec.parse({"preset": None}).to_json(include_defaults=True)
        {'check': -1, 'format': 1}
    """

    nullable: ClassVar[frozenset[str]] = frozenset({"preset", "filters"})

    format: Annotated[int, Level(1, 3)] = 1
    check: Annotated[int, Level(-1, 15)] = -1
    preset: Annotated[int, Level(0, _EXTREME + 9)] | None = None
    filters: tuple[dict[str, int], ...] | None = None

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        bound = Lzma(self)
        library = _library()
        try:
            bound.decode(bound.encode(b""), 0)
        except MemoryError:
            raise SpecError("lzma takes more memory than there is with these members") from None
        except (library.LZMAError, ValueError, TypeError, OverflowError) as error:
            raise SpecError(f"lzma has no such combination of members: {error}") from None
        return bound


@codec("numcodecs.lzma", family="zarr3")
class NumcodecsLzmaSpec(LzmaSpec):
    """Asked: `numcodecs.lzma`, which is how version 3 writes the codec of version 2.

    Example:
        >>> NumcodecsLzmaSpec.codec_id
        'numcodecs.lzma'
    """


@codec("xz", family="n5")
class N5XzSpec(BytesToBytesSpec):
    """Asked: `xz`, the way n5 writes it.

    Attributes:
        preset: 0 (fast) to 9 (small).

    Example:
        >>> N5XzSpec.parse({}).to_json(include_defaults=True)
        {'preset': 6}
    """

    preset: Annotated[int, Level(0, 9)] = 6

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        return LzmaSpec(preset=self.preset).bind(chunk)


class Lzma(StreamCodec):
    """The bound codec.

    Args:
        spec: what was asked.
    """

    def __init__(self, spec: LzmaSpec) -> None:
        library = _library()
        filters: list[Mapping[str, int]] | None = (
            None if spec.filters is None else [dict(each) for each in spec.filters]
        )
        raw = spec.format == _RAW

        def compress(data: Buffer) -> bytes:
            encoded: bytes = library.compress(
                data, format=spec.format, check=spec.check, preset=spec.preset, filters=filters
            )
            return encoded

        def start() -> StreamDecoder:
            decoder: lzma.LZMADecompressor = library.LZMADecompressor(
                format=spec.format,
                memlimit=None if raw else _MOST_MEMORY,
                filters=filters if raw else None,
            )
            return decoder

        super().__init__("lzma", compress, start, (library.LZMAError,), unlimited=-1)


@cache
def _library() -> ModuleType:
    import lzma  # noqa: PLC0415 - at first use

    return lzma
