"""Dumps: the same JSON as the reference's, of databases of both libraries."""

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tests.ocdbt.databases import LIBRARIES, new

CONFIGS = [
    {},
    {"compression": None, "max_decoded_node_bytes": 300, "max_inline_value_bytes": 1,
     "version_tree_arity_log2": 1},
    {"manifest_kind": "numbered", "compression": {"id": "zstd", "level": 3}},
]  # fmt: skip


def everything(library, path):
    """Each thing that can be dumped, by its location."""
    base = library.KvStore.open(f"file://{path}/").result()
    found: dict[str | None, object] = {}
    waiting: list[str | None] = [None]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found[node] = dumped = library.ocdbt.dump(base, node).result()
        if isinstance(dumped, dict):
            for member in ("entries", "versions", "version_tree_nodes"):
                for entry in dumped.get(member, ()):
                    waiting += [
                        each
                        for each in (
                            entry.get("location"),
                            entry.get("indirect_value"),
                            entry.get("root", {}).get("location"),
                        )
                        if each is not None
                    ]
    return found


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_dumps_are_those_of_the_reference(tmp_path, library, config):
    spec = {"driver": "ocdbt", "base": f"file://{tmp_path}/", "config": config,
            "value_data_prefix": "d~ x/%é@"}  # fmt: skip
    db = library.KvStore.open(spec).result()
    for number in range(30):
        db[f"key/{number % 13}"] = b"x" * number

    ours, theirs = everything(ts, tmp_path), everything(reference, tmp_path)

    assert ours == theirs
    assert len(ours) > 30


@pytest.mark.parametrize("wrong", [
    "x", "node::d/1:0:1", "value::d/..:0:1", "btreenode::d/../../x:0:3",
    "btreenode::d/a:0:99999999999999999999",
])  # fmt: skip
def test_what_is_no_location_is_refused_by_both(tmp_path, wrong):
    for library in (reference, ts):
        base = library.KvStore.open(f"file://{tmp_path}/").result()
        with pytest.raises(ValueError):
            library.ocdbt.dump(base, wrong).result()


def test_what_is_not_there(tmp_path):
    db = new(tmp_path)
    db["a"] = b"1"
    with pytest.raises(ts.NotFoundError, match="no manifest"):
        ts.ocdbt.dump("memory://").result()
    with pytest.raises(ts.DataLossError, match=r"d/1.*missing"):
        ts.ocdbt.dump(db.base, "btreenode::d/1:0:30").result()


def test_a_coordinator_is_refused_with_what_to_do_instead():
    with pytest.raises(ts.UnsupportedError, match="any number of processes may write"):
        ts.ocdbt.DistributedCoordinatorServer()
