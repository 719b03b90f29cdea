"""What is at a place, to be read: the arrays that are there, and the tree that they are in.

A user names it as for `ts.copy`, whose `endpoints` find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.open import opened
from tensorstore_py._api.prepared import as_model
from tensorstore_py._conversion.endpoints import (
    FoundEndpoint,
    SourceArray,
    node_attributes,
    open_source,
    source,
)
from tensorstore_py._conversion.versions import plain_attributes
from tensorstore_py._hierarchy.walk import Walk
from tensorstore_py._plan.arrays import array_json
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._spec.context import bind
from tensorstore_py.errors import (
    MismatchError,
    NotFoundError,
    PermissionDeniedError,
    SpecError,
)

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.endpoints import SourceEndpoint
    from tensorstore_py._hierarchy.node import Node
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.context import Context

__all__ = ["Contents", "array_arguments", "contents", "end_of", "one_array"]


def end_of(given: object, context: Context) -> SourceEndpoint:
    """The place that a user names: what `ts.copy` takes, and what `ts.open` finds by itself.

    Raises SpecError: something is wrong with it; names the JSON path.
    """
    end = source(given, context)

    async def find() -> FoundEndpoint:
        try:
            return await end.find()
        except NotFoundError as error:
            array = await _array_of_any_format(given, end, context)
            if array is None:
                raise NotFoundError(str(error).removeprefix("nothing to copy: ")) from error
            return FoundEndpoint(None, array=array)

    return end._replace(find=find)


async def _array_of_any_format(
    given: object, end: SourceEndpoint, context: Context
) -> TensorStore | None:
    """The array at a place that is none of a hierarchy that members are listed of."""
    try:
        model = bind(as_model(given), context)
        driver = await within(end.inline, model.inline, model.open)
    except (NotFoundError, SpecError, TypeError):
        return None
    return opened(driver, model, readable=True, writable=True)


class Contents(NamedTuple):
    """The attributes of groups and the arrays at a place, by path below it; `""` is that itself.

    `is_tree`: it is a group; then attributes count, too.
    """

    groups: dict[str, JsonObject]
    arrays: dict[str, SourceArray]
    is_tree: bool

    def attributes(self, path: str) -> JsonObject:
        """Those of a member, without what only says how the format keeps names of dimensions."""
        if path in self.groups:
            return self.groups[path]
        array = self.arrays[path]
        return plain_attributes(array.attributes, len(array.shape))


async def contents(inline: bool, end: SourceEndpoint) -> Contents:
    """The arrays and groups at a place.

    Raises:
        NotFoundError: nothing is there.
        PermissionDeniedError: an open array was not opened for reading.
    """
    return await within(inline, end.inline, lambda: _contents(end))


async def _contents(end: SourceEndpoint) -> Contents:
    found = await end.find()
    if found.tree is None or found.node is None or found.node.kind == "array":
        return Contents({}, {"": await _single(found)}, False)
    tree, base = found.tree, len(found.path)
    nodes = [found.node]
    walk = Walk(tree, found.path, found.node.consolidated, None)
    while (step := await walk.step()) is not None:
        nodes += step
    groups: dict[str, JsonObject] = {}
    arrays: dict[str, SourceArray] = {}

    async def look(node: Node) -> None:
        path = node.path[base:].lstrip("/")
        if node.kind == "array":
            arrays[path] = await open_source(found, node, path)
        else:
            groups[path] = await node_attributes(tree, node)

    store = tree.store
    await fan_out(store.inline, nodes, look, count=len(nodes), width=store.width)
    return Contents(groups, arrays, True)


async def _single(found: FoundEndpoint) -> SourceArray:
    if found.array is not None and not found.array.readable:
        raise PermissionDeniedError("not opened for reading; open it with read=True")
    if found.node is not None:
        return await open_source(found, found.node, "")
    assert found.array is not None
    return SourceArray("", found.array, None, None, {})


def array_arguments(array: TensorStore, path: str) -> JsonObject:
    """What another process opens an array by.

    Raises UnsupportedError: it is what only this process has.
    """
    return array_json(array, f'the array "/{path}"')


def one_array(found: Contents, what: str) -> SourceArray:
    """The array that is there.

    Raises MismatchError: it is a group.
    """
    if found.is_tree:
        names = ", ".join(f'"{path}"' for path in sorted(found.arrays)[:5])
        raise MismatchError(
            f"{what} takes one array, and a group is there; "
            + (f"name one of its arrays: {names}" if names else "it has no arrays")
        )
    return found.arrays[""]
