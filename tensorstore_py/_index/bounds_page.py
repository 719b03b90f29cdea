"""How domains and dimensions look in notebooks: a line for each dimension.

It is for `IndexDomain` and `Dim` alike, which say the same of a dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tensorstore_py._display.info import columns
from tensorstore_py._display.page import page

__all__ = ["Bounds", "bounds_page"]


class Bounds(Protocol):
    """What `Dim` says."""

    label: str
    implicit_lower: bool
    implicit_upper: bool

    @property
    def inclusive_min(self) -> int:
        """First position."""

    @property
    def exclusive_max(self) -> int:
        """One past the last."""

    @property
    def finite(self) -> bool:
        """Whether both bounds are known."""

    def __str__(self) -> str: ...


def bounds_page(title: str, text: str, dims: Sequence[Bounds]) -> str:
    """The page.

    Args:
        title: what it is.
        text: all of it in one line.
        dims: a line each.
    """
    lines = [_line(number, dim) for number, dim in enumerate(dims)]
    table = columns(["Dimension", "Label", "From", "Until", "Extent"], lines) if lines else None
    return page(title, text, table)


def _line(number: int, dim: Bounds) -> list[object]:
    # The text of an interval has its bounds, and a star after those that are implicit.
    lower, _, upper = str(dim).rpartition(": ")[2].strip("()[] ").partition(",")
    extent = f"{max(0, dim.exclusive_max - dim.inclusive_min):,}" if dim.finite else "∞"
    return [number, dim.label, lower, upper.strip(), extent]
