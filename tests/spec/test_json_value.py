import numpy as np
import pytest

from tensorstore_py._spec.json_value import describe, freeze, same_json, thaw
from tensorstore_py.errors import SpecError


class Printing:
    def to_json(self):
        return [1, np.float32(2)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (True, True),
        (np.uint8(3), 3),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        ([1, (2, [3])], (1, (2, (3,)))),
        (np.arange(3), (0, 1, 2)),
        (range(2), (0, 1)),
        ({1: "a"}, {"1": "a"}),
        (Printing(), (1, 2.0)),
        (2**64 - 1, 2**64 - 1),
        (float("inf"), float("inf")),
    ],
)
def test_freeze(given, expected):
    frozen = freeze(given)

    assert frozen == expected
    assert type(frozen) is type(expected)


def test_freeze_refuses_what_json_cannot_hold():
    with pytest.raises(OverflowError):
        freeze(2**64)
    with pytest.raises(OverflowError):
        freeze([-(2**63) - 1])
    with pytest.raises(TypeError, match="'object'"):
        freeze({"a": object()})
    with pytest.raises(TypeError, match="'bytes'"):
        freeze(b"abc")


def test_freeze_refuses_circles():
    circle: list[object] = []
    circle.append(circle)

    with pytest.raises(SpecError, match="contain itself"):
        freeze(circle)


def test_thaw_sorts_members_and_makes_lists():
    json = thaw({"b": (1, {"d": 1, "c": Printing()}), "a": None})

    assert json == {"a": None, "b": [1, {"c": [1, 2.0], "d": 1}]}
    assert list(json) == ["a", "b"]
    with pytest.raises(TypeError, match="no JSON form"):
        thaw(object())


def test_describe_is_short_json():
    assert describe({"a": [1, None, True, 'x"y']}) == '{"a":[1,null,true,"x\\"y"]}'
    assert len(describe("x" * 500)) == 60


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (float("nan"), float("nan"), True),
        ([1, {"a": (float("nan"), None)}], (1, {"a": [float("nan"), None]}), True),
        ([1, 2], [1, 2, 3], False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": float("nan")}, {"a": None}, False),
        ("a", ["a"], False),
    ],
)
def test_nan_is_equal_to_itself(one, other, same):
    assert same_json(one, other) is same
