import pytest

from tensorstore_py import Dim, IndexDomain, IndexTransform, OutputIndexMap, inf
from tensorstore_py.errors import SpecError


@pytest.mark.parametrize(
    ("domain", "json"),
    [
        (IndexDomain(2), {"rank": 2}),
        (IndexDomain(0), {"rank": 0}),
        (IndexDomain(shape=[3]), {"exclusive_max": [3], "inclusive_min": [0]}),
        (IndexDomain(exclusive_max=[3]), {"exclusive_max": [3]}),
        (IndexDomain(labels=["x", ""]), {"labels": ["x", ""]}),
        (
            IndexDomain([Dim(3, implicit_lower=True), Dim()]),
            {"exclusive_max": [3, ["+inf"]], "inclusive_min": [[0], ["-inf"]]},
        ),
        (IndexDomain([Dim(implicit_lower=False)]), {"inclusive_min": ["-inf"]}),
    ],
)
def test_domains_there_and_back(domain, json) -> None:
    assert domain.to_json() == json
    assert list(domain.to_json()) == sorted(json)
    assert IndexDomain(json=json) == domain


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ({"inclusive_max": [5]}, "{ (-inf*, 6) }"),
        ({"inclusive_max": ["+inf"]}, "{ (-inf*, +inf) }"),
        ({"shape": [[5]]}, "{ [0, 5*) }"),
        ({"shape": ["+inf"]}, "{ [0, +inf) }"),
        ({"rank": 1.0}, "{ (-inf*, +inf*) }"),
        ({"inclusive_min": ["-7"], "exclusive_max": [3.0]}, "{ [-7, 3) }"),
        ({"inclusive_min": (1,)}, "{ [1, +inf*) }"),
        ({"inclusive_min": [-inf]}, "{ (-inf, +inf*) }"),
    ],
)
def test_other_spellings(json, text) -> None:
    assert repr(IndexDomain(json=json)) == text


@pytest.mark.parametrize(
    ("transform", "json"),
    [
        (IndexTransform(2), {"input_rank": 2}),
        (
            IndexTransform(2).T,
            {"input_rank": 2, "output": [{"input_dimension": 1}, {"input_dimension": 0}]},
        ),
        (
            IndexTransform([Dim(3, "x")], [OutputIndexMap(0, 5, -2), OutputIndexMap(4)]),
            {
                "input_exclusive_max": [3],
                "input_inclusive_min": [0],
                "input_labels": ["x"],
                "output": [{"input_dimension": 0, "offset": 5, "stride": -2}, {"offset": 4}],
            },
        ),
        (
            IndexTransform([Dim(2), Dim(3)], [OutputIndexMap([[1, 2, 3]], index_range=Dim(2, 9))]),
            {
                "input_exclusive_max": [2, 3],
                "input_inclusive_min": [0, 0],
                "output": [{"index_array": [[1, 2, 3]], "index_array_bounds": [2, 8]}],
            },
        ),
        (IndexTransform(2, output=[]), {"input_rank": 2, "output": []}),
    ],
)
def test_transforms_there_and_back(transform, json) -> None:
    assert transform.to_json() == json
    assert list(transform.to_json()) == sorted(json)
    assert IndexTransform(json=json) == transform


def test_a_range_that_holds_the_values_is_left_out() -> None:
    x = IndexTransform([Dim(2)], [OutputIndexMap([1, 2], index_range=Dim(None, 9))])

    assert x.to_json()["output"] == [{"index_array": [1, 2]}]
    outside = IndexTransform([Dim(2)], [OutputIndexMap([1, 9], index_range=Dim(None, 9))])
    assert outside.to_json()["output"] == [
        {"index_array": [1, 9], "index_array_bounds": ["-inf", 8]}
    ]


@pytest.mark.parametrize(
    ("json", "path", "message"),
    [
        ([1], (), "expected an object"),
        ({}, (), "at least one of"),
        ({"rnk": 2}, ("rnk",), 'did you mean "rank"'),
        ({"rank": "2"}, ("rank",), "64-bit"),
        ({"rank": True}, ("rank",), "64-bit"),
        ({"rank": 33}, ("rank",), r"range \[0, 32\]"),
        ({"shape": [1], "exclusive_max": [1]}, (), "at most one of"),
        ({"shape": 3}, ("shape",), "expected an array"),
        ({"shape": ["a"]}, ("shape", 0), 'integer or "\\+inf"'),
        ({"inclusive_min": [0, "+inf"]}, ("inclusive_min", 1), 'or "-inf"'),
        ({"inclusive_min": [[1, 2]]}, ("inclusive_min", 0), "array of size 1"),
        ({"inclusive_min": [2**63]}, ("inclusive_min", 0), "64-bit"),
        ({"labels": ["a", 3]}, ("labels", 1), "expected a string"),
        ({"labels": ["a", "a"]}, (), "not unique"),
        ({"rank": 2, "labels": ["a"]}, (), "does not match"),
        ({"shape": [-1]}, (), "sized index interval"),
    ],
)
def test_domains_that_are_wrong(json, path, message) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        IndexDomain(json=json)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("output", "path", "message"),
    [
        (3, (), "expected an array"),
        ([3], (0,), "expected an object"),
        ([{"ofset": 3}], (0, "ofset"), 'did you mean "offset"'),
        ([{"stride": 2}], (0, "stride"), "only valid with"),
        ([{"index_array_bounds": [0, 1]}], (0, "index_array_bounds"), "only valid with"),
        ([{"input_dimension": 0, "index_array": [1]}], (0,), "at most one of"),
        ([{"input_dimension": "x"}], (0, "input_dimension"), "64-bit"),
        ([{"input_dimension": 4}], (), "Input dimension 4"),
        ([{"index_array": [1, "a"]}], (0, "index_array", 1), "64-bit"),
        ([{"index_array": [[1], [1, 2]]}], (0, "index_array"), "equal length"),
        ([{"index_array": [1, 2, 3]}], (), "does not match input_shape"),
        ([{"index_array": [1, 2], "index_array_bounds": [7]}], (0, "index_array_bounds"), "min"),
        ([{"index_array": [1, 2], "index_array_bounds": [7, 5]}], (0, "index_array_bounds"), "int"),
    ],
)
def test_outputs_that_are_wrong(output, path, message) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        IndexTransform(json={"input_shape": [2], "output": output})
    assert caught.value.path == ("output", *path)
