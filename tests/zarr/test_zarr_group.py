"""The group: a mapping of names to arrays and groups, also beside zarr-python."""

import pickle
from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts

FORMATS = [2, 3]


@pytest.fixture(params=FORMATS)
def root(request):
    root = ts.zarr.group(zarr_format=request.param)
    root.create_groups("foo/bar", "baz")
    root.array("foo/x", [1, 2, 3], chunks=2)
    root.zeros("y", (4, 5), dtype="i4")
    return root


class TestMapping:
    def test_members_by_path(self, root):
        assert root["foo/x"][:].tolist() == [1, 2, 3]
        assert root["foo"]["x"] == root["foo/x"] == root.foo.x
        assert isinstance(root["foo/bar"], ts.zarr.Group)
        assert (root["foo/bar"].name, root["foo"]["bar"].path) == ("/foo/bar", "foo/bar")

    def test_what_is_not_there(self, root):
        for path in ("nope", "foo/nope", "y/nope"):
            assert path not in root
            with pytest.raises(KeyError):
                root[path]
            with pytest.raises(KeyError):
                del root[path]
        with pytest.raises(AttributeError, match="no member of that name"):
            _ = root.nope
        assert root.get("nope", 3) == 3
        assert 3 not in root

    def test_names(self, root):
        assert sorted(root) == ["baz", "foo", "y"]
        assert len(root) == 3
        assert "foo/bar" in root
        assert sorted(root.group_keys()) == ["baz", "foo"]
        assert list(root.array_keys()) == ["y"]
        assert sorted(root.keys()) == sorted(root)

    def test_values(self, root):
        assert [(name, type(each)) for name, each in root.groups()] == [
            ("baz", ts.zarr.Group),
            ("foo", ts.zarr.Group),
        ]
        assert [each.name for each in root.group_values()] == ["/baz", "/foo"]
        assert [(name, each.shape) for name, each in root.arrays()] == [("y", (4, 5))]
        assert [each.path for each in root.array_values()] == ["y"]
        assert {name: each.name for name, each in root.items()}["foo"] == "/foo"

    def test_depth(self, root):
        assert root.nmembers() == 3
        assert root.nmembers(max_depth=None) == 5
        found = dict(root.members(max_depth=None))
        assert found["foo/x"] == root["foo/x"]
        assert sorted(found) == ["baz", "foo", "foo/bar", "foo/x", "y"]

    def test_deletion(self, root):
        del root["foo/x"]
        del root["baz"]
        assert sorted(path for path, _ in root.members(max_depth=None)) == ["foo", "foo/bar", "y"]

    def test_assignment(self, root):
        root["foo"] = np.arange(3)
        assert root["foo"][:].tolist() == [0, 1, 2]


def test_visits_stop_where_something_is_found(root):
    seen: list[str] = []
    assert root.visit(seen.append) is None
    assert sorted(seen) == ["baz", "foo", "foo/bar", "foo/x", "y"]
    assert root.visititems(lambda path, node: path if node.name.endswith("/x") else None) == "foo/x"
    names: list[str] = []
    root.visitvalues(lambda node: names.append(node.name))
    assert "/foo/bar" in names


class TestGroups:
    def test_are_created_once(self, root):
        with pytest.raises(ValueError, match="exists already"):
            root.create_group("foo")
        assert len(root.create_group("foo", overwrite=True)) == 0

    def test_or_required(self, root):
        assert root.require_group("foo") == root["foo"]
        assert len(root.require_group("foo", overwrite=True)) == 0
        one, two = root.require_groups("new/deep", "foo")
        assert (one.name, two.name) == ("/new/deep", "/foo")
        with pytest.raises(ValueError, match="is an array, not a group"):
            root.require_group("y")

    def test_have_attributes(self, root):
        made = root.create_group("new", attributes={"a": 1})
        made.attrs["b"] = [1, 2]
        assert made.update_attributes({"c": None}) is made
        assert root["new"].attrs.asdict() == {"a": 1, "b": [1, 2], "c": None}

    def test_are_moved(self, root):
        root.move("foo", "a/b")
        assert root["a/b/x"][:].tolist() == [1, 2, 3]
        assert "foo" not in root


