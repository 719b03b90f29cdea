"""`Axis`: the axes of an OME-Zarr image, as users say them and as metadata has them.

Units are UDUNITS-2's names, as the format wants them; the usual letters are taken for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tensorstore_py.errors import SpecError

__all__ = ["Axis", "as_axes", "by_axis", "full_unit"]

_TYPES: Final = {"x": "space", "y": "space", "z": "space", "t": "time", "c": "channel"}
_UNITS: Final = {
    "A": "angstrom", "Å": "angstrom", "pm": "picometer", "nm": "nanometer", "um": "micrometer",
    "µm": "micrometer", "μm": "micrometer", "micron": "micrometer", "mm": "millimeter",
    "cm": "centimeter", "m": "meter", "km": "kilometer", "ns": "nanosecond", "us": "microsecond",
    "µs": "microsecond", "μs": "microsecond", "ms": "millisecond", "s": "second", "sec": "second",
    "min": "minute", "h": "hour", "d": "day",
}  # fmt: skip
#: In which order the format wants types of axes.
_ORDER: Final = {"time": 0, "channel": 1, None: 1, "space": 2}


class Axis(NamedTuple):
    """One axis of an image.

    Attributes:
        name: such as `"x"`.
        type: `"space"`, `"time"`, `"channel"`, another word, or None.
        unit: such as `"micrometer"`; None: not known.

    Example:
        >>> Axis("x", "space", "micrometer").to_json()
        {'name': 'x', 'type': 'space', 'unit': 'micrometer'}
    """

    name: str
    type: str | None = None
    unit: str | None = None

    def to_json(self) -> dict[str, object]:
        """As metadata has it."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def full_unit(unit: str | None) -> str | None:
    """The format's name of a unit.

    Example:
        >>> full_unit("um"), full_unit("micrometer"), full_unit(None)
        ('micrometer', 'micrometer', None)
    """
    return None if not unit else _UNITS.get(unit, unit)


def as_axes(given: object, rank: int) -> tuple[Axis, ...]:
    """The axes that a caller says.

    Args:
        given: a text with a letter for each, or a list of names, `Axis` or mappings with `"name"`,
            `"type"` and `"unit"`. Types of `x`, `y`, `z`, `t` and `c` need not be said.
        rank: how many dimensions there are.

    Raises:
        SpecError: the format does not allow them; names the axis.

    Example:
        >>> [axis.type for axis in as_axes("czyx", 4)]
        ['channel', 'space', 'space', 'space']
    """
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise SpecError(f"expected one name for each dimension, not {given!r}", ("axes",))
    axes = tuple(_axis(one, number) for number, one in enumerate(given))
    if len(axes) != rank:
        raise SpecError(f"{len(axes)} axes, but the array has {rank} dimensions", ("axes",))
    check_axes(axes, ("axes",))
    return axes


def _axis(given: object, number: int) -> Axis:
    if isinstance(given, Axis):
        found = given
    elif isinstance(given, str) and given:
        found = Axis(given, _TYPES.get(given.lower()))
    elif isinstance(given, Mapping) and isinstance(given.get("name"), str):
        name = given["name"]
        found = Axis(name, given.get("type", _TYPES.get(name.lower())), given.get("unit"))
    else:
        raise SpecError(f"expected the name of an axis, not {given!r}", ("axes", number))
    return found._replace(unit=full_unit(found.unit))


def check_axes(axes: tuple[Axis, ...], path: tuple[str | int, ...]) -> None:
    """Refuse axes that the format does not allow.

    Raises:
        SpecError: names the axis.
    """
    if not 2 <= len(axes) <= 5:
        raise SpecError(f"an image has 2 to 5 axes, not {len(axes)}", path)
    names = [axis.name for axis in axes]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise SpecError(f'two axes are named "{name}"', (*path, number, "name"))
    types = [axis.type for axis in axes]
    for type_, most in (("time", 1), ("channel", 1), ("space", 3)):
        if types.count(type_) > most:
            raise SpecError(f'at most {most} of type "{type_}" can be', path)
    if types.count("space") < 2:
        raise SpecError(
            f'2 or 3 axes must be of type "space", but these are {names}; say types as in '
            '{"name": "u", "type": "space"}',
            path,
        )
    for number in range(1, len(axes)):
        if _ORDER.get(types[number], 1) < _ORDER.get(types[number - 1], 1):
            raise SpecError(
                "the format wants time first, then the channel, and space last; give a view with "
                "its dimensions in that order, such as store[ts.d[...].transpose[...]]",
                (*path, number),
            )


def by_axis(
    given: object, axes: tuple[Axis, ...], argument: str, default: tuple[object, ...]
) -> tuple[object, ...]:
    """What a caller says for each axis.

    Args:
        given: one value for all axes of space, one for each axis in turn, or by name; None: the
            default.
        axes: the axes.
        argument: its name.
        default: what it is of axes for which nothing is said.

    Raises:
        SpecError: an axis that there is not, or not one value for each.

    Example:
        >>> by_axis({"x": 2}, as_axes("cyx", 3), "scale", (1, 1, 1))
        (1, 1, 2)
    """
    if given is None:
        return default
    if isinstance(given, Mapping):
        names = [axis.name for axis in axes]
        for name in given:
            if name not in names:
                raise SpecError(f"there is no axis {name!r}; there are {names}", (argument,))
        return tuple(given.get(name, value) for name, value in zip(names, default, strict=True))
    if isinstance(given, Iterable) and not isinstance(given, str):
        found = tuple(given)
        if len(found) != len(axes):
            raise SpecError(f"{len(found)} values for {len(axes)} axes", (argument,))
        return found
    return tuple(
        given if axis.type == "space" else value for axis, value in zip(axes, default, strict=True)
    )
