"""Words of other writers, put into those of the format; what says nothing or two things stays."""

import pytest

from tensorstore_py.drivers.zarr.foreign import standard


def test_what_keeps_to_the_format_is_not_touched() -> None:
    document = {
        "shape": [4, 0],
        "chunks": [2, 3],
        "dtype": ">f4",
        "fill_value": "NaN",
        "order": "F",
        "compressor": {"id": "lzma", "preset": None},
        "filters": [{"id": "delta", "dtype": "<i2"}],
        "dimension_separator": "/",
    }
    assert standard(document) == document


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("bool", "|b1"), ("int8", "|i1"), ("u1", "|u1"), ("=f8", "<f8"), ("|u2", "<u2"),
     ("complex64", "<c8"), ("float64", "<f8"), (">u2", ">u2"), ("|O", "|O"), ("H", "H"),
     ("int", "int"), ("bool8", "bool8"),
     ("int4", "int4"), ("<U5", "<U5"), ([["a", "u2"]], [["a", "u2"]])],
)  # fmt: skip
def test_data_types(stated: object, expected: object) -> None:
    assert standard({"dtype": stated})["dtype"] == expected


@pytest.mark.parametrize(
    ("dtype", "stated", "expected"),
    [("<i2", "-3", -3), ("<i2", "3.5", "3.5"), ("<f4", "3.5", 3.5), ("<f4", "Inf", "Infinity"),
     ("<f4", "x", "x"), ("|S3", "abc", "abc"), ("|b1", True, True), ("|i1", True, True)],
)  # fmt: skip
def test_fill_values(dtype: str, stated: object, expected: object) -> None:
    found = standard({"dtype": dtype, "fill_value": stated})["fill_value"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "compressor",
    [3, "zlib", {}, {"id": 3}, {"id": "zlib", "level": 10}, {"id": "blosc", "shuffle": "bytes"},
     {"id": "gzip", "useZlib": True}],
)  # fmt: skip
def test_what_is_wrong_stays_wrong(compressor: object) -> None:
    assert standard({"compressor": compressor})["compressor"] == compressor
