"""`SourceArray`: an array that is to be copied, as it is found in its hierarchy or by itself.

What it is, is its driver's matter, and what its documents say is its format's; here are both. The
one invariant: elements are whole values. Where a driver takes them apart by default (text of a
fixed length), it is asked for the type that keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.group_arrays import open_array
from tensorstore_py._hierarchy.attributes import AttributesFile
from tensorstore_py._index import identity
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py.errors import NotFoundError

if TYPE_CHECKING:
    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.ends import Found
    from tensorstore_py._hierarchy.node import Hierarchy, Node
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject
    from tensorstore_py._interface.transaction import Transaction

__all__ = ["SourceArray", "is_whole", "node_attributes", "open_source"]

#: Types that take text and bytes of a fixed length apart, and those that don't.
_WHOLE = {"char": "S", "byte": "V"}


class SourceArray(NamedTuple):
    """See the head of this file.

    Attributes:
        path: below what is copied; `""` is that itself.
        array: the open array, or a view of one.
        document: what makes it an array in its format; None if it is no whole node.
        form: the format; None if it has none.
        attributes: of the array.
    """

    path: str
    array: TensorStore
    document: JsonObject | None
    form: HierarchyFormat | None
    attributes: JsonObject

    @property
    def driver(self) -> Driver:
        """The open array itself."""
        return self.array._driver

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(self.array.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size


async def open_source(found: Found, node: Node, path: str) -> SourceArray:
    """An array that is a node of the hierarchy at an end.

    Args:
        found: the end.
        node: the array's.
        path: below what is copied.
    """
    tree = found.tree
    assert tree is not None
    document = node.documents[tree.form.array_key]
    array = found.array
    if array is None or path:
        assert found.place is not None
        array = await _whole_elements(found.place, node, found.transaction, document)
    elif found.place is not None:
        array = await _whole_elements(found.place, node, found.transaction, document, array)
    attributes = await node_attributes(tree, node)
    return SourceArray(path, array, document if is_whole(array) else None, tree.form, attributes)


async def node_attributes(tree: Hierarchy, node: Node) -> JsonObject:
    """The attributes of a node that was read."""
    key = tree.form.attributes_key
    if key in node.documents:
        return dict(tree.form.attributes(node.documents[key]))
    if node.kind == "array":
        return {}
    known = None if node.consolidated is None else node.consolidated.at(node.path)
    try:
        return await AttributesFile(tree.store, tree.below(node.path), tree.form, known).read()
    except NotFoundError:  # it was deleted meanwhile
        return {}


async def _whole_elements(
    place: Place,
    node: Node,
    transaction: Transaction | None,
    document: JsonObject,
    array: TensorStore | None = None,
) -> TensorStore:
    if array is None:
        array = await open_array(place, node, transaction, {}, Lifetime("TensorStore"))
    letter, shape = _WHOLE.get(array.dtype.name), document.get("shape")
    if letter is None or not isinstance(shape, list) or len(shape) == array.rank:
        return array
    asked = {"dtype": f"{letter}{array.shape[-1]}"}
    return await open_array(place, node, transaction, asked, Lifetime("TensorStore"))


def is_whole(array: TensorStore) -> bool:
    """Whether a view is all of the array, as it is."""
    domain, view = array._driver.domain, array._transform
    return (
        view.maps == identity(domain).maps
        and view.input_shape == domain.shape
        and view.input_origin == domain.origin
        and view.input_labels == domain.labels
    )
