"""Dimensions by label and by number."""

import pytest

import tensorstore_py as ts
from tensorstore_py._compute.dimension_names import listed, named, numbered


@pytest.mark.parametrize(
    ("given", "found"), [(None, ()), ("z", ("z",)), (-1, (-1,)), (["z", 0], ("z", 0))]
)
def test_one_or_several(given, found):
    assert listed(given, "drop") == found


@pytest.mark.parametrize("wrong", [True, 1.5, {"z": 1}, [None], b"z"])
def test_what_names_no_dimension(wrong):
    with pytest.raises(TypeError, match="drop is a label or number"):
        listed(wrong, "drop")


def test_numbers_of_json_are_text():
    assert numbered(["1", "-1", 0], ["", "", ""], "drop") == [1, 2, 0]
    assert numbered(["1"], ["1", "0"], "drop") == [0]  # a label goes first


def test_values_by_number():
    assert named({"y": 3, -1: 4}, ["z", "y", "x"], "halo") == {1: 3, 2: 4}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["zz"], r'halo: no dimension is named "zz".*"z", "y"'),
        ([2], "halo: there are 2 dimensions, and none of number 2"),
        (["z", 0], "halo: dimension 0 is given twice"),
    ],
)
def test_what_is_not_there(given, message):
    with pytest.raises(ts.SpecError, match=message):
        numbered(given, ["z", "y"], "halo")


def test_without_labels_numbers_are_asked_for():
    with pytest.raises(ts.SpecError, match="none has a label: give numbers"):
        numbered(["z"], ["", ""], "halo")
