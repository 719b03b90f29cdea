"""What NumPy and its friends ask of an array, asked of open ones."""

import operator

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

import tensorstore_py as ts
from tests.api.counted_memory import counts

VALUES = np.arange(60, dtype="int16").reshape(6, 10)


def opened(values=VALUES, chunks=(4, 4)):
    store = ts.open(
        {"driver": "zarr3", "kvstore": {"driver": "counted_memory"}}, create=True,
        dtype=values.dtype, shape=values.shape, context=ts.Context(),
        chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
    ).result()  # fmt: skip
    store[...] = values
    return store


def never(*_):
    raise AssertionError("it was read")


def as_store():
    return opened().translate_to[7, -2]


def as_view():
    return as_store().np


def as_zarr():
    return ts.zarr.array(VALUES, chunks=(4, 4))


@pytest.fixture(params=[as_store, as_view, as_zarr])
def array(request):
    return request.param()


@pytest.fixture(params=[as_store, as_view])
def computing(request):
    return request.param()


def only(value, dtype=None, shape=()):
    """One element, as each kind of array."""
    values = np.full(shape, value, dtype)
    return [ts.array(values), ts.array(values).np, ts.zarr.array(values)]


class TestConversion:
    def test_to_an_array(self, array):
        for found, expected in [
            (np.asarray(array), VALUES),
            (np.array(array, "float32"), VALUES.astype("float32")),
            (np.asarray(array, copy=True), VALUES),
            (array.__array__(np.dtype("int64")), VALUES.astype("int64")),
        ]:
            np.testing.assert_array_equal(found, expected, strict=True)

    def test_without_copying_it_is_refused(self, array):
        with pytest.raises(ValueError, match="leave copy=False out"):
            np.asarray(array, copy=False)

    def test_what_is_read_is_the_callers(self):
        memory = np.zeros(3)
        np.asarray(ts.array(memory))[:] = 1
        np.from_dlpack(ts.array(memory))[:] = 1
        assert memory.tolist() == [0, 0, 0]

    def test_to_a_series_of_the_right_length(self, array):
        first = array[array.origin[0]] if isinstance(array, ts.TensorStore) else array[0]
        assert pd.Series(first).tolist() == list(range(10))
        assert pd.DataFrame(np.asarray(array)).shape == (6, 10)


class TestDlpack:
    def test_gives_the_elements(self, array):
        found = np.from_dlpack(array)
        np.testing.assert_array_equal(found, VALUES, strict=True)
        assert array.__dlpack_device__() == (1, 0)
        assert array.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True) is not None

    def test_without_copying_it_is_refused(self, array):
        with pytest.raises(BufferError, match="leave copy=False out"):
            array.__dlpack__(copy=False)

    @pytest.mark.parametrize("dtype", ["bfloat16", "int4", "ustring", "M8[s]"])
    def test_what_has_no_type_there_says_what_to_do_and_reads_nothing(self, dtype):
        store = ts.virtual_chunked(never, dtype=dtype, shape=[3])
        with pytest.raises(BufferError, match="convert them first"):
            np.from_dlpack(store)


class TestSequence:
    def test_length(self, array):
        assert len(array) == 6
        for one in only(3):
            with pytest.raises(TypeError, match="unsized"):
                len(one)

    def test_iteration(self, array):
        rows = list(array)
        assert [type(row) for row in rows] == [np.ndarray] * 6
        np.testing.assert_array_equal(rows, VALUES)
        for one in only(3):
            with pytest.raises(TypeError, match="without dimensions"):
                iter(one)

    def test_iteration_reads_each_chunk_once(self):
        store = opened()
        requests = counts(store)
        assert len(list(store[:, 3])) == 6
        assert requests.reads == {"c/0/0": 1, "c/1/0": 1}

    def test_looking_for_an_element(self, array):
        assert 33 in array
        assert -1 not in array
        for one in only(3):
            assert 3 in one
            assert 4 not in one


