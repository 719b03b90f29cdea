import gzip
import zlib

import numcodecs.zstd
import pytest

from tensorstore_py._net.failures import Failure, Patience
from tensorstore_py._net.unpacking import packings, unpacked
from tensorstore_py.errors import DataLossError, UnsupportedError

VALUE = bytes(range(256)) * 30 + b"the end"


def deflated(data, window):
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": gzip.compress(VALUE),
    "x-gzip": gzip.compress(VALUE[:9]) + gzip.compress(VALUE[9:]),
    "deflate": deflated(VALUE, 15),
    "zstd": numcodecs.zstd.compress(VALUE),
}


@pytest.mark.parametrize("name", PACKED)
def test_what_was_packed_is_undone(name):
    assert unpacked(PACKED[name], (name,)) == VALUE


def test_deflate_may_have_no_head():
    assert unpacked(deflated(VALUE, -15), ("deflate",)) == VALUE


def test_what_was_packed_twice_is_undone_in_turn():
    twice = gzip.compress(PACKED["zstd"])

    assert unpacked(twice, packings({"Content-Encoding": "zstd, gzip"})) == VALUE


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("by", [1, 4, 8, 20])
def test_what_does_not_end_is_not_whole(name, by):
    with pytest.raises(Failure, match=rf"Content-Encoding: {name}") as failure:
        unpacked(PACKED[name][:-by], (name,))

    assert failure.value.error is DataLossError
    assert failure.value.patience is Patience.LITTLE


@pytest.mark.parametrize("name", PACKED)
def test_nothing_at_all_is_not_whole(name):
    with pytest.raises(Failure, match=r"Content-Encoding"):
        unpacked(b"", (name,))


def test_what_stands_behind_the_end_is_not_passed_over():
    with pytest.raises(Failure, match="gzip"):
        unpacked(PACKED["gzip"] + b"more", ("gzip",))


def test_an_unknown_way_is_named():
    with pytest.raises(Failure, match=r"Content-Encoding: lz9") as failure:
        unpacked(b"", ("lz9",))

    assert failure.value.error is UnsupportedError
