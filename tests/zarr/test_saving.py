"""Whole arrays to a store and back, also by way of zarr-python."""

import numpy as np
import pytest
import zarr

import tensorstore_py as ts

A, B = np.arange(6).reshape(2, 3), np.array(["a", "bcd"])


def test_one_array(tmp_path):
    ts.zarr.save(tmp_path, A)
    np.testing.assert_array_equal(ts.zarr.load(tmp_path), A)
    np.testing.assert_array_equal(zarr.load(tmp_path), A)


def test_several_arrays(tmp_path):
    ts.zarr.save(tmp_path, A, A + 1, other=A + 2)
    found = ts.zarr.load(tmp_path)
    assert list(found) == ["arr_0", "arr_1", "other"]
    for place, each in enumerate(found.values()):
        np.testing.assert_array_equal(each, A + place)
    assert sorted(zarr.open_group(tmp_path, mode="r").array_keys()) == list(found)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_at_a_path(tmp_path, zarr_format):
    ts.zarr.save_array(tmp_path, B, path="a/b", zarr_format=zarr_format, chunks=1)
    ts.zarr.save_group(tmp_path, path="c", zarr_format=zarr_format, x=A)
    np.testing.assert_array_equal(ts.zarr.load(tmp_path, path="a/b"), B)
    np.testing.assert_array_equal(ts.zarr.load(tmp_path, path="c")["x"], A)
    assert ts.zarr.load(tmp_path) == {}


def test_what_is_there_is_replaced(tmp_path):
    ts.zarr.save(tmp_path, A, A)
    ts.zarr.save(tmp_path, A)
    np.testing.assert_array_equal(ts.zarr.load(tmp_path), A)
    ts.zarr.save(tmp_path, x=A)
    assert list(ts.zarr.load(tmp_path)) == ["x"]


@pytest.mark.parametrize("save", [ts.zarr.save, ts.zarr.save_group])
def test_there_must_be_something(save):
    with pytest.raises(ValueError, match="at least one array"):
        save({})


def test_names_are_used_once():
    with pytest.raises(ValueError, match="'arr_0' is the name of two arrays"):
        ts.zarr.save_group({}, A, arr_0=A)


def test_nothing_is_there(tmp_path):
    with pytest.raises(ValueError, match="no array or group found"):
        ts.zarr.load(tmp_path / "a")
