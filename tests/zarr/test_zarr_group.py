"""Groups of the zarr API: nodes, attributes, opening, copying, saving."""

import io
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.zarr.creation import as_format, as_mode, find
from tensorstore_py.zarr.storage import store_of

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


class TestZarrGroup:
    def test_visits_stop_where_something_is_found(self, root):
        seen: list[str] = []
        assert root.visit(seen.append) is None
        assert sorted(seen) == ["baz", "foo", "foo/bar", "foo/x", "y"]
        assert (
            root.visititems(lambda path, node: path if node.name.endswith("/x") else None)
            == "foo/x"
        )
        names: list[str] = []
        root.visitvalues(lambda node: names.append(node.name))
        assert "/foo/bar" in names

    def test_info(self, root):
        info = root.info
        assert info["Name"] == "/"
        assert (info["No. members"], info["No. arrays"], info["No. groups"]) == (3, 1, 2)
        assert info["Groups"] == "baz, foo"

    def test_tree(self, root):
        assert str(root.tree()).split("\n") == [
            "/",
            "├── baz",
            "├── foo",
            "│   ├── bar",
            "│   └── x (3,) int64",
            "└── y (4, 5) int32",
        ]
        assert str(root.tree(level=1)).count("\n") == 3

    def test_what_is_read_only_is_not_changed(self, root):
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

    def test_is_seen_through_a_transaction(self, root):
        with ts.Transaction() as transaction:
            staged = root.with_transaction(transaction)
            staged.array("new", [1, 2])
            del staged["foo"]
            staged["y"][0, 0] = 5
            assert sorted(root) == ["baz", "foo", "y"]
        assert sorted(root) == ["baz", "new", "y"]
        assert root["y"][0, 0] == 5

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_zarr_python_reads_the_same(self, tmp_path, zarr_format):
        root = ts.zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format, attributes={"a": 1})
        root.array("b/c", np.arange(5), chunks=2, attributes={"d": [1, 2]})
        root.create_group("e/f")

        theirs: Any = zarr.open_group(tmp_path, mode="r")

        assert dict(theirs.attrs) == {"a": 1}
        assert theirs["b/c"][:].tolist() == [0, 1, 2, 3, 4]
        assert dict(theirs["b/c"].attrs) == {"d": [1, 2]}
        assert sorted(name for name, _ in theirs.members(max_depth=None)) == [
            "b",
            "b/c",
            "e",
            "e/f",
        ]

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_what_zarr_python_wrote_is_read_the_same(self, tmp_path, zarr_format):
        theirs: Any = zarr.open_group(
            tmp_path, mode="w", zarr_format=zarr_format, attributes={"a": 1}
        )
        theirs.create_array("b/c", data=np.arange(5), chunks=(2,), attributes={"d": [1, 2]})
        theirs.create_group("e").create_group("f")

        root = ts.zarr.open(tmp_path, mode="r")

        assert root.attrs.asdict() == {"a": 1}
        assert root["b/c"][:].tolist() == [0, 1, 2, 3, 4]
        assert root["b/c"].attrs.asdict() == {"d": [1, 2]}
        assert sorted(name for name, _ in root.members(max_depth=None)) == ["b", "b/c", "e", "e/f"]


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestOpen:
    def test_gives_what_is_there(self, tmp_path, zarr_format):
        root = ts.zarr.open(tmp_path, mode="w", zarr_format=zarr_format)
        root.zeros("a", 3)
        for mode in (None, "r", "r+", "a"):
            assert isinstance(ts.zarr.open(tmp_path, mode), ts.zarr.Group)
            found = ts.zarr.open(tmp_path, mode, path="a")
            assert isinstance(found, ts.zarr.Array)
            assert (found.path, found.read_only) == ("a", mode == "r")

    def test_creates_what_is_asked_for(self, tmp_path, zarr_format):
        made = ts.zarr.open(
            tmp_path / "a", zarr_format=zarr_format, shape=3, dtype="i4", attributes={"x": 1}
        )
        assert (made.shape, made.attrs["x"], made.zarr_format) == ((3,), 1, zarr_format)
        group = ts.zarr.open(tmp_path / "b", zarr_format=zarr_format, attributes={"x": 1})
        assert (list(group), group.attrs["x"], group.zarr_format) == ([], 1, zarr_format)

    @pytest.mark.parametrize("mode", ["r", "r+"])
    def test_nothing_is_there(self, tmp_path, zarr_format, mode):
        with pytest.raises(ValueError, match="no array or group found"):
            ts.zarr.open(tmp_path, mode, zarr_format=zarr_format)

    def test_something_is_there(self, tmp_path, zarr_format):
        ts.zarr.open(tmp_path, mode="w-", zarr_format=zarr_format)
        with pytest.raises(ValueError, match="replace it with mode='w'"):
            ts.zarr.open(tmp_path, mode="w-", zarr_format=zarr_format)
        with pytest.raises(ValueError, match="there is a Zarr group"):
            ts.zarr.open(tmp_path, mode="w-", zarr_format=zarr_format, shape=3)
        assert len(ts.zarr.open(tmp_path, mode="w", zarr_format=zarr_format)) == 0


