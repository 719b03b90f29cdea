"""Pieces of SVG that figures are made of: text of a known size, boxes, arrows.

How wide text is is estimated, generously, since fonts are those of the reader's system.
"""

from __future__ import annotations

import html
import textwrap
from typing import Final

__all__ = ["LINE", "arrow", "box", "label", "lines_of", "picture", "width_of"]

#: Height of a line of text, and about the width of a character, in pixels.
LINE: Final = 17.0
_CHARACTER: Final = 7.0
_WIDEST: Final = 34


def lines_of(text: str, widest: int = _WIDEST) -> list[str]:
    """Text in lines of so many characters; `<br>` begins a new one."""
    parts = text.replace("<br/>", "<br>").split("<br>")
    return [line for part in parts for line in textwrap.wrap(part.strip(), widest) or [""]]


def width_of(lines: list[str]) -> float:
    """How wide lines of text are, about."""
    return max((len(line) for line in lines), default=0) * _CHARACTER


def label(x: float, y: float, lines: list[str], kind: str = "", anchor: str = "middle") -> str:
    """Lines of text around a point; `y` is the middle of them all."""
    first = y - (len(lines) - 1) * LINE / 2 + 4.5
    spans = "".join(
        f'<tspan x="{x:g}" y="{first + number * LINE:g}">{html.escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text class="{kind}" text-anchor="{anchor}">{spans}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    """A rectangle by its upper left corner."""
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>'
    )


def arrow(path: str, kind: str = "") -> str:
    """A line with a head at its end."""
    return f'<path class="arrow {kind}" d="{path}" marker-end="url(#head)"/>'


def picture(width: float, height: float, parts: list[str]) -> str:
    """The whole, at most as wide as the page."""
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><polygon points="0,0.5 8,4 0,7.5"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}">{head}{"".join(parts)}</svg>'
    )
