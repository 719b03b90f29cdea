"""The manifest: the configuration of a database, and its latest versions.

A database of the kind "single" has one manifest, which each commit replaces. Of the kind
"numbered", that one has only the configuration, and each commit makes a new manifest whose name has
its generation.

Specification: "Manifest format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.envelope import Record, open_envelope, seal_envelope
from tensorstore_py.kvstores.ocdbt.references import DataFileTable, read_data_files
from tensorstore_py.kvstores.ocdbt.versions import (
    Version,
    VersionSubtree,
    read_subtrees,
    read_versions,
    write_subtrees,
    write_versions,
)
from tensorstore_py.kvstores.ocdbt.wire import Reader, Writer

__all__ = ["Config", "Manifest", "ManifestKind", "decode_manifest", "encode_manifest"]

#: The most that a manifest can have when it is decompressed: 2^16 versions, and what they refer to.
_MOST_BYTES: Final = 1 << 30
_ZSTD: Final = 1
_LEAST_LEVEL: Final = -131072
_LARGEST_LEVEL: Final = 22


class ManifestKind(Enum):
    """How versions get known: by one manifest, or by one of each."""

    SINGLE = 0
    NUMBERED = 1


class Config(NamedTuple):
    """The configuration of a database: it never changes.

    Attributes:
        uuid: of 16 bytes.
        kind: of its manifest.
        max_inline_value_bytes: larger values are not stored in leaves.
        max_decoded_node_bytes: larger nodes are divided.
        version_tree_arity_log2: of the entries of a node of the tree of versions.
        zstd_level: of the compression of manifests and nodes; None for none.
    """

    uuid: bytes
    kind: ManifestKind = ManifestKind.SINGLE
    max_inline_value_bytes: int = 100
    max_decoded_node_bytes: int = 83951616
    version_tree_arity_log2: int = 4
    zstd_level: int | None = 0


class Manifest(NamedTuple):
    """A manifest.

    Attributes:
        config: of the database.
        versions: the latest ones, the very latest last; none in a new database.
        subtrees: with all older ones, the latest last.
    """

    config: Config
    versions: list[Version]
    subtrees: list[VersionSubtree]

    @property
    def latest(self) -> Version | None:
        """The latest version."""
        return self.versions[-1] if self.versions else None


def decode_manifest(data: bytes) -> Manifest:
    """A manifest.

    Raises:
        DataLossError: damaged or contradictory.
    """
    with open_envelope(Record.MANIFEST, data, _MOST_BYTES) as reader:
        config = _read_config(reader)
        if config.kind is ManifestKind.NUMBERED:
            return Manifest(config, [], [])
        files = read_data_files(reader, b"")
        arity_log2 = config.version_tree_arity_log2
        versions = read_versions(reader, files, arity_log2, empty=True)
        subtrees = read_subtrees(reader, files, arity_log2)
        _check_order(versions, subtrees)
        return Manifest(config, versions, subtrees)
    raise AssertionError  # pragma: no cover - the envelope lets errors out


def _check_order(versions: list[Version], subtrees: list[VersionSubtree]) -> None:
    if subtrees and not versions:
        raise DataLossError("it has older versions, but no latest one")
    if subtrees and subtrees[-1].generation >= versions[0].generation:
        raise DataLossError(
            f"generation {versions[0].generation} follows {subtrees[-1].generation}"
        )


def encode_manifest(manifest: Manifest) -> bytes:
    """A manifest as it is stored."""
    config, versions, subtrees = manifest
    writer = Writer()
    _write_config(writer, config)
    if config.kind is ManifestKind.SINGLE:
        table = DataFileTable(
            [version.root for version in versions] + [subtree.reference for subtree in subtrees]
        )
        table.write(writer)
        write_versions(writer, table, versions)
        write_subtrees(writer, table, subtrees, heights=True)
    return seal_envelope(Record.MANIFEST, writer.data, config.zstd_level)


def _read_config(reader: Reader) -> Config:
    uuid = reader.take(16)
    kind = ManifestKind(reader.varint(ManifestKind.NUMBERED.value))
    inline = reader.varint(1 << 20)
    node = reader.varint((1 << 32) - 1)
    arity_log2 = reader.byte()
    if not 1 <= arity_log2 <= 16:
        raise DataLossError(f"the arity of its tree of versions is 2^{arity_log2}")
    level = None
    if reader.varint(_ZSTD) == _ZSTD:
        level = int.from_bytes(reader.take(4), "little", signed=True)
        if not _LEAST_LEVEL <= level <= _LARGEST_LEVEL:
            raise DataLossError(f"there is no zstd level {level}")
    return Config(uuid, kind, inline, node, arity_log2, level)


def _write_config(writer: Writer, config: Config) -> None:
    writer.data += config.uuid
    writer.varint(config.kind.value)
    writer.varint(config.max_inline_value_bytes)
    writer.varint(config.max_decoded_node_bytes)
    writer.byte(config.version_tree_arity_log2)
    if config.zstd_level is None:
        writer.varint(0)
    else:
        writer.varint(_ZSTD)
        writer.data += config.zstd_level.to_bytes(4, "little", signed=True)
