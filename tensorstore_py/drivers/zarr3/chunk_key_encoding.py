"""Chunk key encodings: the rule by which a chunk's position becomes its key, as metadata says it.

Two rules are built in: `default` puts `c` in front, `v2` does not and calls the only chunk of a
scalar array `0`. Each has a usual separator, which is left out of the JSON. Others are registered
by `chunk_key_encoding`, as these are.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from tensorstore_py.plugin.driver import (
    ChunkKeyEncodingModel,
    ChunkKeys,
    SeparatedKeys,
    chunk_key_encoding,
)

__all__ = ["DefaultKeyEncoding", "V2KeyEncoding"]


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
