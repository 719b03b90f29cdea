import sys

import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import crc32c
from tests.codecs.bound import asked, bound
from tests.internals import forget_crc32c_library

AT_EITHER_END = pytest.mark.parametrize("name", ["adler32", "crc32", "crc32c"])


def test_crc32c_stands_behind_the_data_in_little_endian() -> None:
    stored = b"123456789" + bytes.fromhex("839206e3")

    assert bound("zarr3", "crc32c").encode(b"123456789") == stored
    with pytest.raises(SpecError, match=r"^configuration\.seed: "):
        asked("zarr3", "crc32c", seed=1)
    with pytest.raises(SpecError, match=r"^configuration\.location: "):
        asked("zarr3", "crc32c", location="end")


@AT_EITHER_END
@pytest.mark.parametrize("location", ["start", "end"])
def test_the_checksum_stands_beside_the_data(name: str, location: str) -> None:
    codec = bound("zarr", name, location=location)

    stored = codec.encode(b"abc")

    assert stored[4:] == b"abc" if location == "start" else stored[:3] == b"abc"
    assert bytes(codec.decode(stored, 3)) == b"abc"
    out = bytearray(3)
    codec.decode_into(memoryview(stored), memoryview(out))
    assert out == b"abc"
    assert (codec.encoded_size(3), codec.encoded_size(None)) == (7, None)
    assert bytes(codec.decode(codec.encode(b""))) == b""


@AT_EITHER_END
def test_stating_the_default_changes_nothing(name: str) -> None:
    default = "end" if name == "crc32c" else "start"

    assert asked("zarr", name, location=default) == asked("zarr", name)
    with pytest.raises(SpecError, match=r"^location: "):
        asked("zarr", name, location="middle")


def test_reading_copies_nothing() -> None:
    codec = bound("zarr", "crc32")
    stored = codec.encode(b"abc")

    found = codec.decode(stored)

    assert np.shares_memory(np.frombuffer(found, "u1"), np.frombuffer(stored, "u1"))


@AT_EITHER_END
@pytest.mark.parametrize("location", ["start", "end"])
def test_every_changed_byte_is_data_loss(name: str, location: str) -> None:
    codec = bound("zarr", name, location=location)
    stored = codec.encode(b"abc")

    for position in range(len(stored)):
        damaged = bytearray(stored)
        damaged[position] ^= 4
        with pytest.raises(DataLossError, match=r"mismatch: stored 0x"):
            codec.decode(damaged)


def test_a_mismatch_names_both_checksums() -> None:
    computed = crc32c(b"123456788")

    with pytest.raises(DataLossError, match=f"stored 0xe3069283, computed {computed:#010x}"):
        bound("zarr3", "crc32c").decode(b"123456788" + bytes.fromhex("839206e3"))


def test_data_of_another_size_is_data_loss() -> None:
    codec = bound("zarr", "crc32")

    with pytest.raises(DataLossError, match="3 bytes are too few to hold a crc32 checksum"):
        codec.decode(b"abc")
    with pytest.raises(DataLossError, match="decoded to 3 bytes, expected 4"):
        codec.decode(codec.encode(b"abc"), 4)


@pytest.mark.parametrize("size", [0, 1, 9, 255, 1000])
def test_without_the_library_a_table_gives_the_same(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.random.default_rng(size).bytes(size)
    expected = bound("zarr3", "crc32c").encode(data)
    monkeypatch.setitem(sys.modules, "fastcrc", None)
    forget_crc32c_library()
    try:
        codec = bound("zarr3", "crc32c")
        assert codec.encode(data) == expected
        assert bytes(codec.decode(expected, size)) == data
    finally:
        forget_crc32c_library()


def test_no_data_has_a_fletcher_checksum_too() -> None:
    assert bound("zarr", "fletcher32").encode(b"") == bytes(4)


def test_wrong_members_of_lookup3_are_named() -> None:
    with pytest.raises(SpecError, match=r"^initval: "):
        asked("zarr", "jenkins_lookup3", initval=2**32)
    with pytest.raises(SpecError, match=r"^prefix\[0\]: "):
        asked("zarr", "jenkins_lookup3", prefix=[256])
