"""`Tree`: what is in a group, drawn as text, or as HTML for notebooks.

It is a picture of what was there when it was asked for; nothing here asks anybody.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Tree"]


class Tree:
    """The nodes below a group.

    Args:
        name: of the group.
        nodes: paths, and what to say of each besides its name.

    Example:
        >>> import tensorstore_py as ts
        >>> group = ts.Group.open("memory://", create=True).result()
        >>> _ = group.create_array("a/b", dtype="int16", shape=[3, 4]).result()
        >>> _ = group.create_group("c").result()
        >>> print(group.tree().result())
        /
        ├── a
        │   └── b (3, 4) int16
        └── c
    """

    __slots__ = ("_children", "_labels", "_name")

    def __init__(self, name: str, nodes: Iterable[tuple[str, str]]) -> None:
        self._name = name
        self._labels: dict[str, str] = {}
        self._children: dict[str, list[str]] = {}
        for path, label in sorted(nodes):
            parent, _, last = path.rpartition("/")
            self._children.setdefault(parent, []).append(path)
            self._labels[path] = f"{last} {label}" if label else last

    def __str__(self) -> str:
        return "\n".join([self._name, *self._lines("", "")])

    __repr__ = __str__

    def _lines(self, path: str, indent: str) -> list[str]:
        lines = []
        children = self._children.get(path, [])
        for child in children:
            last = child is children[-1]
            lines.append(f"{indent}{'└── ' if last else '├── '}{self._labels[child]}")
            lines += self._lines(child, indent + ("    " if last else "│   "))
        return lines

    def _repr_html_(self) -> str:
        return f"<div><strong>{escape(self._name)}</strong>{self._html('')}</div>"

    def _html(self, path: str) -> str:
        children = self._children.get(path, [])
        if not children:
            return ""
        items = "".join(
            f"<li><details open><summary>{escape(self._labels[child])}</summary>"
            f"{self._html(child)}</details></li>"
            if child in self._children
            else f"<li>{escape(self._labels[child])}</li>"
            for child in children
        )
        return f"<ul>{items}</ul>"
