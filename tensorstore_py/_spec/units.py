"""Physical units of dimensions: a multiplier and the name of a base unit.

The name is not interpreted: `"nm"` and `"nanometer"` are different units here.
"""

from __future__ import annotations

import re
from math import copysign, inf, nan
from typing import TYPE_CHECKING, ClassVar, TypeAlias, overload

from tensorstore_py._display.public_name import public
from tensorstore_py._spec.json_value import describe, freeze
from tensorstore_py._spec.model import MemberType
from tensorstore_py._spec.pretty import escape
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


__all__ = ["Unit", "UnitLike"]

_NUMBER = re.compile(r"([-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)\s*")
_SPACE = " \t\n\v\f\r"


@public
class Unit(MemberType):
    """A quantity per step along a dimension, such as 4 nanometres.

    Args:
        multiplier: how many base units.
        base_unit: name of the base unit; `""` if dimensionless.
        unit: a string such as `"4nm"`, or a pair `(4, "nm")`.
        json: a number, a string, or `[multiplier, base_unit]`.

    Raises:
        SpecError: `json` is none of these.
        TypeError: any other argument of a wrong type.

    Example:
        >>> Unit("4nm"), Unit(3.5, "s"), Unit("4 nm") * 2, str(Unit(0.5, "um"))
        (Unit(4, "nm"), Unit(3.5, "s"), Unit(8, "nm"), '0.5 um')
        >>> Unit(json=[8, "nm"]).to_json()
        [8.0, 'nm']
    """

    _schema_name: ClassVar[str] = "Unit"
    __slots__ = ("base_unit", "multiplier")
    __hash__ = None  # type: ignore[assignment]
    multiplier: float
    base_unit: str

    @overload
    def __init__(self, multiplier: float = 1, base_unit: str = "") -> None: ...
    @overload
    def __init__(self, unit: str | tuple[float, str], /) -> None: ...
    @overload
    def __init__(self, *, unit: str | tuple[float, str]) -> None: ...
    @overload
    def __init__(self, *, json: object) -> None: ...
    def __init__(self, *args: object, **named: object) -> None:
        if "json" in named:
            if args or len(named) > 1:
                raise TypeError("Unit: `json` is given alone")
            self.multiplier, self.base_unit = _from_json(named["json"])
            return
        self.multiplier, self.base_unit = _from_arguments(args, named)

    @classmethod
    def like(cls, value: UnitLike) -> Unit:
        """The unit for whatever a user may pass as one.

        Raises:
            TypeError: a value of a wrong type.
        """
        return value if isinstance(value, Unit) else cls(value)  # type: ignore[arg-type]

    def to_json(self) -> list[object]:
        """`[multiplier, base_unit]`."""
        return [self.multiplier, self.base_unit]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unit):
            return NotImplemented
        return (self.multiplier, self.base_unit) == (other.multiplier, other.base_unit)

    def __mul__(self, multiplier: float) -> Unit:
        if not isinstance(multiplier, int | float):
            return NotImplemented
        return Unit(self.multiplier * multiplier, self.base_unit)

    def __truediv__(self, divisor: float) -> Unit:
        if not isinstance(divisor, int | float):
            return NotImplemented
        if divisor == 0:
            sign = copysign(1, divisor) * copysign(1, self.multiplier)
            return Unit(sign * inf if self.multiplier else nan, self.base_unit)
        return Unit(self.multiplier / divisor, self.base_unit)

    def __str__(self) -> str:
        if not self.base_unit:
            return f"{self.multiplier:g}"
        return self.base_unit if self.multiplier == 1 else f"{self.multiplier:g} {self.base_unit}"

    def __repr__(self) -> str:
        return f'Unit({self.multiplier:g}, "{escape(self.base_unit)}")'

    def __reduce__(self) -> tuple[Callable[..., Unit], tuple[float, str]]:
        return Unit, (self.multiplier, self.base_unit)

    @classmethod
    def _from_member(cls, json: object) -> Unit:
        return json if isinstance(json, Unit) else Unit(json=json)


UnitLike: TypeAlias = "Unit | str | float | tuple[float, str] | Sequence[float | str]"


def _from_text(text: str) -> tuple[float, str]:
    text = text.strip(_SPACE)
    number = _NUMBER.match(text)
    if number is None:
        return 1.0, text
    return float(number[1]), text[number.end() :]


def _from_json(json: object) -> tuple[float, str]:
    json = freeze(json)
    if isinstance(json, str):
        return _from_text(json)
    if isinstance(json, int | float) and not isinstance(json, bool):
        return float(json), ""
    if not isinstance(json, tuple):
        raise SpecError(
            f'expected a number, a string or [number, "unit"], but found {describe(json)}'
        )
    if len(json) != 2:
        raise SpecError(f'expected [number, "unit"], but found {len(json)} elements')
    multiplier, base_unit = json
    if not isinstance(multiplier, int | float) or isinstance(multiplier, bool):
        raise SpecError(f"expected a number, but found {describe(multiplier)}", (0,))
    if not isinstance(base_unit, str):
        raise SpecError(f"expected a string, but found {describe(base_unit)}", (1,))
    return float(multiplier), base_unit


def _from_arguments(args: tuple[object, ...], named: dict[str, object]) -> tuple[float, str]:
    unknown = named.keys() - {"multiplier", "base_unit", "unit"}
    if unknown or len(args) + len(named) > 2:
        raise TypeError(f"Unit: unexpected arguments {sorted(unknown) or (*args, *named.values())}")
    values = list(args)
    values.extend(named[name] for name in ("unit", "multiplier", "base_unit") if name in named)
    if not values:
        return 1.0, ""
    if len(values) == 1:
        (only,) = values
        if isinstance(only, str):
            return _from_text(only)
        values = [*only] if isinstance(only, tuple | list) else [only, ""]
    if len(values) != 2 or not isinstance(values[1], str) or isinstance(values[0], str):
        raise TypeError(f"Unit: expected a multiplier and a base unit, but found {values!r}")
    return float(values[0]), values[1]  # type: ignore[arg-type]
