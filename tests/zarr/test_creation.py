"""Creating arrays: what zarr-python reads of them, and what they take over from others."""

from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts

# What zarr-python says of types that only it and we have in version 3.
pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")

FORMATS = [2, 3]
TYPES = {
    "bool": [True, False, True],
    "<i4": [1, 2, 3],
    ">i4": [1, 2, 3],
    "<f8": [1.5, np.nan, -np.inf],
    "c16": [1 + 2j, 3, 4],
    "S3": [b"a", b"bcd", b""],
    "S1": [b"a", b"b", b""],
    "V4": [b"abcd", b"efgh", b"\0\0\0\1"],
    "U5": ["a", "höher", ""],
    "M8[D]": ["2020-01-01", "1969-12-31", "2021-01-01"],
    "m8[s]": [1, 2, -3],
}


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("dtype", TYPES)
def test_zarr_python_reads_the_same(tmp_path, zarr_format, dtype):
    data = np.array(TYPES[dtype], dtype)

    z = ts.zarr.array(data, store=tmp_path, chunks=2, zarr_format=zarr_format)
    theirs: Any = zarr.open_array(tmp_path, mode="r")

    assert theirs.shape == (3,)
    assert theirs.chunks == (2,)
    again = ts.zarr.open_array(tmp_path, mode="r")
    expected = data.dtype if zarr_format == 2 else data.dtype.newbyteorder("=")
    assert again.dtype == z.dtype == expected
    for found in (theirs[:], z[:], again[:]):
        np.testing.assert_array_equal(found, data)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("dtype", TYPES)
def test_what_zarr_python_wrote_is_read_the_same(tmp_path, zarr_format, dtype):
    data = np.array(TYPES[dtype], dtype)
    theirs: Any = zarr.create_array(
        tmp_path, shape=3, chunks=(2,), dtype=data.dtype, zarr_format=zarr_format
    )
    theirs[:] = data

    z = ts.zarr.open(tmp_path, mode="r")

    np.testing.assert_array_equal(z[:], data)
    assert z.shape == (3,)
    assert z.fill_value == theirs.fill_value or np.isnat(z.fill_value)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("data", [["a", "bcd", ""], [b"a", b"bcd", b""]])
def test_objects_are_what_they_are(tmp_path, zarr_format, data):
    objects = np.array(data, object)
    z = ts.zarr.array(objects, store=tmp_path, zarr_format=zarr_format)
    assert list(z[:]) == data
    assert np.asarray(zarr.open_array(tmp_path, mode="r")[:]).tolist() == data


def test_records_of_version_2(tmp_path):
    dtype = [("a", "<i4"), ("b", "S3"), ("c", "<f8")]
    data = np.array([(1, b"x", 2.5), (3, b"yz", 4.5)], dtype)
    z = ts.zarr.array(data, store=tmp_path, zarr_format=2)
    np.testing.assert_array_equal(z[:], data)
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[:], data)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_records_with_one_field_are_records(zarr_format):
    z = ts.zarr.zeros(3, dtype=[("a", "i4")], zarr_format=zarr_format)
    z[:] = [(1,), (2,), (3,)]
    assert z[1].tolist() == (2,)
    assert z["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ts.zarr.zeros(2), 0),
        (lambda: ts.zarr.ones(2), 1),
        (lambda: ts.zarr.full(2, 42), 42),
        (lambda: ts.zarr.empty(2), 0),
        (lambda: ts.zarr.empty(2, zarr_format=2), None),
    ],
)
def test_nothing_is_stored_but_what_it_is_full_of(make, expected):
    z = make()
    assert z.fill_value == expected
    assert z[:].tolist() == [expected or 0] * 2
    assert z.nchunks_initialized == 0


class TestCreateArray:
    def test_has_a_shape_or_data(self):
        assert ts.zarr.create_array(shape=3, dtype="i4").shape == (3,)
        z = ts.zarr.create_array(data=np.arange(3), name="a/b")
        assert (z[:].tolist(), z.path) == ([0, 1, 2], "a/b")
        assert ts.zarr.create_array(data=np.arange(1, 3), write_data=False)[:].tolist() == [0, 0]
        wrongs: list[dict[str, Any]] = [{}, {"shape": 3, "data": [1]}]
        for wrong in wrongs:
            with pytest.raises(ValueError, match="either shape"):
                ts.zarr.create_array(**wrong)


