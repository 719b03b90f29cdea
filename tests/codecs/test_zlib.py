import sys
import zlib

import numpy as np
import pytest
from numcodecs.zlib import Zlib as TheirZlib

from tensorstore_py.codecs import zlib as ours
from tensorstore_py.codecs.zlib import Zlib
from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin import codec_to_json, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite

DATA = np.arange(500, dtype="<u2").tobytes()


class TestZlib(CodecSuite):
    family = "zarr"
    configurations = (
        {"id": "zlib"},
        {"id": "zlib", "level": 0},
        {"id": "zlib", "level": 9},
    )


@pytest.fixture
def without_libraries(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "deflate", None)
    ours._library.cache_clear()
    ours._at_once.cache_clear()
    yield
    ours._library.cache_clear()
    ours._at_once.cache_clear()


@pytest.mark.usefixtures("without_libraries")
class TestZlibByTheStandardLibrary(CodecSuite):
    family = "zarr"
    configurations = ({"id": "zlib"},)


@pytest.mark.parametrize("level", range(10))
def test_other_implementations_read_and_write_the_same(level: int) -> None:
    codec = Zlib(level)

    assert zlib.decompress(codec.encode(DATA)) == DATA
    assert codec.decode(TheirZlib(level).encode(DATA), len(DATA)) == DATA


@pytest.mark.parametrize("level", range(4, 9))
def test_a_level_keeps_its_size(level: int) -> None:
    data = np.random.default_rng(5).integers(0, 300, 20_000).astype("<u2").tobytes()

    assert len(Zlib(level).encode(data)) <= 1.06 * len(zlib.compress(data, level))


def test_nothing_may_stand_behind_the_stream() -> None:
    with pytest.raises(DataLossError, match="bytes too many"):
        Zlib(1).decode(zlib.compress(DATA[:500]) + zlib.compress(DATA[500:]), len(DATA))


@pytest.mark.parametrize("behind", [zlib.compress(DATA), b"behind", bytes(4)])
def test_what_stands_behind_a_whole_value_is_not_overlooked(behind: bytes) -> None:
    with pytest.raises(DataLossError, match="bytes too many"):
        Zlib(1).decode(zlib.compress(DATA) + behind, len(DATA))


def test_a_whole_value_is_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Zlib(1)
    monkeypatch.setattr(codec, "_decode", None)

    assert codec.decode(zlib.compress(DATA), len(DATA)) == DATA


def test_a_failed_checksum_is_data_loss() -> None:
    data = bytearray(zlib.compress(DATA))
    data[-1] ^= 1

    with pytest.raises(DataLossError, match="corrupt zlib data"):
        Zlib(1).decode(bytes(data), len(DATA))


def test_metadata_states_the_level() -> None:
    spec = parse_codec_json("zarr", {"id": "zlib"})

    assert codec_to_json("zarr", spec) == {"id": "zlib", "level": 1}
