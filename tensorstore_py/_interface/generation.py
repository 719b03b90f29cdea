"""Storage generations: the version stamp that conditional reads and writes compare.

A generation is an opaque byte string chosen by the store. Two values are reserved and mean
the same for every store: `UNKNOWN` (no generation: "unconditional", or "the condition
failed") and `NO_VALUE` (the key is known to be absent).
"""

from __future__ import annotations

import time as _time
from hashlib import blake2b
from typing import Final

from tensorstore_py._display.public_name import public_in

__all__ = ["NO_VALUE", "UNKNOWN", "TimestampedStorageGeneration", "content_generation", "holds"]

UNKNOWN: Final = b""
NO_VALUE: Final = b"\x02"


def holds(if_equal: bytes | None, generation: bytes) -> bool:
    """Whether the condition `if_equal` is met by what is stored at `generation`.

    Example:
        >>> holds(None, b"a"), holds(b"a", b"a"), holds(b"b", b"a")
        (True, True, False)
    """
    return if_equal is None or if_equal in (UNKNOWN, generation)


def content_generation(value: bytes | bytearray | memoryview | None) -> bytes:
    """A generation made from the value itself, for stores that have no version of their own.

    Two equal values have the same one, which is harmless for read-modify-write: who finds it
    unchanged finds the same bytes.

    Example:
        >>> content_generation(None) == NO_VALUE, len(content_generation(b"abc"))
        (True, 16)
    """
    return NO_VALUE if value is None else blake2b(value, digest_size=16).digest()


@public_in("KvStore")
class TimestampedStorageGeneration:
    """A generation and the time at which it was known to be current.

    Args:
        generation: opaque bytes; `b""` when unknown. A `str` is encoded as UTF-8.
        time: seconds since the epoch; `-inf` by default.

    Example:
        >>> TimestampedStorageGeneration(b"abc", 1.5)
        KvStore.TimestampedStorageGeneration(b'abc', 1.500000)
    """

    __slots__ = ("generation", "time")
    __hash__ = None  # type: ignore[assignment]  # mutable, like the reference's

    def __init__(self, generation: str | bytes = b"", time: float = float("-inf")) -> None:
        self.generation = generation.encode() if isinstance(generation, str) else generation
        self.time = time

    @classmethod
    def now(cls, generation: bytes) -> TimestampedStorageGeneration:
        """A stamp taken at this moment."""
        return cls(generation, _time.time())

    def copy(self) -> TimestampedStorageGeneration:
        """An independent copy."""
        return TimestampedStorageGeneration(self.generation, self.time)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> TimestampedStorageGeneration:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimestampedStorageGeneration):
            return NotImplemented
        return self.generation == other.generation and self.time == other.time

    def __repr__(self) -> str:
        return f"KvStore.TimestampedStorageGeneration({self.generation!r}, {self.time:.6f})"
