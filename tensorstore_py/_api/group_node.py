"""`GroupNode`: what is stored of an array or a group, before it is opened.

It holds the documents that were read, and opens the node from them, so without a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._hierarchy.node import Node
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject, NodeKind
    from tensorstore_py._runtime.future import Future

__all__ = ["GroupNode"]


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
