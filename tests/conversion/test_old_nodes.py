import json

import pytest

from tensorstore_py._conversion.old_nodes import find_nodes
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap

GROUP, ARRAY = {"zarr_format": 2}, {"zarr_format": 2, "shape": []}
NEW_GROUP = {"zarr_format": 3, "node_type": "group"}


def nodes(documents, prefix=""):
    store = MemoryStore(SharedMap())
    for key, document in documents.items():
        run_inline(store.write(prefix + key, json.dumps(document).encode()))
    return run_inline(find_nodes(store, prefix))


@pytest.mark.parametrize("prefix", ["", "x/y/"])
def test_a_hierarchy(prefix):
    found = nodes(
        {
            ".zgroup": GROUP, ".zattrs": {"a": 1}, ".zmetadata": {}, "a/.zarray": ARRAY,
            "b/.zgroup": GROUP, "b/c/.zarray": ARRAY, "b/c/.zattrs": {"d": 1}, "b/c/0": 1,
            "other/file": 1,
        },
        prefix,
    )  # fmt: skip

    assert [(node.path, node.kind, node.version) for node in found] == [
        ("", "group", 2),
        ("a", "array", 2),
        ("b", "group", 2),
        ("b/c", "array", 2),
    ]
    assert found[0].keys == (".zmetadata", ".zattrs", ".zgroup")
    assert [node.consolidated for node in found] == [True, False, False, False]
    assert found[3].attributes == {"d": 1}
    assert found[3].keys == (".zattrs", ".zarray")


def test_nodes_of_both_versions_are_old_ones():
    found = nodes({".zgroup": GROUP, "zarr.json": NEW_GROUP, "a/zarr.json": NEW_GROUP})

    assert [(node.version, node.newer) for node in found] == [(2, NEW_GROUP), (3, NEW_GROUP)]


def test_an_array_of_version_1():
    (found,) = nodes({"meta": {"zarr_format": 1}, "attrs": {"a": 1}, "0.0": 1})

    assert (found.version, found.attributes, found.keys) == (1, {"a": 1}, ("attrs", "meta"))


def test_what_is_left_of_version_1():
    (found,) = nodes({"meta": {"zarr_format": 1}, "attrs": {"a": 1}, ".zarray": ARRAY})

    assert (found.version, found.keys, found.leftover) == (2, (".zarray",), ("attrs", "meta"))


def test_what_is_called_meta_need_not_be_metadata():
    assert nodes({"meta": {"a": 1}}) == []
    assert nodes({".zarray": ARRAY, "meta": {"a": 1}})[0].leftover == ()


def test_says_what_is_corrupt():
    with pytest.raises(DataLossError, match="not of version 2"):
        nodes({".zgroup": {}})
    with pytest.raises(DataLossError, match="expected an object"):
        nodes({".zarray": 5})
