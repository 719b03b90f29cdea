"""New data files: what a commit stores beside the manifest, gathered and then written together.

Data files never change. Each has a random name, so that writers need not know of each other; what a
lost commit leaves behind is reached from nowhere, and does no harm.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tensorstore_py.plugin.kvstore import Buffer, KvStore, fan_out, write_segments

__all__ = ["DataFilePrefixes", "NewDataFiles"]


class DataFilePrefixes(NamedTuple):
    """What the paths of new data files begin with, by what they hold."""

    values: bytes = b"d/"
    btree_nodes: bytes = b"d/"
    version_nodes: bytes = b"d/"


class _NewFile:
    """A data file that is not stored yet."""

    def __init__(self, prefix: bytes) -> None:
        self.file = DataFile(b"", prefix + secrets.token_hex(16).encode())
        self.pieces: list[Buffer] = []
        self.size = 0


class NewDataFiles:
    """Data files of one commit.

    Args:
        base: where the database is.
        root: what the keys of its files begin with there.
        target_bytes: a file that has so much is followed by another; 0 for no limit.
    """

    def __init__(self, base: KvStore, root: str, target_bytes: int) -> None:
        self._base = base
        self._root = root
        self._target = target_bytes
        self._open: dict[bytes, _NewFile] = {}
        self._full: list[_NewFile] = []

    def append(self, prefix: bytes, *pieces: Buffer) -> Reference:
        """Where some bytes, in one or more pieces, are going to be, in a file whose path begins so.

        They are kept by reference until they are stored.
        """
        new = self._open.get(prefix)
        if new is None:
            new = self._open[prefix] = _NewFile(prefix)
        size = sum(map(len, pieces))
        reference = Reference(new.file, new.size, size)
        new.pieces += pieces
        new.size += size
        if 0 < self._target <= new.size:
            self._full.append(self._open.pop(prefix))
        return reference

    async def store(self) -> None:
        """Write all that was appended since the last time."""
        files = [*self._full, *self._open.values()]
        self._full, self._open = [], {}

        async def store(new: _NewFile) -> None:
            key = self._root + new.file.path.decode()
            await write_segments(self._base, key, new.pieces, owned=True)

        await fan_out(self._base.inline, files, store, count=len(files), width=self._base.width)
