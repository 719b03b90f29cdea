import pytest

import tensorstore_py as ts


def test_cast_and_astype_are_the_same():
    store = ts.array([1, 2], dtype="uint8")
    assert ts.cast(store, "float32").spec() == store.astype("float32").spec()
    assert store.astype(ts.uint8).dtype == ts.uint8
    with pytest.raises(ts.SpecError):
        store.astype("uint9")


def test_a_cast_goes_both_ways():
    store = ts.array([1, 2], dtype="uint8")
    store.astype("float64")[0] = 7.9
    assert store.read().result().tolist() == [7, 2]
