"""Layers of a stack: where they are, when they are opened, and what may be done with them."""

import numpy as np
import pytest

import tensorstore_py as ts

MOVED = {"input_inclusive_min": [10], "input_shape": [3],
         "output": [{"input_dimension": 0, "offset": -10}]}  # fmt: skip
MEMORY = {"driver": "array", "dtype": "int32", "array": [1, 2, 3], "transform": MOVED}
ZARR = {"driver": "zarr3", "kvstore": "memory://a/", "dtype": "int32", "transform": MOVED}


def fifth(layer, context=None):
    """A stack of five layers of one element each but for the last, which is at [10, 13)."""
    others = [ts.array([0], dtype=ts.int32).translate_to[place].spec() for place in range(4)]
    layers = [*(other.to_json() for other in others), layer]
    spec = {"driver": "stack", "dtype": "int32", "layers": layers}
    return ts.open(spec, context=context).result()


def test_coordinates_are_the_stacks():
    store = fifth(MEMORY)
    assert store.domain.exclusive_max == (13,)
    assert store[11:13].read().result().tolist() == [2, 3]
    store[10:11].write(9).result()
    assert store[10:13].read().result().tolist() == [9, 2, 3]


def test_opened_once_and_only_when_needed():
    context = ts.Context()
    store = fifth(ZARR, context)
    with pytest.raises(ts.NotFoundError) as caught:
        store[10:13].read().result()
    assert "This was layer 4 of a stack." in caught.value.__notes__
    ts.open(ZARR, create=True, shape=[3], context=context).result()[...] = 5
    assert store[12:13].read().result().tolist() == [5]
    kvstore = ts.KvStore.open("memory://a/", context=context).result()
    kvstore.delete_range(ts.KvStore.KeyRange()).result()
    assert store[12:13].read().result().tolist() == [0]


def test_another_type_than_promised():
    context = ts.Context()
    ts.open({**ZARR, "dtype": "int8"}, create=True, shape=[3], context=context).result()
    untyped = {name: member for name, member in ZARR.items() if name != "dtype"}
    store = fifth(untyped, context)
    with pytest.raises(ts.MismatchError, match=r"layer 4 of the stack holds int8, but .* int32"):
        store[10:13].read().result()


@pytest.mark.parametrize(("readable", "writable"), [(True, False), (False, True)])
def test_what_a_handle_may_not_the_layer_may_not(readable, writable):
    context = ts.Context()
    ts.open(ZARR, create=True, shape=[3], context=context).result()
    handle = ts.open(ZARR, read=readable, write=writable, context=context).result()
    store = ts.overlay([handle, ts.array([0], dtype=ts.int32)], read=True, write=True)
    attempts = [
        lambda: store[10:13].read().result(),
        lambda: store[10:13].write(np.zeros(3, np.int32)).result(),
    ]
    allowed, refused = attempts if readable else attempts[::-1]
    allowed()
    with pytest.raises(ts.PermissionDeniedError, match="layer 0"):
        refused()