class TestGroup:
    def test_is_not_there(self):
        with pytest.raises(ValueError, match=r"no group found at .*; pass mode='a'"):
            ts.zarr.open_group({}, mode="r")

    def test_is_created_or_opened(self, tmp_path):
        assert ts.zarr.group(tmp_path, path="a/b") == ts.zarr.group(tmp_path, path="a/b")
        ts.zarr.group(tmp_path).zeros("c", 3)
        assert sorted(ts.zarr.group(tmp_path)) == ["a", "c"]
        assert list(ts.zarr.group(tmp_path, overwrite=True)) == []

    def test_has_memory_of_its_own(self):
        assert ts.zarr.group() != ts.zarr.group()

    def test_is_created_once(self, tmp_path):
        made = ts.zarr.create_group(tmp_path, path="a", attributes={"x": 1}, zarr_format=2)
        assert (made.zarr_format, made.attrs["x"]) == (2, 1)
        with pytest.raises(ValueError, match="replace it with mode='w'"):
            ts.zarr.create_group(tmp_path, path="a")
        assert ts.zarr.create_group(tmp_path, path="a", overwrite=True).attrs.asdict() == {}

    def test_arrays_are_none(self, tmp_path):
        ts.zarr.zeros(3, store=tmp_path)
        with pytest.raises(ValueError, match="is an array, not a group"):
            ts.zarr.open_group(tmp_path)


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestConsolidated:
    def test_is_read_and_written_as_by_zarr_python(self, tmp_path, zarr_format):
        root = ts.zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format)
        root.array("a/b", [1, 2, 3])
        with pytest.raises(ValueError, match="no consolidated metadata"):
            ts.zarr.open_consolidated(tmp_path)

        opened = ts.zarr.consolidate_metadata(tmp_path)

        assert opened.ts.consolidated
        assert ts.zarr.open_consolidated(tmp_path)["a/b"][:].tolist() == [1, 2, 3]
        theirs: Any = zarr.open_consolidated(str(tmp_path))
        assert theirs["a/b"][:].tolist() == [1, 2, 3]

    def test_need_not_be_used(self, tmp_path, zarr_format):
        ts.zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format)
        ts.zarr.consolidate_metadata(tmp_path)
        ts.zarr.zeros(3, store=tmp_path, path="new", zarr_format=zarr_format)
        assert list(ts.zarr.open_group(tmp_path)) == []
        assert list(ts.zarr.open_group(tmp_path, use_consolidated=False)) == ["new"]


