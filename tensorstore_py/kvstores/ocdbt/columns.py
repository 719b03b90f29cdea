"""The keys and values of a node as they are stored: in columns, each one made when it is asked for.

A leaf may have a hundred thousand entries of which one is wanted. So decoding makes no objects: all
keys are put one after the other into one piece of memory, and what is kept of a leaf is that and a
few arrays of numbers. Whether entries are in order and within bounds is checked for all at once.
Of a small node plain objects are made, since every use of an array costs as much as some of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import add, lt
from typing import Final, overload

import numpy as np

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.references import (
    DataFile,
    Reference,
    check_extents,
    read_file_numbers,
)
from tensorstore_py.kvstores.ocdbt.wire import Column, Reader

__all__ = [
    "LONGEST_KEY",
    "KeyColumn",
    "Value",
    "ValueColumn",
    "read_few_keys",
    "read_few_values",
    "read_keys",
    "read_values",
]

#: A value of a leaf: its bytes, or where they are.
Value = bytes | Reference

#: In bytes.
LONGEST_KEY: Final = 65535
_INDIRECT: Final = 1
#: Fewer or longer keys than these are put together one after the other, and not byte by byte of
#: all of them.
_FEW: Final = 1000
_LONG: Final = 64
#: Of so many keys one is an object, once they are searched.
_STEP: Final = 16


class KeyColumn(Sequence[bytes]):
    """Keys one after the other in one piece of memory.

    Args:
        data: all of them.
        ends: where each ends, and before them where the first begins.
    """

    __slots__ = ("_at", "_data", "_ends", "_every")

    def __init__(self, data: bytes, ends: Column) -> None:
        self._data = data
        self._ends = ends
        self._at = ends.data  # gives plain numbers, and sooner
        self._every: list[bytes] | None = None

    @property
    def size_bytes(self) -> int:
        """What they take in memory."""
        return len(self._data) + self._ends.nbytes

    def __len__(self) -> int:
        return len(self._at) - 1

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...

    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        if isinstance(place, slice):
            first, stop, step = place.indices(len(self))
            return self.cut(first, max(first, stop)) if step == 1 else list(self)[place]
        if place < 0:
            place += len(self)
        at = self._at
        if not 0 <= place < len(at) - 1:
            raise IndexError(place)
        return self._data[at[place] : at[place + 1]]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.cut(0, len(self)))

    def cut(self, first: int, stop: int, skipped: int = 0) -> list[bytes]:
        """Keys from one place to before another, each without so many first bytes."""
        data, ends = self._data, self._ends
        starts = (ends[first:stop] + skipped).tolist() if skipped else ends[first:stop].tolist()
        stops = ends[first + 1 : stop + 1].tolist()
        return [data[start:end] for start, end in zip(starts, stops)]  # noqa: B905 - of one length

    def locate(self, key: bytes) -> int:
        """How many keys, which are ascending, are below that one."""
        every = self._every
        if every is None:
            # Every so many keys as objects, made for the first search, which compares in C.
            starts, stops = self._ends[:-1:_STEP].tolist(), self._ends[1::_STEP].tolist()
            data = self._data
            every = [data[start:end] for start, end in zip(starts, stops, strict=True)]
            self._every = every
        high = bisect_left(every, key) * _STEP
        low = max(0, high - _STEP + 1)
        high = min(high, len(self))
        data, at = self._data, self._at
        while low < high:
            middle = (low + high) >> 1
            if data[at[middle] : at[middle + 1]] < key:
                low = middle + 1
            else:
                high = middle
        return low

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


class ValueColumn(Sequence[Value]):
    """Values of a leaf, and places of values in data files.

    Args:
        data: the values that are in the leaf, one after the other.
        files: that the others are in.
        numbers: of each one's file; -1 for those in the leaf.
        starts: where each begins, in its file or in `data`.
        lengths: of each.
    """

    __slots__ = ("_data", "_files", "_lengths", "_numbers", "_starts")

    def __init__(
        self,
        data: bytes,
        files: Sequence[DataFile],
        numbers: Column,
        starts: Column,
        lengths: Column,
    ) -> None:
        self._data = data
        self._files = files
        self._numbers = numbers
        self._starts = starts
        self._lengths = lengths

    @property
    def size_bytes(self) -> int:
        """What they take in memory."""
        return len(self._data) + 3 * self._lengths.nbytes

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, place: int) -> Value: ...

    @overload
    def __getitem__(self, place: slice) -> list[Value]: ...

    def __getitem__(self, place: int | slice) -> Value | list[Value]:
        if isinstance(place, slice):
            return list(self)[place]
        number = int(self._numbers[place])
        start, length = int(self._starts[place]), int(self._lengths[place])
        if number < 0:
            return self._data[start : start + length]
        return Reference(self._files[number], start, length)

    def __iter__(self) -> Iterator[Value]:
        data, files = self._data, self._files
        columns = (self._numbers.tolist(), self._starts.tolist(), self._lengths.tolist())
        for number, start, length in zip(*columns, strict=True):
            if number < 0:
                yield data[start : start + length]
            else:
                yield Reference(files[number], start, length)

    def sizes(self, first: int, stop: int) -> list[int]:
        """How long the values from one place to before another are."""
        return self._lengths[first:stop].tolist()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def read_few_values(reader: Reader, files: Sequence[DataFile], count: int) -> list[Value]:
    """The same as objects, which is sooner for a few.

    Raises:
        DataLossError: as for `read_values`.
    """
    lengths = reader.varints(count)
    kinds = reader.varints(count, _INDIRECT)
    places: Iterator[Reference] = iter(())
    if any(kinds):
        held = [length for length, kind in zip(lengths, kinds, strict=True) if not kind]
        others = [length for length, kind in zip(lengths, kinds, strict=True) if kind]
        numbers = read_file_numbers(reader, files, len(others)).tolist()
        offsets = reader.column(len(others))
        check_extents(offsets, np.array(others, np.uint64))
        places = map(Reference, map(files.__getitem__, numbers), offsets.tolist(), others)
    else:
        held = lengths
    data = reader.take(sum(held))
    values: list[Value] = []
    start = 0
    for length, kind in zip(lengths, kinds, strict=True):
        if kind:
            values.append(next(places))
        else:
            values.append(data[start : start + length])
            start += length
    return values


def read_values(reader: Reader, files: Sequence[DataFile], count: int) -> ValueColumn:
    """The values of a leaf.

    Raises:
        DataLossError: truncated or contradictory.
    """
    lengths = reader.column(count)
    numbers = np.full(count, -1, np.int64)
    starts = np.zeros(count, np.int64)
    indirect = np.flatnonzero(reader.column(count, _INDIRECT))
    if len(indirect):
        numbers[indirect] = read_file_numbers(reader, files, len(indirect))
        offsets = reader.column(len(indirect))
        check_extents(offsets, lengths[indirect])
        starts[indirect] = offsets
    inline = numbers < 0
    if int(lengths[inline].max(initial=0)) > reader.left:
        reader.take(int(lengths[inline].max()))  # which says what is wrong
    sizes = lengths.astype(np.int64)
    held = sizes[inline]
    data = reader.take(int(held.sum()))
    starts[inline] = np.cumsum(held) - held
    return ValueColumn(data, files, numbers, starts, sizes)


def read_few_keys(
    reader: Reader, shared: Sequence[int], suffixes: Sequence[int], most: int
) -> list[bytes]:
    """The same as objects, which is sooner for a few.

    Raises:
        DataLossError: as for `read_keys`.
    """
    lengths = list(map(add, shared, suffixes))
    if max(lengths) > LONGEST_KEY:
        raise DataLossError(f"a key has {max(lengths)} bytes")
    if sum(lengths) > most:
        raise DataLossError(f"its keys have {sum(lengths)} bytes, more than {most}")
    rest = reader.take(sum(suffixes))
    keys: list[bytes] = []
    key, begin = b"", 0
    for common, suffix in zip(shared, suffixes, strict=True):
        if common > len(key):
            raise DataLossError(f"key {len(keys)} shares {common} bytes with one of {len(key)}")
        key = key[:common] + rest[begin : begin + suffix]
        begin += suffix
        keys.append(key)
    if not all(map(lt, keys, islice(keys, 1, None))):
        place = next(place for place in range(1, len(keys)) if keys[place] <= keys[place - 1])
        raise DataLossError(f"key {place} is not above the one before")
    return keys


def read_keys(reader: Reader, shared: Column, suffixes: Column, most: int) -> KeyColumn:
    """Keys, each of which begins as the one before it.

    Args:
        reader: stands where the rest of the first key begins, which that of the others follows.
        shared: how many bytes each has in common with the one before; 0 for the first.
        suffixes: how many more it has.
        most: how many bytes all of them have at most.

    Raises:
        DataLossError: truncated, or not ascending.
    """
    shared, suffixes = shared.astype(np.int32), suffixes.astype(np.int32)
    lengths = shared + suffixes
    wrong = np.flatnonzero(shared[1:] > lengths[:-1])
    if len(wrong):
        place = int(wrong[0])
        raise DataLossError(
            f"key {place + 1} shares {shared[place + 1]} bytes with one of {lengths[place]}"
        )
    wrong = np.flatnonzero(lengths > LONGEST_KEY)
    if len(wrong):
        raise DataLossError(f"key {wrong[0]} has {lengths[wrong[0]]} bytes")
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=ends[1:])
    if ends[-1] > most:
        raise DataLossError(f"its keys have {ends[-1]} bytes, more than {most}")
    rest = reader.take(int(suffixes.sum(dtype=np.int64)))
    places = np.cumsum(suffixes, dtype=np.int64) - suffixes
    if len(lengths) < _FEW or int(lengths.max()) > _LONG:
        data = _joined_one_by_one(rest, shared.tolist(), places.tolist(), suffixes.tolist())
    else:
        data = _joined_byte_by_byte(rest, shared, places, lengths)
    keys = KeyColumn(data, ends)
    _check_ascending(keys, np.frombuffer(data, np.uint8), shared, lengths, ends)
    return keys


def _joined_one_by_one(
    rest: bytes, shared: list[int], places: list[int], suffixes: list[int]
) -> bytes:
    keys, key = [], b""
    for common, place, length in zip(shared, places, suffixes, strict=True):
        key = key[:common] + rest[place : place + length]
        keys.append(key)
    return b"".join(keys)


def _joined_byte_by_byte(rest: bytes, shared: Column, places: Column, lengths: Column) -> bytes:
    """The same for the first byte of all keys, then for the second, and so on."""
    count, longest, shortest = len(lengths), int(lengths.max()), int(lengths.min())
    stored = np.frombuffer(rest, np.uint8)
    columns = np.zeros((longest, count), np.uint8)
    begins, stops = shared.astype(np.uint8), lengths.astype(np.uint8)
    for position in range(longest):
        # A key that has no such byte, or that one of the key before, goes on with that.
        own = begins <= position
        if position >= shortest:
            own &= stops > position
        places_of = np.flatnonzero(own)
        if not len(places_of):
            continue
        values = stored[places[places_of] + (position - shared[places_of])]
        if len(places_of) == count:
            columns[position] = values
        else:
            first = places_of[0]
            columns[position, first:] = np.repeat(values, np.diff(places_of, append=count))
    if shortest == longest:
        return columns.T.tobytes()
    return columns.T[np.arange(longest, dtype=np.uint8) < stops[:, None]].tobytes()


def _check_ascending(
    keys: KeyColumn, data: Column, shared: Column, lengths: Column, ends: Column
) -> None:
    """Refuse a key that is not above the one before."""
    common, before = shared[1:], lengths[:-1]
    if not len(common):
        return
    # By the bytes after what is shared; where the one before has none, it is shorter.
    last = len(data) - 1
    ours = data[np.minimum(ends[1:-1] + common, last)]
    theirs = data[np.minimum(ends[:-2] + common, last)]
    right = (lengths[1:] > common) & ((ours > theirs) | (before == common))
    for place in np.flatnonzero(~right).tolist():
        if keys[place + 1] <= keys[place]:  # else more is shared than is said
            raise DataLossError(f"key {place + 1} is not above the one before")
