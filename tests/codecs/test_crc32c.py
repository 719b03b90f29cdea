import sys

import google_crc32c
import numpy as np
import pytest
from numcodecs.checksum32 import CRC32C

from tensorstore_py.codecs.crc32c import Crc32c, checksum_by_table, checksum_function
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import OPAQUE, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite


class TestCrc32c(CodecSuite):
    configurations = ("crc32c", {"name": "crc32c"}, {"name": "crc32c", "configuration": {}})
    detects_corruption = True


def test_the_checksum_stands_behind_the_data_in_little_endian() -> None:
    assert Crc32c().encode(b"123456789") == b"123456789" + bytes.fromhex("839206e3")


def test_a_mismatch_names_both_checksums() -> None:
    data = b"123456788" + bytes.fromhex("839206e3")
    computed = google_crc32c.value(b"123456788")

    with pytest.raises(DataLossError, match=f"stored 0xe3069283, computed {computed:#010x}"):
        Crc32c().decode(data)


def test_decoding_copies_nothing() -> None:
    data = Crc32c().encode(b"abc")

    decoded = Crc32c().decode(data)

    assert decoded.obj is data
    assert bytes(decoded) == b"abc"


@pytest.mark.parametrize("size", [0, 1, 9, 255, 1000])
def test_the_table_agrees_with_the_library(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)

    assert checksum_by_table(data) == google_crc32c.value(data)


def test_without_the_library_the_table_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    checksum_function.cache_clear()
    try:
        assert checksum_function() is checksum_by_table
        assert bytes(Crc32c().decode(Crc32c().encode(b"abc"), 3)) == b"abc"
    finally:
        checksum_function.cache_clear()


def test_numcodecs_reads_and_writes_the_same() -> None:
    other = CRC32C(location="end")

    assert bytes(other.encode(b"some data")) == Crc32c().encode(b"some data")
    assert bytes(other.decode(Crc32c().encode(b"some data"))) == b"some data"


def test_it_has_no_members() -> None:
    with pytest.raises(SpecError, match=r"^configuration\.seed: "):
        parse_codec_json("zarr3", {"name": "crc32c", "configuration": {"seed": 1}})


class TestCrc32cV2(CodecSuite):
    family = "zarr"
    configurations = ({"id": "crc32c"}, {"id": "crc32c", "location": "start"})
    detects_corruption = True


@pytest.mark.parametrize("location", ["start", "end"])
def test_version_2_may_put_it_at_the_start(location: str) -> None:
    spec = parse_codec_json("zarr", {"id": "crc32c", "location": location})

    encoded = spec.bind(OPAQUE).encode(b"some data")  # type: ignore[attr-defined]

    assert bytes(encoded) == bytes(CRC32C(location=location).encode(b"some data"))
    assert (spec == parse_codec_json("zarr", {"id": "crc32c"})) == (location == "end")
