import pytest

from tensorstore_py.drivers.zarr.compression import (
    ZarrCodecSpec,
    compressor_json,
    default_compressor,
    merged_compressor,
)
from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError
from tensorstore_py.plugin import CodecSpec, Unset, parse_codec_json

BLOSC = {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": -1}
ZLIB = {"id": "zlib", "level": 1}


@pytest.mark.parametrize(
    ("members", "written"),
    [
        ({}, {"driver": "zarr", "filters": None}),
        ({"filters": None}, {"driver": "zarr", "filters": None}),
        ({"filters": []}, {"driver": "zarr", "filters": None}),
        ({"compressor": None}, {"compressor": None, "driver": "zarr", "filters": None}),
        ({"compressor": {"id": "zlib"}}, {"compressor": ZLIB, "driver": "zarr", "filters": None}),
        ({"compressor": {"id": "blosc"}}, {"compressor": BLOSC, "driver": "zarr", "filters": None}),
    ],
)
def test_codec_members_print_in_full(members: dict, written: dict) -> None:
    assert CodecSpec({"driver": "zarr", **members}).to_json() == written


def test_the_alias_is_printed_by_its_name() -> None:
    assert CodecSpec({"driver": "zarr2"}).driver == "zarr"


def test_new_arrays_are_compressed_by_blosc() -> None:
    assert compressor_json(default_compressor()) == BLOSC
    assert compressor_json(None) is None


def test_filters_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r'filters: "delta", "shuffle" found'):
        ZarrCodecSpec.parse({"filters": [{"id": "delta"}, {"id": "shuffle"}]})
    with pytest.raises(SpecError, match=r"^filters: expected null or an array"):
        ZarrCodecSpec.parse({"filters": "delta"})


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ({"id": "lzip"}, r"^compressor\.id: "),
        ({}, r"^compressor\.id: this member is required"),
        ("zlib", "^compressor: expected a codec"),
        ({"id": "zlib", "level": 10}, r"^compressor\.level: expected an integer from 0 to 9"),
        ({"id": "blosc", "typesize": 2}, r"^compressor\.typesize: no such member"),
    ],
)
def test_a_wrong_compressor_is_named(json: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        ZarrCodecSpec.parse({"compressor": json})


def test_constraints_merge_where_one_is_silent() -> None:
    asked = CodecSpec({"driver": "zarr", "compressor": {"id": "zlib"}})
    silent = CodecSpec({"driver": "zarr"})

    assert asked.merged(silent) == asked
    assert silent.merged(asked) == asked


def test_no_compression_is_a_constraint_too() -> None:
    zlib = parse_codec_json("zarr", {"id": "zlib"})

    assert merged_compressor(Unset.UNSET, None) is None
    assert merged_compressor(None, Unset.UNSET) is None
    assert merged_compressor(zlib, Unset.UNSET) == zlib
    with pytest.raises(MismatchError, match=r'"compressor" is both null and {"id":"zlib"'):
        merged_compressor(None, zlib)


def test_a_member_that_differs_is_a_contradiction() -> None:
    first = CodecSpec({"driver": "zarr", "compressor": {"id": "zlib", "level": 1}})
    second = CodecSpec({"driver": "zarr", "compressor": {"id": "zlib", "level": 2}})

    with pytest.raises(MismatchError, match=r'"level":1} and {"id":"zlib","level":2}'):
        first.merged(second)
