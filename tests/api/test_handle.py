"""What a handle knows it knows without asking; see test_handles.py for handles among each other."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import counting, created

KNOWN = [
    "dtype", "schema", "chunk_layout", "codec", "fill_value", "dimension_units", "mode",
    "readable", "writable", "kvstore", "transaction", "domain", "rank", "shape",
]  # fmt: skip


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("name", KNOWN)
def test_asks_no_store(inline, name):
    store = counting(inline)
    array = created(store, [8], [4])
    store.reset()
    getattr(array, name)
    repr(array)
    array.spec()
    assert store.reads.total() + store.writes.total() == 0


def test_all_of_it_is_as_the_view_sees_it():
    array = created(counting(), [8, 6], [4, 3], dimension_units=["4 nm", None])
    view = array[::2, 1].T
    assert view.dimension_units == (ts.Unit(8, "nm"),)
    assert view.schema.rank == 1
    assert view.mode == "rw"
    assert view.fill_value == np.uint8(0)


def test_it_is_no_class_that_users_meet():
    array = created(counting(), [8], [4])
    assert type(array[2:]) is ts.TensorStore
    assert repr(array).startswith("TensorStore(")
