import numpy as np
import pytest

from tensorstore_py._index import (
    Dim,
    IndexDomain,
    IndexTransform,
    OutputIndexMap,
    compose,
    identity,
    propagate_bounds,
)
from tensorstore_py.errors import OutOfRangeError


def values(index_map):
    return index_map.index_array.tolist()


def test_composition_goes_through_the_inner_transform_first() -> None:
    outer = IndexTransform([Dim(0, 20)], [OutputIndexMap(0, offset=5, stride=2), OutputIndexMap(9)])
    inner = IndexTransform([Dim(1, 4)], [OutputIndexMap(0, offset=1, stride=3)])

    both = compose(outer, inner)

    assert both == outer[inner]
    assert both.output == [OutputIndexMap(0, offset=7, stride=6), OutputIndexMap(9)]
    assert [both([i]) for i in range(1, 4)] == [outer(inner([i])) for i in range(1, 4)]


def test_implicit_bounds_follow_the_outer_domain() -> None:
    outer = identity(IndexDomain([Dim(2, 9), Dim(0, 6, implicit_upper=True)]))
    inner = IndexTransform(2)

    assert compose(outer, inner).domain == outer.domain


def test_several_outer_dimensions_bound_one_inner_dimension() -> None:
    outer = identity(IndexDomain([Dim(0, 9), Dim(4, 20)]))
    diagonal = IndexTransform(1, output=[OutputIndexMap(0, 0), OutputIndexMap(0, 1)])

    assert compose(outer, diagonal).domain == IndexDomain([Dim(3, 9)])


def test_explicit_bounds_must_lie_inside() -> None:
    outer = identity(IndexDomain([Dim(0, 9, label="x")]))
    inner = IndexTransform([Dim(5, 12)])

    with pytest.raises(
        OutOfRangeError, match=r"dimension 0.* ends at 9, but \[5, 12\) is asked for"
    ):
        compose(outer, inner)


def test_constants_must_lie_inside() -> None:
    outer = identity(IndexDomain([Dim(0, 9, label="x")]))

    with pytest.raises(
        OutOfRangeError, match=r'index 9 is outside \[0, 9\) of dimension 0 \("x"\)'
    ):
        compose(outer, IndexTransform(0, output=[OutputIndexMap(9)]))


def test_an_empty_domain_is_not_checked() -> None:
    outer = identity(IndexDomain([Dim(0, 9)]))
    nowhere = IndexTransform([Dim(3, 3)], [OutputIndexMap(100)])

    assert compose(outer, nowhere).output == [OutputIndexMap(100)]


def test_ranks_must_match() -> None:
    with pytest.raises(IndexError, match="Rank 2 -> 2 transform cannot be composed"):
        compose(IndexTransform(2), IndexTransform(3))


def test_index_arrays_pass_through_and_are_indexed() -> None:
    inner = IndexTransform(2).vindex[[7, 5, 3], [1, 2, 4]]
    outer = IndexTransform([Dim(0, 8), Dim(0, 5)], [OutputIndexMap(1, offset=10, stride=-2)])

    assert compose(outer, inner).output == [
        OutputIndexMap([1, 2, 4], offset=10, stride=-2, index_range=Dim(0, 5))
    ]
    assert values(inner[1:].output[0]) == [5, 3]
    assert values(inner[::-1].output[0]) == [3, 5, 7]
    assert values(inner[[2, 2]].output[1]) == [4, 4]
    assert inner[2].output == [OutputIndexMap(3), OutputIndexMap(4)]


def test_an_array_indexed_along_several_dimensions() -> None:
    table = IndexTransform([Dim(1, 3), Dim(2, 5)], [OutputIndexMap([[0, 1, 2], [3, 4, 5]])])

    assert values(table.T.output[0]) == [[0, 3], [1, 4], [2, 5]]
    assert values(table[2].output[0]) == [3, 4, 5]
    assert values(table.vindex[[1, 2], [4, 2]].output[0]) == [2, 3]
    assert values(table.oindex[[2, 1], [3]].output[0]) == [[4], [1]]
    assert table[IndexTransform([Dim(4)], [OutputIndexMap(1), OutputIndexMap(2)])].output == [
        OutputIndexMap(0)
    ]


def test_values_that_index_an_array_are_checked() -> None:
    view = IndexTransform(1)[[7, 5, 3]]

    with pytest.raises(OutOfRangeError, match=r"index 3 is outside \[0, 3\)"):
        view[[0, 3]]
    with pytest.raises(OutOfRangeError, match="index -1"):
        view[[0, -1]]


def test_an_array_of_one_value_becomes_a_constant() -> None:
    bounded = IndexTransform([Dim(1)], [OutputIndexMap([5], index_range=Dim(5))])

    assert IndexTransform(1)[[5]].output == [OutputIndexMap(5)]
    with pytest.raises(OutOfRangeError, match=r"index 5 is outside \[0, 5\)"):
        bounded[:]


def test_overflow_is_refused() -> None:
    huge = IndexTransform(1, output=[OutputIndexMap(0, 0, 2**40)])

    with pytest.raises(IndexError, match="overflow computing stride"):
        compose(huge, huge)


@pytest.mark.parametrize("label", ["", "x"])
def test_propagation_names_what_lies_outside(label) -> None:
    domain = IndexDomain([Dim(0, 9, label=label)])
    where = r'0 \("x"\)' if label else "0"

    with pytest.raises(OutOfRangeError, match=rf"dimension {where} ends at 9, but \[5, 12\)"):
        propagate_bounds(domain, IndexTransform([Dim(5, 12, label=label)]))
    with pytest.raises(
        OutOfRangeError, match=rf"index 11 is outside \[0, 9\) of dimension {where}"
    ):
        propagate_bounds(domain, IndexTransform(1)[[3, 11]])


def test_propagation_resolves_implicit_bounds() -> None:
    view = IndexTransform(2)[2:, ::-1].translate_by[1, 0]

    resolved = propagate_bounds(IndexDomain(shape=[5, 7]), view)

    assert resolved.domain == IndexDomain([Dim(3, 6), Dim(-6, 1)])


def test_propagation_limits_index_arrays() -> None:
    view = IndexTransform(1).vindex[np.array([3, 8])]

    assert propagate_bounds(IndexDomain(shape=[9]), view).output[0].index_range == Dim(9)
    assert propagate_bounds(IndexDomain(shape=[9]), IndexTransform(1)[[]]).output == [
        OutputIndexMap(0)
    ]
