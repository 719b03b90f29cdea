import pickle

import numpy as np
import pytest

from tensorstore_py._index import DimExpression, DimSelection, IndexTransform, d
from tensorstore_py.errors import IndexingError

EXPRESSIONS = [
    "d[2]",
    "d[2,3,'x',1:3,::-1]",
    "d[()]",
    "d['a\\'b']",
    "d[:].translate_to[1,None]",
    "d[:].translate_by[4]",
    "d[:].translate_backward_by[4,]",
    "d[:].translate_by[()]",
    "d[:].stride[-2,3]",
    "d[0].label['a','']",
    "d[0,1].diagonal",
    "d[0].transpose[1,:-1]",
    "d[0].transpose[()]",
    "d[0].mark_bounds_implicit[True]",
    "d[0].mark_bounds_implicit[False:]",
    "d[0].mark_bounds_implicit[True:False]",
    "d[0].mark_bounds_implicit[:]",
    "d[0][1,]",
    "d[0][1:5:2,None,...]",
    "d[0].oindex[array([1, 2]),]",
    "d[0].vindex[array([ True, False,  True]),]",
    "d[0].translate_by[1].label['x'][2:3]",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_repr_is_the_expression(text) -> None:
    expression = eval(text, {"d": d, "array": np.array})

    assert repr(expression) == text
    assert pickle.loads(pickle.dumps(expression)) == expression


def test_different_expressions_are_unequal() -> None:
    expressions = [eval(text, {"d": d, "array": np.array}) for text in EXPRESSIONS]

    assert all((a == b) is (a is b) for a in expressions for b in expressions)
    assert d[0] != 0
    with pytest.raises(TypeError):
        hash(d[0])


def test_selections_nest() -> None:
    assert d[1, 2, 3] == d[1, [2, 3]] == d[1, d[2, 3]] == d[d[1, 2], 3]
    assert isinstance(d[1], DimSelection)
    assert not isinstance(d[1][2], DimSelection)
    assert isinstance(d[1][2], DimExpression)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: d[1.5],
        lambda: d[None],
        lambda: d[0].translate_to["a"],
        lambda: d[0].label[3],
        lambda: d[0].stride[1.5],
        lambda: d[0].mark_bounds_implicit["a"],
        lambda: d[0]["a":3],
        lambda: iter(d),
        lambda: iter(d[0]),
    ],
)
def test_arguments_are_checked_when_written(wrong) -> None:
    with pytest.raises(TypeError):
        wrong()


def test_a_selection_alone_does_nothing() -> None:
    with pytest.raises(IndexingError, match="at least one operation"):
        IndexTransform(1)[d[0]]


def test_a_dimension_is_selected_once() -> None:
    with pytest.raises(IndexingError, match=r"\{0\} specified more than once"):
        IndexTransform(2)[d[0, 0].translate_by[1]]


def test_the_selection_follows_the_dimensions() -> None:
    x = IndexTransform(input_shape=[4, 5, 6], input_labels=["x", "y", "z"])

    assert x[d["z"].transpose[0].label["q"]].input_labels == ("q", "x", "y")
    assert x[d["x", "y"].diagonal.label["q"]].input_labels == ("q", "z")
    assert x[d["y"][[1, 2]].label["q"]].input_labels == ("x", "q", "z")
    assert x[d["y"][2].label[()]].input_labels == ("x", "z")
    assert x[d[1][None].translate_to[5]].origin == (0, 5, 0, 0)


def test_an_expression_can_be_used_again() -> None:
    expression = d["x"].translate_to[0]

    longer = expression.label["q"]

    assert repr(expression) == "d['x'].translate_to[0]"
    for labels in (["x", "y"], ["y", "x"]):
        x = IndexTransform(input_shape=[4, 5], input_labels=labels)
        assert x[longer].domain["q"].size == x.domain["x"].size
