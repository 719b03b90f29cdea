"""Codecs of Zarr version 3, ours against zarr-python's, whatever one writes the other reads."""

import json
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import zarr
import zarr.codecs as standard
from zarr.codecs import numcodecs
from zarr.errors import ZarrUserWarning

from tests.parity.libraries import document, ours, same, spec_of, stored

SHAPE = (5, 6)
CHUNKS = (2, 4)


@dataclass(frozen=True)
class Case:
    """One combination.

    Attributes:
        dtype: of the array.
        filters: array to array codecs, by name and members.
        compressors: bytes to bytes codecs, by name and members.
        shards: of so many chunks.
        fill_value: of the array.
    """

    dtype: str
    filters: tuple = ()
    compressors: tuple = ()
    shards: tuple | None = None
    fill_value: float = 0

    @property
    def same_files(self):
        """Not with deflate, which several libraries do, or which states the time of day."""
        names = {name for name, _ in self.compressors}
        return not names & {"Zlib", "GZip", "GzipCodec", "Blosc"}


def made(name, **members):
    return name, members


CASES = {
    "delta": Case("<i4", (made("Delta", dtype="<i4"),)),
    "delta_narrow": Case("<i8", (made("Delta", dtype="int64", astype="<i2"),)),
    "delta_float": Case("<f8", (made("Delta", dtype="<f8"),), (made("Zlib", level=1),)),
    "delta_u1": Case("|u1", (made("Delta", dtype="|u1", astype="|u1"),)),
    "scale": Case(
        "<f8", (made("FixedScaleOffset", dtype="<f8", astype="<i2", scale=10, offset=4),)
    ),
    "scale_same": Case("<f4", (made("FixedScaleOffset", dtype="float32", scale=2.5, offset=1),)),
    "scale_no_dtype": Case("<f4", (made("FixedScaleOffset", scale=4, offset=1, astype="<i4"),)),
    "quantize": Case("<f4", (made("Quantize", digits=1, dtype="<f4"),)),
    "quantize_no_dtype": Case("<f8", (made("Quantize", digits=-1),)),
    "bitround": Case("<f4", (made("BitRound", keepbits=3),)),
    "bitround_double": Case("<f8", (made("BitRound", keepbits=20),), (made("GZip", level=2),)),
    "packbits": Case("|b1", (made("PackBits"),)),
    "astype": Case("<f8", (made("AsType", encode_dtype="<f4", decode_dtype="<f8"),)),
    "astype_int": Case("<i8", (made("AsType", encode_dtype="int16", decode_dtype="int64"),)),
    "filters": Case(
        "<f8",
        (
            made("FixedScaleOffset", dtype="<f8", astype="<i4", scale=100, offset=0),
            made("Delta", dtype="<i4"),
        ),
        (made("Shuffle", elementsize=4), made("LZ4"), made("CRC32")),
    ),
    "shuffle": Case("<i4", (), (made("Shuffle", elementsize=4),)),
    "shuffle_of_the_array": Case("<f8", (), (made("Shuffle"), made("Zlib"))),
    "crc32": Case("<i2", (), (made("CRC32"),)),
    "crc32_end": Case("<i2", (), (made("CRC32", location="end"),)),
    "crc32c": Case("<i2", (), (made("CRC32C"),)),
    "crc32c_start": Case("<i2", (), (made("CRC32C", location="start"),)),
    "adler32": Case("<i2", (), (made("Adler32"),)),
    "fletcher32": Case("<i2", (), (made("Fletcher32"),)),
    "jenkins": Case("<i2", (), (made("JenkinsLookup3"),)),
    "jenkins_start": Case("<i2", (), (made("JenkinsLookup3", initval=7, prefix=None),)),
    "zlib": Case("<f4", (), (made("Zlib", level=9),)),
    "gzip": Case("<f4", (), (made("GZip", level=9),)),
    "bz2": Case("<f4", (), (made("BZ2", level=2),)),
    "lzma": Case("<f4", (), (made("LZMA", preset=1),)),
    "lzma_alone": Case("<f4", (), (made("LZMA", format=2, check=-1, preset=None, filters=None),)),
    "lz4": Case("<f4", (), (made("LZ4", acceleration=3),)),
    "blosc": Case("<f4", (), (made("Blosc", cname="zstd", clevel=3, shuffle=2),)),
    "blosc_typesize": Case("<f4", (), (made("Blosc", cname="lz4", shuffle=1, typesize=4),)),
    "zstd": Case("<f4", (), (made("Zstd", level=5),)),
    "zstd_checksum": Case("<f4", (), (made("Zstd", level=1, checksum=True),)),
    "several": Case("<f4", (), (made("Zlib"), made("Adler32"), made("BZ2"), made("CRC32C"))),
    "fill_value": Case("<i4", (), (made("Zstd"),), fill_value=7),
    "sharded": Case("<i4", (), (made("Shuffle", elementsize=4), made("Zstd")), shards=(4, 8)),
    "sharded_delta": Case("<i4", (made("Delta", dtype="<i4"),), (made("Zlib"),), shards=(4, 8)),
    "sharded_scale": Case(
        "<f8",
        (made("FixedScaleOffset", dtype="<f8", astype="<u2", scale=10, offset=2),),
        (made("Fletcher32"),),
        shards=(4, 8),
        fill_value=3,
    ),
    "mixed": Case(
        "<u2",
        (made("TransposeCodec", order=(1, 0)),),
        (made("Shuffle", elementsize=2), made("GzipCodec", level=1), made("Crc32cCodec")),
    ),
    "blosc_standard": Case(
        "<u2", (), (made("BloscCodec", cname="lz4", shuffle="bitshuffle", typesize=2),)
    ),
    "zstd_standard": Case("<u2", (), (made("ZstdCodec", level=-3, checksum=True),)),
}


