"""The manifest and nodes of a database as JSON, in the form that TensorStore gives them.

Keys and values are `bytes`, as they are in nodes: keys relative to what led to the node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.ocdbt.btree import Leaf, Node, Statistics
from tensorstore_py.kvstores.ocdbt.manifest import Config, Manifest
from tensorstore_py.kvstores.ocdbt.references import MISSING, DataFile, Reference
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, VersionSubtree
from tensorstore_py.ocdbt.place import found_database
from tensorstore_py.ocdbt.walk import read_node

__all__ = ["DistributedCoordinatorServer", "dump", "parse_location"]

_VALUE: Final = "value"
_NODE: Final = "btreenode"
_VERSIONS: Final = "versionnode"
_LOCATION: Final = re.compile(r"([^:]+):([^:]*):([^:]*):([0-9]{1,20}):([0-9]{1,20})", re.ASCII)
#: What the format allows a node to have at most; a node is dumped without asking for the manifest.
_MOST_BYTES: Final = 2**32 - 1


def dump(
    base: KvStore | object, node: str | None = None, *, context: Context | None = None
) -> Future[Any]:
    """The manifest, a node or a value of a database as it is stored.

    The function of the same name in TensorStore gives the same.

    Args:
        base: the store with the directory of the database, or whatever `versions` takes.
        node: a `"location"` or `"indirect_value"` of what was dumped before:
            `"<type>:<base path>:<path>:<offset>:<length>"`, where the type is `value`,
            `btreenode` or `versionnode`. By default the manifest is dumped.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of JSON in which keys and values are `bytes`; of the `bytes` of a value.

    Raises:
        SpecError: (at once) the place or the location is wrong.
        NotFoundError: (by the Future) there is no manifest.
        DataLossError: (by the Future) it is damaged or gone; names the file.

    Source:
        https://google.github.io/tensorstore/python/api/tensorstore.ocdbt.dump.html

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> manifest = ts.ocdbt.dump(db.base).result()
        >>> ts.ocdbt.dump(db.base, manifest["versions"][-1]["root"]["location"]).result()
        {'entries': [{'inline_value': b'1', 'key': b'a'}], 'height': 0}
    """
    found = found_database(base, context)
    database = found.database
    wanted = None if node is None else parse_location(node)

    async def body() -> object:
        if wanted is None:
            return _manifest(await found.manifest())
        kind, reference = wanted
        if kind == _VALUE:
            return bytes(await database.bytes_of(reference))
        if kind == _NODE:
            return _node(await read_node(database, reference, _MOST_BYTES))
        return _version_node(await database.version_node(reference))

    return found.begin(body)


class DistributedCoordinatorServer:
    """TensorStore's server by which writers cooperate: refused, since writers do without one.

    Args:
        json: as TensorStore has it.

    Raises:
        UnsupportedError: always; says what to do instead.
    """

    def __init__(self, json: object = None) -> None:
        raise UnsupportedError(
            "there is no coordinator server here, and none is needed: any number of processes "
            "may write to a database, each commit on the condition that no other one came first; "
            'leave the server and "ocdbt_coordinator" out'
        )


def parse_location(text: str) -> tuple[str, Reference]:
    """The type and the place that a location names.

    Raises:
        SpecError: it is none.

    Example:
        >>> parse_location("value::d/1:0:2")[1].file.path
        b'd/1'
    """
    found = _LOCATION.fullmatch(text)
    if found is None or found[1] not in (_VALUE, _NODE, _VERSIONS):
        raise SpecError(
            'expected a location such as "btreenode::d/0123:0:35", of the type value, btreenode or '
            f"versionnode; found {text!r:.100}"
        )
    base, name = unquote_to_bytes(found[2]), unquote_to_bytes(found[3])
    offset, length = int(found[4]), int(found[5])
    if offset + length > 2**63 - 1 or b".." in (base + name).split(b"/"):
        raise SpecError(f"no file of the database has {text!r:.100}")
    return found[1], Reference(DataFile(base, name), offset, length)


def location(kind: str, reference: Reference) -> str:
    """How a place is named."""
    base, name = (quote_from_bytes(part, "/-_.").replace("~", "%7E") for part in reference.file)
    return f"{kind}:{base}:{name}:{reference.offset}:{reference.length}"


def _config(config: Config) -> dict[str, object]:
    level = config.zstd_level
    compression = None
    if level is not None:
        compression = {"id": "zstd", **({"level": level} if level else {})}
    # Numbered manifests say that they are single ones, which is what the reference gives.
    return {
        "compression": compression,
        "max_decoded_node_bytes": config.max_decoded_node_bytes,
        "max_inline_value_bytes": config.max_inline_value_bytes,
        "uuid": config.uuid.hex(),
        "version_tree_arity_log2": config.version_tree_arity_log2,
    }


def _statistics(statistics: Statistics) -> dict[str, object]:
    return {
        "num_indirect_value_bytes": statistics.value_bytes,
        "num_keys": statistics.keys,
        "num_tree_bytes": statistics.tree_bytes,
    }


def _root(kind: str, reference: Reference, statistics: Statistics) -> dict[str, object]:
    place = {} if reference is MISSING else {"location": location(kind, reference)}
    return {**place, "statistics": _statistics(statistics)}


def _versions(versions: Sequence[Version]) -> list[dict[str, object]]:
    return [
        {
            "commit_time": version.time_ns,
            "generation_number": version.generation,
            "root": _root(_NODE, version.root, version.statistics),
            "root_height": version.height,
        }
        for version in versions
    ]


def _subtrees(subtrees: Sequence[VersionSubtree]) -> list[dict[str, object]]:
    return [
        {
            "commit_time": subtree.time_ns,
            "generation_number": subtree.generation,
            "height": subtree.height,
            "location": location(_VERSIONS, subtree.reference),
            "num_generations": subtree.versions,
        }
        for subtree in subtrees
    ]


def _manifest(manifest: Manifest) -> dict[str, object]:
    return {
        "config": _config(manifest.config),
        "version_tree_nodes": _subtrees(manifest.subtrees),
        "versions": _versions(manifest.versions),
    }


def _version_node(node: VersionNode) -> dict[str, object]:
    return {
        "entries": _subtrees(node.subtrees) if node.height else _versions(node.versions),
        "height": node.height,
        "version_tree_arity_log2": node.arity_log2,
    }


def _node(node: Node) -> dict[str, object]:
    entries: list[dict[str, object]] = []
    if isinstance(node, Leaf):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(value, Reference):
                entries.append({"indirect_value": location(_VALUE, value), "key": key})
            else:
                entries.append({"inline_value": bytes(value), "key": key})
    else:
        for key, child in zip(node.keys, node.children, strict=True):
            entries.append(
                {
                    "key": key,
                    **_root(_NODE, child.reference, child.statistics),
                    "subtree_common_prefix": key[: child.shared],
                }
            )
    return {"entries": entries, "height": node.height}
