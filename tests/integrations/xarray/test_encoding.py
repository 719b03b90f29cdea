"""What arrays are to store variables, and what of an encoding is refused."""

from collections.abc import Hashable

import numpy as np
import pytest
import xarray as xr

from tensorstore_py.integrations.xarray.encoding import array_arguments, as_attributes, encoded


def arguments(encoding, dtype="f4", version=3, strict=True, write_empty=None):
    variable = xr.Variable(("y", "x"), np.zeros((4, 6), dtype), encoding=encoding)
    return array_arguments(variable, "v", version, strict=strict, write_empty=write_empty)


@pytest.mark.parametrize(
    ("dtype", "version", "expected"),
    [("f4", 3, np.nan), ("i2", 3, 0), ("?", 3, False), ("U3", 3, ""), ("f4", 2, None)],
)
def test_fill_values_that_nobody_says(dtype, version, expected) -> None:
    found = arguments({}, dtype, version).form["fill_value"]

    np.testing.assert_equal(found, expected)


def test_what_stands_for_missing_values_is_the_fill_value_of_version_2_alone() -> None:
    variable = xr.Variable("x", np.zeros(3), {"_FillValue": -1.0})

    old = array_arguments(variable, "v", 2, strict=False, write_empty=None)
    new = array_arguments(variable, "v", 3, strict=False, write_empty=None)

    assert (old.form["fill_value"], old.attributes) == (-1.0, {})
    assert np.isnan(new.form["fill_value"])
    assert new.attributes == {"_FillValue": "AAAAAAAA8L8="}


@pytest.mark.parametrize(
    ("said", "expected"),
    [({"chunks": 2}, (2, 2)), ({"chunks": [1, 3]}, (1, 3)), ({"chunks": (5,)}, None), ({}, None)],
)
def test_chunks_in_all_forms(said, expected) -> None:
    assert arguments(said).form["chunks"] == expected


def test_what_tells_where_a_variable_was_is_left_out() -> None:
    assert "source" not in arguments({"source": "a.nc", "preferred_chunks": {}}).form
    assert "zlib" not in arguments({"zlib": True}, strict=False).form


@pytest.mark.parametrize(
    ("said", "more", "error", "message"),
    [
        ({"zlib": True}, {}, ValueError, "unexpected encoding.*'v'.*zlib"),
        ({"fill_value": 1}, {"version": 2}, ValueError, "_FillValue"),
        ({"chunks": ((2, 2), (6,))}, {}, TypeError, "'v'.*rectilinear"),
        ({"shards": ((2, 2), (6,))}, {}, TypeError, "'v'.*rectilinear"),
        ({"chunks": (2, 2.5)}, {}, TypeError, "int.*'v'"),
        ({"write_empty_chunks": True}, {"write_empty": False}, ValueError, "'v'.*write_empty"),
    ],
)
def test_mistakes_name_the_variable(said, more, error, message) -> None:
    with pytest.raises(error, match=message):
        arguments(said, **more)


def test_attributes_are_plain_json() -> None:
    given: dict[Hashable, object] = {
        "a": np.arange(2),
        "b": np.float32(0.5),
        "c": (1, 2),
        "d": np.array("x"),
        "e": None,
    }

    assert as_attributes(given, "Dataset.attrs") == {
        "a": [0, 1], "b": 0.5, "c": [1, 2], "d": "x", "e": None
    }  # fmt: skip


@pytest.mark.parametrize("given", [{"a": object()}, {1: 2}, {"a": b"x"}])
def test_attributes_that_are_none_name_themselves(given) -> None:
    with pytest.raises(TypeError, match=r"variable 'v'.*(1|'a')"):
        as_attributes(given, "variable 'v'")


def test_objects_of_many_kinds_name_the_variable() -> None:
    with pytest.raises(ValueError, match="'v'"):
        encoded(xr.Variable("x", np.array([1, "a"], object)), "v", 3)
