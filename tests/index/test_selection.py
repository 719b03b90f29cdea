import pytest

from tensorstore_py._index import d
from tensorstore_py._index.selection import (
    DimRange,
    format_specs,
    new_dims,
    normalize_index,
    parse_specs,
    require_distinct,
    resolve,
    resolve_range,
)
from tensorstore_py.errors import IndexingError


def test_parse_flattens() -> None:
    expected = (0, "x", DimRange(1, None, 1), 3, 4)

    assert parse_specs([0, "x", slice(1, None), d[3, 4]]) == expected
    assert parse_specs([[0, ["x", slice(1, None)]], (3, d[4])]) == expected
    for wrong in (1.5, None, [None], slice("a")):
        with pytest.raises(TypeError):
            parse_specs(wrong)


def test_format() -> None:
    assert format_specs(()) == "()"
    assert format_specs((1, "x", DimRange(None, -1, 2))) == "1,'x',:-1:2"


def test_resolve_against_labels() -> None:
    assert resolve(parse_specs(["z", -2, slice(None, None, -1)]), ["x", "y", "z"]) == [
        2,
        1,
        2,
        1,
        0,
    ]


def test_positions() -> None:
    assert normalize_index(-1, 3) == 2
    with pytest.raises(IndexingError, match=r"Dimension index 3 is outside valid range \[-3, 3\)"):
        normalize_index(3, 3)


@pytest.mark.parametrize("spec", [(5, None, 1), (None, 5, 1), (2, 1, 1), (1, 2, -1), (0, 2, 0)])
def test_ranges_are_not_clamped(spec) -> None:
    with pytest.raises(IndexingError):
        resolve_range(DimRange(*spec), 3)


def test_repetition_is_refused() -> None:
    assert require_distinct([1, 0], 2) == [1, 0]
    with pytest.raises(IndexingError, match=r"\{1\} specified more than once"):
        require_distinct([1, 0, 1], 3)
    with pytest.raises(IndexingError, match=r"Number of dimensions \(2\) exceeds input rank"):
        require_distinct([0, 0], 1)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (0, [0]),
        (-1, [3]),
        ([0, 2], [0, 2]),
        ([0, slice(-2, None)], [0, 4, 5]),
        (slice(2), [0, 1]),
        (slice(1, 3), [1, 2]),
        (slice(1, None, -1), [1, 0]),
        (slice(None, -3, -1), [4, 3]),
    ],
)
def test_new_dimensions_of_a_domain_of_rank_3(selection, expected) -> None:
    assert new_dims(parse_specs(selection), 3) == expected


@pytest.mark.parametrize("selection", [slice(None), slice(1, None), slice(-1, 1), "x", [0, 0]])
def test_new_dimensions_that_are_not_determined(selection) -> None:
    with pytest.raises(IndexingError):
        new_dims(parse_specs(selection), 3)
