"""Other readings of stored bytes: views."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.readings import other_reading

FORMATS = [2, 3]


def test_past_a_filter():
    species = ["finch", "heron", "swift"]
    seen = np.array(["swift", "finch", "swift", "heron", "finch"] * 7)
    codes = [ts.zarr.Categorize(labels=species, dtype=seen.dtype, astype="u1")]
    log = ts.zarr.array(seen, chunks=6, filters=codes, zarr_format=2)

    stored = log.view(dtype="u1", filters=[])

    assert stored.is_view
    assert not log.is_view
    assert stored[:5].tolist() == [3, 1, 3, 2, 1]
    stored[stored[:] == 3] = 2  # all swifts were herons
    assert log[:5].tolist() == ["heron", "finch", "heron", "heron", "finch"]


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestType:
    def test_of_the_same_size(self, zarr_format):
        data = np.random.default_rng(0).integers(0, 2, 1000).astype("u1")
        a = ts.zarr.array(data, chunks=100, zarr_format=zarr_format)
        v = a.view(dtype=bool)
        assert v.dtype == bool
        np.testing.assert_array_equal(v[:], data.view(bool))

    def test_of_another_size(self, zarr_format):
        data = np.arange(1000, dtype="<u2")
        a = ts.zarr.array(data, chunks=100, zarr_format=zarr_format)
        v = a.view(dtype="u1", shape=2000, chunks=200)
        assert v[:10].tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
        np.testing.assert_array_equal(v[:], data.view("u1"))

    def test_other_fill_value(self, zarr_format):
        a = ts.zarr.full(1000, chunks=100, fill_value=-1, dtype="i1", zarr_format=zarr_format)
        assert a.view(fill_value=42)[5] == 42
        assert a.view(dtype="i1")[5] == -1

    def test_shape_and_chunks_of_shards(self, zarr_format):
        shards = 100 if zarr_format == 3 else None
        a = ts.zarr.array(np.arange(200), chunks=50, shards=shards, zarr_format=zarr_format)
        v = a.view(shape=150)
        np.testing.assert_array_equal(v[:], np.arange(150))
        assert a.shape == (200,)


def test_size_is_not_changed_through_a_view():
    v = ts.zarr.zeros(1000, chunks=100).view()
    for change in (lambda: v.resize(20000), lambda: v.append([1.0])):
        with pytest.raises(PermissionError, match="not permitted for views"):
            change()


def test_can_be_read_only():
    a = ts.zarr.zeros(10)
    assert a.view(read_only=True).read_only
    assert not a.view().read_only
    assert ts.zarr.array([1], read_only=True).view().read_only


def test_the_array_stays_as_it_is():
    a = ts.zarr.full(10, fill_value=3, dtype="i4", chunks=5, zarr_format=2)
    before = a.hexdigest()
    seen = other_reading(a.ts, a.form, None, {"fill_value": 9})
    assert seen.read().result().tolist() == [9] * 10
    assert a.hexdigest() == before
