import pickle
from typing import Any

import pytest

from tensorstore_py._spec.chunk_grid import Grid
from tensorstore_py.errors import MismatchError, SpecError

#: A volume whose depth is stated, whose width is wished for, and whose height is left open.
VOLUME: Any = {
    "shape": [16, None, None, None],
    "shape_soft_constraint": [None, 48, None, None],
    "aspect_ratio": [None, None, 4.0, None],
    "aspect_ratio_soft_constraint": [None, None, None, 0.5],
    "elements": 65536,
}


def test_json():
    grid = Grid(VOLUME)

    for name in VOLUME:
        said, stated = getattr(grid, name), VOLUME[name]
        assert said == (tuple(stated) if isinstance(stated, list) else stated)
    assert grid.elements_soft_constraint is None
    assert grid.to_json() == VOLUME


def test_members_are_arguments_and_it_travels():
    grid = Grid(VOLUME)

    assert Grid(**VOLUME) == grid
    assert pickle.loads(pickle.dumps(grid)) == grid


def test_parts_of_an_unknown_or_unconstrained_grid():
    assert (Grid().rank, Grid().ndim, Grid().shape) == (None, None, None)
    assert Grid(rank=2).shape == (None, None)
    assert Grid(shape=[]).rank is None
    assert Grid(rank=0) != Grid()
    assert Grid() != 5


def test_update_is_all_or_nothing():
    grid = Grid(shape=[2, 3, None])

    with pytest.raises(MismatchError):
        grid.update(shape=[None, None, 7], elements=5, grid=Grid(shape=[4, None, None]))

    assert grid == Grid(shape=[2, 3, None])

    grid.update(shape=[None, None, 7], elements_soft_constraint=9)

    assert grid.to_json() == {"elements_soft_constraint": 9, "shape": [2, 3, 7]}


def test_another_grid_as_a_wish():
    grid = Grid(shape=[2, None], grid_soft_constraint=Grid(shape=[9, 9], elements=4))

    assert grid.to_json() == {
        "elements_soft_constraint": 4,
        "shape": [2, None],
        "shape_soft_constraint": [None, 9],
    }


@pytest.mark.parametrize(
    ("json", "path"),
    [
        (5, ()),
        ({"shap": [1]}, ("shap",)),
        ({"shape": 1}, ("shape",)),
        ({"shape": None}, ("shape",)),
        ({"shape": [1, "a"]}, ("shape", 1)),
        ({"shape": [1.5]}, ("shape", 0)),
        ({"shape": [1, -2]}, ("shape", 1)),
        ({"shape": [1] * 33}, ("shape",)),
        ({"aspect_ratio": [-1]}, ("aspect_ratio", 0)),
        ({"aspect_ratio": ["1"]}, ("aspect_ratio", 0)),
        ({"elements": -5}, ("elements",)),
        ({"elements": None}, ("elements",)),
        ({"shape": [1], "aspect_ratio": [1, 2]}, ("aspect_ratio",)),
    ],
)
def test_json_errors(json, path):
    with pytest.raises(SpecError) as caught:
        Grid(json)

    assert caught.value.path == path


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rank": 33}, SpecError),
        ({"rank": 2, "shape": [1]}, MismatchError),
        ({"shape": [-2]}, SpecError),
        ({"elements": -1}, SpecError),
        ({"shape": 5}, TypeError),
        ({"shape": "ab"}, TypeError),
        ({"shape": [1.5]}, TypeError),
        ({"elements": 1.5}, TypeError),
        ({"grid": {"shape": [1]}}, TypeError),
        ({"shpe": [1]}, TypeError),
    ],
)
def test_argument_errors(arguments, error):
    with pytest.raises(error):
        Grid(**arguments)
