import bz2
import lzma
import zlib

import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tests.codecs.bound import asked, bound

DATA = np.arange(500, dtype="<u2").tobytes()
DELTA = [{"id": lzma.FILTER_DELTA, "dist": 2}, {"id": lzma.FILTER_LZMA2, "preset": 1}]


@pytest.mark.parametrize(("name", "library"), [("bz2", bz2), ("lzma", lzma)])
def test_streams_one_behind_the_other_are_one_value(name: str, library) -> None:
    data = library.compress(DATA[:300]) + library.compress(DATA[300:])

    assert bound("zarr", name).decode(data, len(DATA)) == DATA


@pytest.mark.parametrize(("name", "library", "at"), [("bz2", bz2, 12), ("lzma", lzma, 30)])
def test_corrupt_data_is_data_loss(name: str, library, at: int) -> None:
    data = bytearray(library.compress(DATA))
    data[at] ^= 1

    with pytest.raises(DataLossError, match=r"corrupt (bzip2|lzma) data"):
        bound("zarr", name).decode(bytes(data), len(DATA))


@pytest.mark.parametrize(("name", "library"), [("bz2", bz2), ("lzma", lzma)])
def test_a_bomb_is_not_unpacked(name: str, library) -> None:
    with pytest.raises(DataLossError, match="more than 1000 bytes"):
        bound("zarr", name).decode(library.compress(bytes(1 << 22)), 1000)


@pytest.mark.parametrize("level", [0, 10, "9", None])
def test_levels_of_bzip2_outside_the_range_are_refused(level: object) -> None:
    with pytest.raises(SpecError, match=r"^level: "):
        asked("zarr", "bz2", level=level)
    with pytest.raises(SpecError, match=r"^blockSize: "):
        asked("n5", "bzip2", blockSize=level)


def test_n5_has_another_name_and_default_for_the_level() -> None:
    assert asked("n5", "bzip2").to_json(include_defaults=True) == {"blockSize": 9}
    assert asked("zarr", "bz2").to_json(include_defaults=True) == {"level": 1}
    for member in ("level", "block_size"):
        with pytest.raises(SpecError, match=f'^{member}: no such member .*"blockSize"'):
            asked("n5", "bzip2", **{member: 1})


def test_filters_in_a_wrapper_are_read_too() -> None:
    codec = bound("zarr", "lzma", format=1, filters=DELTA)

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
        bound("zarr", "lzma", **members)


def test_a_dictionary_larger_than_the_limit_is_refused() -> None:
    data = bytearray(lzma.compress(DATA, filters=DELTA[1:]))
    # The block header behind the 12 bytes of the stream's: its size, flags, one filter with its
    # dictionary's size as a code, and a checksum of all that.
    size = 4 * (data[12] + 1)
    data[16] = 40
    data[8 + size : 12 + size] = zlib.crc32(data[12 : 8 + size]).to_bytes(4, "little")

    with pytest.raises(DataLossError, match="Memory usage limit"):
        bound("zarr", "lzma").decode(bytes(data), len(DATA))


def test_n5_writes_the_library_s_own_default_but_for_the_preset() -> None:
    codec = bound("n5", "xz", preset=1)

    assert codec.encode(DATA) == lzma.compress(DATA, preset=1, check=lzma.CHECK_CRC64)
    assert asked("n5", "xz").to_json(include_defaults=True) == {"preset": 6}


@pytest.mark.parametrize("preset", [-1, 10, "6", None])
def test_n5_names_the_wrong_member(preset: object) -> None:
    with pytest.raises(SpecError, match=r"^preset: "):
        asked("n5", "xz", preset=preset)
    with pytest.raises(SpecError, match=r"^format: no such member"):
        asked("n5", "xz", format=1)
