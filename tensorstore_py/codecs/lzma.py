"""LZMA: small and slow, in xz's wrapper or another of the library's.

Specification: https://numcodecs.readthedocs.io/en/stable/compress/lzma.html, and
https://docs.python.org/3/library/lzma.html for the numbers of formats, checks and filters.
Names: `lzma` (zarr), `numcodecs.lzma` (zarr3).
Example: `{"id": "lzma", "format": 1, "check": -1, "preset": 6, "filters": null}`.
Limits: decoding may take 1 GiB of memory beyond the chunk's, whatever the data asks for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import (
    Buffer,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    Level,
    StreamDecoder,
    codec,
    decode_streams,
)

if TYPE_CHECKING:
    import lzma
    from collections.abc import Mapping
    from types import ModuleType

__all__ = ["Lzma", "LzmaSpec", "NumcodecsLzmaSpec"]

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


class Lzma(BytesToBytes):
    """The bound codec.

    Args:
        spec: what was asked.
    """

    def __init__(self, spec: LzmaSpec) -> None:
        self._library = _library()
        self._format = spec.format
        self._check = spec.check
        self._preset = spec.preset
        self._filters: list[Mapping[str, int]] | None = (
            None if spec.filters is None else [dict(each) for each in spec.filters]
        )

    def encode(self, data: Buffer) -> bytes:
        encoded: bytes = self._library.compress(
            data,
            format=self._format,
            check=self._check,
            preset=self._preset,
            filters=self._filters,
        )
        return encoded

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        return self._decode(data, size, None)

    def decode_within(self, data: Buffer, most: int) -> bytes:
        return self._decode(data, None, most)

    def _decode(self, data: Buffer, size: int | None, most: int | None) -> bytes:
        try:
            return decode_streams(
                data, size, self._start, unlimited=-1, concatenated=True, most=most
            )
        except self._library.LZMAError as error:
            raise DataLossError(f"corrupt lzma data: {error}") from error

    def _start(self) -> StreamDecoder:
        raw = self._format == _RAW
        decoder: lzma.LZMADecompressor = self._library.LZMADecompressor(
            format=self._format,
            memlimit=None if raw else _MOST_MEMORY,
            filters=self._filters if raw else None,
        )
        return decoder


@cache
def _library() -> ModuleType:
    import lzma  # noqa: PLC0415 - at first use

    return lzma
