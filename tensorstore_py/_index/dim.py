"""One dimension of a domain: its label, `Dim`, and how bounds look in notebooks.

Only `label` and the two implicit flags may change after construction (the reference allows it);
domains copy them, so a `Dim` never aliases the inside of a domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import SupportsIndex, overload

from tensorstore_py._display.info import columns
from tensorstore_py._display.page import page
from tensorstore_py._display.public_name import public
from tensorstore_py._index.interval import (
    INF,
    INF_SIZE,
    BoundState,
    check_closed,
    check_half_open,
    check_sized,
    contains,
    format_interval,
    hull,
    int64_or_none,
    intersect,
)
from tensorstore_py.errors import IndexingError

__all__ = [
    "Dim",
    "bounds_page",
    "escape",
    "find_label",
    "merge_labels",
    "quote",
    "require_unique",
]

_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


def escape(text: str) -> str:
    """`text` with the escapes that it needs between quotes of either kind."""
    return text.translate(_ESCAPES)


def quote(text: str) -> str:
    """`text` in double quotes."""
    return f'"{escape(text)}"'


def require_unique(labels: Sequence[str]) -> None:
    """Raise IndexingError naming the labels that occur more than once."""
    named = [label for label in labels if label]
    if len(set(named)) == len(named):
        return
    repeated = sorted({label for label in named if named.count(label) > 1})
    raise IndexingError(f"Dimension label(s) {', '.join(map(quote, repeated))} not unique")


def merge_labels(a: str, b: str) -> str:
    """The common label of two dimensions; an unlabeled one agrees with any."""
    if a and b and a != b:
        raise IndexingError(f"Dimension labels do not match: {quote(a)} and {quote(b)}")
    return a or b


def find_label(label: str, labels: Sequence[str]) -> int:
    """The dimension that carries `label`."""
    if not label:
        raise IndexingError("Dimension cannot be specified by empty label")
    try:
        return labels.index(label)
    except ValueError:
        if not any(labels):
            raise IndexingError(
                f"no dimension is named {quote(label)}: none has a label; give its number"
            ) from None
        known = ", ".join(map(quote, labels))
        raise IndexingError(f"Label {quote(label)} does not match one of {{{known}}}") from None


def bounds_page(title: str, text: str, dims: Sequence[Dim]) -> str:
    """The page of notebooks: all of it in one line of text, then a line for each dimension."""
    lines = [_line(number, dim) for number, dim in enumerate(dims)]
    table = columns(["Dimension", "Label", "From", "Until", "Extent"], lines) if lines else None
    return page(title, text, table)


def _line(number: int, dim: Dim) -> list[object]:
    # The text of an interval has its bounds, and a star after those that are implicit.
    lower, _, upper = str(dim).rpartition(": ")[2].strip("()[] ").partition(",")
    extent = f"{max(0, dim.exclusive_max - dim.inclusive_min):,}" if dim.finite else "∞"
    return [number, dim.label, lower, upper.strip(), extent]


@public
class Dim:
    """An index interval with an optional label and explicit or implicit bounds.

    Four forms, as in the reference: `Dim(label=…)` is unbounded; `Dim(size, label=…,
    inclusive_min=0)`; `Dim(inclusive_min, exclusive_max)`; `Dim(inclusive_min=…,
    inclusive_max=…)`. A bound that is not given is infinite and implicit.

    Args:
        size: number of indices, or None for no upper bound.
        label: the dimension's name; empty means unlabeled.
        inclusive_min: first index.
        exclusive_max: one past the last index.
        inclusive_max: last index.
        implicit_lower: whether operations may replace the lower bound.
        implicit_upper: whether operations may replace the upper bound.

    Raises:
        ValueError: the bounds form no interval.
        TypeError: the arguments match none of the forms.

    Example:
        >>> Dim(3, 8, label="x")
        Dim(inclusive_min=3, exclusive_max=8, label="x")
        >>> list(Dim(4))
        [0, 1, 2, 3]
    """

    __slots__ = ("_lower", "_upper", "implicit_lower", "implicit_upper", "label")
    __hash__ = None  # type: ignore[assignment]

    implicit_lower: bool
    implicit_upper: bool
    label: str

    @overload
    def __init__(
        self,
        label: str | None = None,
        *,
        implicit_lower: bool = True,
        implicit_upper: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self,
        size: SupportsIndex | None,
        label: str | None = None,
        *,
        inclusive_min: SupportsIndex | None = None,
        implicit_lower: bool = False,
        implicit_upper: bool | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        inclusive_min: SupportsIndex | None = ...,
        exclusive_max: SupportsIndex | None = ...,
        *,
        label: str | None = None,
        implicit_lower: bool | None = None,
        implicit_upper: bool | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        *,
        inclusive_min: SupportsIndex | None = ...,
        inclusive_max: SupportsIndex | None = ...,
        label: str | None = None,
        implicit_lower: bool | None = None,
        implicit_upper: bool | None = None,
    ) -> None: ...

    def __init__(self, *args: object, **named: object) -> None:
        given = _bind(args, named)
        label = given.pop("label", None)
        if not (label is None or isinstance(label, str)):
            raise TypeError(f"Dim: label must be a str or None, not {label!r}")
        flags = [given.pop(name, None) for name in ("implicit_lower", "implicit_upper")]
        lower, upper, implicit_lower, implicit_upper = _bounds(
            {name: _index_or_none(name, value) for name, value in given.items()}
        )
        self._lower = lower
        self._upper = upper
        self.implicit_lower = implicit_lower if flags[0] is None else bool(flags[0])
        self.implicit_upper = implicit_upper if flags[1] is None else bool(flags[1])
        self.label = label or ""

    @classmethod
    def _make(
        cls, lower: int, upper: int, implicit_lower: bool, implicit_upper: bool, label: str = ""
    ) -> Dim:
        self = cls.__new__(cls)
        self._lower = lower
        self._upper = upper
        self.implicit_lower = implicit_lower
        self.implicit_upper = implicit_upper
        self.label = label
        return self

    @property
    def _state(self) -> BoundState:
        return self._lower, self._upper, self.implicit_lower, self.implicit_upper

    @property
    def inclusive_min(self) -> int:
        """First index, or `-inf`."""
        return self._lower

    @property
    def exclusive_min(self) -> int:
        """One before the first index."""
        return self._lower - 1

    @property
    def inclusive_max(self) -> int:
        """Last index, or `inf`; one before `inclusive_min` if empty."""
        return self._upper - 1

    @property
    def exclusive_max(self) -> int:
        """One past the last index, or `inf + 1`."""
        return self._upper

    @property
    def size(self) -> int:
        """Number of indices; huge but an int if unbounded."""
        return self._upper - self._lower

    @property
    def empty(self) -> bool:
        """Whether there is no index."""
        return self._upper == self._lower

    @property
    def finite(self) -> bool:
        """Whether both bounds are finite."""
        return self._lower != -INF and self._upper != INF + 1

    def intersect(self, other: Dim) -> Dim:
        """The indices that both have; ValueError if both are labeled and differ.

        Example:
            >>> Dim(1, 5, label="x").intersect(Dim(3))
            Dim(inclusive_min=1, exclusive_max=3, label="x")
        """
        label = merge_labels(self.label, other.label)
        return Dim._make(*intersect(self._state, other._state), label)

    def hull(self, other: Dim) -> Dim:
        """The smallest interval that has both; ValueError if both are labeled and differ.

        Example:
            >>> Dim(1, 5).hull(Dim(8, 9))
            Dim(inclusive_min=1, exclusive_max=9)
        """
        label = merge_labels(self.label, other.label)
        return Dim._make(*hull(self._state, other._state), label)

    def __len__(self) -> int:
        return self._upper - self._lower

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Dim):
            return item.empty or (self._lower <= item._lower and item._upper <= self._upper)
        index = int64_or_none(item)
        if index is not None:
            return contains(self._lower, self._upper, index)
        raise TypeError(f"Only an index or a Dim can be in a Dim, not {item!r}")

    def __iter__(self) -> Iterator[int]:
        if not self.finite:
            raise ValueError("Cannot iterate over infinite interval")
        return iter(range(self._lower, self._upper))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dim):
            return NotImplemented
        return self._state == other._state and self.label == other.label

    def __str__(self) -> str:
        prefix = f"{quote(self.label)}: " if self.label else ""
        return prefix + format_interval(*self._state)

    def __repr__(self) -> str:
        parts = []
        if self._lower != -INF:
            parts.append(f"inclusive_min={self._lower}")
        if self.implicit_lower == (self._lower != -INF):
            parts.append(f"implicit_lower={self.implicit_lower}")
        if self._upper != INF + 1:
            parts.append(f"exclusive_max={self._upper}")
        if self.implicit_upper == (self._upper != INF + 1):
            parts.append(f"implicit_upper={self.implicit_upper}")
        if self.label:
            parts.append(f"label={quote(self.label)}")
        return f"Dim({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return bounds_page("Dim", str(self), [self])

    def __copy__(self) -> Dim:
        return Dim._make(*self._state, self.label)

    def __deepcopy__(self, memo: dict[int, object]) -> Dim:
        return self.__copy__()

    def __reduce__(self) -> tuple[object, ...]:
        return Dim._make, (*self._state, self.label)


def _bind(args: tuple[object, ...], named: dict[str, object]) -> dict[str, object]:
    """Name the positional arguments after the form they select."""
    names: tuple[str, ...] = ()
    if len(args) == 1:
        is_label = args[0] is None or isinstance(args[0], str)
        if is_label and named.keys() <= {"implicit_lower", "implicit_upper"}:
            names = ("label",)
        elif "exclusive_max" in named or "inclusive_max" in named:
            names = ("inclusive_min",)
        else:
            names = ("size",)
    elif len(args) == 2:
        is_label = "label" not in named and (args[1] is None or isinstance(args[1], str))
        names = ("size", "label") if is_label else ("inclusive_min", "exclusive_max")
    known = {*names, "label", "size", "inclusive_min", "exclusive_max", "inclusive_max"}
    known |= {"implicit_lower", "implicit_upper"}
    uppers = [n for n in ("size", "exclusive_max", "inclusive_max") if n in named or n in names]
    if len(args) > 2 or named.keys() - known or named.keys() & set(names) or len(uppers) > 1:
        raise TypeError(
            f"Dim: no form takes {args!r} with {sorted(named)}; use Dim(label), Dim(size, label), "
            "Dim(inclusive_min, exclusive_max) or Dim(inclusive_min=, inclusive_max=)"
        )
    return {**dict(zip(names, args, strict=True)), **named}


def _index_or_none(name: str, value: object) -> int | None:
    if value is None:
        return None
    number = int64_or_none(value)
    if number is not None:
        return number
    raise TypeError(f"Dim: {name} must be a 64-bit integer or None, not {value!r}")


def _bounds(given: dict[str, int | None]) -> BoundState:
    lower = given.get("inclusive_min")
    if "size" in given:
        size = given["size"]
        start = 0 if lower is None else lower
        interval = check_sized(start, INF_SIZE if size is None else size)
        return (*interval, False, size is None)
    start = -INF if lower is None else lower
    if "inclusive_max" in given:
        last = given["inclusive_max"]
        interval = check_closed(start, INF if last is None else last)
        return (*interval, lower is None, last is None)
    upper = given.get("exclusive_max")
    interval = check_half_open(start, INF + 1 if upper is None else upper)
    return (*interval, lower is None, upper is None)
