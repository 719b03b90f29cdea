"""Where in which data file something is, and the tables of data files of manifests and nodes.

A data file's path has two parts. The base path also leads to everything that is reached through
the file: a database that was copied below another one by reference stays as it is, and the base
path of what refers to it says where it now is.

Specification: "Data file table format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.wire import Column, Reader, Writer

__all__ = [
    "MISSING",
    "DataFile",
    "DataFileTable",
    "Reference",
    "check_extents",
    "read_data_files",
    "read_file_numbers",
    "read_references",
]

_LONGEST_PATH: Final = 65535
_MOST: Final = 2**64 - 1
#: Offsets and lengths are positions in files, which have less than 2^63 bytes.
_LARGEST_END: Final = 2**63 - 1


class DataFile(NamedTuple):
    """The path of a data file, from the root of the database.

    Attributes:
        base: leads to the file, and is passed on to all that is reached through it.
        name: the rest.
    """

    base: bytes
    name: bytes

    @property
    def path(self) -> bytes:
        """All of it."""
        return self.base + self.name


class Reference(NamedTuple):
    """Bytes of a data file.

    Attributes:
        file: which.
        offset: of the first byte.
        length: in bytes.
    """

    file: DataFile
    offset: int
    length: int

    def __str__(self) -> str:
        """For messages."""
        path = self.file.path.decode("utf-8", "backslashreplace")
        return f'data file "{path}", bytes {self.offset} to {self.offset + self.length}'


#: Stands for the root of a tree that has no key.
MISSING: Final = Reference(DataFile(b"", b""), _MOST, _MOST)


def read_data_files(reader: Reader, base: bytes) -> list[DataFile]:
    """A table of data files.

    Args:
        reader: stands where it begins.
        base: what its record passes on: the base path of the file that the record was read from.

    Raises:
        DataLossError: truncated or contradictory.
    """
    count = reader.varint()
    if not count:
        return []
    reader.expect(3 * count - 1)
    shared = [0, *reader.varints(count - 1, _LONGEST_PATH)]
    suffixes = reader.varints(count, _LONGEST_PATH)
    bases = reader.varints(count, _LONGEST_PATH)
    files: list[DataFile] = []
    path = b""
    for number, (common, suffix, base_length) in enumerate(
        zip(shared, suffixes, bases, strict=True)
    ):
        if common > len(path):
            raise DataLossError(f"path {number} shares {common} bytes with one of {len(path)}")
        path = path[:common] + reader.take(suffix)
        if base_length > len(path):
            raise DataLossError(f"path {number} of {len(path)} bytes has a base of {base_length}")
        if len(base) + len(path) > _LONGEST_PATH:
            raise DataLossError(f"path {number} has more than {_LONGEST_PATH} bytes")
        file = DataFile(base + path[:base_length], path[base_length:])
        if b".." in file.path.split(b"/"):
            raise DataLossError(f"path {number} leads out of the database: {file.path!r}")
        files.append(file)
    return files


def read_references(
    reader: Reader, files: Sequence[DataFile], count: int, *, missing: bool = False
) -> list[Reference]:
    """Columns of files, offsets and lengths.

    Args:
        reader: stands where they begin.
        files: the table of the record.
        count: how many.
        missing: whether `MISSING` may be among them.

    Raises:
        DataLossError: truncated, or about a file that is not in the table.
    """
    numbers = read_file_numbers(reader, files, count).tolist()
    offsets = reader.column(count)
    lengths = reader.column(count)
    there = (offsets != _MOST) | (lengths != _MOST) if missing else slice(None)
    check_extents(offsets[there], lengths[there])
    return [
        Reference(files[number], offset, length) if offset != _MOST else MISSING
        for number, offset, length in zip(numbers, offsets.tolist(), lengths.tolist(), strict=True)
    ]


def read_file_numbers(reader: Reader, files: Sequence[DataFile], count: int) -> Column:
    """A column of places in the table of data files."""
    numbers = reader.column(count)
    if count and int(numbers.max()) >= len(files):
        raise DataLossError(
            f"it is about data file {int(numbers.max())}, but its table has {len(files)} files"
        )
    return numbers


def check_extents(offsets: Column, lengths: Column) -> None:
    """Refuse what is in no file."""
    # One after the other, since the sum of two numbers of 64 bits may have more.
    wrong = np.flatnonzero((offsets > _LARGEST_END) | (lengths > _LARGEST_END))
    if not len(wrong):
        wrong = np.flatnonzero(offsets + lengths > _LARGEST_END)
    if len(wrong):
        place = wrong[0]
        raise DataLossError(f"no file has {lengths[place]} bytes at {offsets[place]}")


class DataFileTable:
    """The table of the data files that a record is about, and the columns that refer to it.

    Args:
        references: all of the record; some may be `MISSING`.
    """

    def __init__(self, references: Iterable[Reference]) -> None:
        self._files = sorted({reference.file for reference in references})
        self._numbers = {file: number for number, file in enumerate(self._files)}

    def write(self, writer: Writer) -> None:
        """Write the table."""
        files = self._files
        paths = [file.path for file in files]
        shared = [
            _shared(files[number - 1], files[number], paths[number - 1], paths[number])
            for number in range(1, len(files))
        ]
        starts = [0, *shared]
        writer.varint(len(files))
        writer.varints(shared)
        writer.varints([len(path) - start for path, start in zip(paths, starts, strict=False)])
        writer.varints([len(file.base) for file in files])
        for path, start in zip(paths, starts, strict=False):
            writer.data += path[start:]

    def write_references(self, writer: Writer, references: Sequence[Reference]) -> None:
        """Write the columns of files, offsets and lengths."""
        writer.varints([self._numbers[reference.file] for reference in references])
        writer.varints([reference.offset for reference in references])
        writer.varints([reference.length for reference in references])

    def write_places(self, writer: Writer, references: Sequence[Reference]) -> None:
        """Write the columns of files and offsets."""
        writer.varints([self._numbers[reference.file] for reference in references])
        writer.varints([reference.offset for reference in references])


def common_length(left: bytes, right: bytes) -> int:
    """How many first bytes are the same."""
    most = min(len(left), len(right))
    if left[:most] == right[:most]:
        return most
    # The first byte that differs is where the numbers that both make differ highest.
    differs = int.from_bytes(left[:most], "big") ^ int.from_bytes(right[:most], "big")
    return most - (differs.bit_length() + 7) // 8


def _shared(before: DataFile, file: DataFile, before_path: bytes, path: bytes) -> int:
    shared = common_length(before_path, path)
    if file.base != before.base:
        # What a reader needs to know one base path must not reach into the rest of the other's.
        shared = min(shared, len(file.base), len(before.base))
    return shared
