import numpy as np
import pytest

from tensorstore_py.drivers.zarr3.named_type import NAMED, PLAIN, of_numpy, raw_name, type_name
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import dtype


@pytest.mark.parametrize(
    "unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as"]
)
@pytest.mark.parametrize("name", ["numpy.datetime64", "numpy.timedelta64"])
def test_every_unit(name: str, unit: str) -> None:
    found = NAMED[name]({"unit": unit, "scale_factor": 3})

    assert found == np.dtype(f"{name[6:]}[3{unit}]")
    assert of_numpy(found) == {
        "name": name,
        "configuration": {"unit": unit.replace("μ", "u"), "scale_factor": 3},
    }


def test_a_generic_unit_has_no_scale() -> None:
    assert NAMED["numpy.timedelta64"]({"unit": "generic", "scale_factor": 1}) == np.dtype("m8")


@pytest.mark.parametrize(
    ("name", "length", "expected"),
    [
        ("fixed_length_utf32", 12, "<U3"),
        ("null_terminated_bytes", 12, "S12"),
        ("raw_bytes", 1, "V1"),
    ],
)
def test_fixed_lengths(name: str, length: int, expected: str) -> None:
    found = NAMED[name]({"length_bytes": length})

    assert found == np.dtype(expected)
    assert of_numpy(found) == {"name": name, "configuration": {"length_bytes": length}}


@pytest.mark.parametrize(
    ("name", "configuration", "message"),
    [
        ("numpy.datetime64", {"unit": "s"}, "scale_factor: this member is required"),
        ("numpy.datetime64", {"unit": "sec", "scale_factor": 1}, "unit: expected a unit"),
        ("numpy.datetime64", {"unit": 1, "scale_factor": 1}, "unit: expected a unit"),
        ("numpy.datetime64", {"unit": "s", "scale_factor": 0}, "scale_factor: "),
        ("numpy.timedelta64", {"unit": "s", "scale_factor": 2**31}, "scale_factor: "),
        ("numpy.timedelta64", {"unit": "s", "scale_factor": 1.5}, "scale_factor: "),
        ("numpy.timedelta64", {"unit": "s", "scale_factor": 1, "x": 1}, "x: no such member"),
        ("fixed_length_utf32", {"length_bytes": 6}, "length_bytes: expected a multiple of 4"),
        ("fixed_length_utf32", {"length_bytes": 0}, "length_bytes: "),
        ("raw_bytes", {"length": 6}, "length: no such member"),
        ("null_terminated_bytes", {"length_bytes": 2**40}, "length_bytes: "),
        ("null_terminated_bytes", {"length_bytes": "4"}, "length_bytes: "),
    ],
)
def test_wrong_configurations(name: str, configuration: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        NAMED[name](configuration)


def test_raw_names() -> None:
    assert [raw_name(name) for name in ("r8", "r80", "rank", "r", "r08", "R8")] == [
        1, 10, None, None, None, None,
    ]  # fmt: skip
    with pytest.raises(SpecError, match="multiple of 8"):
        raw_name("r12")


def test_every_plain_type_of_a_fixed_size_has_a_name() -> None:
    for name, stored in PLAIN.items():
        if not stored.hasobject:
            assert PLAIN[str(type_name(dtype(stored)))] == stored, name


def test_types_that_the_format_has_not() -> None:
    assert [type_name(dtype(name)) for name in ("json", "object", "char", "byte")] == [None] * 4
