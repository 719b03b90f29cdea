"""Chunk key encodings: the rule by which a chunk's position becomes its key, as metadata says it.

Two rules are built in: `default` puts `c` in front, `v2` does not and calls the only chunk of a
scalar array `0`. Each has a usual separator, which is left out of the JSON. Others are registered
by `chunk_key_encoding`, as these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.plugin.driver import (
    ChunkKeyEncodingModel,
    ChunkKeys,
    SeparatedKeys,
    chunk_key_encoding,
    chunk_key_encodings,
    describe,
)

__all__ = ["ChunkKeyEncoding", "DefaultKeyEncoding", "V2KeyEncoding"]

_MEMBERS = ("configuration", "must_understand", "name")


@chunk_key_encoding("default")
class DefaultKeyEncoding(ChunkKeyEncodingModel):
    """Asked: `default`, which is `c/1/2`.

    Attributes:
        separator: what stands between the numbers, and behind the `c`.

    Example:
        >>> DefaultKeyEncoding.parse({"separator": "."}).bind(2).encode((1, 23))
        'c.1.23'
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"separator"})

    separator: Literal["/", "."] = "/"

    def bind(self, rank: int) -> ChunkKeys:
        return SeparatedKeys(rank, self.separator, prefix=f"c{self.separator}", scalar="c")


@chunk_key_encoding("v2")
class V2KeyEncoding(ChunkKeyEncodingModel):
    """Asked: `v2`, which is `1.2`, as version 2 has it.

    Attributes:
        separator: what stands between the numbers.

    Example:
        >>> V2KeyEncoding().bind(2).encode((1, 23))
        '1.23'
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"separator"})

    separator: Literal["/", "."] = "."

    def bind(self, rank: int) -> ChunkKeys:
        return SeparatedKeys(rank, self.separator)


@dataclass(frozen=True, slots=True)
class ChunkKeyEncoding:
    """A rule for chunk keys.

    Attributes:
        model: the rule with its members.

    Example:
        >>> encoding = ChunkKeyEncoding.parse({"name": "v2"})
        >>> encoding.to_json(), encoding.bind(2).encode((3, 4))
        ({'name': 'v2'}, '3.4')
    """

    model: ChunkKeyEncodingModel = field(default_factory=DefaultKeyEncoding)

    @classmethod
    def parse(cls, json: object) -> ChunkKeyEncoding:
        """The rule for a `chunk_key_encoding` member.

        Raises:
            SpecError: no such rule, or a member of its configuration is not possible.
        """
        if isinstance(json, str):
            json = {"name": json}
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        for member in sorted(json):
            if member not in _MEMBERS:
                raise SpecError(f"no such member{did_you_mean(member, _MEMBERS)}", (member,))
        if not isinstance(json.get("must_understand", True), bool):
            raise SpecError("expected true or false", ("must_understand",))
        configuration = json.get("configuration", {})
        if not isinstance(configuration, Mapping):
            raise SpecError(
                f"expected an object, but found {describe(configuration)}", ("configuration",)
            )
        model = _rule(json)
        try:
            return cls(model.parse(configuration))
        except SpecError as error:
            raise error.inside("configuration") from None

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object; the usual separator is left out.

        Args:
            include_defaults: write it, too.
        """
        configuration = self.model.to_json(include_defaults)
        if not configuration:
            return {"name": self.model.encoding_id}
        return {"configuration": configuration, "name": self.model.encoding_id}

    def bind(self, rank: int) -> ChunkKeys:
        """The keys of an array."""
        return self.model.bind(rank)


def _rule(json: Mapping[str, object]) -> type[ChunkKeyEncodingModel]:
    name = json.get("name")
    if not isinstance(name, str):
        found = describe(name) if "name" in json else "nothing"
        raise SpecError(f'expected a name such as "default" or "v2", but found {found}', ("name",))
    try:
        found_class = chunk_key_encodings.get(name)
    except SpecError as error:
        raise error.inside("name") from None
    assert issubclass(found_class, ChunkKeyEncodingModel)
    return found_class
