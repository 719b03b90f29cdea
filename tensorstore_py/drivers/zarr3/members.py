"""Members of `zarr.json` that are plain values: shapes, names, attributes.

Each function takes one member's JSON and returns the value or raises a `SpecError` whose path
starts inside that member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Level,
    describe,
)
from tensorstore_py.plugin.driver import (
    Unit,
    freeze,
)

__all__ = [
    "json_array",
    "parse_attributes",
    "parse_dimension_names",
    "parse_extents",
    "parse_shape",
    "parse_units",
    "plain_shape",
    "with_units",
    "without_empty_units",
]

_EXTENT = Level(0, 2**63 - 2)
_MAX_RANK = 32
_UNITS = "dimension_units"


def parse_shape(json: object) -> tuple[int, ...]:
    """The `shape` member."""
    return parse_extents(json, _EXTENT)


def parse_dimension_names(json: object) -> tuple[str | None, ...]:
    """The `dimension_names` member."""
    names: list[str | None] = []
    for dimension, name in enumerate(json_array(freeze(json))):
        if name is not None and not isinstance(name, str):
            raise SpecError(f"expected a string or null, but found {describe(name)}", (dimension,))
        names.append(name)
    return tuple(names)


def parse_attributes(json: object) -> dict[str, object]:
    """The `attributes` member; units of dimensions in the form in which they are written.

    Example:
        >>> parse_attributes({"note": "x", "dimension_units": ["4nm", None]})
        {'note': 'x', 'dimension_units': ('4 nm', None)}
    """
    if not isinstance(json, Mapping):
        raise SpecError(f"expected an object, but found {describe(json)}")
    attributes = freeze(json)
    assert isinstance(attributes, dict)
    units = parse_units(attributes)
    if units is not None:
        attributes = with_units(attributes, units)
    return attributes


def with_units(attributes: Mapping[str, object], units: Sequence[Unit | None]) -> dict[str, object]:
    """Attributes that state the units of the dimensions."""
    texts = tuple(None if unit is None else str(unit) for unit in units)
    return {**attributes, _UNITS: texts}


def without_empty_units(attributes: Mapping[str, object]) -> Mapping[str, object]:
    """Attributes as a document has them: units are left out where no dimension has one."""
    units = parse_units(attributes)
    if units is None or any(unit is not None for unit in units):
        return attributes
    return {name: value for name, value in attributes.items() if name != _UNITS}


def parse_units(attributes: Mapping[str, object]) -> tuple[Unit | None, ...] | None:
    """The units of the dimensions that attributes state; None if they state none.

    Example:
        >>> parse_units({"dimension_units": ["4nm", None]})
        (Unit(4, "nm"), None)
    """
    if _UNITS not in attributes:
        return None
    units: list[Unit | None] = []
    try:
        for dimension, unit in enumerate(json_array(attributes[_UNITS])):
            if unit is not None and not isinstance(unit, str):
                raise SpecError(
                    f'expected a string such as "4 nm", but found {describe(unit)}', (dimension,)
                )
            units.append(None if unit is None else Unit(unit))
    except SpecError as error:
        raise error.inside(_UNITS) from None
    return tuple(units)


def parse_extents(json: object, bound: Level) -> tuple[int, ...]:
    """An array of integers within bounds."""
    extents: list[int] = []
    for dimension, extent in enumerate(json_array(json)):
        try:
            extents.append(bound.check(extent))
        except SpecError as error:
            raise error.inside(dimension) from None
    return tuple(extents)


def plain_shape(json: object) -> tuple[int, ...] | None:
    """`parse_shape` for a list as JSON has it; None if it is another thing, or wrong."""
    shape = _EXTENT.plain(json)
    return None if shape is None or len(shape) > _MAX_RANK else shape


def json_array(json: object) -> list[object] | tuple[object, ...]:
    """A JSON array with an entry for each dimension."""
    if not isinstance(json, list | tuple):
        found = "nothing" if json is None else describe(json)
        raise SpecError(f"expected an array, but found {found}")
    if len(json) > _MAX_RANK:
        raise SpecError(f"expected at most {_MAX_RANK} dimensions, but found {len(json)}")
    return json
