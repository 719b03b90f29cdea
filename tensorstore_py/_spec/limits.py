"""Context resources that stores have alike: how many at a time, how fast, how often to retry.

Base classes only: a store derives from them, registers the result under its own name with
`@context_resource("file_io_retries")`, and sets its own defaults. The live value of a limit is an
`_runtime.limiters` object, one for everything that is bound to the resource; `"shared"` is one for
the whole process and kind.

`Duration` is how they state times: `"60s"`, `"1h2m3.5s"`, `"inf"`, as the reference does; a whole
number of quarter nanoseconds, or infinite. Parsing what was printed gives the same duration.
"""

from __future__ import annotations

import math
import os
import random
import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from tensorstore_py._runtime.limiters import RateLimits, Semaphore, ThreadLimiter
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import (
    BeforeValidator,
    JsonForm,
    Level,
    MemberType,
    NonNegativeInt,
    integral,
)
from tensorstore_py._spec.resource import ResourceModel
from tensorstore_py.errors import SpecError

__all__ = ["ConcurrencyModel", "Duration", "RateModel", "RequestConcurrencyModel", "RetriesModel"]

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
class Duration(MemberType):
    """A span of time.

    Attributes:
        ticks: quarter nanoseconds; plus or minus infinity for the two infinite durations.

    Example:
        >>> Duration.parse("90s").to_json(), Duration.parse("1.5ms").seconds
        ('1m30s', 0.0015)
    """

    _schema_name: ClassVar[str] = "Duration"
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

    _from_member = parse


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


# Of the system: a program that seeds `random`, in all its processes alike, changes nothing here,
# and its own sequence is not disturbed.
_CHANCE = random.SystemRandom()

_LIMIT = Level(1, 2**64 - 1)
_LIMIT_FORM = JsonForm({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "shared"}]})


def _check_limit(json: object) -> object:
    if json == "shared":
        return json
    try:
        return _LIMIT.check(integral(json))
    except SpecError:
        raise SpecError(
            f'expected "shared" or a positive integer, but found {describe(json)}'
        ) from None


def _check_rate(json: object) -> float:
    if isinstance(json, bool) or not isinstance(json, int | float) or not 0 < json < math.inf:
        raise SpecError(
            f"expected a positive number of requests a second, but found {describe(json)}"
        )
    return float(json)


#: By kind of resource: what `"shared"` stands for.
_shared: dict[str, ThreadLimiter | Semaphore] = {}
_REQUESTS = 32


class ConcurrencyModel(ResourceModel):
    """`{"limit": "shared"}` or `{"limit": 8}`: how many requests may be under way at a time.

    Attributes:
        limit: a number for this resource alone; `"shared"` is the number for the whole process.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"limit"})

    limit: Annotated[int | Literal["shared"], BeforeValidator(_check_limit), _LIMIT_FORM] = "shared"

    def create(self) -> ThreadLimiter | Semaphore:
        if self.limit != "shared":
            return self.admission(self.limit)
        return self.shared()

    @classmethod
    def shared(cls) -> ThreadLimiter | Semaphore:
        """The one for the whole process."""
        found = _shared.get(cls.resource_id)
        if found is None:
            found = _shared.setdefault(cls.resource_id, cls.admission(cls.shared_limit()))
        return found

    @classmethod
    def admission(cls, limit: int) -> ThreadLimiter | Semaphore:
        """What keeps the limit: places for threads."""
        return ThreadLimiter(limit)

    @classmethod
    def shared_limit(cls) -> int:
        """What `"shared"` stands for; the number of cores, but at least 4, unless overridden."""
        return max(4, os.cpu_count() or 1)


class RequestConcurrencyModel(ConcurrencyModel):
    """`ConcurrencyModel` for stores on the library's loop; `"shared"` is 32.

    Attributes:
        variable: environment variable that says what `"shared"` stands for instead.
    """

    variable: ClassVar[str | None] = None

    @classmethod
    def admission(cls, limit: int) -> Semaphore:
        """What keeps the limit: slots for tasks."""
        return Semaphore(limit)

    @classmethod
    def shared_limit(cls) -> int:
        """What the environment says, else 32."""
        text = os.environ.get(cls.variable, "") if cls.variable else ""
        return int(text) if text.isdecimal() and int(text) else _REQUESTS


class RateModel(ResourceModel):
    """How many requests a second a store is asked at most, growing from a start.

    Attributes:
        read_rate: reads and listings a second; no limit by default.
        write_rate: writes and deletes a second; no limit by default.
        doubling_time: in which time the rates double, as object stores ask for; `"0"`: they stay.
        variable: environment variable that says it where `doubling_time` is left out.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "read_rate", "write_rate", "doubling_time",
    })  # fmt: skip

    variable: ClassVar[str | None] = None

    read_rate: Annotated[float, BeforeValidator(_check_rate)] | None = None
    write_rate: Annotated[float, BeforeValidator(_check_rate)] | None = None
    doubling_time: Duration | None = None

    def create(self) -> RateLimits:
        return RateLimits(self.read_rate, self.write_rate, self._doubling_s())

    def _doubling_s(self) -> float:
        found = self.doubling_time
        text = os.environ.get(self.variable, "") if self.variable else ""
        if found is None and text:
            found = Duration.parse(text)
        # What never doubles stays as well.
        return found.seconds if found is not None and 0 < found.seconds < math.inf else 0.0


class RetriesModel(ResourceModel):
    """How to go on after a failure that may pass.

    Attributes:
        max_retries: how often after the first attempt.
        initial_delay: the wait after the first failure; doubled after each further one.
        max_delay: the longest wait.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "max_retries", "initial_delay", "max_delay",
    })  # fmt: skip

    config_only: ClassVar[bool] = True

    max_retries: NonNegativeInt = 32
    initial_delay: Duration = Duration.parse("1s")
    max_delay: Duration = Duration.parse("32s")

    def delay_s(self, attempt: int) -> float:
        """Seconds to wait after failure number `attempt`, counted from 0, with some jitter."""
        initial = max(0.0, self.initial_delay.seconds)
        # Many clients that failed together should not come back together.
        jitter = _CHANCE.uniform(0, min(1.0, initial))
        return max(0.0, min(initial * 2.0 ** min(attempt, 64) + jitter, self.max_delay.seconds))
