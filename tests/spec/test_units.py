import copy
import pickle

import pytest
import tensorstore as reference

from tensorstore_py._spec.units import Unit
from tensorstore_py.errors import SpecError


def outcome(unit_class, args):
    try:
        unit = unit_class(*args)
    except TypeError:
        return TypeError
    return repr(unit), str(unit), unit.to_json()


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("4 nm",),
        ("4nm",),
        ("nm",),
        ("3e5",),
        ("",),
        ("  4.5  n m ",),
        ("-4nm",),
        ("4.nm",),
        (".5nm",),
        ("+4nm",),
        ("4e nm",),
        (4,),
        (4, "nm"),
        ((4, "nm"),),
        ([4, "nm"],),
        (1e20,),
        (1e-7,),
        (123456789.0, "x"),
        ("é\"'\\\n",),
        (float("inf"), "m"),
        (None,),
        ("a", "b"),
        (1, 2),
        (1, "a", 3),
    ],
    ids=repr,
)
def test_like_the_reference(args):
    assert outcome(reference.Unit, args) == outcome(Unit, args)


@pytest.mark.parametrize(
    ("json", "path"),
    [(None, ()), (True, ()), ([4], ()), ([4, 5], (1,)), (["a", "b"], (0,)), ({}, ())],
)
def test_json_errors(json, path):
    with pytest.raises(SpecError) as caught:
        Unit(json=json)

    assert caught.value.path == path
    with pytest.raises(ValueError, match=r"xpected|length"):
        reference.Unit(json=json)


def test_json():
    assert Unit(json="4nm") == Unit(json=[4, "nm"]) == Unit(4, "nm")
    assert Unit(json=4) == Unit(4)
    assert Unit(unit="4nm") == Unit(multiplier=4, base_unit="nm")
    with pytest.raises(TypeError):
        Unit(4, json=4)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        Unit(units="nm")  # type: ignore[call-overload]


def test_arithmetic():
    assert Unit("4nm") * 3 == Unit(12, "nm")
    assert Unit("4nm") / 2 == Unit(2, "nm")
    assert (Unit("4nm") / 0).multiplier == float("inf")
    with pytest.raises(TypeError):
        Unit("4nm") * "x"  # type: ignore[operator]


def test_values():
    unit = Unit("4nm")

    assert unit == copy.copy(unit) == pickle.loads(pickle.dumps(unit))
    assert unit != "4nm"
    assert Unit.like(unit) is unit
    with pytest.raises(TypeError, match="unhashable"):
        hash(unit)
