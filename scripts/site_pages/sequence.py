"""Sequence diagrams of Mermaid as SVG: lifelines, messages, notes, and frames around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from scripts.site_pages.svg import LINE, arrow, box, label, lines_of, picture, width_of

__all__ = ["sequence_diagram"]

_PARTICIPANT: Final = re.compile(r"participant (?P<id>\w+)(?: as (?P<text>.+))?$")
_MESSAGE: Final = re.compile(r"(?P<start>\w+)(?P<line>--?>>)(?P<end>\w+): *(?P<text>.+)$")
_NOTE: Final = re.compile(r"Note over (?P<first>\w+)(?:, *(?P<last>\w+))?: *(?P<text>.+)$")
_FRAME: Final = re.compile(r"(?P<kind>alt|else|loop|opt|par|and|end)\b *(?P<text>.*)$")
_LEAST: Final = 110.0
_SELF: Final = 34.0


@dataclass
class _Frame:
    """A frame that is open: where it begins, and how deep it is in others."""

    top: float
    depth: int


class _Drawing:
    """The figure as it grows downwards."""

    def __init__(self, names: dict[str, list[str]], matches: list[re.Match[str]]) -> None:
        self._names = names
        self._order = {name: number for number, name in enumerate(names)}
        self._x, self._width = self._columns(matches)
        self._top = max(len(lines) for lines in names.values()) * LINE + 18
        self._y = self._top + 16
        self._frames: list[_Frame] = []
        self._behind: list[str] = []
        self._front: list[str] = []

    def _columns(self, matches: list[re.Match[str]]) -> tuple[list[float], float]:
        """Where lifelines are, so that what is said between them has room; the whole width."""
        names = list(self._names.values())
        gaps = [
            max(_LEAST, (width_of(a) + width_of(b)) / 2 + 40)
            for a, b in zip(names, [*names[1:], names[-1]], strict=True)
        ]
        gaps[-1] = width_of(names[-1]) / 2 + 16
        for match in matches:
            if match.re is _FRAME:
                continue
            room = width_of(lines_of(match["text"])) + 24
            if match.re is _NOTE:
                first = self._order[match["first"]]
                gaps[first] = max(gaps[first], room / 2 + 8)
                continue
            ends = sorted((self._order[match["start"]], self._order[match["end"]]))
            if ends[0] == ends[1]:
                gaps[ends[0]] = max(gaps[ends[0]], room + _SELF - 10)
            else:
                for number in range(*ends):
                    gaps[number] = max(gaps[number], room / (ends[1] - ends[0]))
        first_note = [
            width_of(lines_of(match["text"])) / 2 + 24
            for match in matches
            if match.re is _NOTE and self._order[match["first"]] == 0
        ]
        at = [max(width_of(names[0]) / 2 + 40, *first_note, 0.0)]
        for gap in gaps[:-1]:
            at.append(at[-1] + gap)
        return at, at[-1] + gaps[-1] + 24

    def add(self, match: re.Match[str]) -> None:
        """The next thing that happens."""
        if match.re is _MESSAGE:
            self._message(match)
        elif match.re is _NOTE:
            self._note(match)
        else:
            self._frame(match["kind"], match["text"])

    def _message(self, match: re.Match[str]) -> None:
        start, end = (self._x[self._order[match[side]]] for side in ("start", "end"))
        text, kind = lines_of(match["text"]), "dashed" if match["line"] == "-->>" else ""
        height = len(text) * LINE
        if start == end:
            middle = self._y + max(height, 22) / 2
            path = f"M{start:g} {middle - 8:g}h{_SELF - 12:g}v16h{-(_SELF - 15):g}"
            self._front.append(arrow(path, kind))
            self._front.append(label(start + _SELF, middle, text, "said", "start"))
            self._y += max(height, 22) + 12
            return
        self._front.append(label((start + end) / 2, self._y + height / 2, text, "said"))
        self._y += height + 6
        short = 2 if end > start else -2
        self._front.append(arrow(f"M{start:g} {self._y:g}H{end - short:g}", kind))
        self._y += 16

    def _note(self, match: re.Match[str]) -> None:
        first = self._x[self._order[match["first"]]]
        last = self._x[self._order[match["last"] or match["first"]]]
        text = lines_of(match["text"])
        width = max(width_of(text) + 18, last - first + 30)
        height = len(text) * LINE + 8
        middle = (first + last) / 2
        self._front.append(box(middle - width / 2, self._y, width, height, "note"))
        self._front.append(label(middle, self._y + height / 2, text))
        self._y += height + 12

    def _frame(self, kind: str, text: str) -> None:
        if kind == "end":
            frame = self._frames.pop()
            inset = 6 + 6 * frame.depth
            size = (self._width - 2 * inset, self._y - frame.top)
            self._behind.insert(0, box(inset, frame.top, *size, "frame"))
            self._y += 14
            return
        if kind in ("else", "and"):
            inset = 6 + 6 * self._frames[-1].depth
            self._behind.append(
                f'<path class="divider" d="M{inset} {self._y:g}H{self._width - inset:g}"/>'
            )
        else:
            self._frames.append(_Frame(self._y, len(self._frames)))
            inset = 6 + 6 * self._frames[-1].depth
        said = [f"{kind}: {text}" if text else kind]
        self._front.append(label(inset + 8, self._y + 13, said, "condition", "start"))
        self._y += 32

    def picture(self) -> str:
        """All of it, with lifelines to its end."""
        heads = []
        for x, lines in zip(self._x, self._names.values(), strict=True):
            width, height = width_of(lines) + 22, self._top - 4
            self._behind.append(f'<path class="life" d="M{x:g} {height:g}V{self._y:g}"/>')
            heads += [box(x - width / 2, 2, width, height - 2, "node")]
            heads += [label(x, height / 2 + 1, lines)]
        return picture(self._width, self._y + 4, [*self._behind, *self._front, *heads])


def sequence_diagram(lines: list[str]) -> str:
    """The figure.

    Args:
        lines: what stands below `sequenceDiagram`.

    Raises:
        ValueError: a line is not understood.
    """
    names: dict[str, list[str]] = {}
    matches = []
    for line in lines:
        participant = _PARTICIPANT.match(line)
        if participant is not None:
            names[participant["id"]] = lines_of(participant["text"] or participant["id"], 20)
            continue
        found = next((m for each in (_MESSAGE, _NOTE, _FRAME) if (m := each.match(line))), None)
        if found is None:
            raise ValueError(f"this line of a sequence diagram is not understood: {line}")
        matches.append(found)
    drawing = _Drawing(names, matches)
    for match in matches:
        drawing.add(match)
    return drawing.picture()
