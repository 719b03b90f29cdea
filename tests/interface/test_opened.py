import numpy as np

import tensorstore_py as ts
from tensorstore_py._interface.opened import Opened
from tensorstore_py._runtime.inline import run_inline


def test_an_open_array_stands_for_its_spec():
    store = ts.array(np.arange(6).reshape(2, 3))
    driver = store._driver
    spec = Opened(handle=driver)
    assert run_inline(spec.open()) is driver
    assert spec.inline is True
    assert spec.known_domain() == store.domain
    assert spec.known_schema().dtype == ts.int64
    assert spec.view_spec().to_json()["array"] == [[0, 1, 2], [3, 4, 5]]


def test_a_view_of_it_keeps_its_place():
    view = ts.array(np.arange(6))[2:5]
    spec = Opened(handle=view._driver, transform=view._transform, writable=False)
    assert spec.view_transform == view._transform
    assert spec.view_spec().to_json()["array"] == [2, 3, 4]
    assert (spec.readable, spec.writable) == (True, False)