class TestNodes:
    def test_an_array_is_asked_for_where_a_group_is(self, tmp_path):
        ts.zarr.group(tmp_path)
        for mode in ("a", "r"):
            with pytest.raises(ValueError, match="there is a group, not an array"):
                ts.zarr.open(tmp_path, mode, shape=3)

    def test_what_only_arrays_have_needs_a_shape(self):
        with pytest.raises(TypeError, match="'dtype' is for a new array: pass shape=, too"):
            ts.zarr.open(dtype="i4")

    def test_a_read_only_store_is_opened_for_reading(self):
        files: dict[str, bytes] = {}
        ts.zarr.array([1, 2], store=files)
        z = ts.zarr.open(ts.zarr.MemoryStore(files, read_only=True))
        assert (z.read_only, z[1]) == (True, 2)

    def test_consolidated_metadata_create_nothing(self):
        with pytest.raises(ValueError, match="mode 'r' or 'r\\+', not 'w'"):
            ts.zarr.open_consolidated({}, mode="w")

    def test_tree(self):
        root = ts.zarr.group()
        root.zeros("a/b", 3, dtype="i4")
        assert str(ts.zarr.tree(root)) == "/\n└── a\n    └── b (3,) int32"
        assert str(ts.zarr.tree(root.ts, level=1)) == "/\n└── a"


@pytest.fixture(params=["array", "group"])
def node(request, tmp_path):
    where = tmp_path / "node"
    if request.param == "array":
        ts.zarr.create_array(where, shape=(4,), dtype="i4", attributes={"a": 1})
    else:
        ts.zarr.create_group(where, attributes={"a": 1})
    return where


def stored(where):
    return ts.zarr.open(where, mode="r").attrs.asdict()


class TestAttributes:
    @pytest.mark.parametrize(
        ("change", "after"),
        [
            (lambda attrs: attrs.update({"b": 2}), {"a": 1, "b": 2}),
            (lambda attrs: attrs.update([("b", 2)], c=np.int64(3)), {"a": 1, "b": 2, "c": 3}),
            (lambda attrs: attrs.update(b=(1, 2)), {"a": 1, "b": [1, 2]}),
            (lambda attrs: attrs.put({"b": 2}), {"b": 2}),
            (lambda attrs: attrs.clear(), {}),
            (lambda attrs: attrs.__setitem__("b", 2), {"a": 1, "b": 2}),
            (lambda attrs: attrs.__delitem__("a"), {}),
            (lambda attrs: attrs.setdefault("b", 2), {"a": 1, "b": 2}),
            (lambda attrs: attrs.change(lambda found: {"a": found["a"] + 1}), {"a": 2}),
            (lambda attrs: attrs.refresh(), {"a": 1}),
        ],
    )
    def test_a_change_is_stored_when_the_call_returns(self, node, change, after):
        change(ts.zarr.open(node, mode="r+").attrs)

        assert stored(node) == after

    def test_what_is_popped_is_returned_and_gone(self, node):
        attrs = ts.zarr.open(node, mode="r+").attrs

        assert attrs.pop("a") == 1
        assert attrs.pop("a", "none") == "none"
        with pytest.raises(KeyError):
            attrs.popitem()
        assert stored(node) == {}

    @pytest.mark.parametrize(
        "change",
        [
            lambda node: node.attrs.update(b=2),
            lambda node: node.attrs.put({}),
            lambda node: node.attrs.__setitem__("b", 2),
            lambda node: node.attrs.__delitem__("a"),
            lambda node: node.attrs.change(lambda found: found),
            lambda node: node.attrs.clear(),
            lambda node: node.update_attributes({"b": 2}),
        ],
    )
    def test_what_is_opened_to_be_read_only_refuses_changes(self, node, change):
        with pytest.raises(ts.zarr.ReadOnlyError, match=r"mode='r\+'"):
            change(ts.zarr.open(node, mode="r"))

        assert stored(node) == {"a": 1}

    def test_it_is_a_mapping(self, node):
        attrs = ts.zarr.open(node, mode="r").attrs

        assert repr(attrs) == "{'a': 1}"
        assert attrs == {"a": 1}
        assert attrs == ts.zarr.open(node, mode="r").ts.attrs
        assert attrs == ts.zarr.open(node, mode="r").attrs
        assert attrs != {"a": 2}
        assert attrs != 1
        assert list(attrs) == ["a"]
        assert len(attrs) == 1
        assert "a" in attrs
        assert "b" not in attrs
        assert attrs.get("b", 5) == 5


