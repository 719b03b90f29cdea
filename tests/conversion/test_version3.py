"""Version 2 said in version 3: read by both, with the same elements."""

import numcodecs
import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py._conversion.version3 import (
    array_in_version3,
    codecs_in_version3,
    labels_in,
    plain_attributes,
)
from tensorstore_py.errors import SpecError

PLAIN = {
    "zarr_format": 2,
    "shape": [4, 3],
    "chunks": [2, 2],
    "dtype": "<i4",
    "compressor": None,
    "filters": None,
    "fill_value": 1,
    "order": "C",
}


def document(**members):
    return {**PLAIN, **members}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", "|u1", "<f8", "<c8", "|b1", "<M8[s]"])
@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize(
    ("filters", "compressor"),
    [
        (None, None),
        (None, {"id": "zlib", "level": 1}),
        (None, {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": -1, "blocksize": 0}),
        (None, {"id": "gzip", "level": 1}),
        ([{"id": "shuffle", "elementsize": 4}], {"id": "zstd", "level": 1}),
    ],
)
def test_chunks_mean_what_they_meant(order, dtype, separator, filters, compressor):
    context = ts.Context()
    old = document(
        order=order, dtype=dtype, filters=filters, compressor=compressor,
        dimension_separator=separator, fill_value=None,
    )  # fmt: skip
    kvstore = "memory://a/"
    array = ts.open(
        {"driver": "zarr", "kvstore": kvstore, "metadata": old}, create=True, context=context
    ).result()
    data = np.arange(12).reshape(4, 3).astype(array.dtype.numpy_dtype)
    array[:3] = data[:3]

    new = array_in_version3(old, {"a": 1})

    found = ts.open(
        {"driver": "zarr3", "kvstore": kvstore, "metadata": new},
        open=True, assume_metadata=True, context=context,
    ).result()  # fmt: skip
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.read().result(), array.read().result())


def test_filters_of_arrays_come_first():
    delta = {"id": "delta", "dtype": "<i4", "astype": "<i4"}

    found = codecs_in_version3(document(order="F", filters=[delta], compressor={"id": "lz4"}))

    assert [codec["name"] for codec in found] == [
        "transpose", "numcodecs.delta", "bytes", "numcodecs.lz4",
    ]  # fmt: skip
    assert found[1]["configuration"] == {"dtype": "<i4", "astype": "<i4"}


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("|S3", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}),
        ("<U2", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}),
        ("|V5", {"name": "raw_bytes", "configuration": {"length_bytes": 5}}),
        (
            "<m8[10us]",
            {"name": "numpy.timedelta64", "configuration": {"unit": "us", "scale_factor": 10}},
        ),
        ("bfloat16", "bfloat16"),
        (
            [["a", "<i2"], ["b", "|S1"]],
            {
                "name": "structured",
                "configuration": {
                    "fields": [
                        ["a", "int16"],
                        ["b", {"name": "null_terminated_bytes",
                               "configuration": {"length_bytes": 1}}],
                    ]
                },
            },
        ),
    ],
)  # fmt: skip
def test_types(dtype, wanted):
    assert array_in_version3(document(dtype=dtype, fill_value=None), {})["data_type"] == wanted


@pytest.mark.parametrize(
    ("dtype", "fill", "wanted"),
    [
        ("<i4", None, 0),
        ("|b1", None, False),
        ("<f4", None, 0.0),
        ("<f4", "NaN", "NaN"),
        ("<c8", None, [0.0, 0.0]),
        ("|S3", None, ""),
        ("|S3", "YQAA", "YQAA"),
        ("<U3", "a", "a"),
        ("<M8[s]", None, 0),
    ],
)
def test_fill_values(dtype, fill, wanted):
    found = array_in_version3(document(dtype=dtype, fill_value=fill), {})["fill_value"]

    assert found == wanted
    assert type(found) is type(wanted)


def test_text_of_any_length():
    new = array_in_version3(document(dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value=0), {})

    assert new["data_type"] == "string"
    assert new["fill_value"] == ""
    assert new["codecs"] == [{"name": "vlen-utf8", "configuration": {}}]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"compressor": {"id": "base64"}}, '"base64" has no counterpart'),
        ({"compressor": 5}, "is no codec"),
        ({"filters": 5}, "filters: expected an array"),
        ({"dtype": "|O", "filters": [{"id": "pickle"}]}, '"pickle" stores have no data type'),
        ({"dtype": "|O"}, "need a codec"),
        ({"dtype": "<x9"}, 'type "<x9" is not known'),
        ({"dtype": 5}, "expected a type"),
        ({"dtype": "|S0"}, "no counterpart"),
        ({"dtype": [["a", "<i2", [3]]]}, "is an array"),
        ({"dtype": [["a"]]}, "expected \\[name, type\\]"),
        ({"dtype": [["a", "<i2"], ["b", ">i2"]]}, "differ in byte order"),
        ({"shape": [1]}, "shape has 1 dimensions"),
        ({"chunks": "x"}, "expected an array of sizes"),
        (
            {"filters": [{"id": "zlib"}, {"id": "delta", "dtype": "<i4"}]},
            '"delta" comes after one that makes bytes',
        ),
        ({"compressor": {"id": "blosc", "shuffle": 7}}, "expected 0, 1, 2 or -1"),
    ],
)
def test_says_what_cannot_be_said(members, message):
    with pytest.raises(SpecError, match=message):
        array_in_version3(document(**members), {})


def test_names_of_dimensions_get_their_own_place():
    attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "a": 1}

    new = array_in_version3(PLAIN, attributes)

    assert new["dimension_names"] == ["y", "x"]
    assert new["attributes"] == {"a": 1} == plain_attributes(attributes, 2)


@pytest.mark.parametrize("labels", [None, ["y"], ["y", 1], "yx"])
def test_what_is_no_list_of_names_stays_an_attribute(labels):
    attributes = {"_ARRAY_DIMENSIONS": labels}

    assert labels_in(attributes, 2) is None
    assert plain_attributes(attributes, 2) == attributes


def test_zarr_python_reads_it_too(tmp_path):
    array = zarr.create_array(
        tmp_path, shape=(5, 4), chunks=(2, 3), dtype=">f4", order="F", zarr_format=2,
        compressors=numcodecs.Blosc(), fill_value=np.nan,
    )  # fmt: skip
    array[1:3] = 2.5
    import json

    old = json.loads((tmp_path / ".zarray").read_text())
    (tmp_path / "zarr.json").write_text(json.dumps(array_in_version3(old, {})))

    found = zarr.open_array(tmp_path, zarr_format=3)

    np.testing.assert_array_equal(found[...], array[...])
