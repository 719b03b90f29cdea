import pytest

from tensorstore_py.drivers.zarr.compression import (
    ZarrCodecSpec,
    compressor_json,
    default_compressor,
    default_filters,
    filters_json,
    merged_member,
    object_type,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import (
    CodecSpec,
    Unset,
    parse_codec_json,
    parse_codec_list,
)

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


def test_filters_print_in_full() -> None:
    asked = {"filters": [{"id": "delta", "dtype": "i2"}, {"id": "shuffle"}]}

    written = ZarrCodecSpec.parse(asked).to_json()

    assert written["filters"] == [
        {"astype": "<i2", "dtype": "<i2", "id": "delta"},
        {"elementsize": 4, "id": "shuffle"},
    ]
    assert ZarrCodecSpec.parse(written) == ZarrCodecSpec.parse(asked)


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ("delta", r"^filters: expected null or an array"),
        ([{"id": "delta"}], r"^filters\[0\]\.dtype: "),
        (
            [{"id": "shuffle"}, {"id": "dleta"}],
            r'^filters\[1\]\.id: no zarr codec is named "dleta"',
        ),
        ([{"id": "shuffle", "size": 4}], r"^filters\[0\]\.size: no such member"),
        ([None], r"^filters\[0\]: expected a codec"),
    ],
)
def test_a_wrong_filter_is_named(json: object, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        ZarrCodecSpec.parse({"filters": json})


@pytest.mark.parametrize(
    ("name", "filters"),
    [
        ("uint8", None),
        ("ustring", [{"id": "vlen-utf8"}]),
        ("string", [{"id": "vlen-bytes"}]),
    ],
)
def test_new_arrays_of_objects_get_the_natural_filter(name: str, filters: object) -> None:
    found = default_filters(dtype(name))

    assert filters_json(found) == filters
    assert object_type(found, None) == (dtype(name) if filters else None)


def test_new_arrays_of_json_are_stored_as_json() -> None:
    (codec,) = default_filters(dtype("json")) or ()

    assert codec.codec_id == "json2"


def test_arrays_of_any_objects_need_a_filter() -> None:
    with pytest.raises(SpecError, match=r"^dtype: data type object is stored by one of several"):
        default_filters(dtype("object"))


def test_a_compressor_may_be_what_stores_objects() -> None:
    assert object_type(None, parse_codec_json("zarr", {"id": "json2"})) == dtype("json")
    assert object_type(Unset.UNSET, Unset.UNSET) is None


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

    assert merged_member("compressor", Unset.UNSET, None) is None
    assert merged_member("compressor", None, Unset.UNSET) is None
    assert merged_member("compressor", zlib, Unset.UNSET) == zlib
    with pytest.raises(MismatchError, match=r'"compressor" is both null and {"id":"zlib"'):
        merged_member("compressor", None, zlib)


def test_filters_merge_as_a_whole() -> None:
    shuffle = parse_codec_list("zarr", [{"id": "shuffle"}])

    assert merged_member("filters", Unset.UNSET, shuffle) == shuffle
    assert merged_member("filters", shuffle, shuffle) == shuffle
    with pytest.raises(MismatchError, match=r'"filters" is both null and \[{"elementsize":4'):
        merged_member("filters", None, shuffle)


def test_a_member_that_differs_is_a_contradiction() -> None:
    first = CodecSpec({"driver": "zarr", "compressor": {"id": "zlib", "level": 1}})
    second = CodecSpec({"driver": "zarr", "compressor": {"id": "zlib", "level": 2}})

    with pytest.raises(MismatchError, match=r'"level":1} and {"id":"zlib","level":2}'):
        first.merged(second)