def test_info(root):
    info = root.info
    assert info["Name"] == "/"
    assert (info["No. members"], info["No. arrays"], info["No. groups"]) == (3, 1, 2)
    assert info["Groups"] == "baz, foo"


def test_tree(root):
    assert str(root.tree()).split("\n") == [
        "/",
        "├── baz",
        "├── foo",
        "│   ├── bar",
        "│   └── x (3,) int64",
        "└── y (4, 5) int32",
    ]
    assert str(root.tree(level=1)).count("\n") == 3


def test_what_is_read_only_is_not_changed(root):
    seen = ts.zarr.open_group(root.store, mode="r")
    for change in (
        lambda: seen.create_group("a"),
        lambda: seen.require_group("a"),
        lambda: seen.zeros("a", 3),
        lambda: seen.move("foo", "a"),
        lambda: seen.update_attributes({}),
        lambda: seen.__delitem__("foo"),
        lambda: seen["y"].__setitem__(0, 1),
        lambda: seen["foo"].zeros("a", 3),
    ):
        with pytest.raises(ValueError, match="mode='r\\+'"):
            change()


def test_is_seen_through_a_transaction(root):
    with ts.Transaction() as transaction:
        staged = root.with_transaction(transaction)
        staged.array("new", [1, 2])
        del staged["foo"]
        staged["y"][0, 0] = 5
        assert sorted(root) == ["baz", "foo", "y"]
    assert sorted(root) == ["baz", "new", "y"]
    assert root["y"][0, 0] == 5


class TestValue:
    def test_is_equal_if_it_is_the_same(self, root):
        assert root == ts.zarr.open_group(root.store)
        assert root != root["foo"]
        assert root != ts.zarr.open_group(root.store, mode="r")
        assert root != 3

    def test_survives_pickling(self, tmp_path):
        root = ts.zarr.open_group(tmp_path, mode="w")
        inner = root.create_group("a/b")
        again = pickle.loads(pickle.dumps(inner))
        assert again == inner
        again.zeros("c", 3)
        assert "a/b/c" in root

    def test_says_where_it_is(self, tmp_path):
        root = ts.zarr.open_group(tmp_path, mode="w")
        assert repr(root.create_group("a")) == f"<Group {tmp_path.as_uri()}/a/>"


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_zarr_python_reads_the_same(tmp_path, zarr_format):
    root = ts.zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format, attributes={"a": 1})
    root.array("b/c", np.arange(5), chunks=2, attributes={"d": [1, 2]})
    root.create_group("e/f")

    theirs: Any = zarr.open_group(tmp_path, mode="r")

    assert dict(theirs.attrs) == {"a": 1}
    assert theirs["b/c"][:].tolist() == [0, 1, 2, 3, 4]
    assert dict(theirs["b/c"].attrs) == {"d": [1, 2]}
    assert sorted(name for name, _ in theirs.members(max_depth=None)) == ["b", "b/c", "e", "e/f"]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_what_zarr_python_wrote_is_read_the_same(tmp_path, zarr_format):
    theirs: Any = zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format, attributes={"a": 1})
    theirs.create_array("b/c", data=np.arange(5), chunks=(2,), attributes={"d": [1, 2]})
    theirs.create_group("e").create_group("f")

    root = ts.zarr.open(tmp_path, mode="r")

    assert root.attrs.asdict() == {"a": 1}
    assert root["b/c"][:].tolist() == [0, 1, 2, 3, 4]
    assert root["b/c"].attrs.asdict() == {"d": [1, 2]}
    assert sorted(name for name, _ in root.members(max_depth=None)) == ["b", "b/c", "e", "e/f"]
