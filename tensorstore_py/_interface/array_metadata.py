"""Metadata documents: as constraints of which any part may be left open, and as a whole.

A format writes one class of constraints, a `Model` whose members are those of the document, and
derives the whole document from it by making members required. So whatever is said of a member is
said once, and a whole document is a set of constraints that only it satisfies.

Documents of other writers may break the format's rules in ways that have one meaning. `standard`
puts these right; it is only called for a document that was refused.
"""

from __future__ import annotations

import json as json_module
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any

from tensorstore_py._spec.json_value import describe, freeze, parse_stored_json
from tensorstore_py._spec.model import Model
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["ArrayMetadata", "MetadataConstraints", "same_rank"]


class MetadataConstraints(Model):
    """What a spec says of a document; members left out are unconstrained.

    Example:
        >>> class Sizes(MetadataConstraints):
        ...     shape: tuple[int, ...] | None = None
        >>> Sizes.parse({}).is_spec_default
        True
    """

    @property
    def is_spec_default(self) -> bool:
        """Whether nothing is said, so that a spec need not print it."""
        return not self.to_json()

    @classmethod
    def parse_document(cls, json: Mapping[str, object], required: Iterable[str] = ()) -> Self:
        """As `parse`, for a stored document.

        Args:
            json: the document; each member is frozen by itself, so that an error names it.
            required: members that must be there.

        Raises:
            SpecError: a member is missing, unknown or not possible; the path names it.
        """
        for name in required:
            if name not in json:
                raise SpecError("this member is required", (name,))
        members: dict[str, object] = {}
        for name, value in json.items():
            try:
                members[name] = freeze(value)
            except (SpecError, OverflowError) as error:
                raise SpecError(str(error), (name,)) from None
        return cls.parse_frozen(members)

    def check(self, document: ArrayMetadata) -> None:
        """Compare the members that are stated with those of a stored document.

        Raises:
            MismatchError: names the first that differs, what is stored and what is asked.
        """
        asked = self.to_json()
        if asked:
            self.check_members(asked, document.to_json())

    @staticmethod
    def check_members(asked: Mapping[str, object], stored: Mapping[str, object]) -> None:
        """`check`, for the JSON of both.

        Example:
            >>> MetadataConstraints.check_members({"shape": [2]}, {"shape": [3]})
            Traceback (most recent call last):
                ...
            tensorstore_py.errors.MismatchError: "shape" is [3] in the stored metadata, but the \
spec asks for [2]
        """
        for name, value in asked.items():
            if name not in stored:
                raise MismatchError(
                    f'"{name}" is not in the stored metadata, but the spec asks for '
                    f"{describe(value)}"
                )
            if value != stored[name]:
                raise MismatchError(
                    f'"{name}" is {describe(stored[name])} in the stored metadata, but the spec '
                    f"asks for {describe(value)}"
                )


class ArrayMetadata(ABC):
    """One array's whole document; a format's class derives from its constraints first."""

    @classmethod
    def read(cls, data: bytes) -> Self:
        """The metadata for a stored document.

        Raises:
            MismatchError: this is of a group.
            SpecError: this is not JSON, or a member is missing or wrong; the path names it.
        """
        json = parse_stored_json(data)
        if not isinstance(json, dict):
            raise SpecError(f"expected an object, but found {describe(json)}")
        try:
            return cls.of(json, {})
        except SpecError:
            found = cls.standard(json)
            if found is None:
                raise
            return cls.of(*found)

    @classmethod
    @abstractmethod
    def of(cls, json: Mapping[str, object], kept: Mapping[str, object]) -> Self:
        """The metadata for a document and what is kept beside it.

        Raises:
            MismatchError: this is of something else, such as a group.
            SpecError: a member is missing or wrong; the path names it.
        """

    @classmethod
    def standard(
        cls, json: Mapping[str, object]
    ) -> tuple[Mapping[str, object], Mapping[str, object]] | None:
        """A refused document in the words of the format, and what is kept of it; None: refused."""
        del json
        return None

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """The members of the format."""

    def serialize(self) -> bytes:
        """The document to store."""
        return json_module.dumps(self.to_json(), separators=(",", ":")).encode()

    @property
    def constraints(self) -> object:
        """The constraints that only this document satisfies: a spec's `metadata` member."""
        stated: type[Any] = type(self).__bases__[0]
        return stated().replace(**{name: getattr(self, name) for name in stated.model_fields})

    @abstractmethod
    def resized(self, shape: tuple[int, ...]) -> Self:
        """The metadata of the array with another shape."""


def same_rank(members: Mapping[str, Sized | None]) -> int | None:
    """The number of dimensions that all members agree on; None if none tells.

    Args:
        members: those with an entry for each dimension; None tells nothing.

    Raises:
        SpecError: two differ; the path names the second.

    Example:
        >>> same_rank({"shape": [4, 6], "chunks": None})
        2
    """
    first: tuple[str, int] | None = None
    for name, member in members.items():
        if member is None:
            continue
        rank = len(member)
        if first is not None and rank != first[1]:
            raise SpecError(f"{rank} dimensions, but {first[0]} has {first[1]}", (name,))
        first = first or (name, rank)
    return None if first is None else first[1]
