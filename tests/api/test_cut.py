"""How one dimension is cut; what blocks make of several is in test_blocks.py."""

import pytest

import tensorstore_py as ts
from tensorstore_py._api.cut import Cut


def parts(cut):
    return [cut.part(number) for number in range(cut.parts)]


@pytest.mark.parametrize("edges", [range(0, 20, 4), [0, 4, 8, 12, 16]])
def test_parts_of_whole_chunks_within_the_bounds(edges):
    cut = Cut(2, 14, edges, None)
    cut.together = 2

    assert cut.chunks == 4
    assert parts(cut) == [(2, 8, 2), (8, 14, 2)]


def test_nothing_is_cut_into_nothing():
    assert (Cut(3, 3, range(0, 9, 2), None).chunks, Cut(3, 3, None, None).parts) == (0, 0)


def test_a_dimension_without_chunks_is_split_evenly():
    cut = Cut(0, 10**12, None, None)
    cut.split(10**3)

    assert cut.parts == 10**9
    assert cut.part(5) == (5000, 6000, 1)


def test_split_further_where_others_begin():
    cut = Cut(0, 10, None, [4])
    cut.split(3)

    assert [low for low, _, _ in parts(cut)] == [0, 3, 4, 7]


@pytest.mark.parametrize("edges", [range(4, 14, 4), [4, 5, 9], []])
def test_json_and_back(edges):
    cut = Cut(2, 14, edges, None)
    cut.together = 2

    assert parts(Cut.from_json(cut.to_json())) == parts(cut)


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        {"bounds": [0, 4], "edges": {"from": 2, "step": 0}, "together": 1},
        {"bounds": [4, 0], "edges": [], "together": 1},
        {"bounds": [0, 4], "edges": [2, 2], "together": 1},
    ],
)
def test_what_is_no_cut_is_refused(wrong):
    with pytest.raises(ts.SpecError, match="how a dimension is cut"):
        Cut.from_json(wrong)
