"""Dimension expressions: how they are written, and what each operation does."""

import pickle

import numpy as np
import pytest

from tensorstore_py import (
    Dim,
    DimExpression,
    DimSelection,
    IndexDomain,
    IndexingError,
    IndexTransform,
    OutOfRangeError,
    OutputIndexMap,
    d,
    inf,
)

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


class TestExpression:
    @pytest.mark.parametrize("text", EXPRESSIONS)
    def test_the_repr_is_the_expression(self, text) -> None:
        expression = eval(text, {"d": d, "array": np.array})

        assert repr(expression) == text
        assert pickle.loads(pickle.dumps(expression)) == expression

    def test_different_expressions_are_unequal(self) -> None:
        expressions = [eval(text, {"d": d, "array": np.array}) for text in EXPRESSIONS]

        assert all((a == b) is (a is b) for a in expressions for b in expressions)
        assert d[0] != 0
        with pytest.raises(TypeError):
            hash(d[0])

    def test_selections_nest(self) -> None:
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
    def test_arguments_are_checked_when_written(self, wrong) -> None:
        with pytest.raises(TypeError):
            wrong()

    def test_a_selection_alone_does_nothing(self) -> None:
        with pytest.raises(IndexingError, match="at least one operation"):
            IndexTransform(1)[d[0]]

    def test_a_dimension_is_selected_once(self) -> None:
        with pytest.raises(IndexingError, match=r"\{0\} specified more than once"):
            IndexTransform(2)[d[0, 0].translate_by[1]]

    def test_the_selection_follows_the_dimensions(self) -> None:
        x = IndexTransform(input_shape=[4, 5, 6], input_labels=["x", "y", "z"])

        assert x[d["z"].transpose[0].label["q"]].input_labels == ("q", "x", "y")
        assert x[d["x", "y"].diagonal.label["q"]].input_labels == ("q", "z")
        assert x[d["y"][[1, 2]].label["q"]].input_labels == ("x", "q", "z")
        assert x[d["y"][2].label[()]].input_labels == ("x", "z")
        assert x[d[1][None].translate_to[5]].origin == (0, 5, 0, 0)

    def test_an_expression_can_be_used_again(self) -> None:
        expression = d["x"].translate_to[0]

        longer = expression.label["q"]

        assert repr(expression) == "d['x'].translate_to[0]"
        for labels in (["x", "y"], ["y", "x"]):
            x = IndexTransform(input_shape=[4, 5], input_labels=labels)
            assert x[longer].domain["q"].size == x.domain["x"].size


@pytest.fixture
def x():
    return IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")])


