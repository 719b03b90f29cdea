"""Groups, attributes and consolidated metadata of Zarr version 3.

Every node is one `zarr.json`, which holds its attributes, too. A group's may hold the documents of
all nodes below it, inline. No group is implied by what is below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import describe
from tensorstore_py.plugin.driver import (
    HierarchyFormat,
    hierarchy_format,
)

__all__ = ["Zarr3Hierarchy"]

JsonObject = dict[str, object]

_KEY = "zarr.json"
_CONSOLIDATED = "consolidated_metadata"
#: What xarray calls arrays that have no name, although such names are reserved.
_NAMELESS = frozenset({"__values__", "__xarray_dataarray_variable__"})


@hierarchy_format("zarr3")
class Zarr3Hierarchy(HierarchyFormat):
    """See the head of this file.

    Example:
        >>> Zarr3Hierarchy().new_group({"a": 1})
        {'zarr.json': {'zarr_format': 3, 'node_type': 'group', 'attributes': {'a': 1}}}
    """

    zarr_format = 3
    driver: ClassVar[str] = "zarr3"
    array_key = group_key = attributes_key = _KEY
    consolidated_key: ClassVar[str | None] = _KEY

    def kind(self, key: str, document: JsonObject) -> Literal["array", "group"]:
        if document.get("zarr_format") != 3:
            found = describe(document.get("zarr_format"))
            raise SpecError(f"expected 3, but found {found}", ("zarr_format",))
        node_type = document.get("node_type")
        if node_type == "array":
            return "array"
        if node_type == "group":
            return "group"
        raise SpecError(
            f'expected "array" or "group", but found {describe(node_type)}', ("node_type",)
        )

    def new_group(self, attributes: JsonObject) -> dict[str, JsonObject]:
        return {_KEY: {"zarr_format": 3, "node_type": "group", "attributes": attributes}}

    def attributes(self, document: JsonObject | None) -> JsonObject:
        found = (document or {}).get("attributes", {})
        if not isinstance(found, dict):
            raise SpecError(f"expected an object, but found {describe(found)}", ("attributes",))
        return found

    def with_attributes(self, document: JsonObject | None, attributes: JsonObject) -> JsonObject:
        return {**(document or {}), "attributes": attributes}

    def new_array(
        self, spec: JsonObject, attributes: JsonObject, *, labelled: bool
    ) -> tuple[JsonObject, JsonObject]:
        if not attributes:
            return spec, {}
        metadata = spec.get("metadata")
        stated = metadata if isinstance(metadata, dict) else {}
        merged = {**self.attributes(stated), **attributes}
        return {**spec, "metadata": {**stated, "attributes": merged}}, {}

    def type_name(self, document: JsonObject) -> str:
        found = document.get("data_type")
        if isinstance(found, dict):
            found = found.get("name")
        return found if isinstance(found, str) else describe(found)

    def consolidated(self, document: JsonObject) -> dict[str, Mapping[str, JsonObject]] | None:
        stated = document.get(_CONSOLIDATED)
        if stated is None:
            return None
        if not isinstance(stated, dict) or stated.get("kind") != "inline":
            raise SpecError(
                f'expected an object of kind "inline", but found {describe(stated)}',
                (_CONSOLIDATED,),
            )
        found = stated.get("metadata")
        if not isinstance(found, dict):
            raise SpecError(
                f"expected an object, but found {describe(found)}", (_CONSOLIDATED, "metadata")
            )
        nodes: dict[str, Mapping[str, JsonObject]] = {"": {_KEY: document}}
        for path, inner in found.items():
            if not isinstance(inner, dict):
                raise SpecError(
                    f"expected an object, but found {describe(inner)}",
                    (_CONSOLIDATED, "metadata", path),
                )
            nodes[path] = {_KEY: inner}
        return nodes

    def with_consolidated(
        self, document: JsonObject | None, nodes: Mapping[str, Mapping[str, JsonObject]]
    ) -> JsonObject:
        metadata: JsonObject = {
            path: {name: value for name, value in each[_KEY].items() if name != _CONSOLIDATED}
            for path, each in sorted(nodes.items())
            if path
        }
        inline = {"kind": "inline", "must_understand": False, "metadata": metadata}
        return {**(document or {}), _CONSOLIDATED: inline}

    def check_name(self, name: str) -> None:
        if not self.may_be_node(name):
            raise SpecError(f'"{name}": names that begin with "__" are reserved by the format')
        if name == _KEY:
            raise SpecError(f'"{name}" is the key of metadata; choose another name')

    def may_be_node(self, name: str) -> bool:
        return not name.startswith("__") or name in _NAMELESS
