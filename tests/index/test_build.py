import numpy as np
import pytest

from tensorstore_py._index import Dim, IndexDomain, IndexTransform, OutputIndexMap, inf


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"rank": 1}, "{ (-inf*, +inf*) }"),
        ({"inclusive_min": [1]}, "{ [1, +inf*) }"),
        ({"exclusive_max": [1]}, "{ (-inf*, 1) }"),
        ({"inclusive_max": [1]}, "{ (-inf*, 2) }"),
        ({"shape": [2]}, "{ [0, 2) }"),
        ({"shape": [2 * inf + 1]}, "{ [0, +inf) }"),
        ({"shape": np.array([2]), "inclusive_min": (np.int8(3),)}, "{ [3, 5) }"),
        ({"labels": ["x", None]}, '{ "x": (-inf*, +inf*), (-inf*, +inf*) }'),
        ({"implicit_upper_bounds": [False]}, "{ (-inf*, +inf) }"),
        ({"shape": [2], "implicit_lower_bounds": [1]}, "{ [0*, 2) }"),
        ({"rank": 0}, "{  }"),
    ],
)
def test_defaults(named, text) -> None:
    assert repr(IndexDomain(**named)) == text


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "Must specify `rank`"),
        ({"rank": -1}, "Invalid rank: -1"),
        ({"rank": 33}, "Invalid rank: 33"),
        ({"inclusive_min": [1] * 33}, r"`inclusive_min` \(33\) exceeds maximum rank of 32"),
        ({"rank": 2, "shape": [1]}, r"`shape` \(1\) does not match .* `rank` \(2\)"),
        ({"shape": [1], "labels": ["x", "y"]}, r"`labels` \(2\) does not match .* `shape` \(1\)"),
        ({"shape": [1], "inclusive_max": [1]}, "both `inclusive_max` and `shape`"),
        ({"labels": ["x", "x"]}, '"x" not unique'),
        ({"shape": [-1]}, "sized index interval"),
        ({"inclusive_min": [3], "exclusive_max": [1]}, "half-open index interval"),
    ],
)
def test_arguments_that_contradict(named, message) -> None:
    with pytest.raises(ValueError, match=message):
        IndexDomain(**named)


@pytest.mark.parametrize(
    "named",
    [
        {"shape": 5},
        {"shape": ["a"]},
        {"shape": "ab"},
        {"labels": [3]},
        {"rank": 1.0},
        {"colour": 1},
    ],
)
def test_arguments_of_another_kind(named) -> None:
    with pytest.raises(TypeError):
        IndexDomain(**named)


@pytest.mark.parametrize("dims", [[3], "ab", 1.5, [Dim(3), 4]])
def test_a_domain_is_made_of_dims(dims) -> None:
    with pytest.raises(TypeError, match="sequence of Dim"):
        IndexDomain(dims)


def test_dims_are_checked_together() -> None:
    with pytest.raises(ValueError, match="not unique"):
        IndexDomain([Dim("x"), Dim("x")])
    with pytest.raises(ValueError, match="maximum rank"):
        IndexDomain([Dim()] * 33)


@pytest.mark.parametrize(
    ("domain", "output", "message"),
    [
        ([Dim()], OutputIndexMap(input_dimension=1), r"Input dimension 1 .* range \[0, 1\)"),
        ([Dim()], OutputIndexMap(input_dimension=-1), "Input dimension -1"),
        ([Dim(2)], OutputIndexMap([[1, 2]]), "has rank 2 but must have rank 1"),
        ([Dim(2)], OutputIndexMap([1, 2, 3]), r"shape \{3\} which does not match .* \{2\}"),
        ([Dim(2, implicit_lower=True)], OutputIndexMap([1, 2]), "0 with implicit bounds"),
    ],
)
def test_outputs_that_do_not_fit(domain, output, message) -> None:
    with pytest.raises(ValueError, match=message):
        IndexTransform(domain, [output])


def test_output_is_a_sequence_of_maps() -> None:
    with pytest.raises(TypeError, match="OutputIndexMap"):
        IndexTransform(1, output=[3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="OutputIndexMap"):
        IndexTransform(1, output=5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"\(33\) exceeds maximum rank"):
        IndexTransform(1, output=[OutputIndexMap()] * 33)


def test_maps_are_simplified() -> None:
    stride_zero = OutputIndexMap(0, offset=3, stride=0)

    assert IndexTransform([Dim(2)], [stride_zero]).output == [OutputIndexMap(3)]
    assert IndexTransform([Dim(2)], [OutputIndexMap([1, 2], 4, 0)]).output == [OutputIndexMap(4)]
    assert IndexTransform([Dim(0, 0)], [OutputIndexMap([])]).output == [OutputIndexMap(0)]