class TestOperations:
    def test_translations_keep_the_outputs(self, x) -> None:
        moved = x[d[:].translate_to[10, None]]

        assert moved.origin == (10, 0)
        assert moved([10, 3]) == x([1, 3])
        assert x[d["y"].translate_by[3]]([1, 4]) == (1, 1)
        assert x[d["y"].translate_backward_by[3]].origin == (1, -3)
        assert x[d[:].translate_by[0]] == x == x[d[:].translate_by[()]]

    def test_translation_moves_index_arrays_along(self) -> None:
        view = IndexTransform(1)[[7, 5]].translate_to[100]

        assert [view([i]) for i in (100, 101)] == [(7,), (5,)]

    def test_translations_that_are_impossible(self, x) -> None:
        with pytest.raises(IndexingError, match="not bounded below"):
            IndexTransform(1).translate_to[0]
        with pytest.raises(OutOfRangeError, match="Origin"):
            x.translate_to[inf]
        with pytest.raises(IndexingError, match="outside valid range"):
            x.translate_by[inf]
        with pytest.raises(
            IndexingError, match=r"dimensions \(2\) does not match .* indices \(3\)"
        ):
            x.translate_by[1, 2, 3]
        with pytest.raises(IndexingError, match="overflow"):
            IndexTransform(1, output=[OutputIndexMap(0, 0, 2**62)]).translate_by[8]

    def test_stride(self, x) -> None:
        view = x[d[:].stride[2, -1]]

        assert view.domain == IndexDomain([Dim(1, 3, label="x"), Dim(-5, 1, label="y")])
        assert view([2, -5]) == (4, 5)
        with pytest.raises(IndexingError, match="non-zero"):
            x[d[0].stride[0]]

    def test_stride_picks_from_index_arrays(self) -> None:
        view = IndexTransform([Dim(1, 6)], [OutputIndexMap([1, 2, 3, 4, 5])])

        assert view[d[0].stride[2]].output[0] == OutputIndexMap([2, 4])
        assert view[d[0].stride[-3]].output == [OutputIndexMap(3)]
        assert view[2:2][d[0].stride[2]].output == [OutputIndexMap(0)]

    def test_stride_swaps_implicit_bounds_with_its_sign(self) -> None:
        view = IndexTransform([Dim(0, 6, implicit_upper=True)])[d[0].stride[-2]]

        assert view.domain == IndexDomain([Dim(-2, 1, implicit_lower=True)])

    def test_label(self, x) -> None:
        assert x[d["y", "x"].label["a", ""]].input_labels == ("", "a")
        with pytest.raises(IndexingError, match='"x" not unique'):
            x[d["y"].label["x"]]
        with pytest.raises(IndexingError, match=r"dimensions \(1\) does not match .* labels \(2\)"):
            x[d["y"].label["a", "b"]]

    @pytest.mark.parametrize(
        ("lower", "upper", "expected"),
        [(True, None, (True, False)), (None, True, (False, True)), (True, True, (True, True))],
    )
    def test_mark_bounds_implicit(self, x, lower, upper, expected) -> None:
        view = x[d["x"].mark_bounds_implicit[lower:upper]]

        assert (view.implicit_lower_bounds[0], view.implicit_upper_bounds[0]) == expected
        assert view.implicit_lower_bounds[1] is False
        assert view[d["x"].mark_bounds_implicit[False]] == x

    def test_a_dimension_of_an_index_array_keeps_its_bounds(self) -> None:
        view = IndexTransform(2)[[1, 2]]

        with pytest.raises(
            IndexingError, match="indexes the index array map for output dimension 0"
        ):
            view.mark_bounds_implicit[True]
        assert view[d[1].mark_bounds_implicit[True]] == view
        assert view[d[0].mark_bounds_implicit[False]] == view

    def test_a_domain_that_becomes_empty_loses_its_arrays(self) -> None:
        view = IndexTransform([Dim(0, 0, implicit_upper=True), Dim(2)], [OutputIndexMap([[3, 4]])])

        assert view[d[0].mark_bounds_implicit[False]].output == [OutputIndexMap(0)]

    def test_transpose(self, x) -> None:
        view = x[d["y"].transpose[0]]

        assert view == x.T == x.transpose([1, 0]) == x[d["x"].transpose[-1]]
        assert view.input_labels == ("y", "x")
        assert view([5, 1]) == (1, 5)

    @pytest.mark.parametrize(
        ("dims", "targets", "expected"),
        [
            ((2, 0), 0, ("c", "a", "b")),
            ((2, 0), -1, ("b", "c", "a")),
            ((2, 0), (0, 2), ("c", "b", "a")),
            ((2, 0), slice(1, None), ("b", "c", "a")),
            ((0,), (1,), ("b", "a", "c")),
            ((), (), ("a", "b", "c")),
        ],
    )
    def test_transpose_to_targets(self, dims, targets, expected) -> None:
        assert IndexDomain(labels=["a", "b", "c"])[d[dims].transpose[targets]].labels == expected

    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            (d[0].transpose["x"], "cannot be specified by label"),
            (d[0, 1].transpose[1, 1], "occurs more than once"),
            (d[0, 1].transpose[1, 2, 0], "must equal number of target dimensions"),
            (d[0, 1].transpose[2], "outside valid range"),
        ],
    )
    def test_targets_that_do_not_fit(self, expression, message) -> None:
        with pytest.raises(IndexingError, match=message):
            IndexTransform(3)[expression]

    def test_diagonal(self, x) -> None:
        view = x[d["x", "y"].diagonal]

        assert view.domain == IndexDomain([Dim(1, 5)])
        assert view([3]) == (3, 3)
        assert IndexTransform(1)[d[()].diagonal].input_rank == 2

    def test_diagonal_of_an_index_array(self) -> None:
        table = IndexTransform([Dim(1, 3), Dim(2, 5)], [OutputIndexMap([[0, 1, 2], [3, 4, 5]])])
        outer = IndexTransform(3).oindex[[4, 5, 6], :, [7, 8, 9]]

        assert table[d[:].diagonal].domain == IndexDomain([Dim(2, 3)])
        assert table[d[:].diagonal]([2]) == (3,)
        assert [outer[d[0, 2].diagonal]([i, 77]) for i in range(3)] == [
            (4, 77, 7),
            (5, 77, 8),
            (6, 77, 9),
        ]
