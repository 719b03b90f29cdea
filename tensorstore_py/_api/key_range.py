"""`KvStore.KeyRange`: a half-open interval of keys, as users hold it.

The reference's is mutable and takes `str` or `bytes`; the library's own is a frozen value.
This is the former around the latter.
"""

from __future__ import annotations

from tensorstore_py._interface.key_range import KeyRange as PlainRange
from tensorstore_py._interface.key_range import decode_key, encode_key
from tensorstore_py._spec.json_value import check_text
from tensorstore_py.errors import SpecError

__all__ = ["KeyRange", "as_key"]


def as_key(key: object, what: str = "key") -> str:
    """A user's key as the library's `str`.

    Raises:
        TypeError: it is neither `str` nor `bytes`.
        SpecError: text with half of a surrogate pair.
    """
    if not isinstance(key, str | bytes):
        raise TypeError(f"{what} must be str or bytes, not {type(key).__name__}")
    try:
        return check_text(decode_key(key))
    except SpecError as error:
        raise SpecError(f"{what}: {error}") from None


class KeyRange:
    """The keys from `inclusive_min` up to, but not including, `exclusive_max`, in byte order.

    Args:
        inclusive_min: the least key; every key is at least `""`.
        exclusive_max: the least key that is too large; `""` means that none is.

    Example:
        >>> KeyRange("a", "b")
        KvStore.KeyRange(b'a', b'b')
        >>> KeyRange("b", "a").empty
        True
    """

    __slots__ = ("_range",)
    __hash__ = None  # type: ignore[assignment]  # mutable

    def __init__(self, inclusive_min: str | bytes = "", exclusive_max: str | bytes = "") -> None:
        low = encode_key(as_key(inclusive_min, "inclusive_min"))
        high = encode_key(as_key(exclusive_max, "exclusive_max"))
        self._range = PlainRange(low, high)

    @property
    def inclusive_min(self) -> bytes:
        """The least key."""
        return self._range.inclusive_min

    @inclusive_min.setter
    def inclusive_min(self, key: str | bytes) -> None:
        low = encode_key(as_key(key, "inclusive_min"))
        self._range = PlainRange(low, self._range.exclusive_max)

    @property
    def exclusive_max(self) -> bytes:
        """The least key that is too large; `b""` if none is."""
        return self._range.exclusive_max

    @exclusive_max.setter
    def exclusive_max(self, key: str | bytes) -> None:
        high = encode_key(as_key(key, "exclusive_max"))
        self._range = PlainRange(self._range.inclusive_min, high)

    @property
    def empty(self) -> bool:
        """Whether no key can be inside."""
        return self._range.empty

    @property
    def promise(self) -> PlainRange:
        """The same range as stores take it."""
        return self._range

    def copy(self) -> KeyRange:
        """An independent copy."""
        return KeyRange(self.inclusive_min, self.exclusive_max)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> KeyRange:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyRange):
            return NotImplemented
        return self._range == other._range

    def __repr__(self) -> str:
        return f"KvStore.KeyRange({self.inclusive_min!r}, {self.exclusive_max!r})"

    def __reduce__(self) -> tuple[type[KeyRange], tuple[bytes, bytes]]:
        return KeyRange, (self.inclusive_min, self.exclusive_max)
