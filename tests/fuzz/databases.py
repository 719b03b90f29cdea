"""OCDBT databases to be damaged, and damage that their checksums do not notice.

- `databases()`: seeds whose driver is `"ocdbt"`, of every configuration: deep trees of keys, deep
  trees of versions, numbered manifests, values in data files, and a base path.
- `mutate_database(rng, seed)`: one with a manifest or node that lies: about heights, keys, lengths,
  statistics, places, paths, generations, sizes; or whose bytes were changed in any way. What refers
  to it is made anew up to the manifest, and checksums are right, so that it is decoded.

What is damaged, and how, follows from the `random.Random` given; the names of data files and the
times of versions are others in each process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numcodecs

import tensorstore_py as ts
from tensorstore_py.kvstores.ocdbt.btree import (
    Child,
    Interior,
    Leaf,
    Node,
    Statistics,
    decode_node,
    encode_node,
)
from tensorstore_py.kvstores.ocdbt.envelope import Record, open_envelope, seal_envelope
from tensorstore_py.kvstores.ocdbt.manifest import (
    Manifest,
    ManifestKind,
    decode_manifest,
    encode_manifest,
)
from tensorstore_py.kvstores.ocdbt.references import MISSING, DataFile, Reference
from tensorstore_py.kvstores.ocdbt.versions import (
    VersionNode,
    VersionSubtree,
    decode_version_node,
    encode_version_node,
)
from tensorstore_py.plugin.kvstore import crc32c
from tests.fuzz.mutations import mutate_bytes
from tests.fuzz.seeds import Seed

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["databases", "mutate_database"]

_MOST: Final = 1 << 30
_NUMBERS: Final = (
    0, 1, 2, 127, 128, 255, 2**16 - 1, 2**16, 2**20, 2**20 + 1, 2**31, 2**32 - 1, 2**53, 2**62,
    2**63 - 1, 2**63, 2**64 - 1,
)  # fmt: skip
#: Lengths that are plausible for a while.
_SMALL: Final = (0, 1, 2, 3, 5, 17, 63, 64, 100, 255)
_PATHS: Final = (
    b"", b"..", b"../d/x", b"d/../../x", b"/etc/passwd", b"d/a\0b", b"d/\xff\xfe", b"d/", b".",
    b"manifest.ocdbt", b"x" * 300, b"d/" + b"y" * 65533, b"d//x", b"d/.", b"a/./b", b"\\..\\x",
)  # fmt: skip
_CONFIGS: Final[dict[str, dict[str, object]]] = {
    "plain": {"compression": None},
    "packed": {},
    "deep": {"max_decoded_node_bytes": 300, "compression": None, "max_inline_value_bytes": 4},
    "deep_packed": {"max_decoded_node_bytes": 250, "max_inline_value_bytes": 0},
    "versions": {"version_tree_arity_log2": 1, "compression": None},
    "numbered": {"manifest_kind": "numbered", "version_tree_arity_log2": 2},
    "large_nodes": {"max_decoded_node_bytes": 2**32 - 1},
}


@cache
def databases() -> tuple[Seed, ...]:
    """One of each configuration, of a few dozen keys and a few versions."""
    found = [_made(name, config) for name, config in _CONFIGS.items()]
    return (*found, _below(found[2]))


def _made(name: str, config: dict[str, object]) -> Seed:
    context = ts.Context()
    spec = {"driver": "ocdbt", "base": "memory://", "config": {"uuid": "0" * 32, **config}}
    kv = ts.KvStore.open(spec, context=context).result()
    for turn in range(9):
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            for number in range(turn, 40, 3):
                staged[f"k/{number:03}/{'x' * (number % 5)}"] = b"v" * (number * turn % 130)
    store = ts.KvStore.open("memory://", context=context).result()
    files = {key.decode(): bytes(store[key]) for key in store.list().result()}
    return Seed(name, "ocdbt", files)


def _below(seed: Seed) -> Seed:
    """The files of a database under a base path, as a copy by reference leaves them."""
    database = _Database(seed)
    moved = {f"old/{key}": value for key, value in seed.files.items() if key.startswith("d/")}
    database.files = {"manifest.ocdbt": b"", **moved}
    versions = [
        version._replace(
            root=version.root._replace(file=DataFile(b"old/", version.root.file.name))
            if version.root is not MISSING
            else MISSING
        )
        for version in database.manifest.versions
    ]
    database.store(encode_manifest(database.manifest._replace(versions=versions, subtrees=[])))
    return replace(seed, name="below", files=database.files)


class _Database:
    """The files of a seed, to be changed."""

    def __init__(self, seed: Seed) -> None:
        self.files = dict(seed.files)
        self.key = max(key for key in seed.files if "manifest" in key and "d/" not in key)
        if any(key.startswith("manifest.0") for key in seed.files):
            self.key = max(key for key in seed.files if key.startswith("manifest.0"))
        self.manifest = decode_manifest(self.files[self.key])

    @property
    def level(self) -> int | None:
        return self.manifest.config.zstd_level

    def store(self, manifest: bytes) -> None:
        self.files[self.key] = manifest

    def data_of(self, reference: Reference) -> bytes:
        file = self.files[reference.file.path.decode()]
        return file[reference.offset : reference.offset + reference.length]

    def node(self, reference: Reference) -> Node:
        return decode_node(self.data_of(reference), reference.file.base, _MOST)

    def add(self, data: bytes) -> Reference:
        """Where a record is from now on: in a file of its own."""
        file = DataFile(b"", f"d/{len(self.files):032x}".encode())
        self.files[file.path.decode()] = data
        return Reference(file, 0, len(data))


# ----------------------------------------------------------------------------------------- damage


def mutate_database(rng: Random, seed: Seed) -> Seed:
    """See the head of this file."""
    if rng.random() < 0.1:
        key = rng.choice(sorted(seed.files))
        return seed.changed(key, mutate_bytes(rng, seed.files[key]))
    database = _Database(seed)
    kind = rng.randrange(10)
    if rng.random() < 0.01:
        _multiply(database)
    elif kind < 5:
        _damage_tree(rng, database)
    elif kind < 7 and database.manifest.subtrees:
        _damage_history(rng, database)
    else:
        _damage_manifest(rng, database)
    return replace(seed, files=database.files)


def _damage_tree(rng: Random, database: _Database) -> None:
    """Another node somewhere in the tree of keys of the latest version."""
    manifest = database.manifest
    version = manifest.versions[-1]
    way: list[tuple[Interior, int]] = []
    node = database.node(version.root)
    while isinstance(node, Interior) and rng.random() < 0.7:
        place = rng.randrange(len(node.children))
        way.append((node, place))
        node = database.node(node.children[place].reference)
    reference = database.add(_lying_node(rng, database, node))
    for parent, place in reversed(way):
        children = list(parent.children)
        children[place] = children[place]._replace(reference=reference)
        reference = database.add(encode_node(parent._replace(children=children), database.level))
    versions = [*manifest.versions[:-1], version._replace(root=reference)]
    database.store(encode_manifest(manifest._replace(versions=versions)))


def _multiply(database: _Database) -> None:
    """A tree of few bytes with more keys than can be listed: each node has the one below twice."""
    manifest = database.manifest
    version = manifest.versions[-1]
    reference = version.root
    for height in range(version.height + 1, version.height + 41):
        children = [
            Child(0, reference, version.statistics),
            Child(1, reference, version.statistics),
        ]
        node = Interior(height, [b"", b"~"], children)
        reference = database.add(encode_node(node, database.level))
    version = version._replace(root=reference, height=version.height + 40)
    versions = [*manifest.versions[:-1], version]
    database.store(encode_manifest(manifest._replace(versions=versions)))


def _damage_history(rng: Random, database: _Database) -> None:
    """Another node in the tree of versions."""
    manifest = database.manifest
    subtrees = list(manifest.subtrees)
    place = rng.randrange(len(subtrees))
    reference = subtrees[place].reference
    node = decode_version_node(database.data_of(reference), b"", _MOST)
    subtrees[place] = subtrees[place]._replace(
        reference=database.add(_lying_version_node(rng, database, node))
    )
    database.store(encode_manifest(manifest._replace(subtrees=subtrees)))


def _damage_manifest(rng: Random, database: _Database) -> None:
    manifest = database.manifest
    if rng.random() < 0.5:
        data = encode_manifest(manifest)
    else:
        data = encode_manifest(_lying_manifest(rng, manifest))
    if rng.random() < 0.6:
        data = _resealed(rng, Record.MANIFEST, data, database.level)
    database.store(data)


# ------------------------------------------------------------------------------------- its content


def _number(rng: Random, near: int = 0) -> int:
    return rng.choice((rng.choice(_NUMBERS), rng.choice(_SMALL), near + 1, max(0, near - 1)))


def _lying_reference(rng: Random, reference: Reference) -> Reference:
    kind = rng.randrange(4)
    if kind == 0:
        path = rng.choice(_PATHS)
        place = rng.randrange(len(path) + 1)
        return reference._replace(file=DataFile(path[:place], path[place:]))
    if kind == 1:
        return reference._replace(offset=_number(rng, reference.offset))
    if kind == 2:
        return reference._replace(length=_number(rng, reference.length))
    path = reference.file.path
    place = rng.randrange(len(path) + 1)
    return reference._replace(file=DataFile(path[:place], path[place:]))


def _lying_statistics(rng: Random, statistics: Statistics) -> Statistics:
    return Statistics(*(_number(rng, number) for number in statistics))


def _lying_keys(rng: Random, given: Sequence[bytes]) -> list[bytes]:
    keys = list(given)
    place = rng.randrange(len(keys))
    kind = rng.randrange(5)
    if kind == 0:
        rng.shuffle(keys)
    elif kind == 1:
        keys[place] = keys[rng.randrange(len(keys))]
    elif kind == 2:
        keys[place] = b""
    elif kind == 3:
        keys[place] += b"\xff" * rng.choice((1, 3, 65535))
    else:
        keys[place] = rng.randbytes(rng.randrange(9))
    return keys


def _lying_node(rng: Random, database: _Database, node: Node) -> bytes:
    level = database.level
    if rng.random() < 0.55:
        node = (
            _lying_leaf(rng, node)
            if isinstance(node, Leaf)
            else _lying_interior(rng, database, node)
        )
        data = encode_node(node, level)
        if rng.random() < 0.8:
            return data
    return _resealed(rng, Record.BTREE_NODE, encode_node(node, level), level)


def _lying_leaf(rng: Random, leaf: Leaf) -> Node:
    kind = rng.randrange(4)
    if kind == 0:
        return leaf._replace(keys=_lying_keys(rng, leaf.keys))
    if kind == 1:
        values = list(leaf.values)
        place = rng.randrange(len(values))
        value = values[place]
        here = value if isinstance(value, Reference) else Reference(DataFile(b"d/", b"x"), 0, 5)
        values[place] = _lying_reference(rng, here)
        return leaf._replace(values=values)
    if kind == 2:
        child = Child(0, Reference(DataFile(b"", b"d/0"), 0, 99), Statistics(1, 1, 1))
        return Interior(rng.choice((1, 2, 255)), list(leaf.keys), [child] * len(leaf.keys))
    return Leaf(leaf.keys[:1], leaf.values[:1])


def _lying_interior(rng: Random, database: _Database, node: Interior) -> Node:
    children = list(node.children)
    place = rng.randrange(len(children))
    child = children[place]
    kind = rng.randrange(7)
    if kind == 0:
        return node._replace(keys=_lying_keys(rng, node.keys))
    if kind == 1:
        return node._replace(height=rng.choice((1, node.height + 1, 2, 254, 255)))
    if kind == 2:
        children[place] = child._replace(reference=_lying_reference(rng, child.reference))
    elif kind == 3:
        children[place] = child._replace(statistics=_lying_statistics(rng, child.statistics))
    elif kind == 4:
        children[place] = child._replace(shared=min(65535, _number(rng, child.shared)))
    elif kind == 5:
        # all lead to the same
        children = [child] * len(children)
    else:
        return _cyclic(database, node, place)
    return node._replace(children=children)


def _cyclic(database: _Database, node: Interior, place: int) -> Interior:
    """A node that is its own child: its file is the next one that is added."""
    file = DataFile(b"", f"d/{len(database.files):032x}".encode())
    length = 0
    for _ in range(5):
        children = list(node.children)
        children[place] = children[place]._replace(reference=Reference(file, 0, length))
        node = node._replace(children=children)
        length = len(encode_node(node, database.level))
    return node


def _lying_version_node(rng: Random, database: _Database, node: VersionNode) -> bytes:
    if rng.random() < 0.5:
        kind = rng.randrange(3)
        if kind == 0:
            node = node._replace(arity_log2=rng.choice((0, 2, 15, 16, 17, 63, 255)))
        elif node.height:
            subtrees = [_lying_subtree(rng, node.subtrees[0]), *node.subtrees[1:]]
            rng.shuffle(subtrees)
            node = node._replace(subtrees=subtrees)
        else:
            node = node._replace(versions=_lying_versions(rng, node.versions))
    data = encode_version_node(node, database.level)
    return data if rng.random() < 0.5 else _resealed(rng, Record.VERSION_NODE, data, database.level)


def _lying_subtree(rng: Random, subtree: VersionSubtree) -> VersionSubtree:
    kind = rng.randrange(5)
    if kind == 0:
        return subtree._replace(generation=_number(rng, subtree.generation))
    if kind == 1:
        return subtree._replace(time_ns=_number(rng, subtree.time_ns))
    if kind == 2:
        return subtree._replace(versions=_number(rng, subtree.versions))
    if kind == 3:
        return subtree._replace(height=rng.choice((0, 1, 2, 5, 31, 32, 62, 63, 64, 255)))
    return subtree._replace(reference=_lying_reference(rng, subtree.reference))


def _lying_versions(rng: Random, versions: list[Any]) -> list[Any]:
    versions = list(versions)
    place = rng.randrange(len(versions))
    version = versions[place]
    kind = rng.randrange(6)
    if kind == 0:
        version = version._replace(generation=_number(rng, version.generation))
    elif kind == 1:
        version = version._replace(time_ns=_number(rng, version.time_ns))
    elif kind == 2:
        version = version._replace(height=rng.choice((0, 1, 2, 3, 254, 255)))
    elif kind == 3:
        version = version._replace(root=_lying_reference(rng, version.root))
    elif kind == 4:
        version = version._replace(root=MISSING)
    else:
        version = version._replace(statistics=_lying_statistics(rng, version.statistics))
    versions[place] = version
    return versions


def _lying_manifest(rng: Random, manifest: Manifest) -> Manifest:
    kind = rng.randrange(4)
    if kind == 0 and manifest.subtrees:
        subtrees = [_lying_subtree(rng, manifest.subtrees[0]), *manifest.subtrees[1:]]
        return manifest._replace(subtrees=subtrees)
    if kind == 1:
        return manifest._replace(config=_lying_config(rng, manifest.config))
    return manifest._replace(versions=_lying_versions(rng, manifest.versions))


def _lying_config(rng: Random, config: Any) -> Any:
    kind = rng.randrange(5)
    if kind == 0:
        return config._replace(max_inline_value_bytes=rng.choice((0, 2**20, 2**20 + 1, 2**64 - 1)))
    if kind == 1:
        return config._replace(max_decoded_node_bytes=rng.choice((0, 1, 2**32 - 1, 2**32)))
    if kind == 2:
        return config._replace(version_tree_arity_log2=rng.choice((0, 1, 2, 16, 17, 255)))
    if kind == 3:
        return config._replace(zstd_level=rng.choice((-131072, -1, 22)))
    return config._replace(kind=rng.choice(list(ManifestKind)))


# --------------------------------------------------------------------------------------- its bytes


def _resealed(rng: Random, record: Record, data: bytes, level: int | None) -> bytes:
    """A record with other bytes, and with the right checksum."""
    with open_envelope(record, data, _MOST) as reader:
        body = reader.take(reader.left)
    kind = rng.randrange(8)
    if kind == 0:
        return _sealed(rng, record, body)
    if kind == 1:
        return _bomb(rng, record)
    for _ in range(rng.choice((1, 1, 2, 4))):
        body = _edited(rng, body)
    return seal_envelope(record, body, level)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _edited(rng: Random, body: bytes) -> bytes:
    body = body or b"\0"
    place = rng.randrange(len(body) + 1)
    kind = rng.randrange(7)
    if kind == 0:
        new = bytes([rng.randrange(256)])
        return body[:place] + new + body[place + 1 :]
    if kind == 1:
        return body[:place] + _varint(rng.choice(_NUMBERS)) + body[place + 1 :]
    if kind == 2:
        overlong = b"\x80" * rng.choice((1, 3, 9, 10, 40, 10_000)) + b"\0"
        return body[:place] + overlong + body[place:]
    if kind == 3:
        return body[:place]
    if kind == 4:
        return body[:place] + body[place + rng.randrange(1, 20) :]
    if kind == 5:
        return body + body[place:]
    return body[:place] + bytes([body[place % len(body)] ^ 1 << rng.randrange(8)]) + body[place:]


def _sealed(rng: Random, record: Record, body: bytes) -> bytes:
    """In an envelope that lies."""
    magic = rng.choice((record, record, *Record)).value.to_bytes(4, "big")
    head = rng.choice((b"\0\0", b"\0\1", b"\1\0", b"\0\2", b"\0\x80\0", b"\x80" * 11 + b"\0"))
    length = 16 + len(head) + len(body) + rng.choice((0, 0, 1, -1, 2**40))
    data = magic + (length % 2**64).to_bytes(8, "little") + head + body
    return data + crc32c(data).to_bytes(4, "little")


def _bomb(rng: Random, record: Record) -> bytes:
    """Few bytes that are very many when they are decompressed."""
    make: Callable[[], bytes] = rng.choice((_zeros, _endless, _boast))
    data = make()
    sealed = record.value.to_bytes(4, "big") + (18 + len(data)).to_bytes(8, "little")
    sealed += b"\0\1" + data
    return sealed + crc32c(sealed).to_bytes(4, "little")


@cache
def _zeros() -> bytes:
    return bytes(numcodecs.Zstd(1).encode(bytes(1 << 28)))


@cache
def _endless() -> bytes:
    """A frame that does not say its size: 4 GiB of one byte, in blocks of 4 bytes."""
    block = 1 << 17
    more, last = ((final | 1 << 1 | block << 3).to_bytes(3, "little") for final in (0, 1))
    return b"\x28\xb5\x2f\xfd\x00\x38" + (more + b"\1") * 32767 + last + b"\1"


@cache
def _boast() -> bytes:
    """A frame of a few bytes that says that it is of nearly 4 GiB."""
    return b"\x28\xb5\x2f\xfd\xa0" + (2**32 - 2).to_bytes(4, "little") + b"\x01\x00\x00"
