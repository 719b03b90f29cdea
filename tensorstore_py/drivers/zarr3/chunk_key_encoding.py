"""Chunk key encodings: the rule by which a chunk's position becomes its key, as metadata says it.

Two rules: `default` puts `c` in front, `v2` does not and calls the only chunk of a scalar array
`0`. Each has a usual separator, which is left out of the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.plugin import ChunkKeys, SeparatedKeys, describe

__all__ = ["ChunkKeyEncoding"]

_USUAL = {"default": "/", "v2": "."}


@dataclass(frozen=True, slots=True)
class ChunkKeyEncoding:
    """A rule for chunk keys.

    Attributes:
        name: `"default"` or `"v2"`.
        separator: `"/"` or `"."`.

    Example:
        >>> encoding = ChunkKeyEncoding.parse({"name": "v2"})
        >>> encoding.to_json(), encoding.bind(2).encode((3, 4))
        ({'name': 'v2'}, '3.4')
    """

    name: Literal["default", "v2"] = "default"
    separator: Literal["/", "."] = "/"

    @classmethod
    def parse(cls, json: object) -> ChunkKeyEncoding:
        """The rule for a `chunk_key_encoding` member.

        Raises:
            SpecError: no such rule or separator.
        """
        if not isinstance(json, Mapping):
            raise SpecError(f"expected an object, but found {describe(json)}")
        _refuse_others(json, ("name", "configuration"), ())
        name = json.get("name")
        if not isinstance(name, str) or name not in _USUAL:
            found = describe(name) if "name" in json else "nothing"
            raise SpecError(f'expected "default" or "v2", but found {found}', ("name",))
        configuration = json.get("configuration", {})
        if not isinstance(configuration, Mapping):
            raise SpecError(
                f"expected an object, but found {describe(configuration)}", ("configuration",)
            )
        _refuse_others(configuration, ("separator",), ("configuration",))
        separator = configuration.get("separator", _USUAL[name])
        if not isinstance(separator, str) or separator not in ("/", "."):
            raise SpecError(
                f'expected "/" or ".", but found {describe(separator)}',
                ("configuration", "separator"),
            )
        return cls(cast("Literal['default', 'v2']", name), cast("Literal['/', '.']", separator))

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object; the usual separator is left out.

        Args:
            include_defaults: write it, too.
        """
        if self.separator == _USUAL[self.name] and not include_defaults:
            return {"name": self.name}
        return {"configuration": {"separator": self.separator}, "name": self.name}

    def bind(self, rank: int) -> ChunkKeys:
        """The keys of an array."""
        if self.name == "v2":
            return SeparatedKeys(rank, self.separator)
        return SeparatedKeys(rank, self.separator, prefix=f"c{self.separator}", scalar="c")


def _refuse_others(
    json: Mapping[str, object], allowed: tuple[str, ...], path: tuple[str, ...]
) -> None:
    for name in json:
        if name not in allowed:
            raise SpecError(f"no such member{did_you_mean(name, allowed)}", (*path, name))
