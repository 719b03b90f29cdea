import pytest

from tensorstore_py._spec.constraints import extents
from tensorstore_py._spec.grid_constraints import (
    GridConstraints,
    json_array,
    json_integer,
    merge_dims,
    merge_rank,
)
from tensorstore_py.errors import MismatchError, SpecError


def test_parse_knows_the_rank():
    json = {"shape": (1, 2)}

    assert GridConstraints.parse(json, 2).rank == 2
    with pytest.raises(SpecError) as caught:
        GridConstraints.parse(json, 3)
    assert caught.value.path == ("shape",)


def test_empty():
    empty = GridConstraints(shape=extents([None, 0], True))

    assert empty.is_empty
    assert empty.bare() == GridConstraints()
    assert not GridConstraints(elements=(0, True)).is_empty


def test_softened():
    grid = GridConstraints.parse(
        {"shape": (1, -1), "aspect_ratio": (2.0, None), "elements": 3}, None
    )

    assert grid.softened().to_json() == {
        "aspect_ratio_soft_constraint": [2.0, None],
        "elements_soft_constraint": 3,
        "shape_soft_constraint": [1, -1],
    }


def test_merge_rank_and_dims():
    assert merge_rank(None, None) is None
    assert merge_rank(2, None) == merge_rank(None, 2) == merge_rank(2, 2) == 2
    with pytest.raises(MismatchError):
        merge_rank(2, 3)
    with pytest.raises(SpecError, match="outside valid range"):
        merge_rank(None, -1)
    one = extents([1], True)
    assert merge_dims(None, one) is merge_dims(one, None) is one
    assert merge_dims(one, extents([], True)) is one


def test_json_values():
    assert json_integer(5.0) == 5
    assert json_array((1, 2)) == (1, 2)
    for wrong in (True, "5", 5.5, None):
        with pytest.raises(SpecError, match="expected an integer"):
            json_integer(wrong)
    with pytest.raises(SpecError, match="expected an array"):
        json_array({})
