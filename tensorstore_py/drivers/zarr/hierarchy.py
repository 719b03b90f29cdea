"""Groups, attributes and consolidated metadata of Zarr version 2.

A group is a `.zgroup`; attributes have a document of their own, `.zattrs`; `.zmetadata` holds the
documents of a whole tree. The format demands that every group above a node is stored, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import describe
from tensorstore_py.plugin.driver import (
    HierarchyFormat,
    hierarchy_format,
)

__all__ = ["Zarr2Hierarchy"]

JsonObject = dict[str, object]

_NODE_KEYS = (".zarray", ".zgroup", ".zattrs")
#: Where xarray keeps the names of dimensions, for which the format has no place.
_LABELS = "_ARRAY_DIMENSIONS"


@hierarchy_format("zarr2")
class Zarr2Hierarchy(HierarchyFormat):
    """See the head of this file.

    Example:
        >>> Zarr2Hierarchy().new_group({"a": 1})
        {'.zgroup': {'zarr_format': 2}, '.zattrs': {'a': 1}}
    """

    zarr_format = 2
    driver: ClassVar[str] = "zarr"
    array_key = ".zarray"
    group_key = ".zgroup"
    attributes_key = ".zattrs"
    consolidated_key: ClassVar[str | None] = ".zmetadata"

    def kind(self, key: str, document: JsonObject) -> Literal["array", "group"]:
        if document.get("zarr_format") != 2:
            found = describe(document.get("zarr_format"))
            raise SpecError(f"expected 2, but found {found}", ("zarr_format",))
        return "array" if key == self.array_key else "group"

    def new_group(self, attributes: JsonObject) -> dict[str, JsonObject]:
        documents: dict[str, JsonObject] = {self.group_key: {"zarr_format": 2}}
        if attributes:
            documents[self.attributes_key] = attributes
        return documents

    def attributes(self, document: JsonObject | None) -> JsonObject:
        return {} if document is None else document

    def with_attributes(self, document: JsonObject | None, attributes: JsonObject) -> JsonObject:
        return attributes

    def new_array(
        self, spec: JsonObject, attributes: JsonObject, *, labelled: bool
    ) -> tuple[JsonObject, JsonObject]:
        labels = {"array_dimensions": True} if labelled and _LABELS not in attributes else {}
        return {**labels, **spec}, attributes

    def type_name(self, document: JsonObject) -> str:
        dtype = document.get("dtype")
        if not isinstance(dtype, str):
            return describe(dtype)
        try:
            return np.dtype(dtype).name
        except TypeError:
            return dtype

    def consolidated(self, document: JsonObject) -> dict[str, Mapping[str, JsonObject]] | None:
        stated = document.get("zarr_consolidated_format")
        if stated != 1:
            raise SpecError(
                f"expected 1, but found {describe(stated)}", ("zarr_consolidated_format",)
            )
        found = document.get("metadata")
        if not isinstance(found, dict):
            raise SpecError(f"expected an object, but found {describe(found)}", ("metadata",))
        nodes: dict[str, dict[str, JsonObject]] = {}
        for whole, inner in found.items():
            path, _, key = whole.rpartition("/")
            if key not in _NODE_KEYS:
                continue
            if not isinstance(inner, dict):
                raise SpecError(
                    f"expected an object, but found {describe(inner)}", ("metadata", whole)
                )
            nodes.setdefault(path, {})[key] = inner
        return {path: each for path, each in nodes.items() if set(each) != {".zattrs"}}

    def with_consolidated(
        self, document: JsonObject | None, nodes: Mapping[str, Mapping[str, JsonObject]]
    ) -> JsonObject:
        metadata: JsonObject = {
            f"{path}/{key}" if path else key: documents[key]
            for path, documents in sorted(nodes.items())
            for key in _NODE_KEYS
            if key in documents
        }
        return {"metadata": metadata, "zarr_consolidated_format": 1}
