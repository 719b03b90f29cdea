import math

import numpy as np
import pytest

from tensorstore_py._api.json_source import as_json_array


@pytest.mark.parametrize(
    ("source", "rank", "expected"),
    [
        ([1, 2], 0, [1, 2]),
        ((1, (2, 3)), 0, [1, [2, 3]]),
        ([1, [2, 3]], 1, [1, [2, 3]]),
        ([[1, 2], [3, 4]], 2, [[1, 2], [3, 4]]),
        (np.arange(3), 0, [0, 1, 2]),
        (np.arange(3), 1, [0, 1, 2]),
        (np.array([1.5, True], object), 1, [1.5, True]),
        ([np.float32(2), np.str_("a"), np.bool_(True)], 1, [2.0, "a", True]),
        ({"a": (1,)}, 2, {"a": [1]}),
        ("abc", 1, "abc"),
        (None, 3, None),
        (np.array({"a": np.int8(1)}, object), 0, {"a": 1}),
    ],
    ids=repr,
)
def test_values(source, rank, expected):
    found = as_json_array(source, rank)
    assert found.dtype == object
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("source", "rank", "shape"),
    [
        ([[1, 2], [3, 4]], 0, ()),
        ([[1, 2], [3, 4]], 1, (2,)),
        ([[1, 2], [3, 4]], 2, (2, 2)),
        ([[1, 2], [3, 4]], None, (2, 2)),
        ([[1, 2], [3]], 2, (2,)),
        ([], 1, (0,)),
        ([], 5, (0,)),
        ([[], []], None, (2, 0)),
        (np.zeros((2, 0)), 2, (2, 0)),
    ],
    ids=str,
)
def test_lists_are_taken_apart_as_deep_as_they_can(source, rank, shape):
    assert as_json_array(source, rank).shape == shape


def test_nothing_is_kept_by_reference():
    element = {"a": [1]}
    found = as_json_array([element, 2], 1)
    element["a"].append(2)
    assert found[0] == {"a": [1]}
    assert math.isnan(as_json_array([math.nan], 1)[0])  # in memory it harms nobody


@pytest.mark.parametrize("element", [object(), {1}, b"a", 1j])
def test_what_is_not_json(element):
    with pytest.raises(TypeError):
        as_json_array([element], 1)


def test_numbers_have_64_bits():
    assert as_json_array(2**64 - 1).item() == 2**64 - 1
    with pytest.raises(OverflowError):
        as_json_array(2**64)
