"""One process at a time: for what is installed once, and started once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the lock of a file; others that ask for the same one wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("ab") as held:
        if sys.platform != "win32":
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
