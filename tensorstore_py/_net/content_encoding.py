"""`Content-Encoding`: bodies that come compressed are decompressed, and proven to be whole.

A compressed body says itself where it ends. One that was cut is found out by that alone, since a
server that compresses while it sends does not say how long the body is to be. The invariant: what
is handed on came from streams that ended where the body did.
"""

from __future__ import annotations

import zlib
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.compressors import decode_streams
from tensorstore_py._net.failures import Failure, damaged
from tensorstore_py.errors import DataLossError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["check_whole", "content_encodings", "decoded"]

_GZIP: Final = 31
_ZLIB: Final = 15
_DEFLATE: Final = -15
#: Of these two formats that are both called deflate, this is how the one with a head begins.
_ZLIB_METHOD: Final = 8
_BROTLI: Final = ("brotli", "brotlicffi")


def content_encodings(headers: Mapping[str, str]) -> tuple[str, ...]:
    """How a body was compressed, in the order in which that was done.

    Example:
        >>> content_encodings({"Content-Encoding": "identity, GZIP"}), content_encodings({})
        (('gzip',), ())
    """
    names = headers.get("Content-Encoding", "").lower().split(",")
    return tuple(name for each in names if (name := each.strip()) not in ("", "identity"))


def check_whole(status: int, headers: Mapping[str, str]) -> None:
    """Refuse a part of a compressed body, which cannot be decompressed.

    Raises:
        Failure: the status is that of a part.
    """
    if status == 206:
        raise Failure(
            f"the value is stored packed (Content-Encoding: "
            f"{', '.join(content_encodings(headers))}), so a part of it is of no use; store it as "
            f"it is, and leave the packing to codecs",
            UnsupportedError,
        )


def decoded(body: Buffer, how: tuple[str, ...]) -> Buffer:
    r"""A body as it was before it was compressed.

    Raises:
        Failure: it does not end, is damaged, or is compressed in an unknown way.

    Example:
        >>> import gzip
        >>> decoded(gzip.compress(b"abc"), ("gzip",))
        b'abc'
    """
    for name in reversed(how):
        decode = _DECODERS.get(name)
        if decode is None:
            raise _unknown(name)
        try:
            body = decode(body)
        except (DataLossError, RuntimeError, ValueError, zlib.error) as error:
            raise damaged(f"the packed answer (Content-Encoding: {name}) is {error}") from None
    return body


def _unknown(name: str) -> Failure:
    return Failure(
        f"the server sent it packed in a way that cannot be undone here (Content-Encoding: "
        f"{name[:40]})",
        UnsupportedError,
    )


def _streams(window: int, concatenated: bool, body: Buffer) -> Buffer:
    return decode_streams(
        body,
        None,
        partial(zlib.decompressobj, window),
        unlimited=0,
        concatenated=concatenated,
    )


def _deflate(body: Buffer) -> Buffer:
    begins = bytes(memoryview(body)[:1])
    has_head = bool(begins) and begins[0] & 15 == _ZLIB_METHOD
    return _streams(_ZLIB if has_head else _DEFLATE, False, body)


def _zstd(body: Buffer) -> Buffer:
    found: bytes = import_module("numcodecs").zstd.decompress(bytes(body))
    return found


def _brotli(body: Buffer) -> Buffer:
    for name in _BROTLI:
        try:
            library = import_module(name)
        except ImportError:
            continue
        try:
            found: bytes = library.decompress(bytes(body))
        except library.error as error:
            raise DataLossError(f"damaged or cut ({error})") from None
        return found
    raise _unknown("br")


_DECODERS: Final[dict[str, Callable[[Buffer], Buffer]]] = {
    "br": _brotli,
    "deflate": _deflate,
    "gzip": partial(_streams, _GZIP, True),
    "x-gzip": partial(_streams, _GZIP, True),
    "zstd": _zstd,
}
