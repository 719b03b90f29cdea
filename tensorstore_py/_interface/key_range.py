"""Key ranges: a half-open interval of keys in byte order.

Keys are `str` inside the library (UTF-8; undecodable bytes travel as surrogate escapes) and
are ordered by their encoded bytes, which for valid text is also code-point order.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import Final

__all__ = ["ALL", "KeyRange", "decode_key", "encode_key"]

_Decoder: Final = getincrementaldecoder("utf-8")


def decode_key(key: str | bytes) -> str:
    """A user's key as the library's `str`."""
    return key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")


def encode_key(key: str) -> bytes:
    """The library's `str` key as the bytes that users see in listings."""
    return key.encode("utf-8", "surrogateescape")


def prefix_successor(prefix: bytes) -> bytes:
    """The least key that is greater than every key with this prefix; `b""` means no bound."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """`[inclusive_min, exclusive_max)`; an empty `exclusive_max` means no upper bound.

    Example:
        >>> "a/b" in KeyRange.prefix("a/")
        True
        >>> "b" in KeyRange.prefix("a/")
        False
    """

    inclusive_min: bytes = b""
    exclusive_max: bytes = b""

    @classmethod
    def prefix(cls, prefix: str) -> KeyRange:
        """All keys that start with `prefix`."""
        low = encode_key(prefix)
        return cls(low, prefix_successor(low))

    @property
    def empty(self) -> bool:
        """Whether no key can be inside."""
        return self.exclusive_max != b"" and self.inclusive_min >= self.exclusive_max

    def __contains__(self, key: str) -> bool:
        encoded = encode_key(key)
        return self.inclusive_min <= encoded and (
            not self.exclusive_max or encoded < self.exclusive_max
        )

    def with_base(self, base: str) -> KeyRange:
        """The same range, for keys below the path `base` (a plain string prefix)."""
        low = encode_key(base)
        high = low + self.exclusive_max if self.exclusive_max else prefix_successor(low)
        return KeyRange(low + self.inclusive_min, high)

    def common_prefix(self) -> str:
        """The longest prefix that every key of the range shares: where a listing may begin.

        Example:
            >>> KeyRange.prefix("a/b/").common_prefix()
            'a/b/'
        """
        low, high = self.inclusive_min, self.exclusive_max
        if not high:
            return ""
        for size in range(len(low), 0, -1):
            if high <= prefix_successor(low[:size]) or prefix_successor(low[:size]) == b"":
                # Without the beginning of a character that the keys go on with in several ways.
                return _Decoder("surrogateescape").decode(low[:size], final=False)
        return ""


ALL: Final = KeyRange()
