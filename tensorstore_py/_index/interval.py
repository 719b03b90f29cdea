"""Arithmetic on one index interval.

An interval is two plain ints, half open: `lower <= i < upper`. `-INF` and `INF + 1` stand for
unbounded. An *implicit* bound (a bool next to it) is a default that later operations may replace.
Nothing here knows about dimensions, labels or arrays.

Invariant: whatever leaves this module satisfies `-INF <= lower < INF` and
`lower <= upper <= INF + 1`; results that would not raise.
"""

from __future__ import annotations

from operator import index as as_index

from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = [
    "INF",
    "INF_SIZE",
    "affine_domain",
    "check_half_open",
    "check_int64",
    "check_sized",
    "contains",
    "format_interval",
    "from_the_end",
    "hull",
    "int64_or_none",
    "intersect",
    "intersect_preferring_explicit",
    "shift",
    "slice_interval",
]

INF = 2**62 - 1
"""One past the largest finite index; as a bound it means unbounded."""

INF_SIZE = 2 * INF + 1
"""The size of an interval without bounds."""

_INT64_MAX = 2**63 - 1

Interval = tuple[int, int]
BoundState = tuple[int, int, bool, bool]
"""`(lower, upper, implicit_lower, implicit_upper)`."""


def format_interval(
    lower: int, upper: int, implicit_lower: bool = False, implicit_upper: bool = False
) -> str:
    """The mathematical notation; an asterisk marks an implicit bound.

    Example:
        >>> format_interval(0, 10, implicit_upper=True)
        '[0, 10*)'
        >>> format_interval(-INF, INF + 1)
        '(-inf, +inf)'
    """
    left = "(-inf" if lower == -INF else f"[{lower}"
    right = "+inf" if upper == INF + 1 else f"{upper}"
    return f"{left}{'*' if implicit_lower else ''}, {right}{'*' if implicit_upper else ''})"


def from_the_end(index: int, lower: int, upper: int) -> str:
    """A hint for a negative index that lies outside an interval, or nothing.

    Example:
        >>> from_the_end(-1, 0, 64)
        '; negative indices do not count from the end: say 63, that is exclusive_max - 1'
    """
    if lower < 0 or index >= 0 or upper == INF + 1 or not lower <= upper + index:
        return ""
    return (
        f"; negative indices do not count from the end: say {upper + index}, "
        f"that is exclusive_max - {-index}"
    )


def int64_or_none(value: object) -> int | None:
    """`value` as an int if it is an integer of 64 bits (numpy's included), else None."""
    try:
        number = as_index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None


def check_half_open(lower: int, upper: int) -> Interval:
    """Return `(lower, upper)`, or raise ValueError where that is no interval."""
    if -INF <= lower < INF and -INF + 1 < upper <= INF + 1 and lower <= upper:
        return lower, upper
    raise ValueError(f"({lower}, {upper}) do not specify a valid half-open index interval")


def check_closed(lower: int, inclusive_max: int) -> Interval:
    """Return the half-open form of `[lower, inclusive_max]`, or raise ValueError."""
    if -INF <= lower < INF and -INF < inclusive_max <= INF and inclusive_max >= lower - 1:
        return lower, inclusive_max + 1
    raise ValueError(f"({lower}, {inclusive_max}) do not specify a valid closed index interval")


def check_sized(lower: int, size: int) -> Interval:
    """Return `(lower, lower + size)`, or raise ValueError; `INF_SIZE` means no upper bound."""
    if size == INF_SIZE:
        return check_half_open(lower, INF + 1)
    if -INF <= lower < INF and 0 <= size <= INF + 1 - lower:
        return lower, lower + size
    raise ValueError(f"({lower}, {size}) do not specify a valid sized index interval")


def check_int64(value: int, what: str, output_dim: int) -> int:
    """Return `value` if the file formats and drivers can hold it (64 bits)."""
    if -_INT64_MAX - 1 <= value <= _INT64_MAX:
        return value
    raise IndexingError(f"Integer overflow computing {what} for output dimension {output_dim}")


def contains(lower: int, upper: int, index: int) -> bool:
    """Whether the finite `index` lies in the interval."""
    return lower <= index < upper and -INF < index < INF


def intersect(a: BoundState, b: BoundState) -> BoundState:
    """The overlap; a bound is implicit if the interval that supplies it says so."""
    lower = max(a[0], b[0])
    upper = max(lower, min(a[1], b[1]))
    return (lower, upper, *_merged_states(a, b, lower, upper))


def hull(a: BoundState, b: BoundState) -> BoundState:
    """The smallest interval that covers both; an empty one covers nothing."""
    if a[0] == a[1]:
        lower, upper = b[:2]
    elif b[0] == b[1]:
        lower, upper = a[:2]
    else:
        lower, upper = min(a[0], b[0]), max(a[1], b[1])
    return (lower, upper, *_merged_states(a, b, lower, upper))


def _merged_states(a: BoundState, b: BoundState, lower: int, upper: int) -> tuple[bool, bool]:
    if a[0] == b[0]:
        implicit_lower = a[2] and b[2]
    else:
        implicit_lower = a[2] if a[0] == lower else b[2]
    if a[1] == b[1]:
        implicit_upper = a[3] and b[3]
    else:
        implicit_upper = a[3] if a[1] == upper else b[3]
    return implicit_lower, implicit_upper


