"""Words of other writers, put into those of the format; what says nothing or two things stays."""

import pytest

from tensorstore_py.drivers.zarr3.foreign import standard


def test_what_keeps_to_the_format_is_not_touched() -> None:
    document = {
        "shape": [4, 0],
        "data_type": "int8",
        "fill_value": -1,
        "attributes": {"dimension_units": ["4 nm", None], "a": None},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "codecs": [{"name": "zstd", "configuration": {"level": 3, "checksum": True}}],
        "lab": {"must_understand": False},
    }
    assert standard(document) == (document, {})


def test_units_of_other_dimensions_are_kept_apart() -> None:
    attributes = {"dimension_units": ["s", 4], "a": 1}
    found, kept = standard({"shape": [4, 4], "attributes": attributes})
    assert found["attributes"] == {"a": 1}
    assert kept == {"attributes": {"dimension_units": ["s", 4]}}


@pytest.mark.parametrize(
    "member",
    [{"codecs": 3}, {"codecs": [3]}, {"codecs": [{"name": 3}]},
     {"codecs": [{"name": "gzip", "configuration": 3}]}, {"chunk_grid": {"name": "regular"}},
     {"shape": [4], "chunk_grid": {"configuration": {"chunk_shape": 3}}}, {"attributes": 3},
     {"chunk_key_encoding": 3}, {"lab": None}, {"lab": []}, {"shape": None},
     {"extensions": ["x"]}, {"codecs": [{"name": "zlib", "configuration": {}}]},
     {"chunk_key_encoding": None}],
)  # fmt: skip
def test_what_is_wrong_stays_wrong(member: dict[str, object]) -> None:
    assert standard(member) == (member, {})


def test_nulls_of_numcodecs_mean_something() -> None:
    lzma = {"name": "numcodecs.lzma", "configuration": {"filters": None, "id": "xz"}}
    assert standard({"codecs": [lzma]})[0]["codecs"] == [lzma]


def test_shards_in_shards_without_end_are_left_alone() -> None:
    codecs: list[object] = ["bytes"]
    for _ in range(20_000):
        codecs = [{"name": "sharding_indexed", "configuration": {"codecs": codecs}}]

    found = standard({"codecs": codecs})[0]["codecs"]

    assert isinstance(found, list)
    assert found[0]["name"] == "sharding_indexed"
    while isinstance(codecs[0], dict):  # taken apart by hand: so many would be too deep to free
        codecs = codecs[0].pop("configuration")["codecs"]
