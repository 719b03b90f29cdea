import numpy as np
import pytest
import tensorstore as reference

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


def views(library):
    domain = library.IndexTransform(input_rank=1)
    part = {"input_inclusive_min": [1], "input_shape": [2]}
    every = library.d[:].mark_bounds_implicit[True]
    yield domain
    yield domain[library.d[:].translate_by[10]]
    yield domain[::-1]
    for lower, upper in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield library.IndexTransform(
            **part, implicit_lower_bounds=[lower], implicit_upper_bounds=[upper]
        )
    yield domain[every]
    yield domain[library.newaxis][every]


@pytest.mark.parametrize("number", range(len(list(views(ts)))))
def test_a_bound_that_the_array_cannot_change_is_implicit_in_no_view(number):
    outcomes = []
    for library in (ts, reference):
        context = library.Context()
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        library.open(spec, create=True, dtype="uint8", shape=[4], context=context).result()
        transform = list(views(library))[number]
        view = library.open({**spec, "transform": transform.to_json()}, context=context).result()
        resolved = view[...].resolve().result()
        outcomes.append((str(view.domain), str(resolved.domain)))
    assert outcomes[0] == outcomes[1]
