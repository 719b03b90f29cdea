"""What users hand to a `KvStore`, as the library's own values: keys, ranges, generations, values.

What is wrong with an argument is found here, where the call is. Nothing is kept that the caller may
change afterwards. `KeyRange` is TensorStore's: mutable, of `str` or `bytes`; it holds the frozen
range that stores take.
"""

from __future__ import annotations

from operator import index

from tensorstore_py._display.public_name import public_in
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.key_range import KeyRange as PlainRange
from tensorstore_py._interface.key_range import decode_key, encode_key
from tensorstore_py._spec.json_value import check_text
from tensorstore_py.errors import SpecError

__all__ = ["KeyRange", "as_byte_range", "as_generation", "as_key", "as_range", "as_value"]


def as_key(key: object, what: str = "key") -> str:
    """A user's key as the library's `str`.

    Raises:
        TypeError: it is neither `str` nor `bytes`.
        SpecError: text with half of a surrogate pair.
    """
    if type(key) is str and key.isascii():
        return key
    if not isinstance(key, str | bytes):
        raise TypeError(f"{what} must be str or bytes, not {type(key).__name__}")
    try:
        return check_text(decode_key(key))
    except SpecError as error:
        raise SpecError(f"{what}: {error}") from None


@public_in("KvStore")
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


def as_range(range: object) -> PlainRange:
    """A range of keys.

    Raises TypeError: it is none.
    """
    if not isinstance(range, KeyRange):
        raise TypeError(f"range must be a KvStore.KeyRange, not {type(range).__name__}")
    return range.promise


def as_generation(generation: object, what: str) -> bytes:
    """A generation.

    Raises TypeError: it is neither `str` nor `bytes`; names the argument.
    """
    if not isinstance(generation, str | bytes):
        raise TypeError(
            f"{what} must be a generation (str or bytes), not {type(generation).__name__}; "
            f"take it from stamp.generation"
        )
    return generation.encode() if isinstance(generation, str) else generation


def as_value(value: object) -> bytes | None:
    """A value to write; None to delete.

    Raises TypeError: it is no bytes.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytearray | memoryview):
        raise TypeError(f"value must be bytes, str or None, not {type(value).__name__}")
    # The write may happen after the caller went on to change the buffer.
    return bytes(value)


def as_byte_range(byte_range: object) -> ByteRange:
    """A part of a value.

    Raises:
        TypeError: it is no slice, or has a step.
        ValueError: it stops before it starts, or at a negative position.

    Example:
        >>> as_byte_range(slice(-4, None)), as_byte_range(None)
        (ByteRange(start=-4, stop=None), ByteRange(start=0, stop=None))
    """
    if byte_range is None:
        return WHOLE
    if not isinstance(byte_range, slice) or byte_range.step is not None:
        raise TypeError("byte_range must be a slice(start, stop) without a step")
    low = 0 if byte_range.start is None else index(byte_range.start)
    high = None if byte_range.stop is None else index(byte_range.stop)
    if high is not None and not 0 <= low <= high:
        raise ValueError(
            f"Unsupported byte_range slice: {low}:{high}; give 0 <= start <= stop, or "
            f"slice(-n, None) for the last n bytes"
        )
    return WHOLE if low == 0 and high is None else ByteRange(low, high)
