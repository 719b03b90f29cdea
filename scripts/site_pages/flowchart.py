"""Flowcharts of Mermaid as SVG: nodes in layers, each below (or right of) all that lead to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from scripts.site_pages.svg import LINE, arrow, box, label, lines_of, picture, width_of

__all__ = ["flowchart"]

_NODE: Final = re.compile(
    r'\s*(?P<id>\w+)(?:\[\("?(?P<store>.*?)"?\)\]|\["(?P<text>[^"]*)"\]|\[(?P<bare>[^]"(]*)\])?'
)
_EDGE: Final = re.compile(
    r'\s*(?:--\s+"?(?P<within>[^|"]+?)"?\s+)?(?P<line>-->|-\.->)\s*(?:\|"?(?P<label>[^|"]*)"?\|)?'
)
_GAP: Final = 26.0
_LAYERS_APART: Final = 44.0


@dataclass
class _Node:
    """A box: what it says, whether it is a store, where it is (its middle)."""

    lines: list[str]
    store: bool = False
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.width = width_of(self.lines) + 26
        self.height = len(self.lines) * LINE + 18


@dataclass(frozen=True)
class _Edge:
    start: str
    end: str
    text: list[str]
    dashed: bool


def flowchart(lines: list[str], *, downwards: bool) -> str:
    """The figure.

    Args:
        lines: what stands below `flowchart TD`.
        downwards: whether layers are rows; else they are columns.

    Raises:
        ValueError: a line is not understood.
    """
    nodes, edges = _parsed(lines)
    for _ in nodes:  # the longest way to each node
        for edge in edges:
            nodes[edge.end].layer = max(nodes[edge.end].layer, nodes[edge.start].layer + 1)
    for name, node in nodes.items():  # what nothing leads to is just above what it leads to
        if not any(edge.end == name for edge in edges):
            below = [nodes[edge.end].layer for edge in edges if edge.start == name]
            node.layer = min(below, default=1) - 1
    width, height = _place(nodes, edges, downwards)
    parts = [_drawn_edge(nodes, edge, downwards) for edge in edges]
    return picture(width, height, parts + [_drawn_node(node) for node in nodes.values()])


def _parsed(lines: list[str]) -> tuple[dict[str, _Node], list[_Edge]]:
    nodes: dict[str, _Node] = {}
    edges: list[_Edge] = []
    for line in lines:
        at, before, link = 0, "", None
        while at < len(line):
            found = _NODE.match(line, at)
            if found is None:
                raise ValueError(f"this line of a flowchart is not understood: {line}")
            text = found["text"] or found["store"] or found["bare"]
            if text or found["id"] not in nodes:
                nodes[found["id"]] = _Node(lines_of(text or found["id"]), bool(found["store"]))
            if link is not None:
                said = lines_of(link["label"] or link["within"] or "", 22)
                edges.append(_Edge(before, found["id"], said, link["line"] == "-.->"))
            before, at = found["id"], found.end()
            link = _EDGE.match(line, at)
            if link is None and at < len(line):
                raise ValueError(f"this line of a flowchart is not understood: {line}")
            at = at if link is None else link.end()
    return nodes, edges


def _place(nodes: dict[str, _Node], edges: list[_Edge], downwards: bool) -> tuple[float, float]:
    """Puts the middle of each node where it belongs; returns the figure's size."""
    layers: dict[int, list[_Node]] = {}
    for node in nodes.values():
        layers.setdefault(node.layer, []).append(node)
    across = [
        sum(node.width if downwards else node.height for node in layer) + _GAP * (len(layer) - 1)
        for layer in layers.values()
    ]
    widest, along = max(across), 2.0
    for number in sorted(layers):
        layer = layers[number]
        depth = max(node.height if downwards else node.width for node in layer)
        spread = sum(node.width if downwards else node.height for node in layer)
        at = 2 + (widest - spread - _GAP * (len(layer) - 1)) / 2
        for node in layer:
            size = node.width if downwards else node.height
            node.x, node.y = (at + size / 2, along + depth / 2)
            if not downwards:
                node.x, node.y = node.y, node.x
            at += size + _GAP
        said = [edge.text for edge in edges if nodes[edge.start].layer == number and edge.text[0]]
        room = [len(text) * LINE if downwards else width_of(text) for text in said]
        along += depth + _LAYERS_APART + max(room, default=0.0) * (0.6 if downwards else 1)
    end = along - _LAYERS_APART + 2
    return (widest + 4, end) if downwards else (end, widest + 4)


def _drawn_node(node: _Node) -> str:
    shape = box(
        node.x - node.width / 2,
        node.y - node.height / 2,
        node.width,
        node.height,
        "store" if node.store else "node",
    )
    return shape + label(node.x, node.y, node.lines)


def _drawn_edge(nodes: dict[str, _Node], edge: _Edge, downwards: bool) -> str:
    start, end = nodes[edge.start], nodes[edge.end]
    if downwards:
        x0, y0, x1, y1 = start.x, start.y + start.height / 2, end.x, end.y - end.height / 2
        path = f"M{x0:g} {y0:g}C{x0:g} {(y0 + y1) / 2:g} {x1:g} {(y0 + y1) / 2:g} {x1:g} {y1:g}"
    else:
        x0, y0, x1, y1 = start.x + start.width / 2, start.y, end.x - end.width / 2, end.y
        path = f"M{x0:g} {y0:g}C{(x0 + x1) / 2:g} {y0:g} {(x0 + x1) / 2:g} {y1:g} {x1:g} {y1:g}"
    drawn = arrow(path, "dashed" if edge.dashed else "")
    if edge.text[0]:
        drawn += label((x0 + x1) / 2, (y0 + y1) / 2, edge.text, "said")
    return drawn
