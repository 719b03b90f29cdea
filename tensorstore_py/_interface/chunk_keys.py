"""Chunk keys: how the position of a chunk in the grid becomes its name.

Asked: a `ChunkKeyEncodingModel` parsed from metadata JSON. Bound to one rank: `ChunkKeys`. Names
are relative to the array's path. The invariant: no two cells have one name, and no name is that of
the metadata.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from tensorstore_py._interface.named_configuration import NamedConfiguration
from tensorstore_py._spec.registry import chunk_key_encodings
from tensorstore_py.errors import UnsupportedError

__all__ = ["ChunkKeyEncodingModel", "ChunkKeys", "OuterKeys", "SeparatedKeys"]


class ChunkKeys(ABC):
    """Chunk positions to names and back."""

    @abstractmethod
    def encode(self, cell: tuple[int, ...]) -> str:
        """The name of the chunk at `cell`."""

    @abstractmethod
    def decode(self, name: str) -> tuple[int, ...] | None:
        """The cell that `name` stands for, or None if it is not a chunk's name."""


class ChunkKeyEncodingModel(NamedConfiguration):
    """What was asked of the names of chunks: the members of its configuration.

    Attributes:
        encoding_id: the registered name, as written in metadata.
    """

    registry = chunk_key_encodings
    examples = ("default", "v2")
    encoding_id: ClassVar[str]

    @classmethod
    def parse_named(cls, json: object) -> Self:
        return super().parse_named({"name": json} if isinstance(json, str) else json)

    def named_json(self, include_defaults: bool = False) -> dict[str, object]:
        configuration = self.to_json(include_defaults)
        if not configuration:
            return {"name": self.encoding_id}
        return {"configuration": configuration, "name": self.encoding_id}

    def bind(self, rank: int) -> ChunkKeys:
        """The names for a grid of a rank.

        Raises:
            SpecError: a member does not fit the rank.
            UnsupportedError: the encoding only exists as a name.
        """
        raise UnsupportedError(f'chunk key encoding "{self.encoding_id}" cannot be bound')


class SeparatedKeys(ChunkKeys):
    """Decimal indices joined by a separator, after a prefix: `c/0/1`, `0.1`.

    Args:
        rank: rank of the grid.
        separator: "/" or ".".
        prefix: put in front, such as "c/".
        scalar: the whole name for rank 0.

    Example:
        >>> keys = SeparatedKeys(2, "/", prefix="c/", scalar="c")
        >>> keys.encode((3, 14)), keys.decode("c/3/14"), keys.decode("c/3/x")
        ('c/3/14', (3, 14), None)
    """

    def __init__(self, rank: int, separator: str, *, prefix: str = "", scalar: str = "0") -> None:
        self._rank = rank
        self._separator = separator
        self._prefix = prefix
        self._scalar = scalar
        # "%d/%d" % cell is the fastest way from a tuple of ints to a name.
        self._format = prefix + separator.join(["%d"] * rank) if rank else scalar

    def encode(self, cell: tuple[int, ...]) -> str:
        return self._format % cell

    def decode(self, name: str) -> tuple[int, ...] | None:
        if not self._rank:
            return () if name == self._scalar else None
        if not name.startswith(self._prefix):
            return None
        parts = name[len(self._prefix) :].split(self._separator)
        if len(parts) != self._rank:
            return None
        if not all(part.isascii() and part.isdigit() and str(int(part)) == part for part in parts):
            return None
        return tuple(map(int, parts))


class OuterKeys(ChunkKeys):
    """Names by the first `rank` dimensions only; `inner_rank` others, not chunked, come behind."""

    def __init__(self, base: ChunkKeys, rank: int, inner_rank: int) -> None:
        self._base = base
        self._rank = rank
        self._zeros = (0,) * inner_rank

    def encode(self, cell: tuple[int, ...]) -> str:
        return self._base.encode(cell[: self._rank])

    def decode(self, name: str) -> tuple[int, ...] | None:
        cell = self._base.decode(name)
        return None if cell is None else (*cell, *self._zeros)
