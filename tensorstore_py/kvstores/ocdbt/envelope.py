"""What manifests and nodes are wrapped in: a magic number, their length, compression, a checksum.

```text
magic uint32be · length uint64le · version varint (0) · compression varint · body · crc32c uint32le
```

The length counts everything; the checksum covers everything before itself; the body is compressed.

Specification: "Manifest format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache
from typing import Final, cast

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.wire import Reader, Writer
from tensorstore_py.plugin.codec import BytesToBytes, BytesToBytesSpec
from tensorstore_py.plugin.driver import OPAQUE, parse_codec_json
from tensorstore_py.plugin.kvstore import crc32c

__all__ = ["Record", "open_envelope", "seal_envelope"]

_PREAMBLE: Final = 12  # magic number and length
_CHECKSUM: Final = 4
_VERSION: Final = 0
_PLAIN: Final = 0
_ZSTD: Final = 1
#: A record that says of itself how large it may be is believed up to so many bytes, and beyond them
#: if it is compressed less than so many times.
_LEAST_CREDIBLE: Final = 128 << 20
_CREDIBLE_RATIO: Final = 1000


class Record(Enum):
    """What an envelope holds; its value is the magic number."""

    MANIFEST = 0x0CDB3A2A
    VERSION_NODE = 0x0CDB1234
    BTREE_NODE = 0x0CDB20DE

    @property
    def title(self) -> str:
        """What messages call it."""
        return {"VERSION_NODE": "version tree node", "BTREE_NODE": "B+tree node"}.get(
            self.name, "manifest"
        )


@contextmanager
def open_envelope(record: Record, data: bytes, most: int) -> Iterator[Reader]:
    """Read the body of a manifest or node; all of it must be read.

    Args:
        record: what it must be.
        data: all of it.
        most: what the decoded body does not exceed, in bytes.

    Raises:
        DataLossError: damaged, or something else; says that it is about this kind of record.
    """
    try:
        reader = Reader(_body(record, data, most))
        yield reader
        reader.finish()
    except DataLossError as error:
        raise DataLossError(f"corrupt {record.title}: {error}") from error


def _body(record: Record, data: bytes, most: int) -> bytes:
    size = len(data)
    if size < _PREAMBLE + 2 + _CHECKSUM:
        raise DataLossError(f"truncated to {size} bytes")
    magic = int.from_bytes(data[:4], "big")
    if magic != record.value:
        raise DataLossError(f"it begins with 0x{magic:08x}, 0x{record.value:08x} is expected")
    length = int.from_bytes(data[4:_PREAMBLE], "little")
    if length != size:
        raise DataLossError(f"it says that it has {length} bytes, and has {size}")
    end = size - _CHECKSUM
    stored = int.from_bytes(data[end:], "little")
    found = crc32c(data[:end])
    if found != stored:
        raise DataLossError(f"its CRC-32C is 0x{found:08x}, 0x{stored:08x} is stored")
    head = Reader(data, _PREAMBLE)
    version = head.varint()
    if version != _VERSION:
        raise DataLossError(f"its format version is {version}, only {_VERSION} is known")
    compression = head.varint()
    body = data[head.position : end]
    if compression == _PLAIN:
        return body
    if compression == _ZSTD:
        credible = max(_LEAST_CREDIBLE, _CREDIBLE_RATIO * len(body))
        return bytes(_zstd(0).decode_within(body, min(most, credible)))
    raise DataLossError(f"its compression is {compression}, only 0 (none) and 1 (zstd) are known")


def seal_envelope(record: Record, body: bytes | bytearray, zstd_level: int | None) -> bytes:
    """A manifest or node as it is stored.

    Args:
        record: what it is.
        body: its fields.
        zstd_level: of the compression; None for none.
    """
    compressed = body if zstd_level is None else _zstd(zstd_level).encode(bytes(body))
    writer = Writer()
    writer.varint(_VERSION)
    writer.varint(_PLAIN if zstd_level is None else _ZSTD)
    length = _PREAMBLE + len(writer.data) + len(compressed) + _CHECKSUM
    sealed = b"".join(
        (record.value.to_bytes(4, "big"), length.to_bytes(8, "little"), writer.data, compressed)
    )
    return sealed + crc32c(sealed).to_bytes(4, "little")


@cache
def _zstd(level: int) -> BytesToBytes:
    spec = parse_codec_json("zarr3", {"name": "zstd", "configuration": {"level": level}})
    return cast("BytesToBytesSpec", spec).bind(OPAQUE)
