"""Which bytes of each data file are reached.

Values and nodes that were written one after the other become one extent, so what is held follows
from how fragmented files are, not from how many values they have.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

import numpy as np

from tensorstore_py.kvstores.ocdbt.references import Reference

__all__ = ["Extents"]

#: How many extents of a file are gathered before they are joined.
_MANY: Final = 4096


class Extents:
    """See the head of this file.

    Example:
        >>> from tensorstore_py.kvstores.ocdbt.references import DataFile
        >>> extents, file = Extents(), DataFile(b"", b"d/1")
        >>> for offset in (0, 20, 10, 10):
        ...     extents.add(Reference(file, offset, 10))
        >>> extents.covered(b"d/1"), list(extents)
        (30, [b'd/1'])
    """

    def __init__(self) -> None:
        self._files: dict[bytes, array[int]] = {}
        self._joined: dict[bytes, int] = {}

    def add(self, reference: Reference) -> None:
        """These bytes are reached."""
        path = reference.file.path
        gathered = self._files.get(path)
        if gathered is None:
            gathered = self._files[path] = array("q")
        gathered.append(reference.offset)
        gathered.append(reference.offset + reference.length)
        if len(gathered) > 2 * max(_MANY, 2 * self._joined.get(path, 0)):
            self._join(path)

    def _join(self, path: bytes) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        pairs = np.frombuffer(self._files[path], np.int64).reshape(-1, 2)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        ends = np.maximum.accumulate(pairs[:, 1])
        first = np.flatnonzero(np.concatenate(([True], pairs[1:, 0] > ends[:-1])))
        last = np.append(first[1:] - 1, len(pairs) - 1)
        joined = np.stack((pairs[first, 0], ends[last]), axis=1)
        self._files[path] = array("q", joined.tobytes())
        self._joined[path] = len(joined)
        return joined

    def covered(self, path: bytes) -> int:
        """How many bytes of a file are reached."""
        if path not in self._files:
            return 0
        joined = self._join(path)
        return int((joined[:, 1] - joined[:, 0]).sum())

    def __contains__(self, path: bytes) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._files)
