import pytest

from tensorstore_py._hierarchy.consolidated import Consolidated
from tensorstore_py._hierarchy.node import names_in, read_node, read_nodes
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py.errors import DataLossError
from tests.hierarchy.trees import put, run, tree


@pytest.mark.parametrize("path", ["", "a", "a/b"])
def test_one_request_tells_what_a_node_of_one_document_is(path):
    found = tree("zarr3", "data/", groups=["a"], arrays=["", "a/b"])

    node = run(read_node(found, path))

    assert node.kind == ("group" if path == "a" else "array")
    assert found.store.reads == {found.below(path) + "zarr.json": 1}
    assert node.read()["zarr.json"].stamp.generation != UNKNOWN


def test_what_is_likely_is_looked_for_first():
    found = tree("zarr", groups=["g"], arrays=["a"])

    assert run(read_node(found, "g", likely="group")).kind == "group"
    assert found.store.reads == {"g/.zgroup": 1}
    found.store.reset()
    assert run(read_node(found, "a")).kind == "array"
    assert found.store.reads == {"a/.zarray": 1, "a/.zattrs": 1}


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_nothing_is_no_node(driver):
    found = tree(driver, arrays=["a"])

    assert run(read_node(found, "b")) is None
    paths = ["b", "a", "c"]
    assert [node.path for node in run(read_nodes(found, paths, None))] == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "this is no JSON"),
        (b'{"zarr_format":3,"node_type":"tensor"}', 'node_type: expected "array" or "group"'),
        (b'{"zarr_format":4,"node_type":"group"}', "zarr_format: expected 3, but found 4"),
        (
            b'{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"x"}}',
            "consolidated_metadata: expected",
        ),
    ],
)
def test_a_corrupt_document_is_named(text, message):
    found = tree()
    put(found, "a/zarr.json", text)

    with pytest.raises(DataLossError, match=rf'"a/zarr\.json": {message}'):
        run(read_node(found, "a"))


def test_names_are_told_by_one_listing():
    found = tree("zarr3", "p/", groups=["g"], arrays=["g/b", "g/a", "g/c/d"])
    put(found, "p/g/a/c/0", b"chunk")
    put(found, "p/g/__hidden/x", b"")
    found.store.reset()

    assert run(names_in(found, "g")) == ["a", "b", "c"]
    assert found.store.directories == {"p/g/": 1}
    assert not found.store.reads


def test_a_copy_tells_without_a_request():
    found = tree()
    group = {"zarr.json": {"zarr_format": 3, "node_type": "group"}}
    array = {"zarr.json": {"zarr_format": 3, "node_type": "array", "shape": [2]}}
    known = Consolidated({"": group, "a": array}, "g", 5.0, "there")

    node = run(read_node(found, "g/a", known))

    assert (node.kind, node.consolidated) == ("array", known)
    result = node.read()["zarr.json"]
    assert (result.stamp.generation, result.stamp.time) == (UNKNOWN, 5.0)
    assert run(read_node(found, "g/b", known)) is None
    assert run(names_in(found, "g", known)) == ["a"]
    nodes = run(read_nodes(found, ["g/a", "g/x"], known))
    assert [each.path for each in nodes] == ["g/a"]
    assert not found.store.reads


def test_a_corrupt_copy_is_named():
    known = Consolidated({"": {"zarr.json": {"zarr_format": 3}}}, "", 5.0, "there")

    with pytest.raises(DataLossError, match=r"consolidated metadata of .*node_type"):
        run(read_node(tree(), "", known))
