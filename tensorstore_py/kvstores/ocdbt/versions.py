"""The tree of versions, from bytes and to bytes.

Each commit makes a version: a generation, the time of the commit, and the root of a tree of keys.
The manifest has the latest versions; older ones are in nodes of a tree whose shape follows from the
generations alone: a node of height h covers the generations whose number less one has the same
quotient by arity^(h+1).

Specification: "Version tree node format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.btree import Statistics, read_statistics, write_statistics
from tensorstore_py.kvstores.ocdbt.envelope import Record, open_envelope, seal_envelope
from tensorstore_py.kvstores.ocdbt.references import (
    MISSING,
    DataFile,
    DataFileTable,
    Reference,
    read_data_files,
    read_references,
)
from tensorstore_py.kvstores.ocdbt.wire import Reader, Writer

__all__ = [
    "Version",
    "VersionNode",
    "VersionSubtree",
    "decode_version_node",
    "encode_version_node",
    "read_subtrees",
    "read_versions",
    "write_subtrees",
    "write_versions",
]

_BITS: Final = 64


class Version(NamedTuple):
    """One version.

    Attributes:
        generation: 1 or more; of later commits higher.
        time_ns: of the commit, in ns since 1970.
        height: of the root.
        root: of the tree of keys; `MISSING` if it has none.
        statistics: of that tree.
    """

    generation: int
    time_ns: int
    height: int
    root: Reference
    statistics: Statistics


class VersionSubtree(NamedTuple):
    """A node of the tree of versions, as what is above refers to it.

    Attributes:
        generation: of its latest version.
        time_ns: of its earliest version's commit, in ns since 1970.
        versions: how many it has.
        height: of the node.
        reference: where the node is.
    """

    generation: int
    time_ns: int
    versions: int
    height: int
    reference: Reference


class VersionNode(NamedTuple):
    """A node of the tree of versions.

    Attributes:
        arity_log2: of the number of its entries at most.
        height: 0 for a leaf.
        versions: of a leaf, the latest last.
        subtrees: of others, the latest last.
    """

    arity_log2: int
    height: int
    versions: list[Version]
    subtrees: list[VersionSubtree]

    @property
    def generation(self) -> int:
        """Of the latest version."""
        return self.subtrees[-1].generation if self.height else self.versions[-1].generation


def decode_version_node(data: bytes, base: bytes, most: int) -> VersionNode:
    """A node.

    Args:
        data: as stored.
        base: the base path of the data file that it was read from.
        most: what it does not exceed when it is decompressed, in bytes.

    Raises:
        DataLossError: damaged or contradictory.
    """
    with open_envelope(Record.VERSION_NODE, data, most) as reader:
        arity_log2 = reader.byte()
        height = reader.byte()
        if not arity_log2 or (height + 1) * arity_log2 >= _BITS:
            raise DataLossError(f"no node of arity 2^{arity_log2} has the height {height}")
        files = read_data_files(reader, base)
        if not height:
            return VersionNode(arity_log2, 0, read_versions(reader, files, arity_log2), [])
        subtrees = read_subtrees(reader, files, arity_log2, height)
        return VersionNode(arity_log2, height, [], subtrees)
    raise AssertionError  # pragma: no cover - the envelope lets errors out


def encode_version_node(node: VersionNode, zstd_level: int | None) -> bytes:
    """A node as it is stored.

    Args:
        node: with one entry or more.
        zstd_level: of the compression; None for none.
    """
    writer = Writer()
    writer.byte(node.arity_log2)
    writer.byte(node.height)
    table = DataFileTable(
        [version.root for version in node.versions]
        + [subtree.reference for subtree in node.subtrees]
    )
    table.write(writer)
    if node.height:
        write_subtrees(writer, table, node.subtrees, heights=False)
    else:
        write_versions(writer, table, node.versions)
    return seal_envelope(Record.VERSION_NODE, writer.data, zstd_level)


def read_versions(
    reader: Reader, files: Sequence[DataFile], arity_log2: int, *, empty: bool = False
) -> list[Version]:
    """Entries of a leaf, or of the manifest.

    Args:
        reader: stands where they begin.
        files: the table of the record.
        arity_log2: of the tree.
        empty: whether there may be none.
    """
    count = reader.varint(1 << arity_log2)
    if not count:
        if empty:
            return []
        raise DataLossError("it has no versions")
    generations = reader.varints(count)
    heights = list(reader.take(count))
    roots = read_references(reader, files, count, missing=True)
    statistics = read_statistics(reader, count)
    times = reader.unsigned(count)
    _check_generations(generations, count, arity_log2, 0)
    for height, root in zip(heights, roots, strict=True):
        if root is MISSING and height:
            raise DataLossError(f"a tree without keys has the height {height}")
    return list(map(Version, generations, times, heights, roots, statistics))


def write_versions(writer: Writer, table: DataFileTable, versions: Sequence[Version]) -> None:
    """Write entries of a leaf, or of the manifest."""
    writer.varint(len(versions))
    writer.varints([version.generation for version in versions])
    writer.data += bytes(version.height for version in versions)
    table.write_references(writer, [version.root for version in versions])
    if versions:
        write_statistics(writer, [version.statistics for version in versions])
    writer.unsigned(version.time_ns for version in versions)


def read_subtrees(
    reader: Reader, files: Sequence[DataFile], arity_log2: int, height: int | None = None
) -> list[VersionSubtree]:
    """Entries of an interior node, or of the manifest.

    Args:
        reader: stands where they begin.
        files: the table of the record.
        arity_log2: of the tree.
        height: of the node; None for the manifest, which says the height of each entry.
    """
    count = reader.varint(_BITS if height is None else 1 << arity_log2)
    if not count:
        if height is None:
            return []
        raise DataLossError("it has no entries")
    generations = reader.varints(count)
    references = read_references(reader, files, count)
    versions = reader.varints(count)
    times = reader.unsigned(count)
    if height is None:
        heights = list(reader.take(count))
        for higher, lower in pairwise(heights):
            if higher <= lower:
                raise DataLossError(f"a subtree of height {lower} follows one of {higher}")
        if (heights[0] + 1) * arity_log2 >= _BITS:
            raise DataLossError(f"no subtree of arity 2^{arity_log2} has the height {heights[0]}")
        _check_ascending(generations)
    else:
        heights = [height - 1] * count
        _check_generations(generations, count, arity_log2, height)
    return list(map(VersionSubtree, generations, times, versions, heights, references))


def write_subtrees(
    writer: Writer, table: DataFileTable, subtrees: Sequence[VersionSubtree], *, heights: bool
) -> None:
    """Write entries of an interior node, or, with heights, of the manifest."""
    writer.varint(len(subtrees))
    writer.varints([subtree.generation for subtree in subtrees])
    table.write_references(writer, [subtree.reference for subtree in subtrees])
    writer.varints([subtree.versions for subtree in subtrees])
    writer.unsigned(subtree.time_ns for subtree in subtrees)
    if heights:
        writer.data += bytes(subtree.height for subtree in subtrees)


def _check_ascending(generations: Sequence[int]) -> None:
    if not generations[0]:
        raise DataLossError("a version has the generation 0")
    for earlier, later in pairwise(generations):
        if later <= earlier:
            raise DataLossError(f"generation {later} follows {earlier}")


def _check_generations(
    generations: Sequence[int], count: int, arity_log2: int, height: int
) -> None:
    """Refuse entries that are not all in one node of that height."""
    _check_ascending(generations)
    last = generations[-1]
    most = (((last - 1) >> (arity_log2 * height)) & ((1 << arity_log2) - 1)) + 1
    if count > most:
        raise DataLossError(f"{count} entries up to generation {last}: at most {most} can be here")
