"""A drawing of an array in SVG: its last three dimensions as a box, with chunks and shards.

The geometry is that of `geometry`; only what is on the screen is added here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tensorstore_py._display.geometry import Axis, Lines, lines, notes, shares
from tensorstore_py._display.markup import Markup, element

__all__ = ["drawing"]

_LONGEST: Final = 190.0
_SHORTEST: Final = 26.0
_LINES: Final = 24
#: Lines are so far apart, or there are fewer of them.
_APART: Final = 4.0
_TEXT: Final = {"fill": "gray", "stroke": "none"}
#: Where a position along the third dimension is, for each unit of it.
_DEPTH: Final = (0.42, -0.30)


class _Side(NamedTuple):
    """An axis with its length on the screen, and where lines are along it."""

    axis: Axis
    length: float
    thin: list[float]
    bold: list[float]
    chunk: tuple[float, float] | None
    shard: tuple[float, float] | None


def drawing(axes: list[Axis]) -> Markup:
    """An array's last three dimensions, of all.

    Example:
        >>> svg = drawing([Axis(0, 100, "y", 10), Axis(0, 200, "x", 50)])
        >>> svg.startswith("<div><svg"), svg.count("<path")
        (True, 1)
    """
    drawn = axes[-3:] or [Axis(0, 1)]
    seen = [0.7, 1.0, 1.0][-len(drawn) :]  # depth is foreshortened
    lengths = (_LONGEST * each for each in shares(drawn, _SHORTEST / _LONGEST))
    found = [
        (axis, length, lines(axis, min(_LINES, max(1, int(length * part / _APART)))))
        for axis, length, part in zip(drawn, lengths, seen, strict=True)
    ]
    sides = [_side(*each) for each in found]
    x = sides[-1]
    y = sides[-2] if len(sides) > 1 else _flat(30.0)
    z = sides[-3] if len(sides) > 2 else _flat(0.0)
    if not axes:
        x = _flat(30.0)
    note = notes(axes, [each for _, _, each in found])
    text = element("div", note, class_="tsv-muted") if note else None
    return element("div", _svg(x, y, z, axes), text)


def _side(axis: Axis, length: float, drawn: Lines) -> _Side:
    """An axis on the screen."""
    scale = length / (axis.extent or 1)

    def cell(end: int | None) -> tuple[float, float] | None:
        return None if end is None else (0.0, end * scale)

    return _Side(
        axis,
        length,
        [at * scale for at in drawn.thin],
        [at * scale for at in drawn.bold],
        cell(drawn.chunk),
        cell(drawn.shard),
    )


def _flat(length: float) -> _Side:
    return _Side(Axis(0, 1), length, [], [], None, None)


def _svg(x: _Side, y: _Side, z: _Side, axes: list[Axis]) -> Markup:
    dx, dy = z.length * _DEPTH[0], z.length * _DEPTH[1]
    left, top = (24.0 if len(axes) > 1 else 4.0), 6.0 - dy
    depth_label = z.axis.named if len(axes) > 2 else ""
    # a character takes less than seven units
    right = max(dx + 6, dx / 2 + 10 + 6.6 * len(depth_label))
    width = max(left + x.length + right, 7.0 * len(x.axis.named) + left)
    height = top + y.length + 22
    place = _Place(left, top, x.length, y.length, dx, dy)
    faces = [place.face((0, 0), (x.length, 0), (0, y.length), _classes(axes, x, y))]
    if z.length:
        faces += [
            place.face((0, 0), (x.length, 0), (dx, dy), _classes(axes, x, z) + " tsv-side"),
            place.face((x.length, 0), (0, y.length), (dx, dy), _classes(axes, y, z) + " tsv-side"),
        ]
    cells = [place.cell(x.shard, y.shard, "tsv-shard"), place.cell(x.chunk, y.chunk, "tsv-cell")]
    grids = [
        place.grid(x.thin, y.thin, z.thin, "tsv-thin"),
        place.grid(x.bold, y.bold, z.bold, "tsv-bold"),
    ]
    return element(
        "svg",
        element("title", _title(axes)),
        *faces,
        *cells,
        *grids,
        *_labels(place, x, y, depth_label, axes),
        xmlns="http://www.w3.org/2000/svg",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        # where a notebook drops the style
        fill="none",
        stroke="gray",
    )


class _Place(NamedTuple):
    """Where the front is, and how far the back is from it."""

    left: float
    top: float
    width: float
    height: float
    dx: float
    dy: float

    def at(self, x: float, y: float) -> str:
        return f"{self.left + x:.1f},{self.top + y:.1f}"

    def face(
        self,
        corner: tuple[float, float],
        one: tuple[float, float],
        other: tuple[float, float],
        classes: str,
    ) -> Markup:
        """A parallelogram."""
        a, b = corner
        corners = (
            (a, b),
            (a + one[0], b + one[1]),
            (a + one[0] + other[0], b + one[1] + other[1]),
            (a + other[0], b + other[1]),
        )
        return element(
            "polygon", points=" ".join(self.at(*each) for each in corners), class_=classes
        )

    def cell(
        self, x: tuple[float, float] | None, y: tuple[float, float] | None, class_: str
    ) -> Markup | None:
        """The first chunk or shard, on the front."""
        if x is None:
            return None
        low, high = y or (0.0, self.height)
        if x[1] - x[0] >= self.width - 0.1 and high - low >= self.height - 0.1:
            return None  # all of it
        return element(
            "rect",
            x=f"{self.left + x[0]:.1f}",
            y=f"{self.top + low:.1f}",
            width=f"{max(1.5, x[1] - x[0]):.1f}",
            height=f"{max(1.5, high - low):.1f}",
            class_=class_,
            fill="gray" if class_ == "tsv-cell" else None,
        )

    def grid(self, xs: list[float], ys: list[float], zs: list[float], class_: str) -> Markup | None:
        """Lines on all faces, in one path."""
        lines = [f"M{self.at(x, self.height)}L{self.at(x, 0)}" for x in xs]
        lines += [f"M{self.at(0, y)}L{self.at(self.width, y)}" for y in ys]
        if self.dx:
            lines += [f"M{self.at(x, 0)}L{self.at(x + self.dx, self.dy)}" for x in xs]
            right = self.width
            lines += [f"M{self.at(right, y)}L{self.at(right + self.dx, y + self.dy)}" for y in ys]
            for z in zs:
                part = z / (self.dx / _DEPTH[0])
                x, y = self.dx * part, self.dy * part
                corner, end = self.at(right + x, y), self.at(right + x, self.height + y)
                lines.append(f"M{self.at(x, y)}L{corner}L{end}")
        return element("path", d="".join(lines), class_=class_) if lines else None


def _labels(place: _Place, x: _Side, y: _Side, depth_label: str, axes: list[Axis]) -> list[Markup]:
    if not axes:
        return []
    below = place.top + place.height + 15
    middle = place.left + place.width / 2
    labels = [
        element(
            "text", x.axis.named, x=f"{middle:.1f}", y=f"{below:.1f}", text_anchor="middle", **_TEXT
        )
    ]
    if len(axes) > 1:
        at = place.top + place.height / 2
        labels.append(
            element(
                "text",
                y.axis.named,
                transform=f"translate({place.left - 8:.1f} {at:.1f}) rotate(-90)",
                text_anchor="middle",
                **_TEXT,
            )
        )
    if depth_label:
        at_x = place.left + place.width + place.dx / 2 + 8
        at_y = place.top + place.height + place.dy / 2 + 8
        labels.append(element("text", depth_label, x=f"{at_x:.1f}", y=f"{at_y:.1f}", **_TEXT))
    return labels


def _classes(axes: list[Axis], one: _Side, other: _Side) -> str:
    unbounded = not all(side.axis.extent for side in (one, other)) and bool(axes)
    return "tsv-face tsv-open" if unbounded else "tsv-face"


def _title(axes: list[Axis]) -> str:
    sizes = ["∞" if each.extent is None else f"{each.extent:,}" for each in axes]
    return f"An array of {' × '.join(sizes)}" if sizes else "An array of one element"
