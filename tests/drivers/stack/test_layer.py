import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py._spec.context import bind
from tensorstore_py.drivers.stack.driver import Layer
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import Opened

MOVED = {"input_inclusive_min": [10], "input_shape": [3],
         "output": [{"input_dimension": 0, "offset": -10}]}  # fmt: skip
MEMORY = {"driver": "array", "dtype": "int32", "array": [1, 2, 3], "transform": MOVED}
ZARR = {"driver": "zarr3", "kvstore": "memory://a/", "dtype": "int32", "transform": MOVED}


def layer_of(json, data_type="int32", context=None):
    spec = bind(ts.Spec(json).model, context or ts.Context())
    return Layer(4, spec, dtype(data_type), inline=True)


def at(low, high):
    return ts.IndexTransform(
        input_shape=[high - low], output=[ts.OutputIndexMap(input_dimension=0, offset=low)]
    )


def test_coordinates_are_the_stacks():
    layer = layer_of(MEMORY)
    assert layer.box == ((10, 13),)
    assert run_inline(layer.read(at(11, 13))).tolist() == [2, 3]
    run_inline(layer.write(at(10, 11), np.array([9], np.int32)))
    assert run_inline(layer.read(at(10, 13))).tolist() == [9, 2, 3]


def test_opened_once_and_only_when_needed():
    context = ts.Context()
    layer = layer_of(ZARR, context=context)
    with pytest.raises(ts.NotFoundError) as caught:
        run_inline(layer.read(at(10, 13)))
    assert caught.value.__notes__ == ["This was layer 4 of a stack."]
    ts.open(ZARR, create=True, shape=[3], context=context).result()[...] = 5
    assert run_inline(layer.read(at(12, 13))).tolist() == [5]
    kvstore = ts.KvStore.open("memory://a/", context=context).result()
    kvstore.delete_range(ts.KvStore.KeyRange()).result()
    assert run_inline(layer.read(at(12, 13))).tolist() == [0]


def test_another_type_than_promised():
    layer = layer_of({**MEMORY, "dtype": "int8"})
    with pytest.raises(ts.MismatchError, match=r"layer 4 of the stack holds int8, but .* int32"):
        run_inline(layer.read(at(10, 13)))


@pytest.mark.parametrize(("readable", "writable"), [(True, False), (False, True)])
def test_what_a_handle_may_not_the_layer_may_not(readable, writable):
    store = ts.array(np.arange(13, dtype=np.int32))
    spec = Opened(
        handle=store._driver,
        transform=store[10:]._transform,
        readable=readable,
        writable=writable,
    )
    layer = Layer(0, spec, ts.int32, inline=True)
    assert (layer.readable, layer.writable) == (readable, writable)
    attempts = [
        lambda: run_inline(layer.read(at(10, 13))),
        lambda: run_inline(layer.write(at(10, 13), np.zeros(3, np.int32))),
    ]
    allowed, refused = attempts if readable else attempts[::-1]
    allowed()
    with pytest.raises(ts.PermissionDeniedError, match="layer 0"):
        refused()
