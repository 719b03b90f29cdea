"""Decoding formats that come as streams with an end: deflate in its wrappers, bzip2, xz.

Such libraries hand out fresh bytes; none of them decodes into memory that it is given. What
this module adds is the certainty that a codec owes: the stream ended, nothing stands behind
it, and never more was decoded than expected, however large the data claims to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tensorstore_py._interface.codec import BytesToBytes, TooLargeError, size_error
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["StreamCodec", "StreamDecoder", "decode_streams"]


class StreamDecoder(Protocol):
    """What `zlib.decompressobj`, `bz2.BZ2Decompressor` and the like have in common."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""

    @property
    def unused_data(self) -> bytes:
        """What stands behind the end."""

    def decompress(self, data: Buffer, max_length: int, /) -> bytes:
        """At most `max_length` decoded bytes."""


def decode_streams(
    data: Buffer,
    size: int | None,
    start: Callable[[], StreamDecoder],
    *,
    unlimited: int,
    concatenated: bool,
    most: int | None = None,
) -> bytes:
    """Decode one stream, or several one behind the other.

    Args:
        data: all of the encoded bytes.
        size: decoded size in bytes, where it is known.
        start: makes the decoder of one stream.
        unlimited: the `max_length` that means "no limit" to that decoder.
        concatenated: whether the format joins streams that stand one behind the other.
        most: what the decoded size does not exceed, where it is not known.

    Raises:
        DataLossError: truncated, followed by other bytes, or not of `size` bytes.
        Exception: whatever the decoder raises on corrupt data.
    """
    parts: list[bytes] = []
    found = 0
    if size is not None:
        most = size
    while True:
        decoder = start()
        # One byte more than expected, so that a longer stream is seen and the end is reached.
        limit = unlimited if most is None else most - found + 1
        part = decoder.decompress(data, limit)
        found += len(part)
        if most is not None and found > most:
            raise TooLargeError(most)
        if not decoder.eof:
            raise DataLossError(f"truncated after {found} decoded bytes")
        parts.append(part)
        data = decoder.unused_data
        if not data:
            break
        if not concatenated:
            raise DataLossError(f"{len(data)} bytes too many behind the compressed data")
    if size is not None and found != size:
        raise size_error(found, size)
    return part if len(parts) == 1 else b"".join(parts)


class StreamCodec(BytesToBytes):
    """A bound codec whose format comes as streams.

    Args:
        name: for error messages.
        compress: makes a stream.
        start: makes the decoder of one stream.
        failures: what that decoder raises on corrupt data.
        unlimited: the `max_length` that means "no limit" to that decoder.
        concatenated: whether streams may stand one behind the other.
        at_once: decodes one stream of a known size, if there is a quicker way; None if the data are
            anything but that one stream, intact and with nothing behind it. They are then decoded
            the long way, which knows what to say.

    Example:
        >>> import zlib
        >>> codec = StreamCodec("zlib", zlib.compress, zlib.decompressobj, (zlib.error,))
        >>> codec.decode(codec.encode(b"abc"), 3)
        b'abc'
    """

    def __init__(
        self,
        name: str,
        compress: Callable[[Buffer], bytes],
        start: Callable[[], StreamDecoder],
        failures: tuple[type[Exception], ...],
        *,
        unlimited: int = 0,
        concatenated: bool = True,
        at_once: Callable[[Buffer, int], Buffer | None] | None = None,
    ) -> None:
        self._name = name
        self._compress = compress
        self._start = start
        self._failures = failures
        self._unlimited = unlimited
        self._concatenated = concatenated
        self._at_once = at_once

    def encode(self, data: Buffer) -> bytes:
        return self._compress(data)

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        if size and self._at_once is not None:
            found = self._at_once(data, size)
            if found is not None:
                return found
        return self._decode(data, size, None)

    def decode_within(self, data: Buffer, most: int) -> bytes:
        return self._decode(data, None, most)

    def _decode(self, data: Buffer, size: int | None, most: int | None) -> bytes:
        try:
            return decode_streams(
                data,
                size,
                self._start,
                unlimited=self._unlimited,
                concatenated=self._concatenated,
                most=most,
            )
        except DataLossError:
            raise
        except self._failures as error:
            raise DataLossError(f"corrupt {self._name} data: {error}") from error
