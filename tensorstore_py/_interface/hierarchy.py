"""The promise of a format that has groups: which keys say what a node is, and what they hold.

A node is an array or a group; its documents are JSON objects under keys of its own, such as
`zarr.json`. A format says what the documents mean and makes new ones. All of it is pure: nothing
here reads or stores. The one invariant: whatever a format changes in a document, everything else
that is in it stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import UnsupportedError

__all__ = ["HierarchyFormat", "JsonObject", "KnownNode", "NodeDocuments", "NodeKind"]

JsonObject: TypeAlias = dict[str, object]
#: The documents of one node, by key.
NodeDocuments: TypeAlias = Mapping[str, JsonObject]
NodeKind = Literal["array", "group"]


class KnownNode(ABC):
    """What a copy of its documents, such as consolidated metadata, tells of an open node."""

    @abstractmethod
    def documents(self) -> NodeDocuments | None:
        """The node's documents; None once something was changed: then the store has to be asked."""

    @abstractmethod
    def spoil(self) -> None:
        """Say that the node is about to be changed, so that the copy is not true any more."""


class HierarchyFormat(ABC):
    """What a format knows of groups; registered with `@hierarchy_format("name")`.

    Attributes:
        format_id: the registered name.
        zarr_format: the version of Zarr that it is, if it is one.
        driver: the driver of its arrays.
        array_key: of the document that makes a node an array.
        group_key: of the document that makes a node a group; may be the same.
        attributes_key: of the document that holds the attributes; may be one of these.
        consolidated_key: of a group's document that may hold those of all nodes below; None: there
            is no such thing.
    """

    format_id: ClassVar[str]
    zarr_format: ClassVar[int | None] = None
    driver: ClassVar[str]
    array_key: ClassVar[str]
    group_key: ClassVar[str]
    attributes_key: ClassVar[str]
    consolidated_key: ClassVar[str | None] = None

    @property
    def node_keys(self) -> tuple[str, ...]:
        """The keys of which one is there if a node is."""
        return tuple(dict.fromkeys((self.array_key, self.group_key)))

    @abstractmethod
    def kind(self, key: str, document: JsonObject) -> NodeKind:
        """What a node is.

        Args:
            key: one of `node_keys`.
            document: what is stored there.

        Raises:
            SpecError: the document is neither an array's nor a group's; names the member.
        """

    @abstractmethod
    def new_group(self, attributes: JsonObject) -> dict[str, JsonObject]:
        """The documents of a new group, by key; the one that makes it a group first."""

    @abstractmethod
    def attributes(self, document: JsonObject | None) -> JsonObject:
        """The attributes of a node.

        Args:
            document: what is stored at `attributes_key`; None: nothing.

        Raises:
            SpecError: they are no object.
        """

    @abstractmethod
    def with_attributes(self, document: JsonObject | None, attributes: JsonObject) -> JsonObject:
        """The document at `attributes_key` with other attributes."""

    @abstractmethod
    def new_array(
        self, spec: JsonObject, attributes: JsonObject, *, labelled: bool
    ) -> tuple[JsonObject, JsonObject]:
        """How an array is created with attributes.

        Args:
            spec: members of the driver's JSON spec that the caller gave.
            attributes: of the array.
            labelled: whether its dimensions have labels, which are to be stored.

        Returns:
            The members to open it with, and the attributes that are left to be stored afterwards.
        """

    @abstractmethod
    def type_name(self, document: JsonObject) -> str:
        """The name of an array's data type, for a picture of the tree.

        Args:
            document: the one that makes it an array; it may hold what no driver can open.
        """

    def summary(self, document: JsonObject) -> str:
        """What an array is in a few words, such as `(10, 20) int16`. Args as for `type_name`."""
        shape = document.get("shape")
        text = str(tuple(shape)) if isinstance(shape, list) else describe(shape)
        return f"{text} {self.type_name(document)}"

    def consolidated(self, document: JsonObject) -> dict[str, NodeDocuments] | None:
        """The documents of the nodes below a group, by path; `""` is the group itself.

        Args:
            document: what is stored at `consolidated_key`.

        Raises:
            SpecError: it is not of this form; names the member.
        """
        return None

    def with_consolidated(
        self, document: JsonObject | None, nodes: Mapping[str, NodeDocuments]
    ) -> JsonObject:
        """The document at `consolidated_key`, with the documents of all nodes.

        Args:
            document: what is stored there now; None: nothing.
            nodes: by path; `""` is the group itself.

        Raises:
            UnsupportedError: the format has no such thing.
        """
        raise UnsupportedError(f'format "{self.format_id}" has no consolidated metadata')

    def check_name(self, name: str) -> None:
        """Refuse the name of a new node, one part of its path, that the format does not allow.

        Raises:
            SpecError: it is not allowed; says why.
        """
        return

    def may_be_node(self, name: str) -> bool:
        """Whether a directory of that name can be a node, as far as the name tells."""
        return True
