"""The selection behind a place on the command line: `[0, :, 100:200]`, `[x=0:10, t=5]`.

Positions are those of the domain, as in `array[...]`: what is negative is not counted from the end.
"""

from __future__ import annotations

import argparse
import re
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tensorstore_py._index import IndexDomain, d, propagate_bounds
from tensorstore_py.errors import IndexingError, OutOfRangeError

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["Selection", "parse_selection", "split_selection"]

Term: TypeAlias = "int | slice | list[int] | EllipsisType"

_INT = re.compile(r"[+-]?\d+", re.ASCII)
_NAMED = re.compile(r"([^=\[\]]*)=(.*)", re.DOTALL)
#: Commas that are in no list of positions.
_COMMA = re.compile(r",(?![^\[]*\])")


class Selection(NamedTuple):
    """What is asked for of an array.

    Attributes:
        text: as it was given, brackets included.
        terms: one for each dimension.
        labels: of the dimensions; none: they go by position.
    """

    text: str
    terms: tuple[Term, ...]
    labels: tuple[str, ...] = ()

    def of(self, array: TensorStore) -> TensorStore:
        """The view of an array.

        Raises:
            IndexingError: there is no such dimension.
            OutOfRangeError: there is no such position.
        """
        try:
            found = array[d[self.labels][self.terms]] if self.labels else array[self.terms]
            # bounds that may change are not looked at before something is read
            now = array._driver.domain
            known = IndexDomain(inclusive_min=now.inclusive_min, exclusive_max=now.exclusive_max)
            propagate_bounds(known, found._transform)
        except IndexingError as error:
            raise IndexingError(f"{self.text}: {error}") from None
        except OutOfRangeError as error:
            raise OutOfRangeError(f"{self.text}: {error}") from None
        return found


def split_selection(text: str) -> tuple[str, str]:
    """A place, and the selection behind it, or "".

    Example:
        >>> split_selection("a.zarr[0, [1, 3]]"), split_selection("http://[::1]")
        (('a.zarr', '[0, [1, 3]]'), ('http://[::1]', ''))
    """
    depth = 0
    for at in range(len(text) - 1, 0, -1) if text.endswith("]") else ():
        depth += (text[at] == "]") - (text[at] == "[")
        if not depth:
            return (text, "") if text[:at].endswith("://") else (text[:at], text[at:])
    return text, ""


def parse_selection(text: str) -> Selection:
    """The selection that a text says.

    Raises ArgumentTypeError: it says none.

    Example:
        >>> parse_selection("[0, :5, ...]").terms
        (0, slice(None, 5, None), Ellipsis)
        >>> parse_selection("[x=0:10, t=5]").labels
        ('x', 't')
    """
    inner = text[1:-1].strip()
    parts = [part.strip() for part in _COMMA.split(inner)] if inner else []
    named = [_NAMED.fullmatch(part) for part in parts]
    if not any(named):
        return Selection(text, tuple(_term(part, text) for part in parts))
    labels, terms = [], []
    for part, match in zip(parts, named, strict=True):
        if match is None:
            raise argparse.ArgumentTypeError(
                f"{text}: name all dimensions, or none; {part!r} has no name"
            )
        labels.append(match[1].strip())
        terms.append(_term(match[2].strip(), text))
    if len(set(labels)) < len(labels):
        raise argparse.ArgumentTypeError(f"{text}: a dimension is named twice")
    return Selection(text, tuple(terms), tuple(labels))


def _term(part: str, text: str) -> Term:
    if part == "...":
        return ...
    if _INT.fullmatch(part):
        return int(part)
    if part.startswith("[") and part.endswith("]"):
        inner = [each.strip() for each in part[1:-1].split(",")]
        if all(_INT.fullmatch(each) for each in inner):
            return [int(each) for each in inner]
    bounds = [each.strip() for each in part.split(":")]
    if len(bounds) in (2, 3) and all(not each or _INT.fullmatch(each) for each in bounds):
        return slice(*(int(each) if each else None for each in bounds))
    raise argparse.ArgumentTypeError(
        f"{text}: {part!r} selects nothing; say 3, 0:10, ::2, [1, 5], ... or x=0:10"
    )
