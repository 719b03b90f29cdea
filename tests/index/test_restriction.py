import pytest

from tensorstore_py._index import Dim, IndexDomain, IndexTransform, OutputIndexMap
from tensorstore_py.errors import IndexingError


@pytest.fixture
def x():
    return IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")])


def test_restriction_matches_dimensions_by_label(x) -> None:
    view = x[IndexDomain([Dim(2, 4, label="y")])]

    assert view.domain == IndexDomain([Dim(1, 5, label="x"), Dim(2, 4, label="y")])
    assert x[IndexDomain([Dim(2, 4), Dim(3)])].shape == (2, 3)
    assert IndexTransform(1)[IndexDomain([Dim(3, label="q")])].input_labels == ("q",)


def test_restriction_crops_index_arrays() -> None:
    view = IndexTransform(2)[[5, 6, 7, 8]]

    cropped = view[IndexDomain([Dim(1, 3), Dim(9)])]

    assert cropped.output[0] == OutputIndexMap([[6], [7]])
    assert cropped([2, 4]) == (7, 4)
    assert view[IndexDomain([Dim(1, 1), Dim(9)])].output[0] == OutputIndexMap(0)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([Dim(0, 3, label="x")], r'target dimension 0 \{"x": \[1, 5\)\} .* dimension 0'),
        ([Dim(2, label="z")], 'Label "z"'),
        ([Dim(2)], r"Rank of index domain \(1\) must match"),
        ([Dim(2, label="x"), Dim(2)], "exceeds number of unlabeled"),
    ],
)
def test_restrictions_that_do_not_fit(x, dims, message) -> None:
    with pytest.raises(IndexError, match=message):
        x[IndexDomain(dims)]


def test_restriction_by_a_partly_labeled_domain() -> None:
    target = IndexTransform([Dim(9, label="x"), Dim(9), Dim(9)])

    with pytest.raises(IndexingError, match=r"Rank \(2\) of index domain containing unlabeled"):
        target[IndexDomain([Dim(3, label="x"), Dim(4)])]
    assert target[IndexDomain([Dim(4), Dim(3, label="x"), Dim(5)])].shape == (3, 4, 5)