class TestArray:
    def test_takes_type_and_chunks_from_the_data(self):
        z = ts.zarr.array(ts.zarr.ones((4, 6), chunks=(2, 3), dtype="i2"))
        assert (z.dtype.name, z.chunks, z.shape) == ("int16", (2, 3), (4, 6))
        assert z[3, 5] == 1

    def test_takes_whatever_numpy_does(self):
        assert ts.zarr.array([[1, 2], [3, 4]], dtype="f4")[:].dtype == np.float32
        assert ts.zarr.array(5)[()] == 5
        assert ts.zarr.array(range(3))[1:].tolist() == [1, 2]

    def test_takes_a_tensorstore(self):
        z = ts.zarr.array(ts.array([1, 2, 3])[1:])
        assert z[:].tolist() == [2, 3]

    def test_can_be_read_only(self):
        z = ts.zarr.array([1, 2], read_only=True)
        with pytest.raises(ValueError, match="read only"):
            z[0] = 1


class TestLike:
    like = ts.zarr.create(
        (4, 6),
        chunks=(2, 3),
        dtype="i2",
        fill_value=7,
        compressor=ts.zarr.Zlib(2),
        filters=[ts.zarr.Delta("i2")],
        order="F",
        zarr_format=2,
    )

    def same(self, z):
        return [getattr(z, name) for name in ("shape", "chunks", "dtype", "order", "zarr_format")]

    @pytest.mark.parametrize(
        ("function", "fill_value"),
        [
            (ts.zarr.empty_like, None),
            (ts.zarr.zeros_like, 0),
            (ts.zarr.ones_like, 1),
            (ts.zarr.full_like, 7),
            (lambda a: ts.zarr.full_like(a, 9), 9),
            (lambda a: ts.zarr.open_like(a, None), 7),
        ],
    )
    def test_everything_is_taken_over(self, function, fill_value):
        z = function(self.like)
        assert self.same(z) == self.same(self.like)
        assert (z.compressor, z.filters) == (self.like.compressor, self.like.filters)
        assert z.fill_value == fill_value

    def test_but_what_is_said(self):
        z = ts.zarr.zeros_like(
            self.like, shape=5, chunks=2, compressor=None, dtype="f4", filters=[]
        )
        assert (z.shape, z.chunks, z.compressor, z.dtype.name) == ((5,), (2,), None, "float32")

    @pytest.mark.parametrize("sharded", [False, True])
    def test_across_versions(self, sharded):
        z = ts.zarr.ones_like(self.like, zarr_format=3)
        assert (z.zarr_format, z.order, z.compressor) == (3, "F", ts.zarr.Zlib(2))
        assert (z[0, 0], z.chunks) == (1, (2, 3))
        source = ts.zarr.zeros((4, 4), chunks=(2, 2), shards=(4, 4) if sharded else None)
        back = ts.zarr.zeros_like(source, zarr_format=2)
        assert (back.zarr_format, back.chunks, back.shards) == (2, (2, 2), None)
        assert ts.zarr.zeros_like(source).shards == source.shards

    def test_of_a_numpy_array(self):
        z = ts.zarr.zeros_like(np.ones((2, 3), "i2"))
        assert (z.shape, z.dtype.name, z[0, 0]) == ((2, 3), "int16", 0)
        assert ts.zarr.ones_like([1, 2])[:].tolist() == [1, 1]


def test_data_is_copied_between_formats_and_chunks():
    source = ts.zarr.array(np.arange(35).reshape(5, 7), chunks=(2, 3), zarr_format=2)
    copy = ts.zarr.empty((5, 7), chunks=(3, 2), dtype="f4")
    copy[:] = source
    np.testing.assert_array_equal(copy[:], source[:])
    copy[1:3, 0] = source[0, :2]
    assert copy[:3, 0].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="shape"):
        copy[:2] = source
