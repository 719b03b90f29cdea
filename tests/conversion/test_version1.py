import math

import pytest

from tensorstore_py._conversion.version1 import array_in_version2
from tensorstore_py.errors import SpecError

META = {
    "zarr_format": 1,
    "shape": [20, 20],
    "chunks": [10, 10],
    "dtype": "<i4",
    "compression": "zlib",
    "compression_opts": 1,
    "fill_value": 42,
    "order": "C",
}


def test_the_example_of_the_specification():
    assert array_in_version2(META) == {
        "zarr_format": 2,
        "shape": [20, 20],
        "chunks": [10, 10],
        "dtype": "<i4",
        "compressor": {"id": "zlib", "level": 1},
        "filters": None,
        "fill_value": 42,
        "order": "C",
    }


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        (None, None, None),
        ("none", None, None),
        (
            "blosc",
            {"clevel": 5, "cname": "lz4", "shuffle": True},
            {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        ),
        ("bz2", 3, {"id": "bz2", "level": 3}),
        (
            "lzma",
            {"preset": 1},
            {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
        ),
    ],
)
def test_compression(name, options, wanted):
    found = array_in_version2({**META, "compression": name, "compression_opts": options})

    assert found["compressor"] == wanted


@pytest.mark.parametrize(
    ("fill", "wanted"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (1.5, 1.5), (None, None)],
)
def test_fill_values(fill, wanted):
    assert array_in_version2({**META, "fill_value": fill})["fill_value"] == wanted


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"zarr_format": 2}, "zarr_format: expected 1"),
        ({"compression": "lz5"}, "compression"),
        ({"shape": []}, "without dimensions"),
    ],
)
def test_refuses(members, message):
    with pytest.raises(SpecError, match=message):
        array_in_version2({**META, **members})


def test_every_member_is_needed():
    for name in ("shape", "chunks", "dtype", "order"):
        with pytest.raises(SpecError, match=name):
            array_in_version2({key: value for key, value in META.items() if key != name})