def make(path, zarr_format=3, **arguments):
    return ts.zarr.open_array(
        path, mode="w", shape=3, dtype="i4", zarr_format=zarr_format, **arguments
    )


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestModes:
    def test_r_reads_only(self, tmp_path, zarr_format):
        make(tmp_path, zarr_format)[:] = 5
        z = ts.zarr.open_array(tmp_path, mode="r")
        assert (z[0], z.read_only, z.zarr_format) == (5, True, zarr_format)
        for change in (lambda: z.resize(4), lambda: z.append([1]), lambda: z.__setitem__(0, 1)):
            with pytest.raises(ValueError, match="mode='r\\+'"):
                change()

    @pytest.mark.parametrize("mode", ["r", "r+"])
    def test_r_needs_something(self, tmp_path, zarr_format, mode):
        with pytest.raises(ValueError, match=r"no array found at .*; pass mode='a' or 'w'"):
            ts.zarr.open_array(tmp_path / "a", mode=mode, zarr_format=zarr_format, shape=3)
        assert not (tmp_path / "a").exists()

    def test_r_plus_writes(self, tmp_path, zarr_format):
        make(tmp_path, zarr_format)
        ts.zarr.open_array(tmp_path, mode="r+")[:] = 7
        assert ts.zarr.open_array(tmp_path, mode="r")[0] == 7

    def test_a_creates_what_is_not_there(self, tmp_path, zarr_format):
        for count in range(2):
            z = ts.zarr.open_array(tmp_path, mode="a", shape=3, dtype="i4", zarr_format=zarr_format)
            assert z[0] == count
            z[:] = z[:] + 1

    def test_w_deletes_what_is_there(self, tmp_path, zarr_format):
        make(tmp_path, 2)[:] = 5
        z = make(tmp_path, zarr_format)
        assert z[0] == 0
        assert [key for key in z.store if "0" in key] == []

    @pytest.mark.parametrize("mode", ["w-", "x"])
    @pytest.mark.parametrize("there", FORMATS)
    def test_w_minus_refuses_what_is_there(self, tmp_path, zarr_format, mode, there):
        arguments: dict[str, Any] = {"shape": 3, "dtype": "i4"}
        ts.zarr.open_array(tmp_path, mode=mode, zarr_format=there, **arguments)
        with pytest.raises(ValueError, match=r"there is a Zarr array at .*overwrite=True"):
            ts.zarr.open_array(tmp_path, mode=mode, zarr_format=zarr_format, **arguments)


class TestOpening:
    def test_a_new_array_has_a_shape(self):
        with pytest.raises(ValueError, match="pass shape="):
            ts.zarr.open_array(mode="w")

    def test_a_mode_is_one_of_them(self):
        with pytest.raises(ValueError, match="'r', 'r\\+', 'a', 'w', 'w-', 'x', not 'q'"):
            ts.zarr.open(mode="q")
        assert as_mode(None, store_of(None)) == "a"
        assert as_mode(None, ts.zarr.MemoryStore(read_only=True)) == "r"
        assert as_mode("x", store_of(None)) == "w-"

    def test_a_format_is_one_of_them(self):
        assert [as_format(each) for each in (None, 2, 3)] == [None, 2, 3]
        with pytest.raises(ValueError, match="2 or 3, not 4"):
            ts.zarr.open(zarr_format=4)

    def test_what_is_there_is_found(self):
        store = ts.zarr.MemoryStore()
        ts.zarr.zeros(3, store=store, path="a/b", zarr_format=2)
        ts.zarr.zeros(3, store=store, path="c/d", zarr_format=3)
        assert [find(store, path, None) for path in ("a", "a/b", "c", "c/d", "e")] == [
            ("group", 2),
            ("array", 2),
            ("group", 3),
            ("array", 3),
            None,
        ]
        assert find(store, "a/b", 3) is None
        assert find(store, "c/d", 2) is None

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_groups_above_are_made(self, tmp_path, zarr_format):
        z = ts.zarr.ones(
            3, store=tmp_path, path="a/b//c/", zarr_format=zarr_format, attributes={"x": 1}
        )
        assert (z.path, z.name, z.basename) == ("a/b/c", "/a/b/c", "c")
        root: Any = zarr.open_group(tmp_path, mode="r")
        assert root["a/b/c"][0] == 1
        assert dict(root["a/b/c"].attrs) == {"x": 1}
        assert [name for name, _ in root["a"].groups()] == ["b"]
        assert ts.zarr.open_array(tmp_path, path="a/b/c")[0] == 1

    def test_a_path_leads_nowhere_else(self):
        with pytest.raises(ValueError, match='the part "\\.\\."'):
            ts.zarr.zeros(3, path="a/../b")

    def test_a_group_is_no_array(self, tmp_path):
        ts.zarr.group(tmp_path)
        with pytest.raises(ValueError, match=r"there is a group, not an array, .*open_group"):
            ts.zarr.open_array(tmp_path, mode="r")

    def test_resizes_of_others_show_where_that_is_asked_for(self, tmp_path):
        z = make(tmp_path)
        fresh = ts.zarr.open_array(tmp_path, cache_metadata=False)
        kept = ts.zarr.open_array(tmp_path)
        z.resize(5)
        assert (fresh.shape, kept.shape) == ((5,), (3,))
        assert fresh[4] == 0