def codec(each):
    name, members = each
    library = standard if name.endswith("Codec") else numcodecs
    return getattr(library, name)(**members)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        yield


def sample_of(case):
    random = np.random.default_rng(1).integers(0, 90, SHAPE) / (4 if "f" in case.dtype else 1)
    values = (random > 40).astype(float) if case.dtype == "|b1" else random
    values[2:4, 0:4] = case.fill_value
    return values.astype(case.dtype)


def write_by_zarr(path, case, values):
    array = zarr.create_array(
        str(path), shape=SHAPE, chunks=CHUNKS, shards=case.shards, dtype=case.dtype,
        filters=[codec(each) for each in case.filters] or None,
        compressors=[codec(each) for each in case.compressors] or None,
        fill_value=np.dtype(case.dtype).type(case.fill_value),
    )  # fmt: skip
    array[...] = values
    return array


def files(path):
    return {key: (path / key).read_bytes() for key in stored(path) if key != "zarr.json"}


@pytest.mark.parametrize("name", CASES)
def test_what_zarr_writes_is_read(name, tmp_path):
    case = CASES[name]
    values = sample_of(case)
    theirs = write_by_zarr(tmp_path, case, values)[...]

    array = ours.open(spec_of("zarr3", tmp_path)).result()

    same(array.read().result(), theirs)
    same(array[3, 1:].read().result(), theirs[3, 1:])
    assert array.chunk_layout.read_chunk.shape == CHUNKS


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_read_by_zarr(name, tmp_path):
    case = CASES[name]
    values = sample_of(case)
    expected = write_by_zarr(tmp_path / "zarr", case, values)[...]
    metadata = document(tmp_path / "zarr", "zarr.json")
    spec = spec_of("zarr3", tmp_path / "ours", metadata=metadata)

    ours.open(spec, create=True).result()[...] = values

    same(zarr.open_array(str(tmp_path / "ours"), mode="r")[...], expected)
    assert stored(tmp_path / "ours") == stored(tmp_path / "zarr")
    if case.same_files:
        assert files(tmp_path / "ours") == files(tmp_path / "zarr")


@pytest.mark.parametrize("name", CASES)
def test_a_part_that_is_written_leaves_the_rest(name, tmp_path):
    case = CASES[name]
    values = sample_of(case)
    expected = write_by_zarr(tmp_path, case, values)[...]

    ours.open(spec_of("zarr3", tmp_path)).result()[4, 2:5] = values[0, 1:4]
    expected[4, 2:5] = ours.open(spec_of("zarr3", tmp_path)).result()[4, 2:5].read().result()

    same(zarr.open_array(str(tmp_path), mode="r")[...], expected)


@pytest.mark.parametrize("name", CASES)
def test_codecs_are_created_from_names_alone(name, tmp_path):
    case = CASES[name]
    write_by_zarr(tmp_path / "zarr", case, sample_of(case))
    codecs = document(tmp_path / "zarr", "zarr.json")["codecs"]

    spec = spec_of(
        "zarr3", tmp_path / "ours", schema={"codec": {"driver": "zarr3", "codecs": codecs}}
    )
    array = ours.open(
        spec, create=True, shape=SHAPE, dtype=np.dtype(case.dtype).name,
        chunk_layout=ours.ChunkLayout(write_chunk_shape=case.shards or CHUNKS),
    ).result()  # fmt: skip

    zarr.open_array(str(tmp_path / "ours"), mode="r")
    assert ours.open(array.spec()).result().codec == array.codec


def test_every_name_that_zarr_writes_is_known():
    names = {
        getattr(numcodecs, each)().codec_name
        for each in ("Zlib", "Adler32", "BZ2", "PackBits")
    } | {
        f"numcodecs.{name}"
        for name in (
            "blosc", "lz4", "zstd", "zlib", "gzip", "bz2", "lzma", "shuffle", "delta", "bitround",
            "fixedscaleoffset", "quantize", "packbits", "astype", "crc32", "crc32c", "adler32",
            "fletcher32", "jenkins_lookup3", "pcodec", "zfpy",
        )
    }  # fmt: skip
    known: tuple[dict, ...] = (
        {"keepbits": 3},
        {"digits": 1},
        {"scale": 1, "offset": 0},
        {"encode_dtype": "<f4"},
        {},
    )

    for name in names:
        accepted = 0
        for members in known:
            codec_json = {"name": name, "configuration": members}
            try:
                found = ours.CodecSpec({"driver": "zarr3", "codecs": [codec_json]})
            except ours.SpecError:
                continue
            accepted += 1
            assert f'"name":"{name}"' in json.dumps(found.to_json(), separators=(",", ":"))
        assert accepted == 1, name
