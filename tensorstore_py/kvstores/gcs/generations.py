"""Generations: the service's numbers as our bytes, and as what to put into a request.

The layout is the reference's: a zero byte and the number in eight bytes, the lowest first. The
invariant: a generation of another store matches nothing here.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from tensorstore_py.plugin import NO_VALUE, UNKNOWN

__all__ = ["FOREIGN", "generation_of", "is_condition", "number_of"]

#: What no generation of the service is, to compare with.
FOREIGN: Final = -1
_SIZE: Final = 9


def generation_of(number: object) -> bytes | None:
    r"""The generation for a number as the service writes it; None if that is none.

    Example:
        >>> generation_of("1700000000123456").hex()
        '0040222018240a0600'
    """
    if not isinstance(number, str) or not (number.isascii() and number.isdecimal()):
        return None
    value = int(number)
    return b"\0" + value.to_bytes(8, "little") if 0 < value < 2**64 else None


def is_condition(generation: bytes | None) -> TypeGuard[bytes]:
    """Whether a caller who gave this asks for anything by it."""
    return generation is not None and generation != UNKNOWN


def number_of(generation: bytes) -> int:
    r"""The number to send as a condition; 0 stands for "nothing is there".

    Example:
        >>> number_of(b"\0\5" + bytes(7)), number_of(NO_VALUE), number_of(b"something else")
        (5, 0, -1)
    """
    if generation == NO_VALUE:
        return 0
    if len(generation) != _SIZE or generation[0]:
        return FOREIGN
    return int.from_bytes(generation[1:], "little") or FOREIGN
