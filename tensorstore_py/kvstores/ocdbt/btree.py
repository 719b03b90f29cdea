"""The nodes of the tree of keys, from bytes and to bytes.

Keys are in the order of their bytes. A leaf has keys with values, or references to values in data
files. An interior node has, of each child, the first key that may be in it, and how many first
bytes of that key all keys below have in common. These bytes are left out everywhere below: the keys
of a node are relative to what led to it, so that the same node may stand below several prefixes.

Specification: "B+tree node format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import sub
from typing import Final, NamedTuple, cast

import numpy as np

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.columns import (
    LONGEST_KEY,
    KeyColumn,
    Value,
    ValueColumn,
    read_few_keys,
    read_few_values,
    read_keys,
    read_values,
)
from tensorstore_py.kvstores.ocdbt.envelope import Record, open_envelope, seal_envelope
from tensorstore_py.kvstores.ocdbt.references import (
    DataFile,
    DataFileTable,
    Reference,
    common_length,
    read_data_files,
    read_references,
)
from tensorstore_py.kvstores.ocdbt.wire import Reader, Writer

__all__ = [
    "LONGEST_KEY",
    "Child",
    "Interior",
    "Leaf",
    "Node",
    "Statistics",
    "Value",
    "decode_node",
    "encode_node",
    "references_in",
]

_MOST_ENTRIES: Final = 1 << 20
#: Of a leaf with no more entries than these, objects are made.
_FEW_ENTRIES: Final = 256
#: As many keys are compared with NumPy, if they are no longer than that, and so many at a time.
_FEW_KEYS: Final = 16
_WIDE_KEY: Final = 1000
_ROWS: Final = 4096
_INDIRECT: Final = 1
#: What keys share with those before is stored once; they may have so many times the bytes of a
#: node.
_KEYS: Final = 4


class Statistics(NamedTuple):
    """What a tree amounts to. What is reached on two ways is counted twice.

    Attributes:
        keys: how many.
        tree_bytes: of all nodes, as stored.
        value_bytes: of all values that are not in a leaf.
    """

    keys: int
    tree_bytes: int
    value_bytes: int

    @classmethod
    def total(cls, parts: Sequence[Statistics]) -> Statistics:
        """Of several trees."""
        return cls(*(sum(column) for column in zip(*parts, strict=True))) if parts else cls(0, 0, 0)


class Child(NamedTuple):
    """One entry of an interior node.

    Attributes:
        shared: how many first bytes of its key all keys below have in common.
        reference: where the node is.
        statistics: of all that is below, the node included.
    """

    shared: int
    reference: Reference
    statistics: Statistics


class Leaf(NamedTuple):
    """A node of height 0.

    Attributes:
        keys: ascending, relative to what led to it.
        values: one of each.
    """

    keys: Sequence[bytes]
    values: Sequence[Value]

    @property
    def height(self) -> int:
        """Always 0."""
        return 0

    def find(self, key: bytes) -> Value | None:
        """The value of a key, or None."""
        keys = self.keys
        place = keys.locate(key) if isinstance(keys, KeyColumn) else bisect_left(keys, key)
        if place == len(keys) or keys[place] != key:
            return None
        return self.values[place]

    def sizes(self, first: int, stop: int) -> list[int]:
        """How long the values from one place to before another are."""
        if isinstance(self.values, ValueColumn):
            return self.values.sizes(first, stop)
        return [
            value.length if isinstance(value, Reference) else len(value)
            for value in self.values[first:stop]
        ]


class Interior(NamedTuple):
    """A node of height 1 or more.

    Attributes:
        height: of its children is one less.
        keys: ascending: the first that each child may have, relative to what led to the node.
        children: one of each.
    """

    height: int
    keys: list[bytes]
    children: list[Child]

    def find(self, key: bytes) -> int:
        """The place of the child that a key would be in, or -1."""
        return bisect_right(self.keys, key) - 1


Node = Leaf | Interior


def decode_node(data: bytes, base: bytes, most: int) -> Node:
    """A node.

    Args:
        data: as stored.
        base: the base path of the data file that it was read from.
        most: what it does not exceed when it is decompressed, in bytes.

    Raises:
        DataLossError: damaged or contradictory.
    """
    with open_envelope(Record.BTREE_NODE, data, most) as reader:
        height = reader.byte()
        files = read_data_files(reader, base)
        count = reader.varint(_MOST_ENTRIES)
        if not count:
            raise DataLossError("it has no entries")
        if height:
            return _read_interior(reader, height, files, count, _KEYS * most)
        return _read_leaf(reader, files, count, _KEYS * most)
    raise AssertionError  # pragma: no cover - the envelope lets errors out


def _read_leaf(reader: Reader, files: Sequence[DataFile], count: int, most: int) -> Leaf:
    if count <= _FEW_ENTRIES:
        few, rest = _read_few_lengths(reader, count)
        return Leaf(read_few_keys(reader, few, rest, most), read_few_values(reader, files, count))
    shared = np.zeros(count, np.uint64)
    shared[1:] = reader.column(count - 1, LONGEST_KEY)
    suffixes = reader.column(count, LONGEST_KEY)
    keys = read_keys(reader, shared, suffixes, most)
    return Leaf(keys, read_values(reader, files, count))


def _read_interior(
    reader: Reader, height: int, files: Sequence[DataFile], count: int, most: int
) -> Interior:
    shared, suffixes = _read_few_lengths(reader, count)
    common = reader.varints(count, LONGEST_KEY)
    keys = read_few_keys(reader, shared, suffixes, most)
    references = read_references(reader, files, count)
    statistics = read_statistics(reader, count)
    for key, length in zip(keys, common, strict=True):
        if length > len(key):
            raise DataLossError(f"{length} bytes are said to be common, of a key of {len(key)}")
    return Interior(height, keys, list(map(Child, common, references, statistics)))


def _read_few_lengths(reader: Reader, count: int) -> tuple[list[int], list[int]]:
    """What keys have in common with the one before, and what comes after that, in bytes."""
    shared = [0, *reader.varints(count - 1, LONGEST_KEY)]
    return shared, reader.varints(count, LONGEST_KEY)


def read_statistics(reader: Reader, count: int) -> list[Statistics]:
    """Columns of statistics."""
    columns = (reader.varints(count) for _ in Statistics._fields)
    return list(map(Statistics, *columns))


def write_statistics(writer: Writer, statistics: Sequence[Statistics]) -> None:
    """Write columns of statistics."""
    for column in zip(*statistics, strict=True):
        writer.varints(column)


def encode_node(node: Node, zstd_level: int | None) -> bytes:
    """A node as it is stored.

    Args:
        node: not empty.
        zstd_level: of the compression; None for none.
    """
    writer = Writer()
    writer.byte(node.height)
    if isinstance(node, Leaf):
        _write_leaf(writer, node)
    else:
        _write_interior(writer, node)
    return seal_envelope(Record.BTREE_NODE, writer.data, zstd_level)


def _write_leaf(writer: Writer, leaf: Leaf) -> None:
    values = list(leaf.values)
    lengths, kinds = list(map(len, values)), bytearray(len(values))
    indirect = references_in(values)
    if indirect:
        places = [place for place, value in enumerate(values) if isinstance(value, Reference)]
        for place, reference in zip(places, indirect, strict=True):
            lengths[place], kinds[place] = reference.length, _INDIRECT
    table = DataFileTable(indirect)
    table.write(writer)
    writer.varint(len(values))
    _write_keys(writer, list(leaf.keys), lambda: None)
    writer.varints(lengths)
    writer.data += kinds
    table.write_places(writer, indirect)
    inline = [value for value in values if isinstance(value, bytes)] if indirect else values
    writer.data += b"".join(cast("list[bytes]", inline))


def _write_interior(writer: Writer, node: Interior) -> None:
    references = [child.reference for child in node.children]
    table = DataFileTable(references)
    table.write(writer)
    writer.varint(len(references))
    _write_keys(
        writer, node.keys, lambda: writer.varints([child.shared for child in node.children])
    )
    table.write_references(writer, references)
    write_statistics(writer, [child.statistics for child in node.children])


def _write_keys(writer: Writer, keys: Sequence[bytes], between: Callable[[], None]) -> None:
    """Write the lengths of keys, then what stands between, then the keys."""
    shared = _shared_lengths(keys)
    writer.varints(shared)
    starts = [0, *shared]
    writer.varints(list(map(sub, map(len, keys), starts)))
    between()
    writer.data += b"".join([key[start:] for key, start in zip(keys, starts, strict=True)])


def _shared_lengths(keys: Sequence[bytes]) -> list[int]:
    """How many first bytes each key but the first one has in common with the one before."""
    if len(keys) < _FEW_KEYS:
        return [common_length(one, following) for one, following in pairwise(keys)]
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    if int(lengths.max()) > _WIDE_KEY:
        return [common_length(one, following) for one, following in pairwise(keys)]
    found: list[int] = []
    for begin in range(0, len(keys) - 1, _ROWS):
        rows = slice(begin, begin + _ROWS + 1)
        # Shorter keys are filled up with zeros, which may be bytes of keys, too.
        table = np.array(keys[rows]).view(np.uint8).reshape(len(keys[rows]), -1)
        differs = table[1:] != table[:-1]
        first = np.where(differs.any(1), differs.argmax(1), table.shape[1])
        shorter = np.minimum(lengths[rows][1:], lengths[rows][:-1])
        found += np.minimum(first, shorter).tolist()
    return found


def references_in(values: Sequence[Value]) -> list[Reference]:
    """The values that are not there, but somewhere else."""
    if Reference not in set(map(type, values)):
        return []
    return [value for value in values if isinstance(value, Reference)]
