"""Axes as users say them: types, units, and what the format does not allow."""

import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.axes import Axis, as_axes, by_axis, full_unit


def test_types_and_units_are_filled_in():
    found = as_axes(["t", {"name": "c"}, Axis("y", "space", "um"), {"name": "x", "unit": "nm"}], 4)

    assert [axis.type for axis in found] == ["time", "channel", "space", "space"]
    assert [axis.unit for axis in found] == [None, None, "micrometer", "nanometer"]


def test_other_names_are_axes_if_their_type_is_said():
    found = as_axes([{"name": "v", "type": "space"}, {"name": "u", "type": "space"}], 2)

    assert [axis.to_json() for axis in found] == [
        {"name": "v", "type": "space"}, {"name": "u", "type": "space"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "path", "text"),
    [
        ("x", ("axes",), "2 to 5"),
        ("ctyx", ("axes", 1), "time first"),
        ("yxc", ("axes", 2), "space last"),
        (["y", "x", 3], ("axes", 2), "name of an axis"),
        ("abyx"[:2] + "y", ("axes",), "2 or 3"),
        (3, ("axes",), "one name"),
    ],
)
def test_what_the_format_does_not_allow(given, path, text):
    rank = len(given) if hasattr(given, "__len__") else 1

    with pytest.raises(ts.SpecError, match=text) as raised:
        as_axes(given, rank)

    assert raised.value.path == path


def test_values_by_axis():
    axes = as_axes("cyx", 3)

    assert by_axis(4, axes, "n", (1, 1, 1)) == (1, 4, 4)
    assert by_axis((5, 6, 7), axes, "n", (1, 1, 1)) == (5, 6, 7)
    assert by_axis({"x": 4}, axes, "n", (1, 2, 3)) == (1, 2, 4)
    assert by_axis(None, axes, "n", (1, 2, 3)) == (1, 2, 3)
    with pytest.raises(ts.SpecError, match="2 values for 3 axes"):
        by_axis((1, 2), axes, "n", (1, 1, 1))


def test_unknown_units_stay():
    assert full_unit("parsec") == "parsec"
