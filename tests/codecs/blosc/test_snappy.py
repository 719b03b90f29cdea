"""Buffers with Snappy inside, as the reference's library writes them."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import tensorstore as wheel

from tensorstore_py.codecs.blosc import BloscSpec
from tensorstore_py.codecs.blosc.snappy import is_snappy, uncompress
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing.codecs import chunk_type

RANDOM = np.random.default_rng(0)


def _values(kind: str, count: int) -> Any:
    if kind == "random":
        return RANDOM.integers(0, 200, count)
    return np.arange(count) % 97 if kind == "ramp" else np.full(count, 7)


def _encoded(values: Any, shuffle: int, blocksize: int) -> bytes:
    """The chunk that the reference stores."""
    compressor = {"id": "blosc", "cname": "snappy", "shuffle": shuffle, "blocksize": blocksize}
    metadata = {"compressor": compressor, "chunks": [len(values)]}
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
    store = wheel.open(spec, create=True, dtype=values.dtype, shape=values.shape).result()
    store[:] = values
    assert store.kvstore is not None
    found: bytes = store.kvstore["0"]
    return found


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
@pytest.mark.parametrize("kind", ["random", "ramp", "constant"])
def test_what_the_reference_wrote_is_read(dtype: str, shuffle: int, kind: str) -> None:
    codec = BloscSpec(cname="snappy").bind(chunk_type((4,), dtype))
    compressed = 0
    for count in (1, 7, 100, 3000, 40_000):
        for blocksize in (0, 512, 4096):
            values = _values(kind, count).astype(dtype)
            data = _encoded(values, shuffle, blocksize)
            compressed += is_snappy(data)
            assert codec.decode(data, values.nbytes) == values.tobytes()
            out = memoryview(bytearray(values.nbytes))
            codec.decode_into(data, out)
            assert out == values.tobytes()
    # the library stores what it cannot make shorter, and elements of one byte always
    assert compressed or dtype == "uint8" or kind == "random"


def test_damaged_blocks_never_crash() -> None:
    codec = BloscSpec(cname="snappy").bind(chunk_type((4,), "uint16"))
    values = _values("ramp", 3000).astype("uint16")
    intact = np.frombuffer(_encoded(values, 1, 4096), np.uint8)
    refused = 0
    for _ in range(300):
        damaged = intact.copy()
        positions = RANDOM.integers(16, len(damaged), RANDOM.integers(1, 4))
        damaged[positions] = RANDOM.integers(0, 256, len(positions))
        refused += 1
        with suppress(DataLossError):
            assert len(codec.decode(damaged.tobytes(), values.nbytes)) == values.nbytes
            refused -= 1
    assert refused


def test_copies_that_overlap_themselves() -> None:
    pattern = bytes([60, 0b1000, 1, 2, 3, (57 - 1) << 2 | 2, 3, 0])
    assert uncompress(pattern, 60) == b"\1\2\3" * 20
    far = bytes([8, 0b1100, 1, 2, 3, 4, (4 - 1) << 2 | 3, 4, 0, 0, 0])
    assert uncompress(far, 8) == b"\1\2\3\4" * 2


def test_long_literals() -> None:
    data = bytes(range(256)) * 2
    assert uncompress(bytes([0x80, 4, 61 << 2, 0xFF, 1]) + data, 512) == data


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (b"", "no length"),
        (b"\xff" * 6, "no length"),
        (b"\5\0a", "5 bytes are stated"),
        (b"\4\0a", "1 bytes, not 4"),
        (b"\4\x14abc", "within a literal"),
        (b"\4\xf0", "within a literal"),
        (b"\4\1\0", "before its beginning"),
        (b"\4\0a\x01\2", "before its beginning"),
        (b"\4\0a\xfe\1\0", "more than 4 bytes"),
        (b"\4\0a\1", "before its beginning"),
    ],
)
def test_streams_that_are_not_whole(stream: bytes, problem: str) -> None:
    with pytest.raises(DataLossError, match=problem):
        uncompress(stream, 4)
