"""The names of zarr-python's synchronizers, which nothing here needs.

A chunk that is written in part is stored on the condition that it is still the one that was read,
and else changed again. So writers in any number of threads and processes lose nothing, whether
their regions fit the chunks or not.
"""

from __future__ import annotations

import os

__all__ = ["ProcessSynchronizer", "ThreadSynchronizer"]


class ThreadSynchronizer:
    """Accepted as `synchronizer=`, and not needed: writes are safe without.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.zarr.zeros(60, chunks=20, synchronizer=ts.zarr.ThreadSynchronizer()).chunks
        (20,)
    """


class ProcessSynchronizer:
    """Accepted as `synchronizer=`, and not needed: writes are safe without, and it locks no files.

    Args:
        path: where zarr-python would keep its locks; nothing is stored there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
