"""Keyword arguments become the members of a spec, or say what is wrong with them."""

from typing import Any, cast

import numcodecs
import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.request import as_shape, request_for


def metadata(shape: Any = (20, 30), **arguments: Any) -> Any:
    return request_for(shape, cast("Any", arguments)).members["metadata"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, 3),
        ({"zarr_format": 2}, 2),
        ({"zarr_version": 2}, 2),
        ({"zarr_format": 3, "compressor": ts.zarr.Zlib()}, 3),
        ({"compressor": None}, 2),
        ({"compressor": "default"}, 3),
        ({"compressors": None}, 3),
        ({"filters": [numcodecs.Delta("f8")]}, 2),
        ({"filters": [{"id": "delta", "dtype": "f8"}]}, 2),
        ({"filters": [{"name": "numcodecs.delta"}]}, 3),
        ({"dimension_separator": "/"}, 2),
        ({"shards": (10, 10), "chunks": (5, 5)}, 3),
        ({"dtype": object, "object_codec": numcodecs.VLenUTF8()}, 2),
    ],
)
def test_the_format_is_the_one_whose_words_are_used(arguments, expected):
    assert request_for((20, 30), arguments).zarr_format == expected


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (None, None),
        (True, None),
        ("auto", None),
        (False, [20, 30]),
        (5, [5, 5]),
        ((5, 6), [5, 6]),
        ((5, None), [5, 30]),
        ((-1, 6), [20, 6]),
        ((5,), [5, 30]),
        ((100, 100), [100, 100]),
    ],
)
def test_chunks(chunks, expected):
    assert metadata(chunks=chunks, zarr_format=2).get("chunks") == expected
    grid = metadata(chunks=chunks).get("chunk_grid")
    assert (grid and grid["configuration"]["chunk_shape"]) == expected


def test_shards_are_what_is_stored():
    found = metadata(shards=(10, 15), chunks=5, compressors=None)
    assert found["chunk_grid"]["configuration"] == {"chunk_shape": [10, 15]}
    (codec,) = found["codecs"]
    assert codec["name"] == "sharding_indexed"
    assert codec["configuration"] == {"chunk_shape": [5, 5], "codecs": []}


def test_order_is_a_codec_in_version_3():
    assert metadata(order="F", compressors=None)["codecs"] == [
        {"name": "transpose", "configuration": {"order": [1, 0]}}
    ]
    assert metadata(order="F", zarr_format=2)["order"] == "F"
    assert metadata(shape=5, order="F", compressors=None)["codecs"] == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("v2", {"name": "v2", "configuration": {"separator": "."}}),
        (("default", "."), {"name": "default", "configuration": {"separator": "."}}),
        ({"name": "v2", "separator": "/"}, {"name": "v2", "configuration": {"separator": "/"}}),
        (
            {"name": "default", "configuration": {"separator": "."}},
            {"name": "default", "configuration": {"separator": "."}},
        ),
    ],
)
def test_keys_of_chunks(given, expected):
    assert metadata(chunk_key_encoding=given)["chunk_key_encoding"] == expected


def test_names_of_dimensions_are_where_others_look_for_them():
    assert metadata(dimension_names=["a", None])["dimension_names"] == ["a", None]
    found = request_for(3, {"dimension_names": ["a"], "zarr_format": 2})
    assert found.attributes == {"_ARRAY_DIMENSIONS": ["a"]}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kompressor": 1}, TypeError, 'did you mean "compressor"'),
        ({"compression": "gzip"}, TypeError, "pass compressors="),
        ({"storage_options": {}}, TypeError, "members of the store's spec"),
        ({"chunk_store": {}}, TypeError, "pass store="),
        ({"name": "a"}, TypeError, "pass path="),
        ({"order": "Q"}, ValueError, "'C' or 'F'"),
        ({"zarr_format": 4}, ValueError, "2 or 3"),
        ({"chunks": "x"}, TypeError, "chunks must be a number"),
        ({"chunks": (1, 2, 3)}, ValueError, "chunks has 3 dimensions"),
        ({"chunks": 0}, ValueError, "must be positive"),
        ({"chunks": 1.5}, TypeError, "integer"),
        ({"shards": 10, "chunks": 3}, ValueError, "divisible by chunks"),
        ({"shards": 10, "zarr_format": 2}, ValueError, "have no shards"),
        ({"codecs": ["bytes"], "zarr_format": 2}, ValueError, "have no codecs"),
        ({"filters": [3]}, TypeError, "filters: 3 is no codec"),
        ({"compressor": 3}, TypeError, "compressor: 3 is no codec"),
        ({"compressor": None, "compressors": None}, ValueError, "two names of one thing"),
        (
            {"compressors": [ts.zarr.Zlib(), ts.zarr.Zlib()], "zarr_format": 2},
            ValueError,
            "one compressor, but 2",
        ),
        ({"chunk_key_encoding": 3}, TypeError, "'separator'"),
        ({"dtype": object}, ValueError, "dtype=str"),
        ({"attributes": {"a": {1}}}, ValueError, "a: a set is no JSON"),
        (
            {"dtype": object, "object_codec": {"id": "x"}, "zarr_format": 3},
            ValueError,
            "of version 2",
        ),
    ],
)
def test_what_is_wrong_says_what_is_right(arguments, error, message):
    with pytest.raises(error, match=message):
        request_for((20, 30), arguments)


@pytest.mark.parametrize(
    ("shape", "expected"), [(3, (3,)), ((3, 4), (3, 4)), ((), ()), (iter([1, 2]), (1, 2))]
)
def test_shapes(shape, expected):
    assert as_shape(shape) == expected


@pytest.mark.parametrize(
    ("shape", "error"), [("3", TypeError), (None, TypeError), (-1, ValueError)]
)
def test_what_is_no_shape(shape, error):
    with pytest.raises(error, match="shape must"):
        as_shape(shape)
