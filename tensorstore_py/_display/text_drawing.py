"""A drawing of an array in characters, for terminals: its last two dimensions as a grid of chunks.

Further dimensions are sheets behind it. Lines of shards, and the border if there are any, are
heavy; the first chunk is shaded. The geometry is that of `geometry`; here it is brought to whole
rows and columns, so that all whole chunks of a drawing are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tensorstore_py._display.geometry import Axis, Lines, lines, notes, shares

__all__ = ["BOXES", "text_drawing"]

_COLUMNS: Final = 52
_ROWS: Final = 14
_FEWEST: Final = 12
#: A chunk has at least so many columns and rows, one line included.
_CELL: Final = (4, 2)
#: And so many at most, where a few chunks would be large.
_LARGE: Final = (14, 5)
#: So many sheets are behind the first at most, each so many columns to the right.
_SHEETS: Final = 2
_ASIDE: Final = 2

_LIGHT, _HEAVY = 1, 2


def _boxes() -> dict[tuple[int, ...], str]:
    """Characters by the weights of the lines that go up, right, down and left from them.

    In Unicode they stand in a row for each set of directions; here is which of these are heavy.
    """
    ends = ("", "h", "v", "hv")
    across = ("", "l", "r", "lr")
    found: dict[tuple[int, ...], str] = {(0, 0, 0, 0): " "}
    corners = (("dr", 0x250C), ("dl", 0x2510), ("ur", 0x2514), ("ul", 0x2518))
    rows = [(arms, code, [h.replace("h", arms[1]).replace("v", arms[0]) for h in ends])
            for arms, code in corners]  # fmt: skip
    for side, code in (("r", 0x251C), ("l", 0x2524)):
        rows.append((f"ud{side}", code, ["", side, "u", "d", "ud", f"u{side}", f"d{side}",
                                         f"ud{side}"]))  # fmt: skip
    for side, code in (("d", 0x252C), ("u", 0x2534)):
        rows.append((f"lr{side}", code, [*across, *(each + side for each in across)]))
    rows.append(("udlr", 0x253C, [*across, "u", "d", "ud", "lu", "ru", "ld", "rd", "ulr", "dlr",
                                  "lud", "rud", "udlr"]))  # fmt: skip
    for arms, code in (("lr", 0x2500), ("ud", 0x2502)):
        rows.append((arms, code, ["", arms]))
    for arms, code, heavies in rows:
        for number, heavy in enumerate(heavies):
            weights = tuple((each in arms) + (each in heavy) for each in "urdl")
            found[weights] = chr(code + number)
    return found


#: Every character that a drawing is made of, but for text.
BOXES: Final = "".join(_boxes().values()) + "░"


class _Side(NamedTuple):
    """An axis in whole columns or rows, from 0 to `length`, and the lines that cross it."""

    length: int
    weights: dict[int, int]
    chunk: int


def text_drawing(axes: Sequence[Axis], width: int = 80, *, plain: bool = False) -> list[str]:
    r"""The lines of a drawing of an array; none of a scalar.

    Args:
        axes: of all dimensions.
        width: how many columns there are.
        plain: only characters of ASCII.

    Example:
        >>> axes = [Axis(0, 4, "y", 2, 4), Axis(0, 6, "x", 2, 4)]
        >>> print("\n".join(text_drawing(axes, 24)))
            ┏━━━━━┯━━━━━┳━━━━━┓
            ┃░░░░░│     ┃     ┃
        y 4 ┠─────┼─────╂─────┨
            ┃     │     ┃     ┃
            ┗━━━━━┷━━━━━┻━━━━━┛
                    x 6
            (░ a chunk, ━ shards)
    """
    if not axes:
        return []
    drawn = axes[-3:]
    front = drawn[-2:]
    left = f"{front[0].named} " if len(front) > 1 else ""
    behind = _sheets(drawn[0]) if len(drawn) > 2 else 0
    depth = f" {drawn[0].named}" if len(drawn) > 2 else ""
    room = max(_FEWEST, min(_COLUMNS, width - len(left) - 2 * behind - len(depth) - 2))
    heavy = any(each.shard for each in drawn)
    parts = shares(front, 0.15)
    rooms = (max(4, min(_ROWS, room // 3)), room)[-len(front) :]
    sizes = list(zip(_CELL[::-1], _LARGE[::-1], strict=True))[-len(front) :]
    found = [
        lines(axis, each // least - 1)
        for axis, each, (least, _) in zip(front, rooms, sizes, strict=True)
    ]
    if any(each.step == 0 for each in found):
        found = [each._replace(thin=()) for each in found]
    sides = [
        _side(axis, each, round(length * part), *limits)
        for axis, each, length, part, limits in zip(front, found, rooms, parts, sizes, strict=True)
    ]
    x, y = sides[-1], sides[0] if len(sides) > 1 else _Side(2, {}, 2)
    canvas = _Canvas(x, y, behind, _HEAVY if heavy else _LIGHT)
    text = canvas.lines(plain=plain)
    indent = " " * len(left)
    middle = behind + y.length // 2
    out = [f"{left if row == middle else indent}{line}" for row, line in enumerate(text)]
    out[0] += depth
    below = (x.length + 1 - len(front[-1].named)) // 2
    out.append(indent + " " * max(0, below) + front[-1].named)
    signs = ": a chunk", "= shards"
    if not plain:
        signs = "░ a chunk", "━ shards"
    note = notes(axes, found)
    shown = [*signs[:1] * (x.chunk > 0 < y.chunk and canvas.divided)]
    shown += signs[1:] * (heavy and "shards" not in note)
    note = "; ".join(filter(None, [", ".join(shown), note]))
    return [*out, *([f"{indent}({note})"] if note else [])]


def _sheets(axis: Axis) -> int:
    """How many sheets are behind the first."""
    size = axis.chunk or 1
    return min(_SHEETS, max(0, -(-(axis.extent or size) // size) - 1))


def _side(axis: Axis, found: Lines, wanted: int, least: int, most: int) -> _Side:
    """An axis in whole columns, where all whole cells have the same number of them."""
    extent = axis.extent or 0
    weights = dict.fromkeys(found.thin, _LIGHT) | dict.fromkeys(found.bold, _HEAVY)
    at = sorted(weights)
    if not at or not extent:
        length = max(least, min(2 * most, wanted))
        return _Side(length, {}, length)
    cell = min([b - a for a, b in pairwise(at)], default=max(at[0], extent - at[0]))
    unit = max(least, min(most, wanted * cell // extent))
    where = {each: max(2 * (number + 1), round(each / cell * unit))
             for number, each in enumerate(at)}  # fmt: skip
    length = max(where[at[-1]] + 2, round(extent / cell * unit))
    first = found.chunk if found.chunk in where else None
    return _Side(length, {where[each]: weights[each] for each in at}, where[first] if first else 0)


class _Canvas:
    """Lines on a grid of characters; the front's upper left corner is below the sheets."""

    def __init__(self, x: _Side, y: _Side, behind: int, border: int) -> None:
        self._weights: dict[tuple[int, int], list[int]] = {}
        self._x, self._y, self._behind = x, y, behind
        top, bottom = behind, behind + y.length
        for sheet in range(behind, 0, -1):
            left, right = _ASIDE * sheet, x.length + _ASIDE * sheet
            self._vertical(left, behind - sheet, behind - sheet + 1, border)
            self._horizontal(behind - sheet, left, right, border)
            self._vertical(right, behind - sheet, bottom - sheet, border)
            self._horizontal(bottom - sheet, right - _ASIDE, right, border)
        for at, weight in x.weights.items():
            self._vertical(at, top, bottom, weight)
        for at, weight in y.weights.items():
            self._horizontal(top + at, 0, x.length, weight)
        for row in (top, bottom):
            self._horizontal(row, 0, x.length, border)
        for column in (0, x.length):
            self._vertical(column, top, bottom, border)

    def _vertical(self, column: int, top: int, bottom: int, weight: int) -> None:
        for row in range(top, bottom):
            self._join(row, column, 2, weight)
            self._join(row + 1, column, 0, weight)

    def _horizontal(self, row: int, left: int, right: int, weight: int) -> None:
        for column in range(left, right):
            self._join(row, column, 1, weight)
            self._join(row, column + 1, 3, weight)

    def _join(self, row: int, column: int, direction: int, weight: int) -> None:
        weights = self._weights.setdefault((row, column), [0, 0, 0, 0])
        weights[direction] = max(weights[direction], weight)

    def lines(self, *, plain: bool) -> Iterator[str]:
        """The text."""
        boxes = _boxes()
        for row in range(self._behind + self._y.length + 1):
            cells = []
            for column in range(self._x.length + _ASIDE * self._behind + 1):
                weights = tuple(self._weights.get((row, column), (0, 0, 0, 0)))
                if not any(weights) and self._in_first_chunk(row - self._behind, column):
                    cells.append(":" if plain else "░")
                else:
                    cells.append(_ascii(weights) if plain else boxes[weights])
            yield "".join(cells).rstrip()

    @property
    def divided(self) -> bool:
        """Whether there is a line between chunks."""
        return bool(self._x.weights or self._y.weights)

    def _in_first_chunk(self, row: int, column: int) -> bool:
        return self.divided and 0 < row < self._y.chunk and 0 < column < self._x.chunk


def _ascii(weights: tuple[int, ...]) -> str:
    """A character of ASCII in place of one for boxes."""
    up, right, down, left = weights
    if (up or down) and (right or left):
        return "+"
    if up or down:
        return "#" if _HEAVY in weights else "|"
    return ("=" if _HEAVY in weights else "-") if any(weights) else " "
