import numpy as np

from tensorstore_py._interface.element_view import ElementView, needs_a_look, normalised
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.plugin import dtype

NESTED = [["p", [["a", "|i1"], ["b", ">u2", [3]]], [2]], ["q", "|b1"]]
RECORD = np.dtype([("p", [("a", "i1"), ("b", ">u2", (3,))], (2,)), ("q", "?")])


def elements() -> np.ndarray:
    array = np.zeros((2, 3), RECORD)
    array["p"]["a"] = np.arange(12).reshape(2, 3, 2)
    array["p"]["b"] = np.arange(36).reshape(2, 3, 2, 3)
    return array


def test_a_view_inside_a_view_is_where_numpy_finds_it() -> None:
    array = elements()
    view = StoredType.parse(NESTED).view("p.b")

    found = view.of(array.tobytes(), array.shape, array.strides)

    assert np.array_equal(found, array["p"]["b"])
    assert (view.inner_shape, view.inner_strides, view.offset) == ((2, 3), (7, 2), 1)
    assert view.size_bytes == 12


def test_a_view_is_writable_if_the_bytes_are() -> None:
    data = bytearray(8)

    ElementView("", dtype("uint16"), np.dtype(">u2")).of(data, (4,), (2,))[...] = 1

    assert data == b"\0\1" * 4


def test_elements_come_in_native_byte_order_without_a_copy_if_they_are() -> None:
    native = np.arange(3, dtype="<u2")

    assert normalised(native, np.dtype("<u2")) is native
    assert normalised(native.astype(">u2"), np.dtype("<u2")).dtype.isnative


def test_truth_values_of_any_bits_are_true() -> None:
    data = np.array([0, 1, 2, 255], "u1")
    record = np.dtype([("n", "u1"), ("deep", [("ok", "?", (2,))])])
    records = np.array([7, 2, 0, 8, 0, 255], "u1").view(record)

    assert normalised(data.view("?"), np.dtype("?")).view("u1").tolist() == [0, 1, 1, 1]
    found = normalised(records, record)
    assert found.view("u1").tolist() == [7, 1, 0, 8, 0, 1]
    assert records.view("u1").tolist() == [7, 2, 0, 8, 0, 255]


def test_truth_values_and_text_are_found_at_any_depth() -> None:
    assert needs_a_look(np.dtype([("a", [("b", "?", (2,))])]))
    assert needs_a_look(np.dtype([("a", "u1"), ("b", "U4")]))
    assert needs_a_look(np.dtype("?"))
    assert not needs_a_look(np.dtype([("a", "u1"), ("b", "S4")]))
