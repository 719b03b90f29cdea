"""Byte ranges: which part of a value a read wants.

Half-open, in bytes. A negative `start` without a `stop` is a suffix ("the last n bytes"),
which object stores answer without knowing the size first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tensorstore_py.errors import OutOfRangeError

__all__ = ["WHOLE", "ByteRange"]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`[start, stop)` of a value; `stop=None` means to the end; `start<0` means a suffix.

    Raises:
        ValueError: `stop < start`, or a suffix with a `stop`.

    Example:
        >>> ByteRange(2, 5).resolve(10)
        (2, 5)
        >>> ByteRange(-4).resolve(10)
        (6, 10)
    """

    start: int = 0
    stop: int | None = None

    def __post_init__(self) -> None:
        if self.stop is not None and not 0 <= self.start <= self.stop:
            raise ValueError(f"Invalid byte range [{self.start}, {self.stop})")

    @property
    def is_whole(self) -> bool:
        """Whether this asks for the whole value, whatever its size."""
        return self.start == 0 and self.stop is None

    def resolve(self, size: int) -> tuple[int, int]:
        """The absolute `[start, stop)` within a value of `size` bytes.

        Raises:
            OutOfRangeError: the range reaches outside `[0, size)`.
        """
        start = size + self.start if self.start < 0 else self.start
        stop = size if self.stop is None else self.stop
        if not 0 <= start <= stop <= size:
            asked = f"[{self.start}, {'end' if self.stop is None else self.stop})"
            raise OutOfRangeError(f"byte range {asked} is outside a value of {size} bytes")
        return start, stop


WHOLE: Final = ByteRange()
