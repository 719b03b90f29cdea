import pytest

import tensorstore_py as ts
from tests.api.counted_memory import counts


@pytest.fixture(params=[2, 3])
def group(request):
    root = ts.Group.open(
        {"driver": "counted_memory"}, create=True, zarr_format=request.param, attributes={"of": "/"}
    ).result()
    root.create_array("a/b", dtype="int16", shape=[3], attributes={"of": "b"}).result()
    return root


def test_what_is_stored_is_told_before_anything_is_opened(group):
    nodes = group.nodes(None).result()

    assert {path: node.kind for path, node in nodes.items()} == {
        "": "group",
        "a": "group",
        "a/b": "array",
    }
    assert [node.attributes for node in nodes.values()] == [{"of": "/"}, {}, {"of": "b"}]
    assert nodes["a/b"].metadata["shape"] == [3]
    assert nodes["a"].metadata["zarr_format"] == group.zarr_format
    assert repr(nodes["a/b"]) == "GroupNode('a/b', array)"


def test_opening_what_was_read_asks_for_nothing_more(group):
    node = group.nodes(None).result()["a/b"]
    asked = counts(group)
    asked.reset()

    array = node.open().result()

    assert isinstance(array, ts.TensorStore)
    assert array.shape == (3,)
    assert not asked.reads
    assert isinstance(group.nodes().result()["a"].open().result(), ts.Group)


def test_paths_are_those_below_the_group(group):
    assert list(group["a"].nodes().result()) == ["", "b"]


def test_consolidated_metadata_tells_all_without_a_request(group):
    known = group.consolidate().result()
    asked = counts(group)
    asked.reset()

    nodes = known.nodes(None).result()

    assert list(nodes) == ["", "a", "a/b"]
    assert nodes["a/b"].attributes == {"of": "b"}
    assert nodes["a/b"].open().result().shape == (3,)
    assert not asked.reads
    assert not asked.directories


def test_a_group_that_was_deleted_is_not_there():
    root = ts.Group.open("memory://", create=True).result()
    group = root.create_group("a").result()
    root.delete("a").result()

    with pytest.raises(ts.NotFoundError, match="no group found"):
        group.nodes().result()


def test_a_closed_group_tells_nothing(group):
    group.close()

    with pytest.raises(ts.FailedPreconditionError):
        group.nodes().result()
