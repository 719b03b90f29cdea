import bz2
import io
import lzma
import os
import zipfile
import zlib

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.zip.methods import STORED, pack, unpack

VALUE = b"some text, again and again; " * 200
NUMBERS = {"store": 0, "deflate": 8, "zstd": 93, "xz": 95}


@pytest.mark.parametrize("compression", NUMBERS)
def test_unpacks_what_it_packed(compression):
    packed = pack(VALUE, compression)

    assert packed.method == NUMBERS[compression]
    assert len(packed.data) < 200 or compression == "store"
    assert unpack(packed.method, packed.data, packed.size, packed.crc) == VALUE


@pytest.mark.parametrize("compression", NUMBERS)
@pytest.mark.parametrize("value", [b"", b"x", os.urandom(500)], ids=len)
def test_stores_what_does_not_get_smaller(compression, value):
    packed = pack(value, compression)

    assert (packed.method, packed.data) == (STORED, value)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unpacks_what_the_standard_library_packed(method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a", VALUE)
    info = archive.getinfo("a")
    data = file.getvalue()[31 : 31 + info.compress_size]

    assert unpack(method, memoryview(data), len(VALUE), info.CRC) == VALUE
    with pytest.raises(ts.DataLossError):
        unpack(method, data[:-20], len(VALUE), info.CRC)
    with pytest.raises(ts.DataLossError):
        unpack(method, data, len(VALUE) - 1, info.CRC)


@pytest.mark.parametrize("compression", NUMBERS)
def test_damage_is_noticed(compression):
    packed = pack(VALUE, compression)
    middle = len(packed.data) // 2
    flipped = packed.data[:middle] + bytes([packed.data[middle] ^ 4]) + packed.data[middle + 1 :]

    for data, size, crc in [
        (flipped, packed.size, packed.crc),
        (packed.data[:-1], packed.size, packed.crc),
        (b"", packed.size, packed.crc),
        (packed.data, packed.size + 1, packed.crc),
        (packed.data, packed.size - 1, packed.crc),
        (packed.data, packed.size, packed.crc ^ 1),
    ]:
        with pytest.raises(ts.DataLossError):
            unpack(packed.method, data, size, crc)


def test_a_size_that_cannot_be_is_refused_before_decoding():
    with pytest.raises(ts.DataLossError, match="cannot stand for"):
        unpack(8, zlib.compress(b"a")[2:-4], 1 << 40, 0)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93, 95])
def test_a_size_beyond_all_memory_is_damage(method):
    packed = {
        zipfile.ZIP_BZIP2: bz2.compress(VALUE),
        zipfile.ZIP_LZMA: b"\x09\x04\x05\0" + lzma.compress(VALUE, lzma.FORMAT_ALONE)[:5],
        93: pack(VALUE, "zstd").data,
        95: lzma.compress(VALUE),
    }[method]

    with pytest.raises(ts.errors.DataLossError):
        unpack(method, packed, 2**64 - 2, 0)


def test_no_more_is_decoded_than_stated():
    bomb = pack(bytes(1 << 20), "deflate")

    with pytest.raises(ts.DataLossError, match="more than 100 bytes"):
        unpack(8, bomb.data, 100, bomb.crc)


def test_unknown_methods_are_named():
    with pytest.raises(ts.UnsupportedError, match=r"method 9 \(deflate64\)"):
        unpack(9, b"", 0, 0)
    with pytest.raises(ts.UnsupportedError, match="method 77,"):
        unpack(77, b"", 0, 0)
