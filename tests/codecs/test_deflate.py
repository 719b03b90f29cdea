import gzip
import sys
import zlib

import numpy as np
import pytest

from tensorstore_py.codecs import deflate
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import StreamCodec
from tensorstore_py.testing.codecs import CodecSuite
from tests.codecs.bound import asked, bound

DATA = np.arange(500, dtype="<u2").tobytes()
#: How the standard library makes and reads streams of each codec.
BITS = {"gzip": 31, "zlib": 15}
EACH = pytest.mark.parametrize("name", BITS)


def by_zlib(name: str, data: bytes = DATA, level: int = 6) -> bytes:
    return zlib.compress(data, level, BITS[name])


@pytest.fixture
def without_libdeflate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "deflate", None)
    deflate._compressor.cache_clear()
    deflate._at_once.cache_clear()
    yield
    deflate._compressor.cache_clear()
    deflate._at_once.cache_clear()


@pytest.mark.usefixtures("without_libdeflate")
class TestByTheStandardLibrary(CodecSuite):
    family = "zarr"
    configurations = ({"id": "gzip"}, {"id": "gzip", "level": 6}, {"id": "zlib"})


@EACH
@pytest.mark.parametrize("level", range(10))
def test_the_standard_library_reads_and_writes_the_same(name: str, level: int) -> None:
    codec = bound("zarr", name, level=level)

    assert zlib.decompress(codec.encode(DATA), BITS[name]) == DATA
    assert codec.decode(by_zlib(name, level=level), len(DATA)) == DATA


@EACH
@pytest.mark.parametrize("level", range(1, 10))
def test_libdeflate_encodes_each_level(name: str, level: int) -> None:
    noise = np.random.default_rng(5).integers(0, 300, 20_000).astype("<u2").tobytes()

    assert bound("zarr", name, level=level).encode(noise) != by_zlib(name, noise, level)


@EACH
def test_nothing_is_compressed_at_level_0(name: str) -> None:
    assert bound("zarr", name, level=0).encode(DATA) == by_zlib(name, level=0)


@EACH
def test_of_what_repeats_itself_the_smallest_is_zlib_s(name: str) -> None:
    labels = np.repeat(np.arange(600, dtype="<u4"), 99)

    for data in (labels.tobytes(), memoryview(labels.reshape(600, 99).data)):
        encoded = bound("zarr", name, level=9).encode(data)
        assert encoded == by_zlib(name, labels.tobytes(), 9)


@EACH
@pytest.mark.usefixtures("without_libdeflate")
def test_without_libdeflate_all_levels_are_zlib_s_own(name: str) -> None:
    for level in range(10):
        assert bound("zarr", name, level=level).encode(DATA) == by_zlib(name, level=level)


@EACH
@pytest.mark.parametrize("level", range(1, 10))
def test_a_level_keeps_its_size(name: str, level: int) -> None:
    noise = np.random.default_rng(5).integers(0, 300, 20_000).astype("<u2")
    labels = np.repeat(noise[:600], 33)
    waves = np.sin(np.arange(10_000) / 70).astype("<f4")
    for array in (noise, labels, waves):
        data = array.tobytes()
        encoded = bound("zarr", name, level=level).encode(data)
        assert len(encoded) <= 1.06 * len(by_zlib(name, data, level))


def test_members_of_gzip_one_behind_the_other_are_one_value() -> None:
    data = gzip.compress(DATA[:300]) + gzip.compress(b"") + gzip.compress(DATA[300:])

    assert bound("zarr", "gzip").decode(data, len(DATA)) == DATA
    assert bound("zarr", "gzip").decode(data) == DATA


def test_nothing_may_stand_behind_a_stream_of_zlib() -> None:
    with pytest.raises(DataLossError, match="bytes too many"):
        bound("zarr", "zlib").decode(by_zlib("zlib", DATA[:500]) + by_zlib("zlib"), len(DATA))


