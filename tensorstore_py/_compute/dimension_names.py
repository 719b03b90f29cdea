"""Dimensions as users name them: by label or by number, one or several, or extents of each.

JSON has no numbers as names of members, so `"0"` is a number wherever nothing is labelled so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["listed", "named", "numbered"]

T = TypeVar("T")


def listed(given: object, argument: str) -> tuple[int | str, ...]:
    """Dimensions that were given: none, one, or several.

    Raises:
        TypeError: they are neither labels nor numbers.
    """
    if given is None:
        return ()
    if isinstance(given, int | str) and not isinstance(given, bool):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        found = tuple(given)
        if all(isinstance(each, int | str) and not isinstance(each, bool) for each in found):
            return found
    raise TypeError(f"{argument} is a label or number of a dimension, or a list of such, "
                    f"not {given!r}")  # fmt: skip


def numbered(given: Iterable[int | str], labels: Sequence[str], argument: str) -> list[int]:
    """The numbers of dimensions that are given by label or number.

    Raises:
        SpecError: there is no such dimension, or one is given twice; names what there is.

    Example:
        >>> numbered(["z", -1], ["z", "y", "x"], "drop")
        [0, 2]
    """
    found: list[int] = []
    for each in given:
        number = _number(each, labels, argument)
        if number in found:
            raise SpecError(f"dimension {each!r} is given twice", (argument,))
        found.append(number)
    return found


def _number(name: int | str, labels: Sequence[str], argument: str) -> int:
    rank = len(labels)
    if isinstance(name, str):
        if name and name in labels:
            return list(labels).index(name)
        if not name.lstrip("-").isdecimal():
            there = [label for label in labels if label]
            hint = did_you_mean(name, there)
            known = ", ".join(f'"{label}"' for label in there)
            raise SpecError(
                f'no dimension is named "{name}"{hint}; '
                + (f"there are {known}" if known else "none has a label: give numbers"),
                (argument,),
            )
    number = int(name)
    if not -rank <= number < rank:
        raise SpecError(f"there are {rank} dimensions, and none of number {number}", (argument,))
    return number % rank


def named(given: Mapping[int | str, T], labels: Sequence[str], argument: str) -> dict[int, T]:
    """Values by the numbers of dimensions; raises as `numbered`."""
    numbers = numbered(given, labels, argument)
    return dict(zip(numbers, given.values(), strict=True))
