"""Codecs: from any of their forms, and to the JSON of both versions."""

import numcodecs
import pytest
import zarr.codecs

import tensorstore_py as ts
from tensorstore_py.zarr.codecs import Codec, as_codec

FROM_NUMCODECS = [
    (numcodecs.Blosc("zstd", 3, 2), ts.zarr.Blosc("zstd", 3, 2)),
    (numcodecs.Zlib(level=2), ts.zarr.Zlib(2)),
    (numcodecs.GZip(level=2), ts.zarr.GZip(2)),
    (numcodecs.BZ2(level=2), ts.zarr.BZ2(2)),
    (numcodecs.LZ4(acceleration=3), ts.zarr.LZ4(3)),
    (numcodecs.LZMA(preset=1), ts.zarr.LZMA(preset=1)),
    (numcodecs.Delta("i4", "i2"), ts.zarr.Delta("i4", "i2")),
    (
        numcodecs.FixedScaleOffset(offset=1, scale=10, dtype="f8", astype="u1"),
        ts.zarr.FixedScaleOffset(1, 10, "f8", "u1"),
    ),
    (numcodecs.Quantize(3, "f8"), ts.zarr.Quantize(3, "f8")),
    (numcodecs.PackBits(), ts.zarr.PackBits()),
    (numcodecs.Shuffle(4), ts.zarr.Shuffle(4)),
    (numcodecs.AsType("f4", "f8"), ts.zarr.AsType("f4", "f8")),
    (numcodecs.Categorize(["a", "b"], "U1"), ts.zarr.Categorize(["a", "b"], "U1")),
    (numcodecs.VLenUTF8(), ts.zarr.VLenUTF8()),
    (numcodecs.VLenBytes(), ts.zarr.VLenBytes()),
]


@pytest.mark.parametrize(("theirs", "ours"), FROM_NUMCODECS, ids=str)
def test_says_what_numcodecs_says(theirs, ours):
    assert as_codec(theirs) == ours
    assert as_codec(theirs.get_config()) == ours
    assert as_codec(ours) is ours
    assert numcodecs.get_codec(ours.get_config()) == theirs


@pytest.mark.parametrize(
    "theirs",
    [
        zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4),
        zarr.codecs.ZstdCodec(level=3),
        zarr.codecs.GzipCodec(level=3),
        zarr.codecs.BytesCodec(endian="big"),
        zarr.codecs.TransposeCodec(order=(1, 0)),
    ],
    ids=lambda codec: type(codec).__name__,
)
def test_says_what_zarr_python_says_in_version_3(theirs):
    json = as_codec(theirs).to_v3(4)
    assert json["name"] == theirs.to_dict()["name"]
    assert type(theirs).from_dict(json) == theirs


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            ts.zarr.BloscCodec(cname="lz4", clevel=1, shuffle="bitshuffle", typesize=2),
            zarr.codecs.BloscCodec(cname="lz4", clevel=1, shuffle="bitshuffle", typesize=2),
        ),
        (ts.zarr.ZstdCodec(level=2), zarr.codecs.ZstdCodec(level=2)),
        (ts.zarr.GzipCodec(), zarr.codecs.GzipCodec()),
        (ts.zarr.BytesCodec(), zarr.codecs.BytesCodec()),
        (ts.zarr.Crc32cCodec(), zarr.codecs.Crc32cCodec()),
    ],
    ids=str,
)
def test_have_the_names_of_zarr_python_3_too(ours, theirs):
    assert as_codec(theirs) == ours
    assert type(theirs).from_dict(ours.to_v3(2)) == theirs


def test_make_a_chain():
    z = ts.zarr.create_array(
        shape=4,
        dtype="i2",
        serializer=ts.zarr.BytesCodec("big"),
        compressors=[ts.zarr.BloscCodec(), ts.zarr.Crc32cCodec()],
    )
    z[:] = [1, 2, 3, 4]
    assert z[:].tolist() == [1, 2, 3, 4]
    assert [codec["name"] for codec in z.metadata["codecs"]] == ["bytes", "blosc", "crc32c"]


@pytest.mark.parametrize(
    ("codec", "itemsize", "expected"),
    [
        (ts.zarr.Blosc(shuffle=0), 4, {"shuffle": "noshuffle"}),
        (ts.zarr.Blosc(shuffle=1), 4, {"shuffle": "shuffle", "typesize": 4}),
        (ts.zarr.Blosc(shuffle=-1), 1, {"shuffle": "bitshuffle", "typesize": 1}),
        (ts.zarr.Blosc(shuffle=-1), 8, {"shuffle": "shuffle", "typesize": 8}),
    ],
)
def test_blosc_has_words_of_its_own_in_version_3(codec, itemsize, expected):
    rest = {"cname": "lz4", "clevel": 5, "blocksize": 0}
    assert codec.to_v3(itemsize) == {"name": "blosc", "configuration": {**rest, **expected}}


@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        (ts.zarr.Zlib(1), {"name": "numcodecs.zlib", "configuration": {"level": 1}}),
        (ts.zarr.GZip(1), {"name": "gzip", "configuration": {"level": 1}}),
        (Codec({"id": "crc32c"}), {"name": "crc32c"}),
        (as_codec("crc32c"), {"name": "crc32c"}),
        (as_codec({"name": "vlen-utf8"}), {"name": "vlen-utf8"}),
        (as_codec({"name": "packbits"}), {"name": "packbits"}),
        (ts.zarr.PackBits(), {"name": "numcodecs.packbits"}),
    ],
)
def test_others_have_the_name_that_their_format_has(codec, expected):
    assert codec.to_v3() == expected


def test_is_shown_as_it_is_written():
    assert repr(ts.zarr.Blosc("zstd", 3, 2)) == (
        "Blosc(cname='zstd', clevel=3, shuffle=2, blocksize=0)"
    )
    assert repr(ts.zarr.VLenUTF8()) == "VLenUTF8()"


def test_is_a_mapping():
    codec = ts.zarr.Zstd(3)
    assert dict(codec) == {"id": "zstd", "level": 3}
    assert len(codec) == 2
    assert len({codec, ts.zarr.Zstd(3)}) == 1


@pytest.mark.parametrize("wrong", [3, object(), None])
def test_what_is_no_codec_is_refused(wrong):
    with pytest.raises(TypeError, match=r"ts\.zarr\.Blosc"):
        as_codec(wrong)


def test_a_codec_has_a_name():
    with pytest.raises(ValueError, match='"id"'):
        as_codec({"level": 3})
