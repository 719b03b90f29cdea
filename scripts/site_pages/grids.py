"""Drawings of arrays for pages, as files beside these, so that a forge shows them, too.

Usage: python -m scripts.site_pages.grids    writes docs/assets/*.svg; a test says when to
"""

from __future__ import annotations

import sys
from typing import Final

from scripts.site_pages.sources import ROOT
from scripts.site_pages.svg import arrow, box, label, picture

__all__ = ["drawings", "main"]

#: Colours where no style sheet of a site is: those of light pages, and of dark ones.
_STYLE: Final = (
    "<style>text{font:12.5px system-ui,sans-serif;fill:#24292f}.cell{fill:none;stroke:#7d939b}"
    ".shard{fill:none;stroke:#0e7490;stroke-width:2}.read{fill:#0891b2;fill-opacity:.35;stroke:"
    "#7d939b}.wanted{fill:none;stroke:#b45309;stroke-width:2}.arrow{fill:none;stroke:#7d939b}"
    "polygon{fill:#7d939b}@media(prefers-color-scheme:dark){text{fill:#d0d7de}}</style>"
)
_CELL: Final = 34.0


def drawings() -> dict[str, str]:
    """The text of each file, by its name."""
    return {"chunks.svg": _chunks(), "views.svg": _views()}


def _chunks() -> str:
    """An array of 6 × 9 chunks in shards of 3 × 3, and a region that is read of it."""
    parts = []
    left, top = 12.0, 30.0
    for row in range(6):
        for column in range(9):
            read = row in (1, 2, 3) and column in (2, 3)
            at = (left + column * _CELL, top + row * _CELL)
            parts.append(_square(*at, 1, 1, "read" if read else "cell"))
    for row in range(2):
        for column in range(3):
            at = (left + column * 3 * _CELL, top + row * 3 * _CELL)
            parts.append(_square(*at, 3, 3, "shard"))
            name = [f"c/{row}/{column}"]
            parts.append(label(at[0] + 6, at[1] + 12, name, anchor="start"))
    parts.append(box(left + 2.4 * _CELL, top + 1.5 * _CELL, 1.3 * _CELL, 1.9 * _CELL, "wanted"))
    said = (
        (40.0, "the region that is wanted", "wanted"),
        (84.0, "chunks that are read and decoded: 6 of 54", "read"),
        (128.0, "shards: one key of the store each; 4 are asked", "shard"),
        (172.0, "chunks: what is encoded, and read at least", "cell"),
    )
    for y, text, kind in said:
        parts.append(box(344.0, y, 24.0, 20.0, kind))
        parts.append(label(378.0, y + 10, [text], anchor="start"))
    return _file(picture(680, 246, parts))


def _views() -> str:
    """Positions of an array, of a slice of it, and of the slice moved to zero."""
    rows = (
        ("store", 0, range(12), 0),
        ("store[4:10]", 4, range(4, 10), 0),
        ("store[4:10].translate_to[0]", 4, range(6), 1),
    )
    parts = []
    left, width = 210.0, 36.0
    for number, (name, first, positions, moved) in enumerate(rows):
        y = 14.0 + number * 78
        parts.append(label(left - 14, y + 15, [name], anchor="end"))
        for place, position in enumerate(positions, start=first):
            x = left + place * width
            kind = "read" if 4 <= place < 10 else "cell"
            parts.append(box(x, y, width, 30.0, kind))
            parts.append(label(x + width / 2, y + 15, [str(position)]))
            if number:
                middle = x + width / 2
                parts.append(arrow(f"M{middle:g} {y - 3:g}V{y - 44:g}"))
        if number:
            rule = "output = input + 4" if moved else "output = input"
            parts.append(label(left - 14, y - 23, [rule], anchor="end"))
    return _file(picture(654, 216, parts))


def _square(x: float, y: float, rows: int, columns: int, kind: str) -> str:
    return box(x, y, columns * _CELL, rows * _CELL, kind)


def _file(drawn: str) -> str:
    """A picture that can stand alone."""
    head, end, rest = drawn.partition(">")
    return f"{head}{end}{_STYLE}{rest}\n"


def main() -> int:
    """Writes all files."""
    for name, text in drawings().items():
        (ROOT / "docs" / "assets" / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