class TestOneElement:
    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_is_converted(self, shape):
        for one in only(3, "int16", shape):
            assert (float(one), int(one), complex(one), bool(one)) == (3.0, 3, 3 + 0j, True)
            assert [type(kind(one)) for kind in (float, int, complex)] == [float, int, complex]
        for one in only(0, "float32", shape):
            assert not one
        for one in only(2.75, "float32", shape):
            assert (float(one), int(one)) == (2.75, 2)

    def test_is_an_index_without_dimensions_only(self):
        for one in only(3, "uint8"):
            assert operator.index(one) == 3
            assert VALUES[0][one] == 3
        for one in [*only(3, "uint8", (1,)), *only(3.0, "float32"), *only(True)]:
            with pytest.raises(TypeError, match="only an integer array without dimensions"):
                operator.index(one)

    def test_as_indices_arrays_stay_arrays(self):
        for each in only(3, "uint8", (1,)):
            assert VALUES[0][each].tolist() == [3]
            assert ts.array(VALUES)[0][each].read().result().tolist() == [3]

    @pytest.mark.parametrize("kind", [float, int, complex, bool, operator.index])
    def test_of_many_is_refused_before_anything_is_read(self, kind):
        store = opened()
        requests = counts(store)
        for array in (store, store.np, store[:0]):
            with pytest.raises((TypeError, ValueError), match=r"shape \[|without dimensions"):
                kind(array)
        assert not requests.reads

    def test_the_truth_of_many_names_the_way(self):
        with pytest.raises(ValueError, match="compare it to None, or read it and use any"):
            bool(opened())


class TestComputing:
    @pytest.mark.parametrize("name", ["min", "max", "sum", "mean", "std", "any", "all"])
    @pytest.mark.parametrize("axis", [None, 0, (0, 1)])
    def test_methods_and_functions_are_numpys(self, computing, name, axis):
        expected = getattr(VALUES, name)(axis)
        for found in (getattr(computing, name)(axis), getattr(np, name)(computing, axis=axis)):
            assert type(found) is type(expected)
            np.testing.assert_array_equal(found, expected, strict=True)

    def test_options_are_numpys(self, computing):
        out = np.empty(10, "float64")
        assert computing.mean(0, out=out) is out
        np.testing.assert_array_equal(out, VALUES.mean(0))
        assert computing.sum(dtype="float32", keepdims=True).shape == (1, 1)

    def test_universal_functions(self, computing):
        for found, expected in [
            (np.add(computing, 1), VALUES + 1),
            (VALUES * computing, VALUES * VALUES),
            (np.sqrt(computing), np.sqrt(VALUES)),
            (np.add.reduce(computing, 1), VALUES.sum(1)),
        ]:
            np.testing.assert_array_equal(found, expected)

    def test_what_is_given_twice_is_read_once(self):
        store = opened()
        requests = counts(store)
        np.testing.assert_array_equal(np.add(store, store), VALUES * 2)
        assert set(requests.reads.values()) == {1}

    def test_results_are_stored_where_they_are_to_go(self, computing):
        assert np.negative(VALUES, out=computing) is computing
        np.testing.assert_array_equal(computing, -VALUES)
        first, second = opened(), opened().np
        np.divmod(VALUES, np.int16(7), out=(first, second))
        np.testing.assert_array_equal(first, VALUES // 7)
        np.testing.assert_array_equal(second, VALUES % 7)

    def test_a_mask_is_read(self):
        mask = opened(VALUES > 30)
        for each in (mask, mask.np):
            out = np.zeros(VALUES.shape, "int16")
            np.add(VALUES, 1, out=out, where=each)
            np.testing.assert_array_equal(out, np.where(VALUES > 30, VALUES + 1, 0))

    def test_changes_of_single_elements_are_stored(self, computing):
        expected = VALUES.copy()
        for target in (computing, expected):
            np.add.at(target, ([0, 0, 5], [1, 1, 2]), 100)
        np.testing.assert_array_equal(computing, expected)

    def test_memory_is_changed_in_place(self, computing):
        memory = same = VALUES.copy()
        memory += computing
        assert memory is same
        np.testing.assert_array_equal(memory, VALUES * 2)

    def test_objects(self):
        text = ts.array(["b", "a"])
        assert text.max() == "b"
        np.testing.assert_array_equal(text.np == "a", [False, True])


def test_sizes():
    assert (opened().nbytes, opened().itemsize) == (120, 2)
    assert (ts.array([1.5], "bfloat16").itemsize, ts.array(["a"]).itemsize) == (2, 8)