@EACH
@pytest.mark.parametrize(
    "behind", [DATA, b"", b"behind", bytes(8), bytes(4)], ids=["whole", "empty", "text", "8", "4"]
)
def test_what_stands_behind_a_whole_value_is_not_overlooked(name: str, behind: bytes) -> None:
    if behind in (DATA, b""):
        behind = by_zlib(name, behind)
    data = by_zlib(name) + behind
    long_way = StreamCodec(
        name, zlib.compress, lambda: zlib.decompressobj(BITS[name]), (zlib.error,),
        concatenated=name == "gzip",
    )  # fmt: skip

    try:
        expected = long_way.decode(data, len(DATA))
    except DataLossError:
        with pytest.raises(DataLossError):
            bound("zarr", name).decode(data, len(DATA))
    else:
        assert bound("zarr", name).decode(data, len(DATA)) == expected


@EACH
def test_a_whole_value_is_decoded_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = bound("zarr", name)
    monkeypatch.setattr(codec, "_decode", None)

    assert codec.decode(by_zlib(name), len(DATA)) == DATA
    assert codec.decode(memoryview(by_zlib(name)), len(DATA)) == DATA


@EACH
def test_a_bomb_is_stopped_at_the_size_of_the_chunk(name: str) -> None:
    with pytest.raises(DataLossError, match="more than 10 bytes"):
        bound("zarr", name).decode(by_zlib(name, bytes(10**6)), 10)


@EACH
def test_a_failed_checksum_is_data_loss(name: str) -> None:
    data = bytearray(by_zlib(name))
    data[-6 if name == "gzip" else -1] ^= 1

    with pytest.raises(DataLossError, match=f"corrupt {name} data"):
        bound("zarr", name).decode(bytes(data), len(DATA))


@EACH
@pytest.mark.parametrize("level", [-1, 10, "5", True, 1.5, None])
def test_levels_outside_the_range_are_refused(name: str, level: object) -> None:
    for family, written in (("zarr", name), ("zarr3", f"numcodecs.{name}")):
        with pytest.raises(SpecError, match=r"level: "):
            asked(family, written, level=level)
    with pytest.raises(SpecError, match=r"^configuration\.level: "):
        asked("zarr3", "gzip", level=level)


def test_each_format_has_a_default_of_its_own() -> None:
    assert asked("zarr", "gzip").to_json(include_defaults=True) == {"level": 1}
    assert asked("zarr", "zlib").to_json(include_defaults=True) == {"level": 1}
    assert asked("zarr3", "gzip").to_json(include_defaults=True) == {}
    assert asked("zarr3", "numcodecs.gzip").to_json(include_defaults=True) == {"level": 1}
    shown = asked("n5", "gzip").to_json(include_defaults=True)
    assert shown == {"level": -1, "useZlib": False}
    assert bound("n5", "gzip").encode(DATA) == bound("zarr", "gzip", level=6).encode(DATA)
    assert bound("zarr3", "gzip").encode(DATA) == bound("zarr", "gzip", level=6).encode(DATA)


@pytest.mark.parametrize("level", [-1, 0, 2, 6])
def test_n5_has_zlib_s_header_too(level: int) -> None:
    codec = bound("n5", "gzip", level=level, useZlib=True)

    assert zlib.decompress(codec.encode(DATA)) == DATA
    assert codec.decode(zlib.compress(DATA), len(DATA)) == DATA
    with pytest.raises(DataLossError):
        codec.decode(gzip.compress(DATA), len(DATA))
    with pytest.raises(DataLossError):
        codec.decode(zlib.compress(DATA) + b"x", len(DATA))


@pytest.mark.parametrize(
    "members",
    [{"level": -2}, {"level": 10}, {"level": None}, {"useZlib": 1}, {"usezlib": True},
     {"use_zlib": True}],
)  # fmt: skip
def test_n5_names_the_wrong_member(members: dict) -> None:
    (name,) = members

    with pytest.raises(SpecError, match=f"^{name}: "):
        asked("n5", "gzip", **members)


@pytest.mark.parametrize("family", ["zarr", "zarr3"])
def test_only_n5_has_that_member(family: str) -> None:
    for name in ("useZlib", "use_zlib"):
        with pytest.raises(SpecError, match=f"{name}: no such member"):
            asked(family, "gzip", **{name: True})
