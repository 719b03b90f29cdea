"""Durations in JSON: `"60s"`, `"1h2m3.5s"`, `"inf"`, read and printed as the reference does.

A duration is a whole number of quarter nanoseconds, or infinite. Pure values; what waits for a
duration asks for `seconds`. Parsing what was printed gives the same duration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic_core import core_schema

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

__all__ = ["Duration"]

_NS: Final = 4  # ticks
_UNITS: Final = {
    "ns": _NS,
    "us": _NS * 10**3,
    "ms": _NS * 10**6,
    "s": _NS * 10**9,
    "m": _NS * 60 * 10**9,
    "h": _NS * 3600 * 10**9,
}
_TERM = re.compile(r"(?=[0-9]|\.[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time.

    Attributes:
        ticks: quarter nanoseconds; plus or minus infinity for the two infinite durations.

    Example:
        >>> Duration.parse("90s").to_json(), Duration.parse("1.5ms").seconds
        ('1m30s', 0.0015)
    """

    ticks: int | float

    @classmethod
    def parse(cls, json: object) -> Duration:
        """The duration for a JSON string.

        Raises:
            SpecError: not a string, or not numbers with units.
        """
        if isinstance(json, Duration):
            return json
        if isinstance(json, str):
            ticks = _parse(json)
            if ticks is not None:
                return cls(ticks)
        raise SpecError(
            'expected a duration such as "1.5s", with the units "ns", "us", "ms", "s", "m" and '
            f'"h", but found {describe(json)}'
        )

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.ticks / _UNITS["s"]

    def to_json(self, include_defaults: bool = False) -> str:
        """The shortest text, largest unit first."""
        if isinstance(self.ticks, float):
            return "inf" if self.ticks > 0 else "-inf"
        sign, ticks = ("-" if self.ticks < 0 else ""), abs(self.ticks)
        if 0 < ticks < _UNITS["s"]:
            unit = next(
                unit for unit in ("ms", "us", "ns") if ticks >= _UNITS[unit] or unit == "ns"
            )
            return sign + _number(ticks, unit)
        hours, ticks = divmod(ticks, _UNITS["h"])
        minutes, ticks = divmod(ticks, _UNITS["m"])
        text = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
        text += _number(ticks, "s") if ticks else ""
        return sign + text if text else "0"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": "Duration"}


def _parse(text: str) -> int | float | None:
    sign = -1 if text.startswith("-") else 1
    text = text[1:] if text[:1] in ("-", "+") else text
    if text == "inf":
        return sign * float("inf")
    if text == "0":
        return 0
    ticks = at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            return None
        whole, fraction, unit = term[1] or "0", term[2] or "", _UNITS[term[3]]
        ticks += int(whole + fraction) * unit // 10 ** len(fraction)
        at = term.end()
    return sign * ticks if text else None


def _number(ticks: int, unit: str) -> str:
    """`ticks` in `unit`, exactly, without trailing zeros."""
    whole, rest = divmod(ticks, _UNITS[unit])
    # A tick is 0.25 ns, so two digits below the nanosecond are exact.
    places = len(str(_UNITS[unit] // _NS)) - 1 + 2
    fraction = f"{rest * 10**places // _UNITS[unit]:0{places}}".rstrip("0")
    return f"{whole}.{fraction}{unit}" if fraction else f"{whole}{unit}"
