"""What stands for work under way is neither copied nor pickled."""

import copy
import pickle

import pytest

import tensorstore_py as ts


def _live():
    promise: ts.Promise[int]
    future: ts.Future[int]
    promise, future = ts.Promise.new()
    spec = {"driver": "zarr3", "kvstore": "memory://", "dtype": "int8", "schema": {"rank": 0}}
    store = ts.open(spec, create=True, domain=ts.IndexDomain(rank=0)).result()
    return [promise, future, store.write(3), store.read(), ts.Batch(), ts.Transaction()]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_live_objects_say_so(again):
    for each in _live():
        with pytest.raises(TypeError, match=f"a {type(each).__name__} can be neither copied"):
            again(each)
