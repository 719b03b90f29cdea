"""Reading and writing by selections, by all their methods."""

import numpy as np
import pytest

import tensorstore_py as ts

DATA = np.arange(30).reshape(5, 6)


@pytest.fixture
def z():
    return ts.zarr.array(DATA, chunks=(2, 4))


@pytest.mark.parametrize(
    ("kind", "selection", "expected"),
    [
        ("basic", (slice(1, 3), -1), DATA[1:3, -1]),
        ("orthogonal", ([0, 2], [1, 3]), DATA[np.ix_([0, 2], [1, 3])]),
        ("coordinate", ([0, 2], [1, 3]), DATA[[0, 2], [1, 3]]),
        ("mask", DATA % 7 == 0, DATA[DATA % 7 == 0]),
        ("block", (0, 1), DATA[:2, 4:]),
        ("vector", ([0, 2], [1, 3]), DATA[[0, 2], [1, 3]]),
    ],
)
def test_each_selection_reads_and_writes(z, kind, selection, expected):
    get = getattr(z, f"get_{kind}_selection")
    np.testing.assert_array_equal(get(selection), expected)
    getattr(z, f"set_{kind}_selection")(selection, -np.asarray(expected))
    np.testing.assert_array_equal(get(selection), -expected)
    if kind != "vector":
        out = np.empty(expected.shape, "f8")
        assert get(selection, out=out) is out
        np.testing.assert_array_equal(out, -expected)


def test_all_of_it_is_selected_by_nothing(z):
    np.testing.assert_array_equal(z.get_basic_selection(), DATA)
    np.testing.assert_array_equal(z[...], DATA)
    np.testing.assert_array_equal(z[()], DATA)


@pytest.mark.parametrize("item", [(0, 0), (-1, -1), (np.int64(2), 3)])
def test_one_element_is_a_scalar(z, item):
    assert isinstance(z[item], np.int64)
    assert z[item] == DATA[item]


def test_slices_run_backwards_as_in_numpy(z):
    np.testing.assert_array_equal(z[::-2, 4:0:-3], DATA[::-2, 4:0:-3])
    z[::-1, 0] = [0, 1, 2, 3, 4]
    assert z[:, 0].tolist() == [4, 3, 2, 1, 0]


def test_a_mask_selects_rows_as_in_numpy(z):
    rows = np.array([True, False, True, False, True])
    np.testing.assert_array_equal(z[rows], DATA[rows])


def test_values_broadcast_as_in_numpy(z):
    z[:] = np.arange(6)
    z[:, :2] = [[7], [8], [9], [10], [11]]
    assert z[1].tolist() == [8, 8, 2, 3, 4, 5]


@pytest.mark.parametrize("value", [np.arange(7), [1, 2], np.zeros((2, 6))])
def test_values_of_another_shape_are_refused(z, value):
    with pytest.raises(ValueError, match="dimension"):
        z[0] = value
    np.testing.assert_array_equal(z[:], DATA)


def test_what_is_read_has_the_order_that_is_stored():
    z = ts.zarr.array(DATA, chunks=(2, 4), order="F")
    assert z[:].flags.f_contiguous
    np.testing.assert_array_equal(z[:], DATA)


def test_a_tensorstore_is_written_whatever_its_positions_and_labels(z):
    source = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype="int16",
        domain=ts.IndexDomain(shape=[5, 6], labels=["x", "y"]),
    ).result()
    source[...] = 3
    z[1:3, :2] = source[3:, 4:6]
    assert z[:4, 1].tolist() == [1, 3, 3, 19]