@pytest.fixture(params=FORMATS)
def source(request):
    root = ts.zarr.group(zarr_format=request.param, attributes={"title": "all"})
    root.array("a/b", np.arange(12).reshape(3, 4), chunks=(2, 3), attributes={"unit": "m"})
    root.array("a/c/d", ["x", "yz"], chunks=1, compressors=ts.zarr.GZip(1))
    root["a"].attrs["depth"] = 1
    root.zeros("e", 3, dtype="i2", fill_value=7)
    return root


@pytest.fixture(params=FORMATS)
def dest(request):
    return ts.zarr.group(zarr_format=request.param)


class TestThere:
    @pytest.fixture(autouse=True)
    def _there(self, source, dest):
        dest.zeros("e", 3, dtype="i2", chunks=2)[0] = 1
        self.copy = lambda **options: ts.zarr.copy(source["e"], dest, **options)
        self.dest = dest

    def test_raises(self):
        with pytest.raises(ValueError, match="/e exists already; pass if_exists="):
            self.copy()

    def test_is_replaced(self):
        assert self.copy(if_exists="replace").n_copied == 1
        assert self.dest["e"][:].tolist() == [7, 7, 7]

    def test_is_skipped(self):
        assert self.copy(if_exists="skip") == (0, 1, 0)
        assert self.dest["e"][:].tolist() == [1, 0, 0]

    def test_is_skipped_if_it_is_whole(self):
        assert self.copy(if_exists="skip_initialized").n_copied == 1
        self.dest["e"][:] = 1
        assert self.copy(if_exists="skip_initialized").n_skipped == 1

    def test_must_be_one_of_these(self):
        with pytest.raises(ValueError, match="'skip_initialized'"):
            self.copy(if_exists="no")


