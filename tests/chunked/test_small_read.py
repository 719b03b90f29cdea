"""One small read: what is left of it when it is done."""

import gc
import weakref

import numpy as np
import pytest

from tensorstore_py._chunked.small_read import SmallRead
from tensorstore_py._runtime.start import start
from tests.chunked.stores import counting, created, opened

VALUES = np.arange(24, dtype="uint8")


@pytest.fixture
def array():
    store = counting()
    created(store, [24], [6]).write(VALUES).result()
    return opened(store)


def asked(array, index):
    read = array._driver.reading(array[index]._get_transform(), "C")
    assert isinstance(read, SmallRead)
    return read


@pytest.fixture
def uncollected():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("index", [3, slice(4, 8), slice(5, 13)])
def test_nothing_outlives_it(array, index):
    read = asked(array, index)
    result = start(array._driver.inline, read).result()
    np.testing.assert_array_equal(result, VALUES[index])
    gone = weakref.ref(read), weakref.ref(result)
    del read, result
    assert [each() for each in gone] == [None, None]


@pytest.mark.usefixtures("uncollected")
def test_nothing_outlives_one_that_was_withdrawn(array):
    read = asked(array, slice(4, 8))
    gone = weakref.ref(read)
    read.withdraw()
    del read
    assert gone() is None
    assert array._driver._small._wanted == {}


def test_where_its_elements_are_is_found_when_it_is_needed(array):
    read = asked(array, slice(4, 8))
    assert (len(read.wants), read.cuts) == (2, None)
    cuts = read.cut([6])
    assert [cut.cell for cut in cuts] == [want.cell for want in read.wants] == [(0,), (1,)]
    assert read.cuts is cuts
    read.withdraw()
