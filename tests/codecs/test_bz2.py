import bz2

import numpy as np
import pytest
from numcodecs.bz2 import BZ2

from tensorstore_py.codecs.bz2 import Bz2
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite

DATA = np.arange(500, dtype="<u2").tobytes()


class TestBz2(CodecSuite):
    family = "zarr"
    configurations = ({"id": "bz2"}, {"id": "bz2", "level": 9})


@pytest.mark.parametrize("level", [1, 5, 9])
def test_other_implementations_read_and_write_the_same(level: int) -> None:
    codec = Bz2(level)

    assert codec.encode(DATA) == bz2.compress(DATA, level)
    assert bytes(BZ2(level).decode(codec.encode(DATA))) == DATA
    assert codec.decode(BZ2(level).encode(DATA), len(DATA)) == DATA


def test_streams_one_behind_the_other_are_one_value() -> None:
    data = bz2.compress(DATA[:300]) + bz2.compress(DATA[300:])

    assert Bz2(1).decode(data, len(DATA)) == DATA


def test_a_failed_checksum_is_data_loss() -> None:
    data = bytearray(bz2.compress(DATA))
    data[12] ^= 1

    with pytest.raises(DataLossError, match="corrupt bzip2 data"):
        Bz2(1).decode(bytes(data), len(DATA))


@pytest.mark.parametrize("level", [0, 10])
def test_levels_outside_the_range_are_refused(level: int) -> None:
    with pytest.raises(SpecError, match=r"^level: "):
        parse_codec_json("zarr", {"id": "bz2", "level": level})


class TestBzip2N5(CodecSuite):
    family = "n5"
    configurations = ({"type": "bzip2"}, {"type": "bzip2", "blockSize": 1})


@pytest.mark.parametrize("size", [0, 10, "9", None])
def test_n5_names_the_wrong_member(size: object) -> None:
    with pytest.raises(SpecError, match=r"^blockSize: "):
        parse_codec_json("n5", {"type": "bzip2", "blockSize": size})