class TestCopying:
    def test_a_group_is_copied_with_all_that_is_in_it(self, source, dest):
        lines: list[str] = []
        found = ts.zarr.copy(source["a"], dest, log=lines.append)
        assert found == (4, 0, 12 * 8 + 2 * 8)
        assert [line.split()[:2] for line in lines] == [
            ["copy", "/a"],
            ["copy", "/a/b"],
            ["copy", "/a/c"],
            ["copy", "/a/c/d"],
        ]
        np.testing.assert_array_equal(dest["a/b"][:], source["a/b"][:])
        assert dest["a/c/d"][:].tolist() == ["x", "yz"]
        assert (dest["a/b"].chunks, dest["a/c/d"].compressor) == ((2, 3), ts.zarr.GZip(1))
        assert dest["a"].attrs["depth"] == 1
        assert dest["a/b"].attrs["unit"] == "m"

    def test_an_array_is_copied_by_another_name_and_layout(self, source, dest):
        ts.zarr.copy(
            source["a/b"], dest, name="new/b", chunks=(1, 4), dtype="f4", without_attrs=True
        )
        copied = dest["new/b"]
        assert (copied.chunks, copied.dtype.name, copied.attrs.asdict()) == ((1, 4), "float32", {})
        np.testing.assert_array_equal(copied[:], source["a/b"][:])

    def test_everything_in_a_group(self, source, dest):
        assert ts.zarr.copy_all(source, dest).n_copied == 5
        names = [path for path, _ in dest.members(max_depth=None)]
        assert sorted(names) == ["a", "a/b", "a/c", "a/c/d", "e"]
        assert dest.attrs["title"] == "all"
        assert dest["e"].fill_value == 7

    def test_shallow(self, source, dest):
        assert ts.zarr.copy(source["a"], dest, shallow=True).n_copied == 2
        assert list(dest["a"]) == ["b"]

    def test_nothing_is_done_in_a_dry_run(self, source, dest):
        assert ts.zarr.copy_all(source, dest, dry_run=True) == (5, 0, 0)
        assert list(dest) == []
        assert dest.attrs.asdict() == {}

    def test_what_acts_alike_is_a_source(self):
        theirs: Any = zarr.open_group({}, mode="w")
        theirs.create_array("a/b", data=np.arange(5), chunks=(2,), attributes={"x": 1})
        theirs.create_array("s", data=np.array(5))
        dest = ts.zarr.group()
        assert ts.zarr.copy_all(theirs, dest).n_copied == 3
        assert dest["a/b"][:].tolist() == [0, 1, 2, 3, 4]
        assert (dest["a/b"].chunks, dest["a/b"].attrs["x"], dest["s"][()]) == ((2,), 1, 5)

    def test_lines_go_to_files(self, tmp_path, source):
        ts.zarr.copy(source["e"], ts.zarr.group(), log=tmp_path / "log")
        assert (tmp_path / "log").read_text() == "copy /e (3,) int16\n"
        text = io.StringIO()
        ts.zarr.copy(source["e"], ts.zarr.group(), log=text)
        assert text.getvalue() == "copy /e (3,) int16\n"

    def test_what_cannot_be_copied(self, source, dest):
        wrong: Any = 3
        with pytest.raises(ValueError, match="pass name="):
            ts.zarr.copy(source, dest)
        with pytest.raises(TypeError, match="dest must be a Group"):
            ts.zarr.copy(source["e"], wrong)
        with pytest.raises(TypeError, match="neither an array nor a group"):
            ts.zarr.copy(wrong, dest, name="x")


A, B = np.arange(6).reshape(2, 3), np.array(["a", "bcd"])


class TestSaving:
    def test_one_array(self, tmp_path):
        ts.zarr.save(tmp_path, A)
        np.testing.assert_array_equal(ts.zarr.load(tmp_path), A)
        np.testing.assert_array_equal(zarr.load(tmp_path), A)

    def test_several_arrays(self, tmp_path):
        ts.zarr.save(tmp_path, A, A + 1, other=A + 2)
        found = ts.zarr.load(tmp_path)
        assert list(found) == ["arr_0", "arr_1", "other"]
        for place, each in enumerate(found.values()):
            np.testing.assert_array_equal(each, A + place)
        assert sorted(zarr.open_group(tmp_path, mode="r").array_keys()) == list(found)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_at_a_path(self, tmp_path, zarr_format):
        ts.zarr.save_array(tmp_path, B, path="a/b", zarr_format=zarr_format, chunks=1)
        ts.zarr.save_group(tmp_path, path="c", zarr_format=zarr_format, x=A)
        np.testing.assert_array_equal(ts.zarr.load(tmp_path, path="a/b"), B)
        np.testing.assert_array_equal(ts.zarr.load(tmp_path, path="c")["x"], A)
        assert ts.zarr.load(tmp_path) == {}

    def test_what_is_there_is_replaced(self, tmp_path):
        ts.zarr.save(tmp_path, A, A)
        ts.zarr.save(tmp_path, A)
        np.testing.assert_array_equal(ts.zarr.load(tmp_path), A)
        ts.zarr.save(tmp_path, x=A)
        assert list(ts.zarr.load(tmp_path)) == ["x"]

    @pytest.mark.parametrize("save", [ts.zarr.save, ts.zarr.save_group])
    def test_there_must_be_something(self, save):
        with pytest.raises(ValueError, match="at least one array"):
            save({})

    def test_names_are_used_once(self):
        with pytest.raises(ValueError, match="'arr_0' is the name of two arrays"):
            ts.zarr.save_group({}, A, arr_0=A)

    def test_nothing_is_there(self, tmp_path):
        with pytest.raises(ValueError, match="no array or group found"):
            ts.zarr.load(tmp_path / "a")


