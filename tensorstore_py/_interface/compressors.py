"""Compressors by how their libraries decode: formats that are streams, and such that state a size.

| base | format | library |
|---|---|---|
| `StreamCodec` | a stream with an end: deflate in its wrappers, bzip2, xz | hands out fresh bytes |
| `SizedCodec` | data that state their decoded size: blosc, lz4, zstd | decodes to given memory |

What this module adds is the certainty that a codec owes: the data are whole, nothing stands behind
them, and never more was decoded than expected, however large the data claims to be.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Protocol

from tensorstore_py._interface.codec import BytesToBytes, TooLargeError, size_error
from tensorstore_py._runtime.interpreter_lock import share
from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["SizedCodec", "StreamCodec", "StreamDecoder", "decode_streams", "share_numcodecs"]


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


class SizedCodec(BytesToBytes):
    """A bound codec whose data state their decoded size.

    That is compared with the size that the data must have, or may have at most, before the library
    sees the data.

    Args:
        name: for error messages.
        unpack: decodes data, to fresh memory or to `out`, and raises `RuntimeError` or `ValueError`
            for corrupt data.

    Example:
        >>> import zlib
        >>> class Sized(SizedCodec):
        ...     def __init__(self) -> None:
        ...         super().__init__("sized", lambda data, out=None: zlib.decompress(data[4:]))
        ...
        ...     def encode(self, data):
        ...         return len(data).to_bytes(4, "little") + zlib.compress(data)
        ...
        ...     def stated_size(self, data):
        ...         return int.from_bytes(data[:4], "little")
        >>> codec = Sized()
        >>> codec.decode(codec.encode(b"abc"), 3)
        b'abc'
        >>> codec.decode(codec.encode(b"abc"), 4)
        Traceback (most recent call last):
            ...
        tensorstore_py.errors.DataLossError: decoded to 3 bytes, expected 4
    """

    def __init__(self, name: str, unpack: Callable[..., Buffer]) -> None:
        self.name = name
        self._unpack = unpack

    @abstractmethod
    def stated_size(self, data: Buffer) -> int | None:
        """The decoded size that the data state; None if these do not.

        Raises:
            DataLossError: they cannot be what they should be.
        """

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        stated = self.stated_size(data)
        if size is not None and stated is not None and stated != size:
            raise size_error(stated, size)
        try:
            return self._unpack(data)
        except DataLossError:
            raise
        except (RuntimeError, ValueError) as error:
            raise self.corrupt(error) from error

    def decode_within(self, data: Buffer, most: int) -> Buffer:
        stated = self.stated_size(data)
        if stated is None:
            return super().decode_within(data, most)
        if stated > most:
            raise TooLargeError(most)
        return self.decode(data, stated)

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        stated = self.stated_size(data)
        if stated is not None and stated != out.nbytes:
            raise size_error(stated, out.nbytes)
        try:
            self._unpack(data, out)
        except DataLossError:
            raise
        except (RuntimeError, ValueError) as error:
            raise self.corrupt(error) from error

    def corrupt(self, error: Exception) -> DataLossError:
        """What the library says of corrupt data, as an error of ours."""
        return DataLossError(f"corrupt {self.name} data: {error}")


@cache
def share_numcodecs() -> None:
    """Have threads without an interpreter lock decode by numcodecs side by side.

    It looks up the kind of each destination in a dict of its own, where threads that find a key of
    another thread would wait for each other: a chunk of 32³ took a second thread twice as long.
    """
    from numcodecs.compat import ensure_contiguous_ndarray  # noqa: PLC0415 - takes 60 ms
    from numcodecs.ndarray_like import NDArrayLike  # noqa: PLC0415

    ensure_contiguous_ndarray(memoryview(bytearray(1)))  # the keys of what we decode to
    share(getattr(NDArrayLike, "_instancecheck_cache", ()))
