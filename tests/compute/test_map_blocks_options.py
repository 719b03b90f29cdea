"""Halos and boundaries as they are given."""

import json
import math

import pytest

import tensorstore_py as ts
from tensorstore_py._compute.alignment import Alignment, Frame
from tensorstore_py._compute.halo import Halo
from tensorstore_py._compute.map_blocks_options import MapOptions

SPACE = Frame(("z", "y", "x"), (2, 3, 4))


def halos(halo=0, boundary="none", drop=None, dtype="int16"):
    options = MapOptions.of(drop, None, halo, boundary)
    alignment = Alignment.of([SPACE], None, options.drop, options.new)
    return options.halos(alignment, [ts.dtype(dtype)])


@pytest.mark.parametrize(
    ("given", "widths"),
    [
        (None, [(0, 0)] * 3),
        (2, [(2, 2)] * 3),
        ((1, (0, 3), 0), [(1, 1), (0, 3), (0, 0)]),
        ({"x": 2, 0: (1, 0)}, [(1, 0), (0, 0), (2, 2)]),
        ({"2": 1}, [(0, 0), (0, 0), (1, 1)]),
    ],
)
def test_widths(given, widths):
    assert [each[:2] for each in halos(given)] == widths


def test_one_number_is_meant_for_what_is_cut():
    assert halos(2, "nearest", drop="z") == (Halo(), Halo(2, 2, "nearest"), Halo(2, 2, "nearest"))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"y": "reflect", -1: 7}, ["none", "reflect", 7]),
        ("periodic", ["periodic"] * 3),
        (None, ["none"] * 3),
    ],
)
def test_boundaries(given, found):
    assert [each.boundary for each in halos(1, given)] == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"halo": -1}, "halo: expected a number of elements, but found -1"),
        ({"halo": 1.5}, "halo: expected a number"),
        ({"halo": (1, 2)}, "halo: there are 3 dimensions, but 2 numbers"),
        ({"halo": {"z": 1}, "drop": "z"}, "halo: the target has no dimension z"),
        ({"boundary": "reflected"}, r'boundary: .*did you mean "reflect"'),
        ({"boundary": []}, "boundary: expected one of none, reflect"),
        ({"boundary": 1.5}, "boundary: the constant 1.5 is no value of int16"),
        ({"boundary": 2, "dtype": "bool"}, "the constant 2 is no value of bool"),
        ({"boundary": math.nan}, "the constant nan is no value of int16"),
        ({"boundary": 70_000}, "the constant 70000 is no value of int16"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ts.SpecError, match=message):
        halos(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((None, 3, 0, 0), "new is a dict"), ((None, {1.5: 3}, 0, 0), "new is a dict.*1.5")],
)
def test_what_is_of_a_wrong_type(arguments, message):
    with pytest.raises(TypeError, match=message):
        MapOptions.of(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        (None, None, 0, "none"),
        (["z", 1], {"c": 3, 0: 2}, {"x": (1, 2)}, {0: "reflect", "x": 7}),
        ("z", None, (0, 1, (2, 3)), math.nan),
    ],
)
def test_json_and_back(arguments):
    options = MapOptions.of(*arguments)
    said = json.loads(json.dumps(options.to_json(), allow_nan=False))
    again = MapOptions.of(*(said.get(name) for name in MapOptions._fields))
    assert repr(again) == repr(options)
