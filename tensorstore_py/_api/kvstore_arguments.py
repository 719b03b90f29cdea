"""What users hand to a `KvStore`, as the library's own values.

Here, and where the call is, it is found what is wrong with them. Nothing is kept that a caller may
change afterwards.
"""

from __future__ import annotations

from operator import index

from tensorstore_py._api.key_range import KeyRange
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.key_range import KeyRange as PlainRange

__all__ = ["as_byte_range", "as_generation", "as_range", "as_value"]


def as_range(range: object) -> PlainRange:
    """A range of keys.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(range, KeyRange):
        raise TypeError(f"range must be a KvStore.KeyRange, not {type(range).__name__}")
    return range.promise


def as_generation(generation: object, what: str) -> bytes:
    """A generation.

    Raises:
        TypeError: it is neither `str` nor `bytes`; names the argument.
    """
    if not isinstance(generation, str | bytes):
        raise TypeError(
            f"{what} must be a generation (str or bytes), not {type(generation).__name__}; "
            f"take it from stamp.generation"
        )
    return generation.encode() if isinstance(generation, str) else generation


def as_value(value: object) -> bytes | None:
    """A value to write; None to delete.

    Raises:
        TypeError: it is no bytes.
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
