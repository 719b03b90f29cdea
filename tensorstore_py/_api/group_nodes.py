"""What a `Group` gives of the nodes below it: `Members`, `GroupNode` and `Tree`.

`Members` are opened nodes, in batches, each begun when the one before it was taken. A `GroupNode`
holds the documents of a node that is not opened yet. A `Tree` is a picture of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tensorstore_py._display.outline import outline
from tensorstore_py._display.page import page
from tensorstore_py._runtime.future import Future, Settleable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator

    from tensorstore_py._hierarchy.node import Node
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject, NodeKind


__all__ = ["GroupNode", "Members", "Tree", "TreeFuture"]


class GroupNode:
    """A node of a group, as `Group.nodes` gives it.

    Attributes:
        open: opens it, as a `TensorStore` or a `Group`: a function without arguments that returns a
            Future.

    Example:
        >>> import tensorstore_py as ts
        >>> group = ts.Group.open("memory://", create=True).result()
        >>> _ = group.create_array("a", dtype="int16", shape=[3], attributes={"unit": "m"}).result()
        >>> node = group.nodes().result()["a"]
        >>> node.kind, node.attributes, node.metadata["shape"], node.open().result().rank
        ('array', {'unit': 'm'}, [3], 1)
    """

    __slots__ = ("_form", "_node", "open")

    def __init__(self, node: Node, form: HierarchyFormat, open: Callable[[], Future[Any]]) -> None:
        self._node = node
        self._form = form
        self.open = open

    @property
    def kind(self) -> NodeKind:
        """`"array"` or `"group"`."""
        return self._node.kind

    @property
    def attributes(self) -> JsonObject:
        """Its attributes.

        Raises:
            SpecError: they are no JSON object.
        """
        return dict(self._form.attributes(self._node.documents.get(self._form.attributes_key)))

    @property
    def metadata(self) -> JsonObject:
        """Its metadata document, as it is stored: `zarr.json`, `.zarray`, `.zgroup`."""
        form, documents = self._form, self._node.documents
        return documents[form.array_key if self.kind == "array" else form.group_key]

    def __repr__(self) -> str:
        return f"GroupNode({self._node.path!r}, {self.kind})"


N = TypeVar("N")


class Members(Generic[N]):
    """Pairs of a path and the open node that is there.

    Args:
        begin: begins a step as an operation.
        steps: begins a walk: makes a function whose coroutines give a batch each, None at the end.

    Example:
        >>> import tensorstore_py as ts
        >>> group = ts.Group.open("memory://", create=True).result()
        >>> _ = group.create_array("a/b", dtype="int16", shape=[3]).result()
        >>> [(path, type(node).__name__) for path, node in group.members(max_depth=None)]
        [('a', 'Group'), ('a/b', 'TensorStore')]
        >>> dict(group.members())
        {'a': Group('memory://a/', zarr_format=3)}
    """

    __slots__ = ("_begin", "_steps")

    def __init__(
        self,
        begin: Callable[[Callable[[], Coroutine[Any, Any, Any]]], Future[Any]],
        steps: Callable[[], Callable[[], Coroutine[Any, Any, list[tuple[str, N]] | None]]],
    ) -> None:
        self._begin = begin
        self._steps = steps

    def __iter__(self) -> Iterator[tuple[str, N]]:
        step = self._steps()
        while (batch := self._begin(step).result()) is not None:
            yield from batch

    async def __aiter__(self) -> AsyncIterator[tuple[str, N]]:
        step = self._steps()
        while (batch := await self._begin(step)) is not None:
            for pair in batch:
                yield pair

    def read(self) -> Future[list[tuple[str, N]]]:
        """All of them, as a list."""
        return self._begin(self.collect)

    async def collect(self) -> list[tuple[str, N]]:
        """All of them, as a part of another operation."""
        step = self._steps()
        found: list[tuple[str, N]] = []
        while (batch := await step()) is not None:
            found += batch
        return found

    def __await__(self) -> Generator[object, None, list[tuple[str, N]]]:
        return self.read().__await__()

    def result(self) -> list[tuple[str, N]]:
        """`read().result()`."""
        return self.read().result()


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
