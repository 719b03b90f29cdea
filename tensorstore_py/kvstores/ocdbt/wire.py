"""Numbers and columns as OCDBT files have them.

Records are stored by column: all generations, then all heights, and so on. Most columns are
unsigned LEB128 ("varint"): seven bits a byte, the lowest first, the highest bit set in all bytes
but the last.

Specification: "Storage format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.errors import DataLossError

__all__ = ["Column", "Reader", "Writer"]

#: Numbers of one kind, one of each record.
Column: TypeAlias = "np.ndarray[tuple[int], np.dtype[Any]]"

#: The bytes of the longest varint: 64 bits.
_LONGEST: Final = 10
#: Columns shorter than this are decoded one number after the other.
_FEW: Final = 24


class Reader:
    """Takes numbers and bytes from the front of a buffer.

    Every method raises `DataLossError` if the buffer ends too early.

    Args:
        data: all of it.
        position: where to begin.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    @property
    def left(self) -> int:
        """How many bytes were not taken yet."""
        return len(self.data) - self.position

    def take(self, count: int) -> bytes:
        """So many bytes."""
        end = self.position + count
        if end > len(self.data):
            raise DataLossError(
                f"truncated: {count} bytes are expected at byte {self.position}, "
                f"{self.left} are left"
            )
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def byte(self) -> int:
        """A number of one byte."""
        return self.take(1)[0]

    def varint(self, most: int = 2**64 - 1) -> int:
        """A number of variable length, at most `most`."""
        value = shift = 0
        begin = self.position
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift == 7 * _LONGEST:
                raise DataLossError(f"the number at byte {begin} has no end")
        if value > most:
            raise DataLossError(f"the number at byte {begin} is {value}, more than {most}")
        return value

    def varints(self, count: int, most: int = 2**64 - 1) -> list[int]:
        """A column of numbers of variable length, each at most `most`."""
        raw = self.data[self.position : self.position + count]
        if raw.isascii() and len(raw) == count and (most >= 0x7F or max(raw, default=0) <= most):
            self.position += count  # a byte each
            return list(raw)
        if count < _FEW:
            return [self.varint(most) for _ in range(count)]
        return self.column(count, most).tolist()

    def column(self, count: int, most: int = 2**64 - 1) -> Column:
        """`varints` as an array, for many."""
        if count < _FEW:
            return np.array(self.varints(count, most), np.uint64)
        self.expect(count)
        raw = np.frombuffer(self.data, np.uint8, count, self.position)
        if raw.max() < 0x80:  # a byte each
            values, taken = raw.astype(np.uint64), count
        else:
            values, taken = self._longer(count)
        if most < 2**64 - 1 and int(values.max()) > most:
            raise DataLossError(
                f"a number at or after byte {self.position} is {int(values.max())}, more than "
                f"{most}"
            )
        self.position += taken
        return values

    def _longer(self, count: int) -> tuple[Column, int]:
        """Numbers of which some have several bytes, and how many bytes all of them have."""
        raw = np.frombuffer(self.data, np.uint8, min(self.left, count * _LONGEST), self.position)
        last = np.flatnonzero(raw < 0x80)[:count]
        if len(last) < count:
            raise DataLossError(
                f"truncated: {count} numbers are expected at byte {self.position}, "
                f"{len(last)} are there"
            )
        first = np.empty_like(last)
        first[0] = 0
        first[1:] = last[:-1] + 1
        lengths = last - first
        longest = int(lengths.max())
        if longest >= _LONGEST or (
            longest == _LONGEST - 1 and (raw[last[lengths == longest]] > 1).any()
        ):
            raise DataLossError(f"a number at or after byte {self.position} has more than 64 bits")
        values = (raw[first] & 0x7F).astype(np.uint64)
        for place in range(1, longest + 1):
            there = np.flatnonzero(lengths >= place)
            part = (raw[first[there] + place] & 0x7F).astype(np.uint64)
            values[there] |= part << np.uint64(7 * place)
        return values, int(last[-1]) + 1

    def unsigned(self, count: int) -> list[int]:
        """A column of numbers of eight bytes, little-endian."""
        return np.frombuffer(self.take(8 * count), "<u8").tolist()  # type: ignore[no-any-return]

    def expect(self, count: int) -> None:
        """Refuse a count of records that cannot fit in what is left, a byte each."""
        if count > self.left:
            raise DataLossError(
                f"truncated: {count} records are expected at byte {self.position}, "
                f"{self.left} bytes are left"
            )

    def finish(self) -> None:
        """Refuse bytes that nobody asked for."""
        if self.left:
            raise DataLossError(f"{self.left} bytes too many at byte {self.position}")


class Writer:
    """Adds numbers and bytes to the end of a buffer."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def byte(self, value: int) -> None:
        """A number of one byte."""
        self.data.append(value)

    def varint(self, value: int) -> None:
        """A number of variable length."""
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def varints(self, values: Sequence[int]) -> None:
        """A column of numbers of variable length."""
        if not values:
            return
        most = max(values)
        if most < 0x80:
            self.data += bytes(values)
        elif len(values) < _FEW:
            for value in values:
                self.varint(value)
        else:
            self._add_columns(np.array(values, np.uint64), -(-most.bit_length() // 7))

    def _add_columns(self, values: NDArray[np.uint64], longest: int) -> None:
        """Add numbers, of which each has `longest` bytes at most: seven bits of all at a time."""
        left = values[:, None] >> (np.uint64(7) * np.arange(longest, dtype=np.uint64))
        digits = (left & np.uint64(0x7F)).astype(np.uint8)
        digits[:, :-1] |= (left[:, 1:] > 0).astype(np.uint8) << 7
        there = left > 0
        there[:, 0] = True
        self.data += digits[there].tobytes()

    def unsigned(self, values: Iterable[int]) -> None:
        """A column of numbers of eight bytes, little-endian."""
        for value in values:
            self.data += value.to_bytes(8, "little")
