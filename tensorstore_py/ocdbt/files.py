"""The files in the directory of a database, and which of them are its data files.

A data file has a random name of 32 hexadecimal digits behind some prefix. A directory with a
manifest of its own is another database: its files are never this one's to remove, though this one
may refer to them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tensorstore_py.ocdbt.place import FoundDatabase

__all__ = ["Files", "files_of"]

MANIFEST: Final = "manifest.ocdbt"
_DATA_FILE: Final = re.compile(r"[0-9a-f]{32}$", re.ASCII)


class Files(NamedTuple):
    """What is in the directory of a database.

    Attributes:
        sizes: of all files, by path; -1 where the store does not say.
        own: the paths of its data files.
    """

    sizes: dict[bytes, int]
    own: list[bytes]

    @property
    def own_bytes(self) -> int:
        """Of all its data files."""
        return sum(max(0, self.sizes[path]) for path in self.own)


async def files_of(found: FoundDatabase) -> Files:
    """The files that are there now.

    Raises:
        UnsupportedError: the store cannot list its keys.
    """
    sizes: dict[bytes, int] = {}
    candidates: list[str] = []
    others: set[str] = set()
    async for path, size in found.files():
        sizes[path.encode("utf-8", "surrogateescape")] = size
        if _DATA_FILE.search(path):
            candidates.append(path)
        elif path.endswith(f"/{MANIFEST}"):
            others.add(path.removesuffix(MANIFEST))
    own = [
        path.encode("utf-8", "surrogateescape")
        for path in candidates
        if not others or not any(above in others for above in _directories(path))
    ]
    return Files(sizes, own)


def _directories(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]
