import numpy as np
import pytest
from numcodecs import zstd as theirs

from tensorstore_py.codecs.zstd import stated_size
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.driver import parse_codec_json, resolve_chain
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import bound

DATA = np.arange(500, dtype="<u2").tobytes()


def raw_frame(data: bytes) -> bytes:
    """A frame by a streaming encoder: no stated size, one block that is not compressed."""
    block = (len(data) << 3 | 1).to_bytes(3, "little") + data
    return bytes.fromhex("28b52ffd") + b"\x00\x58" + block


def test_frames_of_a_streaming_encoder_are_decoded() -> None:
    data = raw_frame(b"abcdef")

    assert stated_size(data) is None
    assert bound("zarr", "zstd").decode(data, 6) == b"abcdef"
    out = bytearray(6)
    bound("zarr", "zstd").decode_into(data, memoryview(out))
    assert out == b"abcdef"


@pytest.mark.parametrize("size", [5, 7])
def test_their_size_is_checked_too(size: int) -> None:
    codec = bound("zarr", "zstd")

    with pytest.raises(DataLossError):
        codec.decode(raw_frame(b"abcdef"), size)
    with pytest.raises(DataLossError):
        codec.decode_into(raw_frame(b"abcdef"), memoryview(bytearray(size)))


@pytest.mark.parametrize("size", [1, 255, 256, 257, 65535, 65791, 65792, 100_000])
def test_the_stated_size_is_read_in_every_width(size: int) -> None:
    assert stated_size(theirs.compress(bytes(size), 1)) == size


def test_a_size_that_lies_is_caught_before_memory_is_taken() -> None:
    huge = bytes.fromhex("28b52ffd") + b"\xe0" + (2**60).to_bytes(8, "little") + b"\x01\x00\x00"

    with pytest.raises(DataLossError, match=f"decoded to {2**60} bytes, expected 6"):
        bound("zarr", "zstd").decode(huge, 6)
    with pytest.raises(DataLossError, match=f"cannot stand for {2**60} bytes"):
        bound("zarr", "zstd").decode(huge)


def test_a_failed_checksum_is_data_loss() -> None:
    data = bytearray(theirs.compress(DATA, 3, True))
    data[-1] ^= 1

    with pytest.raises(DataLossError, match="corrupt zstd data"):
        bound("zarr", "zstd").decode(bytes(data), len(DATA))


def test_metadata_states_level_and_checksum() -> None:
    resolved = resolve_chain([parse_codec_json("zarr3", "zstd")], chunk_type((2,), "uint8"))

    assert resolved[1].to_json() == {"checksum": False, "level": 3}


@pytest.mark.parametrize("level", [23, -131073, "1"])
def test_levels_outside_the_range_are_refused(level: object) -> None:
    with pytest.raises(SpecError, match=r"^configuration\.level: "):
        parse_codec_json("zarr3", {"name": "zstd", "configuration": {"level": level}})


def test_version_2_may_state_a_checksum() -> None:
    chunk = chunk_type((2,), "uint8")
    silent, off, on = (
        parse_codec_json("zarr", {"id": "zstd", **members})
        for members in ({}, {"checksum": False}, {"checksum": True})
    )

    assert off == silent
    assert off.to_json(include_defaults=True) == {"level": 1}
    assert on.to_json(include_defaults=True) == {"checksum": True, "level": 1}
    assert on.bind(chunk).encode(DATA) == theirs.compress(DATA, 1, True)  # type: ignore[attr-defined]


def test_a_frame_states_no_more_than_its_data_can_stand_for() -> None:
    codec = bound("zarr", "zstd")
    lie = bytes.fromhex("28b52ffda000000080190000616263")

    with pytest.raises(DataLossError, match="15 bytes cannot stand for 2147483648 bytes"):
        codec.decode(lie)
    with pytest.raises(DataLossError, match="decoded to more than 100 bytes"):
        codec.decode_within(lie, 100)
    zeros = bytes(1 << 24)
    assert codec.decode(codec.encode(zeros)) == zeros
    assert codec.decode_within(codec.encode(zeros), 1 << 24) == zeros


@pytest.mark.parametrize("level", [-131073, 23, "1", None])
def test_n5_names_the_wrong_member(level: object) -> None:
    with pytest.raises(SpecError, match=r"^level: "):
        parse_codec_json("n5", {"type": "zstd", "level": level})