ROOT = Path(__file__).absolute().parents[2]


class TestSynchronizers:
    @pytest.mark.parametrize(
        "synchronizer", [ts.zarr.ThreadSynchronizer(), ts.zarr.ProcessSynchronizer("nowhere.sync")]
    )
    def test_are_accepted_and_leave_nothing_behind(self, synchronizer, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        z = ts.zarr.open_array(
            "a", mode="w", shape=4, chunks=2, dtype="i4", synchronizer=synchronizer
        )
        z[:] = 1
        group = ts.zarr.open_group("g", mode="w", synchronizer=synchronizer)
        group.zeros("b", 3, synchronizer=synchronizer)
        assert [path.name for path in sorted(tmp_path.iterdir())] == ["a", "g"]

    def test_threads_write_regions_that_fit_no_chunks_without_loss(self):
        z = ts.zarr.zeros(60, chunks=20, dtype="i4")

        def write(start):
            for place in range(start, start + 30):
                z[place] = place

        threads = [threading.Thread(target=write, args=[start]) for start in (0, 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        np.testing.assert_array_equal(z[:], np.arange(60))

    def test_processes_write_regions_that_fit_no_chunks_without_loss(self, tmp_path):
        path = tmp_path / "a.zarr"
        ts.zarr.open_array(path, mode="w", shape=60, chunks=20, dtype="i4", zarr_format=2)
        code = (
            "import sys; import tensorstore_py as ts; path, start = sys.argv[1], int(sys.argv[2])\n"
            "z = ts.zarr.open_array(path, mode='r+')\n"
            "for place in range(start, start + 30, 3):\n"
            "    z[place : place + 3] = range(place, place + 3)\n"
        )

        writers = [
            subprocess.Popen([sys.executable, "-c", code, str(path), str(start)], cwd=ROOT)
            for start in (0, 30)
        ]
        codes = [writer.wait(timeout=240) for writer in writers]

        assert codes == [0, 0]
        np.testing.assert_array_equal(ts.zarr.open_array(path)[:], np.arange(60))


class TestErrors:
    @pytest.mark.parametrize("expected", [FileNotFoundError, ts.NotFoundError, ValueError])
    @pytest.mark.parametrize("function", [ts.zarr.open, ts.zarr.open_array, ts.zarr.open_group])
    def test_nothing_is_there(self, tmp_path, function, expected):
        with pytest.raises(expected, match="mode='a'"):
            function(tmp_path / "a", mode="r")

    @pytest.mark.parametrize("expected", [FileExistsError, ts.AlreadyExistsError, ValueError])
    @pytest.mark.parametrize("shape", [None, 3])
    def test_something_is_there(self, tmp_path, shape, expected):
        ts.zarr.open(tmp_path, mode="w-", shape=shape)
        with pytest.raises(expected, match="mode='w'"):
            ts.zarr.open(tmp_path, mode="w-", shape=shape)

    @pytest.mark.parametrize("expected", [PermissionError, ts.PermissionDeniedError, ValueError])
    def test_what_is_read_only_is_not_changed(self, expected):
        z = ts.zarr.array([1, 2], read_only=True)
        group = ts.zarr.Group(ts.zarr.group().ts, read_only=True)
        store = ts.zarr.MemoryStore(read_only=True)
        for change in (
            lambda: z.resize(3),
            lambda: z.__setitem__(0, 1),
            lambda: group.zeros("a", 3),
            store.clear,
        ):
            with pytest.raises(expected, match="mode='r\\+'"):
                change()

    @pytest.mark.parametrize(
        "kind", [ts.zarr.NodeExistsError, ts.zarr.NodeNotFoundError, ts.zarr.ReadOnlyError]
    )
    def test_survive_pickling_and_say_what_they_are(self, kind):
        import distributed  # noqa: F401 - has tblib pickle errors

        error = pickle.loads(pickle.dumps(kind("why")))
        assert (type(error), str(error)) == (kind, "why")
