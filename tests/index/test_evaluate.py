import numpy as np
import pytest

from tensorstore_py._index import Dim, IndexTransform, OutputIndexMap
from tensorstore_py.errors import OutOfRangeError


def test_position() -> None:
    x = IndexTransform(
        [Dim(2, 5, label="x"), Dim(0, 3)],
        [
            OutputIndexMap(7),
            OutputIndexMap(0, 1, -2),
            OutputIndexMap([[4], [5], [6]], 100, 10),
        ],
    )

    assert x([3, 0]) == (7, -5, 150)
    assert x((np.int64(4), 2)) == (7, -7, 160)


def test_positions_that_do_not_fit() -> None:
    x = IndexTransform([Dim(2, 5, label="x")])

    with pytest.raises(ValueError, match=r"length 2 .* input rank 1"):
        x([2, 3])
    with pytest.raises(OutOfRangeError, match=r'Index 5 .* \[2, 5\) for input dimension 0 \("x"\)'):
        x([5])
    with pytest.raises(TypeError, match="64-bit integers"):
        x([1.5])  # type: ignore[list-item]
    with pytest.raises(OutOfRangeError, match="Index 9 is outside valid range"):
        IndexTransform([Dim(2)], [OutputIndexMap([1, 9], index_range=Dim(5))])([1])
    assert IndexTransform([Dim(2, implicit_upper=True)])([7]) == (7,)


def test_an_array_that_repeats_equals_one_that_does_not_vary() -> None:
    domain = [Dim(3), Dim(2)]
    short = IndexTransform(domain, [OutputIndexMap([[1, 2]])])
    long = IndexTransform(domain, [OutputIndexMap([[1, 2]] * 3)])

    assert short == long
    assert short != IndexTransform(domain, [OutputIndexMap([[1, 2], [1, 2], [1, 3]])])
    assert short != IndexTransform(domain, [OutputIndexMap([[1, 2]], index_range=Dim(9))])
    assert short != IndexTransform(domain, [OutputIndexMap(1)])
    assert short != IndexTransform(domain, [OutputIndexMap([[1, 2]]), OutputIndexMap(1)])


def test_users_see_no_elements_where_the_domain_has_none() -> None:
    x = IndexTransform([Dim(0, 0, implicit_upper=True), Dim(2)], [OutputIndexMap([[3, 4]])])

    assert x.output[0] == OutputIndexMap(np.empty((0, 2), dtype=np.int64))
    assert x.to_json()["output"] == [{"index_array": [[3, 4]]}]