def intersect_preferring_explicit(a: BoundState, b: BoundState) -> BoundState:
    """The overlap where an explicit bound beats an implicit one, however tight that is."""
    if a[2] == b[2]:
        lower = max(a[0], b[0])
    else:
        lower = b[0] if a[2] else a[0]
    if a[3] == b[3]:
        upper = min(a[1], b[1])
    else:
        upper = b[1] if a[3] else a[1]
    return lower, max(lower, upper), a[2] and b[2], a[3] and b[3]


def shift(lower: int, upper: int, offset: int) -> Interval:
    """Translate the finite bounds by `offset`; infinite ones stay."""
    if lower != -INF:
        moved = lower + offset
        if not -INF < moved < INF:
            _raise_shift(lower, offset)
        lower = moved
    if upper != INF + 1:
        moved = upper + offset
        if not -INF < moved - 1 < INF:
            _raise_shift(upper - 1, offset)
        upper = moved
    return lower, upper


def _raise_shift(bound: int, offset: int) -> None:
    raise IndexingError(
        f"{bound} + {offset} is outside valid range {format_interval(-INF + 1, INF)}"
    )


def affine_domain(lower: int, upper: int, offset: int, stride: int) -> Interval:
    """All `i` for which `offset + stride * i` lies in the interval; `stride` is not 0."""
    if stride == 1 and offset == 0:
        return lower, upper
    if lower == -INF and upper == INF + 1:
        return lower, upper
    first, last = lower, upper - 1
    is_empty = last < first
    if stride < 0:
        first, last, offset, stride = -last, -first, -offset, -stride
        if is_empty:
            first, last = first - 1, last - 1
    if first == -INF:
        new_lower = -INF
    else:
        new_lower = -((offset - first) // stride)
        _check_finite(new_lower, lower, upper)
    if is_empty:
        return new_lower, new_lower
    if last == INF:
        return new_lower, INF + 1
    new_last = (last - offset) // stride
    _check_finite(new_last, lower, upper)
    return new_lower, new_last + 1


def _check_finite(bound: int, lower: int, upper: int) -> None:
    if not -INF < bound < INF:
        raise IndexingError(
            f"Integer overflow propagating {format_interval(lower, upper)} through a stride"
        )


def slice_interval(
    bounds: BoundState, start: int | None, stop: int | None, step: int
) -> tuple[int, int, bool, bool, int]:
    """Select `start:stop:step` of an interval, keeping coordinates where the step is 1.

    The new interval starts at `start / step`, rounded toward zero, so that `new * step + offset`
    gives the old index. A bound that is given becomes explicit; explicit bounds of the old
    interval must contain the selection.

    Returns:
        `(lower, upper, implicit_lower, implicit_upper, offset)` of the new interval.

    Raises:
        OutOfRangeError: the selection leaves the interval.
        IndexingError: the slice is malformed.
    """
    old_lower, old_upper, implicit_lower, implicit_upper = bounds
    limit_lower = -INF if implicit_lower else old_lower
    limit_last = INF if implicit_upper else old_upper - 1
    if step == 0 or step < -_INT64_MAX:
        raise IndexingError(f"Invalid stride {step}")
    forward = step > 0
    if start is None:
        start = old_lower if forward else old_upper - 1
    else:
        if not -INF <= start <= INF:
            raise IndexingError(f"Invalid start index {start}")
        implicit_lower = False
    if stop is None:
        last = old_upper - 1 if forward else old_lower
    else:
        implicit_upper = False
        last = (stop - 1 if forward else stop + 1) if -INF < stop < INF else stop
    if step not in (1, -1) and not -INF < start < INF:
        raise IndexingError(f"Slicing with non-unit stride of {step} requires a finite start index")
    low, high = (start, last) if forward else (last, start)
    if not forward:
        implicit_lower, implicit_upper = implicit_upper, implicit_lower
    if not (-INF <= low < INF and -INF < high <= INF and high >= low - 1):
        raise IndexingError(_ends_first(start, stop, step))
    if high >= low and not (limit_lower <= low and high <= limit_last):
        raise OutOfRangeError(_outside(low, high + 1, old_lower, old_upper))
    magnitude = abs(step)
    new_lower = abs(start) // magnitude
    if (start < 0) == forward:
        new_lower = -new_lower
    if last in (-INF, INF):
        new_upper = INF + 1
    else:
        new_upper = new_lower - (low - high - 1) // magnitude
    return new_lower, new_upper, implicit_lower, implicit_upper, start - new_lower * step


def _ends_first(start: int, stop: int | None, step: int) -> str:
    """The problem of a slice that ends before it starts."""
    text = f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"
    negative = start < 0 or (stop is not None and stop < 0)
    hint = "; negative indices do not count from the end" if negative else ""
    return f"{text} ends before it starts{hint}"


def _outside(low: int, up: int, lower: int, upper: int) -> str:
    """The problem of a slice that leaves the interval from `lower` to `upper`."""
    hint = from_the_end(low, lower, upper)
    return f"{format_interval(low, up)} is outside {format_interval(lower, upper)}{hint}"
