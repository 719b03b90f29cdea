import pytest

from tensorstore_py.drivers.zarr3.members import (
    json_array,
    parse_attributes,
    parse_dimension_names,
    parse_extents,
    parse_shape,
    parse_units,
    with_units,
    without_empty_units,
)
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import Level
from tensorstore_py.plugin.driver import Unit


def test_values() -> None:
    assert parse_shape((4, 0, 2.0)) == (4, 0, 2)
    assert parse_dimension_names(["x", None, ""]) == ("x", None, "")
    assert parse_attributes({"a": [1, None]}) == {"a": (1, None)}
    assert parse_units({"a": 1}) is None
    assert parse_units({"dimension_units": ["4nm", None]}) == (Unit(4, "nm"), None)
    assert parse_extents([3, 2], Level(2, 3)) == (3, 2)
    assert json_array([]) == []


@pytest.mark.parametrize(
    ("parse", "json", "path"),
    [
        (parse_shape, "4", ()),
        (parse_shape, [4, -1], (1,)),
        (parse_shape, [4, "5"], (1,)),
        (parse_shape, [True], (0,)),
        (parse_shape, [1] * 33, ()),
        (lambda json: parse_extents(json, Level(2, 3)), [2, 4], (1,)),
        (json_array, {}, ()),
        (parse_dimension_names, ["x", 5], (1,)),
        (parse_attributes, [1], ()),
        (parse_attributes, {"dimension_units": 5}, ("dimension_units",)),
        (parse_attributes, {"dimension_units": ["m", 5]}, ("dimension_units", 1)),
    ],
)
def test_errors_have_the_path(parse, json: object, path: tuple) -> None:
    with pytest.raises(SpecError) as caught:
        parse(json)

    assert caught.value.path == path


def test_units_are_written_in_one_way() -> None:
    assert parse_attributes({"dimension_units": ["4nm", "", None]}) == {
        "dimension_units": ("4 nm", "1", None)
    }
    assert with_units({"a": 1}, [Unit("m")]) == {"a": 1, "dimension_units": ("m",)}


def test_units_that_say_nothing_are_left_out_of_a_document() -> None:
    assert without_empty_units({"dimension_units": [None], "a": 1}) == {"a": 1}
    assert without_empty_units({"dimension_units": ["m"]}) == {"dimension_units": ["m"]}
    assert without_empty_units({"a": 1}) == {"a": 1}
