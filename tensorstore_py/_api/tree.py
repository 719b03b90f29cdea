"""`Tree`: what is in a group, drawn as text, or as HTML for notebooks.

It is a picture of what was there when it was asked for; nothing here asks anybody. A `TreeFuture`
is one that is still being asked for: a notebook or a console that shows it waits for it, since
whoever asks for a picture as the last thing in a cell wants to see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tensorstore_py._display.outline import outline
from tensorstore_py._display.page import page
from tensorstore_py._runtime.future import Future, Settleable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Tree", "TreeFuture"]


class Printer(Protocol):
    """What IPython prints with."""

    def text(self, text: str) -> None:
        """Print it."""


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
            self._children.setdefault(path.rpartition("/")[0], []).append(path)
            self._labels[path] = label

    def __str__(self) -> str:
        return "\n".join([self._name, *self._lines("", "")])

    __repr__ = __str__

    def _lines(self, path: str, indent: str) -> list[str]:
        lines = []
        children = self._children.get(path, [])
        for child in children:
            last = child is children[-1]
            name, label = child.rpartition("/")[2], self._labels[child]
            shown = f"{name} {label}" if label else name
            lines.append(f"{indent}{'└── ' if last else '├── '}{shown}")
            lines += self._lines(child, indent + ("    " if last else "│   "))
        return lines

    def _repr_html_(self) -> str:
        return page("Tree", self._name, outline(self._children, self._labels))


class TreeFuture(Future[Tree]):
    """A Future of a tree, which notebooks and consoles show as the tree."""

    __slots__ = ()

    @staticmethod
    def of(future: Future[Tree]) -> TreeFuture:
        """The Future of a tree, to be shown."""
        settle = _Settleable()

        def follow(done: Future[Tree]) -> None:
            error = done.error()
            if error is None:
                settle.value(done.result())
            else:
                settle.error(error)

        def cancel() -> None:
            future.cancel()

        settle.attach(future.claim, cancel, future.force)
        future.follow(follow)
        assert isinstance(settle.future, TreeFuture)
        return settle.future

    def _repr_html_(self) -> str:
        return self.result()._repr_html_()

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(str(self.result()))


class _Settleable(Settleable[Tree]):
    __slots__ = ()

    def __init__(self) -> None:
        self.future = TreeFuture()
