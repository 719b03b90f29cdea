"""Fields of records, read and written by themselves; bytes as zarr users see them."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.fields import of_field, whole_elements

DTYPE = [("well", "S3"), ("drug", "i4"), ("dose", "f8"), ("row", "S1")]
DATA = np.array([(b"A01", 1, 0.5, b"x"), (b"B07", 2, 0.25, b"y"), (b"H12", 3, 4.0, b"z")], DTYPE)


@pytest.fixture(params=[2, 3])
def z(request):
    return ts.zarr.array(DATA, chunks=2, zarr_format=request.param)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("well", DATA["well"]),
        ("row", DATA["row"]),
        (("well", "dose"), DATA[["well", "dose"]]),
        ((slice(1, 3), "drug"), DATA[1:3]["drug"]),
        ((0, "drug"), 1),
        (["drug"], DATA[["drug"]]),
    ],
)
def test_are_read(z, item, expected):
    np.testing.assert_array_equal(z[item], expected)


def test_are_written_without_the_others(z):
    z["drug"] = 7
    z[1:, "dose"] = [1.5, 2.5]
    z["well", "drug"] = np.array([(b"x", 5)] * 3, [("well", "S3"), ("drug", "i4")])
    assert z[:].tolist() == [
        (b"x", 5, 0.5, b"x"),
        (b"x", 5, 1.5, b"y"),
        (b"x", 5, 2.5, b"z"),
    ]


def test_in_every_selection(z):
    assert z.oindex[[0, 2], "drug"].tolist() == [1, 3]
    assert z.vindex[[0, 2], "drug"].tolist() == [1, 3]
    assert z.blocks[1, "drug"].tolist() == [3]
    assert z.get_basic_selection(0, fields="drug") == 1
    z.set_mask_selection(np.array([True, False, True]), 9, fields="drug")
    z.oindex[[1], "drug"] = 8
    assert z["drug"].tolist() == [9, 8, 9]


@pytest.mark.parametrize("item", ["nope", ("drug", "nope")])
def test_there_must_be_such_a_field(z, item):
    with pytest.raises(
        IndexError, match=r"no field 'nope'; there are \['well', 'drug', 'dose', 'row'\]"
    ):
        z[item]
    with pytest.raises(IndexError, match="no field 'nope'"):
        z[item] = 1


def test_numbers_have_none():
    with pytest.raises(IndexError, match="elements of float64 have none"):
        ts.zarr.zeros(3)["a"]


def test_a_field_is_a_tensorstore_of_its_own(z):
    assert of_field(z.ts, "drug").read().result().tolist() == [1, 2, 3]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["S3", "V3", "S1", "V1"])
def test_bytes_are_single_elements(zarr_format, dtype, tmp_path):
    z = ts.zarr.zeros((2, 3), store=tmp_path, dtype=dtype, zarr_format=zarr_format)
    z[1, 2] = b"abc"[: z.itemsize]
    stored = ts.open(tmp_path).result()

    whole = whole_elements(stored)

    assert whole.shape == (2, 3)
    assert whole[1, 2].read().result()[()] == np.array(b"abc"[: z.itemsize], dtype)
    assert whole_elements(whole).shape == (2, 3)
    again = ts.zarr.open(tmp_path)
    again.resize(3, 3)
    assert again.shape == ts.zarr.open(tmp_path).shape == (3, 3)


def test_a_field_that_was_opened_stays_one(tmp_path):
    ts.zarr.array(DATA, store=tmp_path, zarr_format=2)
    spec = {"driver": "zarr", "kvstore": tmp_path.as_uri(), "field": "drug"}
    z = ts.zarr.Array(ts.open(spec).result())
    assert (z.dtype.name, z[:].tolist()) == ("int32", [1, 2, 3])
