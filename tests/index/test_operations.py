import pytest

from tensorstore_py._index import Dim, IndexDomain, IndexTransform, OutputIndexMap, d, inf
from tensorstore_py.errors import IndexingError, OutOfRangeError


@pytest.fixture
def x():
    return IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")])


def test_translations_keep_the_outputs(x) -> None:
    moved = x[d[:].translate_to[10, None]]

    assert moved.origin == (10, 0)
    assert moved([10, 3]) == x([1, 3])
    assert x[d["y"].translate_by[3]]([1, 4]) == (1, 1)
    assert x[d["y"].translate_backward_by[3]].origin == (1, -3)
    assert x[d[:].translate_by[0]] == x == x[d[:].translate_by[()]]


def test_translation_moves_index_arrays_along() -> None:
    view = IndexTransform(1)[[7, 5]].translate_to[100]

    assert [view([i]) for i in (100, 101)] == [(7,), (5,)]


def test_translations_that_are_impossible(x) -> None:
    with pytest.raises(IndexingError, match="not bounded below"):
        IndexTransform(1).translate_to[0]
    with pytest.raises(OutOfRangeError, match="Origin"):
        x.translate_to[inf]
    with pytest.raises(IndexingError, match="outside valid range"):
        x.translate_by[inf]
    with pytest.raises(IndexingError, match=r"dimensions \(2\) does not match .* indices \(3\)"):
        x.translate_by[1, 2, 3]
    with pytest.raises(IndexingError, match="overflow"):
        IndexTransform(1, output=[OutputIndexMap(0, 0, 2**62)]).translate_by[8]


def test_stride(x) -> None:
    view = x[d[:].stride[2, -1]]

    assert view.domain == IndexDomain([Dim(1, 3, label="x"), Dim(-5, 1, label="y")])
    assert view([2, -5]) == (4, 5)
    with pytest.raises(IndexingError, match="non-zero"):
        x[d[0].stride[0]]


def test_stride_picks_from_index_arrays() -> None:
    view = IndexTransform([Dim(1, 6)], [OutputIndexMap([1, 2, 3, 4, 5])])

    assert view[d[0].stride[2]].output[0] == OutputIndexMap([2, 4])
    assert view[d[0].stride[-3]].output == [OutputIndexMap(3)]
    assert view[2:2][d[0].stride[2]].output == [OutputIndexMap(0)]


def test_stride_swaps_implicit_bounds_with_its_sign() -> None:
    view = IndexTransform([Dim(0, 6, implicit_upper=True)])[d[0].stride[-2]]

    assert view.domain == IndexDomain([Dim(-2, 1, implicit_lower=True)])


def test_label(x) -> None:
    assert x[d["y", "x"].label["a", ""]].input_labels == ("", "a")
    with pytest.raises(IndexingError, match='"x" not unique'):
        x[d["y"].label["x"]]
    with pytest.raises(IndexingError, match=r"dimensions \(1\) does not match .* labels \(2\)"):
        x[d["y"].label["a", "b"]]


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(True, None, (True, False)), (None, True, (False, True)), (True, True, (True, True))],
)
def test_mark_bounds_implicit(x, lower, upper, expected) -> None:
    view = x[d["x"].mark_bounds_implicit[lower:upper]]

    assert (view.implicit_lower_bounds[0], view.implicit_upper_bounds[0]) == expected
    assert view.implicit_lower_bounds[1] is False
    assert view[d["x"].mark_bounds_implicit[False]] == x


def test_a_dimension_of_an_index_array_keeps_its_bounds() -> None:
    view = IndexTransform(2)[[1, 2]]

    with pytest.raises(IndexingError, match="indexes the index array map for output dimension 0"):
        view.mark_bounds_implicit[True]
    assert view[d[1].mark_bounds_implicit[True]] == view
    assert view[d[0].mark_bounds_implicit[False]] == view


def test_a_domain_that_becomes_empty_loses_its_arrays() -> None:
    view = IndexTransform([Dim(0, 0, implicit_upper=True), Dim(2)], [OutputIndexMap([[3, 4]])])

    assert view[d[0].mark_bounds_implicit[False]].output == [OutputIndexMap(0)]


def test_transpose(x) -> None:
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
def test_transpose_to_targets(dims, targets, expected) -> None:
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
def test_targets_that_do_not_fit(expression, message) -> None:
    with pytest.raises(IndexingError, match=message):
        IndexTransform(3)[expression]


def test_diagonal(x) -> None:
    view = x[d["x", "y"].diagonal]

    assert view.domain == IndexDomain([Dim(1, 5)])
    assert view([3]) == (3, 3)
    assert IndexTransform(1)[d[()].diagonal].input_rank == 2


def test_diagonal_of_an_index_array() -> None:
    table = IndexTransform([Dim(1, 3), Dim(2, 5)], [OutputIndexMap([[0, 1, 2], [3, 4, 5]])])
    outer = IndexTransform(3).oindex[[4, 5, 6], :, [7, 8, 9]]

    assert table[d[:].diagonal].domain == IndexDomain([Dim(2, 3)])
    assert table[d[:].diagonal]([2]) == (3,)
    assert [outer[d[0, 2].diagonal]([i, 77]) for i in range(3)] == [
        (4, 77, 7),
        (5, 77, 8),
        (6, 77, 9),
    ]
