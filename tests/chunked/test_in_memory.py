import numpy as np
import pytest

from tensorstore_py._chunked.in_memory import read_array, write_array
from tensorstore_py._index import IndexTransform, d

ARRAY = np.arange(60).reshape(3, 4, 5)
WHOLE = IndexTransform(input_shape=[3, 4, 5])
VIEWS = [
    (WHOLE, ARRAY),
    (WHOLE[1], ARRAY[1]),
    (WHOLE[:, 1:3, ::2], ARRAY[:, 1:3, ::2]),
    (WHOLE[..., ::-1], ARRAY[..., ::-1]),
    (WHOLE[[2, 0], :, [1, 1]], ARRAY[[2, 0], :, [1, 1]]),
    (WHOLE[d[2, 0].transpose[0, 1]], np.moveaxis(ARRAY, (2, 0), (0, 1))),
    (WHOLE.T, ARRAY.T),
    (WHOLE[:, 2:2], ARRAY[:, 2:2]),
    (WHOLE[0, 0, 0], ARRAY[0, 0, 0]),
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_reads_what_numpy_reads(number, order):
    transform, expected = VIEWS[number]
    found = read_array(ARRAY, transform, order)
    np.testing.assert_array_equal(found, expected)
    assert found.flags.f_contiguous if order == "F" else found.flags.c_contiguous
    assert not np.shares_memory(found, ARRAY)


@pytest.mark.parametrize(
    ("index", "source"),
    [
        ((slice(None), 1), np.arange(15).reshape(3, 5)),
        (([2, 0], slice(None), [1, 3]), np.arange(8).reshape(2, 4)),
        ((slice(None), slice(None), slice(None, None, -1)), np.arange(5)),
        ((0, 0, 0), np.array(7)),
        ((slice(1, 1),), np.array(7)),
    ],
)
def test_writes_what_numpy_writes(index, source):
    found, expected = ARRAY.copy(), ARRAY.copy()
    write_array(found, WHOLE[index], source)
    expected[index] = source
    np.testing.assert_array_equal(found, expected)


def test_dimensions_on_which_nothing_depends_are_broadcast():
    transform = IndexTransform(input_shape=[2, 5], output=[])
    assert read_array(np.array(3), transform, "C").tolist() == [[3] * 5] * 2
