import pytest

from tensorstore_py._index import IndexTransform
from tensorstore_py._spec.dim_order import input_order, output_order


def transform(rank, *output):
    outputs = [{} if dim is None else {"input_dimension": dim} for dim in output]
    return IndexTransform(json={"input_rank": rank, "output": outputs})


@pytest.mark.parametrize(
    ("rank", "output", "order", "expected"),
    [
        (2, [0, 1], (1, 0), (1, 0)),
        (2, [1, 0], (1, 0), (0, 1)),
        (3, [2, None], (1, 0), (2, 0, 1)),
        (2, [0, 1, 0], (2, 1, 0), (0, 1)),
    ],
)
def test_to_the_input(rank, output, order, expected):
    assert input_order(transform(rank, *output), order) == expected


@pytest.mark.parametrize(
    ("rank", "output", "order", "expected"),
    [
        (2, [0, 1], (1, 0), (1, 0)),
        (2, [1, 0], (1, 0), (0, 1)),
        (2, [None, 1], (0, 1), (1, 0)),
        (2, [0, 1, 0], (1, 0), (1, 0, 2)),
    ],
)
def test_to_the_output(rank, output, order, expected):
    assert output_order(transform(rank, *output), order) == expected
