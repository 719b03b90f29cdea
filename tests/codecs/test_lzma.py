import lzma
import zlib

import numpy as np
import pytest
from numcodecs.lzma import LZMA

from tensorstore_py.codecs.lzma import Lzma, LzmaSpec, N5XzSpec
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import OPAQUE, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite

DATA = np.arange(500, dtype="<u2").tobytes()
DELTA = [{"id": lzma.FILTER_DELTA, "dist": 2}, {"id": lzma.FILTER_LZMA2, "preset": 1}]


class TestLzma(CodecSuite):
    family = "zarr"
    configurations = ({"id": "lzma", "preset": 0},)
    shapes = ((3,), (2, 3))
    dtypes = (np.dtype("<i2"), np.dtype("<f8"))


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"format": 1, "check": -1, "preset": None, "filters": None},
        {"format": 1, "check": lzma.CHECK_CRC32, "preset": 1},
        {"format": 2, "preset": 0},
        {"format": 3, "filters": DELTA},
    ],
)
def test_other_implementations_read_and_write_the_same(members: dict) -> None:
    codec = Lzma(LzmaSpec.parse(members))

    assert codec.encode(DATA) == LZMA(**members).encode(DATA)
    assert codec.decode(LZMA(**members).encode(DATA), len(DATA)) == DATA


def test_filters_in_a_wrapper_are_read_too() -> None:
    codec = Lzma(LzmaSpec.parse({"format": 1, "filters": DELTA}))

    assert codec.decode(codec.encode(DATA), len(DATA)) == DATA


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"format": 4}, r"^format: "),
        ({"preset": 10}, "no such combination"),
        ({"check": 7}, "no such combination"),
        ({"format": 3}, "no such combination"),
        ({"format": 2, "check": 4}, "no such combination"),
        ({"preset": 1, "filters": DELTA}, "no such combination"),
        ({"filters": [{"dist": 2}]}, "no such combination"),
        ({"filters": [{"id": "x"}]}, r"^filters\[0\]"),
        ({"filters": "x"}, r"^filters: "),
    ],
)
def test_members_that_do_not_go_together_are_refused(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_codec_json("zarr", {"id": "lzma", **members}).bind(OPAQUE)  # type: ignore[attr-defined]


def test_a_dictionary_larger_than_the_limit_is_refused() -> None:
    data = bytearray(lzma.compress(DATA, filters=DELTA[1:]))
    # The block header behind the 12 bytes of the stream's: its size, flags, one filter with its
    # dictionary's size as a code, and a checksum of all that.
    size = 4 * (data[12] + 1)
    data[16] = 40
    data[8 + size : 12 + size] = zlib.crc32(data[12 : 8 + size]).to_bytes(4, "little")

    with pytest.raises(DataLossError, match="Memory usage limit"):
        Lzma(LzmaSpec.parse({})).decode(bytes(data), len(DATA))


def test_a_bomb_is_not_unpacked() -> None:
    bomb = lzma.compress(bytes(1 << 24), preset=0)

    with pytest.raises(DataLossError, match="more than 1000 bytes"):
        Lzma(LzmaSpec.parse({})).decode(bomb, 1000)


def test_corrupt_data_is_data_loss() -> None:
    data = bytearray(lzma.compress(DATA))
    data[30] ^= 1

    with pytest.raises(DataLossError, match="corrupt lzma data"):
        Lzma(LzmaSpec.parse({})).decode(bytes(data), len(DATA))


class TestXzN5(CodecSuite):
    family = "n5"
    configurations = ({"type": "xz", "preset": 0},)


class TestXzN5AsItIs(CodecSuite):
    """Each time, a hundred megabytes are allocated and cleared."""

    family = "n5"
    configurations = ({"type": "xz"},)
    shapes = ((3,), (2, 3))
    dtypes = (np.dtype("<i2"), np.dtype("<f8"))


def test_n5_writes_the_library_s_own_default_but_for_the_preset() -> None:
    codec = N5XzSpec(preset=1).bind(OPAQUE)

    assert codec.encode(DATA) == lzma.compress(DATA, preset=1, check=lzma.CHECK_CRC64)


@pytest.mark.parametrize("preset", [-1, 10, "6", None])
def test_n5_names_the_wrong_member(preset: object) -> None:
    with pytest.raises(SpecError, match=r"^preset: "):
        parse_codec_json("n5", {"type": "xz", "preset": preset})
