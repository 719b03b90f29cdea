import numpy as np
import pytest

from tensorstore_py._interface.new_array import exhausted, new_array
from tensorstore_py.errors import ResourceExhaustedError


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_of_what_was_asked_for(order):
    found = new_array((2, 3), np.dtype("u2"), order)

    assert found.shape == (2, 3)
    assert found.dtype == np.dtype("u2")
    assert found.flags.f_contiguous == (order == "F")


@pytest.mark.parametrize("shape", [(2**62,), (2**61, 2**61), (2**50,)])
def test_what_no_memory_has_is_a_typed_error_that_says_how_much_it_is(shape):
    with pytest.raises(ResourceExhaustedError) as caught:
        new_array(shape, np.dtype("<f8"))

    size = 8 * int(np.prod(shape, dtype=object))
    assert str(caught.value) == str(exhausted(shape, np.dtype("<f8")))
    assert f"takes {size} bytes" in str(caught.value)
    assert str(list(shape)) in str(caught.value)
    assert isinstance(caught.value, MemoryError)
