import gzip
import struct

import numpy as np
import pytest

from tensorstore_py.drivers.n5.block import BlockCodec
from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.codec import ArrayToBytes, ChunkType, CodecChain
from tensorstore_py.plugin.driver import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite

VALUES = np.array([[1, 4], [2, 5], [3, 6]], "uint16")
STORED = struct.pack(">6H", 1, 2, 3, 4, 5, 6)


def header(*shape: int, mode: int = 0, rank: int | None = None) -> bytes:
    rank = len(shape) if rank is None else rank
    return struct.pack(f">HH{len(shape)}I", mode, rank, *shape)


def block(name: str = "raw", shape: tuple[int, ...] = (3, 2), dtype: str = "u2") -> BlockCodec:
    chunk = ChunkType(shape, np.dtype(dtype), np.zeros((), dtype))
    return BlockCodec(chunk, parse_codec_json("n5", {"type": name}))


class TestBlockCodec(CodecSuite):
    family = "n5"
    configurations = (
        {"type": "raw"},
        {"type": "gzip"},
        {"type": "xz", "preset": 0},
        {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    )
    dtypes = tuple(map(np.dtype, ("u1", "i1", "u2", "f4", "f8", "i8")))

    # This is about chains of the zarr formats.
    test_resolving_states_everything = None  # type: ignore[assignment]

    def chain(self, configuration: object, chunk: ChunkType) -> CodecChain:
        codec = BlockCodec(chunk, parse_codec_json("n5", configuration))
        return CodecChain(chunk, (), codec, ())


def test_values_are_big_endian_and_in_fortran_order_behind_the_shape() -> None:
    assert block().encode(VALUES) == header(3, 2) + STORED


def test_only_what_is_behind_the_header_is_compressed() -> None:
    data = block("gzip").encode(VALUES)

    assert data[:12] == header(3, 2)
    assert gzip.decompress(data[12:]) == STORED


def test_a_block_without_dimensions_is_one_value() -> None:
    codec = block("raw", ())

    assert codec.encode(np.array(7, "u2")) == header() + b"\0\7"
    assert codec.decode(header() + b"\0\7") == 7


@pytest.mark.parametrize("name", ["raw", "gzip"])
@pytest.mark.parametrize("shape", [(3, 2), (2, 2), (3, 1), (1, 1), (0, 2), (0, 0)])
def test_what_a_block_does_not_reach_is_zero(name: str, shape: tuple[int, int]) -> None:
    part = VALUES[: shape[0], : shape[1]]
    stored = part.astype(">u2").tobytes("F")
    data = header(*shape) + (gzip.compress(stored) if name == "gzip" else stored)
    expected = np.zeros_like(VALUES)
    expected[: shape[0], : shape[1]] = part
    out = np.full_like(VALUES, 9)

    block(name).decode_into(data, out)

    assert block(name).decode(data).tolist() == expected.tolist()
    assert out.tolist() == expected.tolist()


def test_bytes_are_decompressed_straight_to_where_they_belong() -> None:
    codec = block("gzip", (3, 2), "u1")
    values = VALUES.astype("u1")
    for order in ("C", "F"):
        out = np.full((3, 2), 9, "u1", order)
        codec.decode_into(codec.encode(values), out)
        assert out.tolist() == values.tolist()


def test_nothing_is_copied_that_need_not_be() -> None:
    data = bytearray(block().encode(VALUES))

    found = block().decode(data)
    data[13] = 7

    assert found[0, 0] == 7


def test_a_limit_is_known() -> None:
    codec: ArrayToBytes = block()

    assert codec.encoded_size is None
    assert codec.most_bytes is not None
    assert codec.most_bytes > len(codec.encode(VALUES))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "^0 bytes are too few"),
        (b"\0\0\0", "^3 bytes are too few"),
        (header(3, 2)[:-1], "^11 bytes are too few"),
        (header(3), "^the header of a block states 1 dimensions, but the array has 2"),
        (header(3, 2, 1) + STORED, "^the header of a block states 3 dimensions"),
        (header(3, 2, rank=0) + STORED, "states 0 dimensions"),
        (header(3, 2, mode=1) + b"\0\0\0\6" + STORED, "^blocks of variable length"),
        (header(mode=1), "^blocks of variable length"),
        (header(mode=2, rank=0) + b"\0\0\0\6" + STORED, "^blocks of objects"),
        (header(3, 2, mode=3) + STORED, "mode 3, which does not exist"),
        (header(3, 2, mode=256) + STORED, "mode 256"),
        (header(4, 2) + STORED, r"^a block of shape \[4, 2\] is stored, but .* \[3, 2\]"),
        (header(3, 2**32 - 1) + STORED, "^a block of shape"),
        (header(3, 2), "^decoded to 0 bytes, expected 12"),
        (header(3, 2) + STORED[:-1], "^decoded to 11 bytes, expected 12"),
        (header(3, 2) + STORED + b"x", "^decoded to 13 bytes, expected 12"),
        (header(2, 2) + STORED, "^decoded to 12 bytes, expected 8"),
        (header(0, 2) + STORED, "^decoded to 12 bytes, expected 0"),
    ],
)
def test_damage_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(DataLossError, match=problem):
        block().decode(data)
    with pytest.raises(DataLossError, match=problem):
        block().decode_into(data, np.empty_like(VALUES))
