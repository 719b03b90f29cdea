import gzip
import sys
import zlib

import numpy as np
import pytest
from numcodecs.gzip import GZip

from tensorstore_py.codecs import gzip as ours
from tensorstore_py.codecs.gzip import Gzip, N5GzipSpec
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import OPAQUE, StreamCodec, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite

DATA = np.arange(500, dtype="<u2").tobytes()


class TestGzip(CodecSuite):
    configurations = (
        "gzip",
        {"name": "gzip", "configuration": {"level": 0}},
        {"name": "gzip", "configuration": {"level": 1}},
        {"name": "gzip", "configuration": {"level": 9}},
    )


class TestGzipV2(CodecSuite):
    family = "zarr"
    configurations = ({"id": "gzip"}, {"id": "gzip", "level": 5})


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
class TestGzipByTheStandardLibrary(CodecSuite):
    configurations = (
        {"name": "gzip", "configuration": {"level": 1}},
        {"name": "gzip", "configuration": {"level": 6}},
    )


@pytest.mark.parametrize("level", range(10))
def test_other_implementations_read_and_write_the_same(level: int) -> None:
    codec = Gzip(level)

    assert gzip.decompress(codec.encode(DATA)) == DATA
    assert bytes(GZip().decode(codec.encode(DATA))) == DATA
    assert codec.decode(GZip(level).encode(DATA), len(DATA)) == DATA


def test_levels_that_no_other_library_reaches_are_zlib_s_own() -> None:
    for level in (3, 9):
        assert Gzip(level).encode(DATA) == zlib.compress(DATA, level, 31)


@pytest.mark.usefixtures("without_libraries")
def test_without_other_libraries_all_levels_are_zlib_s_own() -> None:
    for level in range(10):
        assert Gzip(level).encode(DATA) == zlib.compress(DATA, level, 31)


@pytest.mark.parametrize("level", range(4, 9))
def test_a_level_keeps_its_size(level: int) -> None:
    noise = np.random.default_rng(5).integers(0, 300, 20_000).astype("<u2")
    labels = np.repeat(noise[:600], 33)
    waves = np.sin(np.arange(10_000) / 70).astype("<f4")
    for array in (noise, labels, waves):
        data = array.tobytes()
        assert len(Gzip(level).encode(data)) <= 1.06 * len(zlib.compress(data, level, 31))


def test_members_one_behind_the_other_are_one_value() -> None:
    data = gzip.compress(DATA[:300]) + gzip.compress(b"") + gzip.compress(DATA[300:])

    assert Gzip(6).decode(data, len(DATA)) == DATA
    assert Gzip(6).decode(data) == DATA


@pytest.mark.parametrize(
    "behind", [gzip.compress(DATA, mtime=0), gzip.compress(b"", mtime=0), b"behind", bytes(8)]
)
def test_what_stands_behind_a_whole_value_is_not_overlooked(behind: bytes) -> None:
    data = gzip.compress(DATA) + behind
    long_way = StreamCodec("gzip", gzip.compress, lambda: zlib.decompressobj(31), (zlib.error,))

    try:
        expected = long_way.decode(data, len(DATA))
    except DataLossError:
        with pytest.raises(DataLossError):
            Gzip(6).decode(data, len(DATA))
    else:
        assert Gzip(6).decode(data, len(DATA)) == expected


def test_a_whole_value_is_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Gzip(6)
    monkeypatch.setattr(codec, "_decode", None)

    assert codec.decode(gzip.compress(DATA), len(DATA)) == DATA
    assert codec.decode(memoryview(gzip.compress(DATA)), len(DATA)) == DATA


def test_a_bomb_is_stopped_at_the_size_of_the_chunk() -> None:
    bomb = gzip.compress(bytes(10**6))

    with pytest.raises(DataLossError, match="more than 10 bytes"):
        Gzip(6).decode(bomb, 10)


def test_a_failed_checksum_is_data_loss() -> None:
    data = bytearray(gzip.compress(DATA))
    data[-6] ^= 1

    with pytest.raises(DataLossError, match="corrupt gzip data"):
        Gzip(6).decode(bytes(data), len(DATA))


@pytest.mark.parametrize("level", [-1, 10, "5", True, 1.5, None])
def test_levels_outside_the_range_are_refused(level: object) -> None:
    with pytest.raises(SpecError, match=r"^configuration\.level: "):
        parse_codec_json("zarr3", {"name": "gzip", "configuration": {"level": level}})
    with pytest.raises(SpecError, match=r"^level: "):
        parse_codec_json("zarr", {"id": "gzip", "level": level})


class TestGzipN5(CodecSuite):
    family = "n5"
    configurations = (
        {"type": "gzip"},
        {"type": "gzip", "level": 1},
        {"type": "gzip", "level": 9, "useZlib": True},
    )


@pytest.mark.parametrize("level", [-1, 0, 2, 6])
def test_n5_has_zlib_s_header_too(level: int) -> None:
    codec = N5GzipSpec.parse({"level": level, "useZlib": True}).bind(OPAQUE)

    assert zlib.decompress(codec.encode(DATA)) == DATA
    assert codec.decode(zlib.compress(DATA), len(DATA)) == DATA
    with pytest.raises(DataLossError):
        codec.decode(gzip.compress(DATA), len(DATA))
    with pytest.raises(DataLossError):
        codec.decode(zlib.compress(DATA) + b"x", len(DATA))


def test_n5_leaves_the_level_to_the_library() -> None:
    codec = N5GzipSpec().bind(OPAQUE)

    assert codec.encode(DATA) == Gzip(6).encode(DATA)


@pytest.mark.parametrize(
    "members", [{"level": -2}, {"level": 10}, {"level": None}, {"useZlib": 1}, {"usezlib": True}]
)
def test_n5_names_the_wrong_member(members: dict) -> None:
    (name,) = members

    with pytest.raises(SpecError, match=f"^{name}: "):
        parse_codec_json("n5", {"type": "gzip", **members})
