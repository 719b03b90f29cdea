"""The array: as a value, as a sequence, growing and shrinking."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.fixture
def z():
    return ts.zarr.array(np.arange(12).reshape(4, 3), chunks=(3, 2))


class TestSequence:
    def test_has_a_length(self, z):
        assert len(z) == 4
        with pytest.raises(TypeError, match="unsized"):
            len(ts.zarr.zeros(()))

    def test_is_iterated_over(self, z):
        np.testing.assert_array_equal(list(z), z[:])
        assert [row.tolist() for row in z.islice(1, -1)] == [[3, 4, 5], [6, 7, 8]]
        assert [row.tolist() for row in z.islice(-1)] == [[9, 10, 11]]
        assert list(z.islice(3, 1)) == []
        assert [int(each) for each in ts.zarr.array([1, 2, 3], chunks=2)] == [1, 2, 3]

    def test_has_no_truth_but_that_of_one_element(self, z):
        assert ts.zarr.array([3])
        assert not ts.zarr.array(0)
        with pytest.raises(ValueError, match="ambiguous"):
            bool(z)


class TestNumpy:
    def test_is_an_array_of_numpys(self, z):
        np.testing.assert_array_equal(np.asarray(z), np.arange(12).reshape(4, 3))
        assert np.asarray(z, "f4").dtype == np.float32
        assert np.sum(z) == 66
        with pytest.raises(ValueError, match="copying"):
            np.asarray(z, copy=False)

    def test_scalars_are_arrays_without_dimensions(self):
        assert np.asarray(ts.zarr.full((), 5)).shape == ()

    def test_is_read_as_another_type(self, z):
        seen = z.astype("f4")
        assert (seen.dtype, seen[1].tolist(), seen.shape) == (np.float32, [3.0, 4.0, 5.0], (4, 3))
        assert seen.read_only
        assert seen.is_view

    def test_has_what_dask_and_xarray_look_for(self, z):
        assert (z.shape, z.dtype, z.ndim, z.chunks) == ((4, 3), np.int64, 2, (3, 2))
        assert z[1:3, ::2].tolist() == [[3, 5], [6, 8]]


class TestSize:
    def test_resize(self, z):
        z.resize(5, 2)
        assert z.shape == z.ts.shape == (5, 2)
        assert z[:].tolist() == [[0, 1], [3, 4], [6, 7], [9, 10], [0, 0]]
        z.resize((2, 2))
        assert z.nchunks_initialized == 1

    @pytest.mark.parametrize("shape", [(3,), (1, 2, 3)])
    def test_the_number_of_dimensions_stays(self, z, shape):
        with pytest.raises(ValueError, match="2 dimensions"):
            z.resize(shape)

    def test_append(self, z):
        assert z.append(np.ones((2, 3))) == (6, 3)
        assert z.append([[7]] * 6, axis=1) == (6, 4)
        assert z[-1].tolist() == [1, 1, 1, 7]
        assert z.append(z) == (12, 4)
        assert z[6:].tolist() == z[:6].tolist()
        with pytest.raises(ValueError, match="extent"):
            z.append(np.ones((2, 5)))

    def test_appends_of_several_are_all_there(self, z):
        other = ts.zarr.Array(z.ts)
        z.append([[1, 1, 1]])
        other.append([[2, 2, 2]])
        assert other[-2:].tolist() == [[1, 1, 1], [2, 2, 2]]


class TestValue:
    def test_is_equal_if_it_is_the_same(self, tmp_path):
        make: dict[str, Any] = {"shape": 3, "dtype": "i4"}
        z = ts.zarr.open_array(tmp_path / "a", mode="w", **make)
        assert z == ts.zarr.open_array(tmp_path / "a")
        assert z != ts.zarr.open_array(tmp_path / "a", mode="r")
        assert z != ts.zarr.open_array(tmp_path / "b", mode="w", **make)
        assert z != 3
        assert ts.zarr.zeros(3) != ts.zarr.zeros(3)

    def test_survives_pickling(self, tmp_path):
        root = ts.zarr.open_group(tmp_path, mode="w")
        z = root.array("a/b", [1, 2, 3])
        again = pickle.loads(pickle.dumps(z))
        assert again == z
        assert (again.path, again[:].tolist(), again.store) == ("a/b", [1, 2, 3], root.store)
        again[0] = 5
        assert z[0] == 5

    def test_can_be_copied(self, z):
        assert copy.copy(z) == z

    def test_says_what_it_is(self, tmp_path):
        z = ts.zarr.zeros((2, 3), store=tmp_path, path="a", dtype="f4")
        expected = f"<Array {tmp_path.as_uri()}/a/ shape=(2, 3) dtype=float32>"
        assert repr(z) == expected


async def test_is_asynchronous_by_its_tensorstore(z):
    future = z.ts[1].read()
    assert (await future).tolist() == [3, 4, 5]


def test_is_made_of_nothing_else():
    wrong: Any = ts.zarr.MemoryStore()
    with pytest.raises(TypeError, match=r"call ts\.zarr\.open_array\(store"):
        ts.zarr.Array(wrong)
    with pytest.raises(TypeError, match=r"call ts\.zarr\.open_group\(store"):
        ts.zarr.Group(wrong)


def test_is_made_of_a_tensorstore():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    store = ts.open(spec, create=True, dtype="int16", shape=[3]).result()
    z = ts.zarr.Array(store)
    z[-1] = 5
    assert store[2].read().result() == 5
    assert z.store == z.own_store


def test_is_seen_through_a_transaction():
    z = ts.zarr.zeros(3, dtype=[("a", "i4"), ("b", "S2")])
    with ts.Transaction() as transaction:
        staged = z.with_transaction(transaction)
        staged["a"] = [1, 2, 3]
        assert staged[1].tolist() == (2, b"")
        assert z["a"].tolist() == [0, 0, 0]
    assert z["a"].tolist() == [1, 2, 3]
