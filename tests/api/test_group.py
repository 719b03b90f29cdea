"""Groups: how they are opened and made, what is in them, and their attributes."""

import asyncio
import math
import pickle

import numpy as np
import pytest

import tensorstore_py as ts
from tests.api import loop_memory  # noqa: F401 - registers the store
from tests.api.counted_memory import counts


@pytest.fixture(params=[2, 3])
def group(request):
    root = ts.Group.open("memory://", create=True, zarr_format=request.param).result()
    root.create_array("g/a", dtype="int8", shape=[2]).result()[:] = 5
    return root


class TestGroup:
    def test_it_is_made_by_open(self):
        with pytest.raises(TypeError, match=r"Group\.open"):
            ts.Group()

    def test_groups_are_made(self, group):
        made = group.create_group("x/y", attributes={"a": 1}).result()

        assert (made.path, made.attrs) == ("x/y", {"a": 1})
        with pytest.raises(ts.AlreadyExistsError, match='"/x/y" exists already, a group'):
            group.create_group("x/y").result()
        assert group.require_group("x/y", attributes={"a": 2}).result().attrs == {"a": 1}
        assert group["g"].require_group("z").result().path == "g/z"
        group["x"].create_group("y/z").result()
        assert group.create_group("x", delete_existing=True).result().keys() == []
        with pytest.raises(ts.MismatchError, match='"/g/a" is an array'):
            group.require_group("g/a").result()
        with pytest.raises(ts.AlreadyExistsError, match='"/g/a" exists already, an array'):
            group.create_group("g/a").result()
        with pytest.raises(ts.FailedPreconditionError, match='"/g/a" is an array'):
            group.create_group("g/a/b").result()

    def test_nodes_are_moved_and_deleted(self, group):
        group.move("g", "x/y").result()

        assert group["x/y/a"].read().result().tolist() == [5, 5]
        assert "g" not in group
        group["x"].move("y/a", "b").result()
        assert group["x"].keys() == ["b", "y"]
        group.delete("x/y").result()
        del group["x/b"]
        assert group["x"].keys() == []
        with pytest.raises(KeyError, match="cannot delete"):
            del group["x/b"]
        for call in (lambda: group.delete("/"), lambda: group.move("", "x")):
            with pytest.raises(ts.SpecError, match="the group itself"):
                call()

    def test_a_change_makes_consolidated_metadata_stale(self, group):
        for change in (
            lambda found: found.create_group("new").result(),
            lambda found: found.create_array("n", dtype="int8", shape=[1]).result(),
            lambda found: found.delete("new").result(),
            lambda found: found.move("n", "m").result(),
            lambda found: found.attrs.update(x=1).result(),
            lambda found: found["g"].attrs.update(x=1).result(),
            lambda found: found["g"].create_group("y").result(),
            lambda found: found["g/a"].attrs.update(x=1).result(),
            lambda found: found["g/a"].resize(exclusive_max=[3]).result(),
        ):
            group.consolidate().result()
            found = ts.Group.open(group.kvstore).result()
            was_used = found.consolidated
            with pytest.warns(
                UserWarning, match=r"out of date, .* was changed.*call consolidate\(\)"
            ):
                change(found)
            assert (was_used, found.consolidated) == (True, False)
            fresh = ts.Group.open(group.kvstore, consolidated=False).result()
            assert found.attrs == fresh.attrs
            assert [*dict(found.members(None))] == [*dict(fresh.members(None))]
            assert found["g"].attrs == fresh["g"].attrs
            assert found["g/a"].attrs == fresh["g/a"].attrs
            group = found

    def test_what_is_consolidated_again_is_used_again(self, group):
        again = group.consolidate().result()

        assert again.consolidated
        assert group.consolidated
        with pytest.warns(UserWarning, match="out of date"):
            group.create_group("x").result()
        group.consolidate().result()
        assert group.consolidated
        assert list(group) == ["g", "x"]

    def test_data_may_be_written_without_a_warning(self, group):
        group.consolidate().result()
        found = ts.Group.open(group.kvstore).result()

        found["g/a"][0] = 1

        assert found.consolidated
        assert group["g/a"].read().result().tolist() == [1, 5]

    def test_all_or_nothing_in_a_transaction(self, group):
        transaction = ts.Transaction()
        inside = group.with_transaction(transaction)
        inside.move("g/a", "b").result()
        inside.create_array("c", dtype="int8", shape=[1], attributes={"x": 1}).result()[:] = 3
        assert inside["b"].read().result().tolist() == [5, 5]
        transaction.abort()

        assert list(group) == ["g"]
        assert group["g/a"].read().result().tolist() == [5, 5]

    def test_its_text_and_its_pickle(self):
        root = ts.Group.open("memory://x/", create=True, zarr_format=2).result()
        assert repr(root.create_group("y").result()) == "Group('memory://x/y/', zarr_format=2)"

        copy = pickle.loads(pickle.dumps(root["y"]))

        assert (copy.path, copy.zarr_format, copy.url) == ("y", 2, "memory://x/y/")

    @pytest.mark.parametrize("zarr_format", [2, 3])
    async def test_on_a_store_across_a_network(self, zarr_format):
        group = await ts.Group.open({"driver": "loop_memory"}, create=True, zarr_format=zarr_format)
        array = await group.create_array("a/b", dtype="int8", shape=[2], attributes={"x": 1})
        await array.write([1, 2])
        await group.move("a/b", "c")

        assert [path async for path, _ in group.members(None)] == ["a", "c"]
        assert await (await group.open("c")).attrs.read() == {"x": 1}
        assert (await (await group.consolidate()).members())[1][0] == "c"
        assert str(await group.tree()) == "/\n├── a\n└── c (2,) int8"
        assert repr(group).endswith(f", zarr_format={zarr_format})")

    def test_what_was_opened_in_it_is_closed_with_it(self):
        with ts.Group.open("memory://", create=True).result() as group:
            inner = group.create_group("g").result()
            array = inner.create_array("a", dtype="int8", shape=[1]).result()
            writing = array.attrs.update(x=1)
            store, attrs = inner.kvstore, group.attrs

        assert writing.done()
        assert group.closed
        for call in (
            group.names,
            lambda: inner.open("a"),
            array.read,
            array.attrs.read,
            lambda: attrs.update(y=1),
            store.list,
            lambda: group.kvstore,
        ):
            with pytest.raises(ts.FailedPreconditionError, match="closed"):
                call()

    def test_what_is_in_it_may_be_closed_before_it(self, group):
        with group["g"] as inner:
            assert list(inner) == ["a"]
        assert inner.closed
        assert list(group["g"]) == ["a"]

    async def test_it_is_closed_with_its_context(self):
        context = ts.Context()
        async with await ts.Group.open("memory://", create=True, context=context) as group:
            await group.create_group("g")
        assert group.closed
        other = await ts.Group.open("memory://", context=context)
        context.close()
        with pytest.raises(ts.FailedPreconditionError, match="this Group is closed"):
            other.names()

    def test_at_a_relative_path_it_prints_its_place(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        group = ts.Group.open({"driver": "file", "path": "near/"}, create=True).result()
        group.create_array("a", dtype="uint8", shape=[4]).result()

        assert "near/" in repr(group)
        assert "near/" in repr(group.attrs)
        assert "near/" in repr(ts.zarr.Group(group))
        with pytest.raises(ts.UnsupportedError, match="relative"):
            _ = group.url
        with pytest.raises(ValueError, match="relative"):  # as the reference has it
            _ = group.kvstore.url


STORE = {"driver": "counted_memory"}


@pytest.fixture
def context():
    return ts.Context()


class TestOpenGroup:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_what_was_created_is_opened(self, context, zarr_format):
        new = ts.Group.open(
            STORE, create=True, zarr_format=zarr_format, attributes={"a": 1}, context=context
        ).result()
        found = ts.Group.open(STORE, context=context).result()

        assert new.zarr_format == found.zarr_format == zarr_format
        assert new.attrs == found.attrs == {"a": 1}

    def test_one_request_opens_a_group(self, context):
        group = ts.Group.open(STORE, create=True, context=context).result()
        asked = counts(group)

        ts.Group.open(STORE, context=context).result()

        assert asked.reads == {"zarr.json": 1}

    def test_modes(self, context):
        with pytest.raises(ts.NotFoundError, match=r"no group found at .*create=True"):
            ts.Group.open(STORE, context=context).result()
        first = ts.Group.open(STORE, create=True, open=True, context=context).result()
        first.create_group("g").result()
        with pytest.raises(ts.AlreadyExistsError, match='"/" exists already, a group'):
            ts.Group.open(STORE, create=True, context=context).result()
        second = ts.Group.open(
            STORE, create=True, open=True, attributes={"a": 1}, context=context
        ).result()
        assert (list(second), dict(second.attrs)) == (["g"], {})
        third = ts.Group.open(STORE, create=True, delete_existing=True, context=context).result()
        assert list(third) == []

    def test_a_group_of_another_format_is_in_the_way_unless_the_format_is_named(self, context):
        ts.Group.open(STORE, create=True, zarr_format=2, context=context).result()

        with pytest.raises(ts.AlreadyExistsError, match=r"\.zgroup"):
            ts.Group.open(STORE, create=True, context=context).result()
        ts.Group.open(STORE, create=True, zarr_format=3, context=context).result()
        assert ts.Group.open(STORE, context=context).result().zarr_format == 3
        assert ts.Group.open(STORE, zarr_format=2, context=context).result().zarr_format == 2

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_group_inside_is_made_with_those_above_it(self, context, zarr_format):
        inner = ts.Group.open(
            STORE, path="/a//b/", create=True, zarr_format=zarr_format, context=context
        ).result()

        assert (inner.path, inner.name, inner.basename) == ("a/b", "/a/b", "b")
        root = ts.Group.open(STORE, context=context).result()
        assert dict(root.groups(None)).keys() == {"a", "a/b"}
        assert ts.Group.open(STORE, path="a/b", context=context).result().path == "a/b"
        with pytest.raises(ts.SpecError, match=r"\.\."):
            ts.Group.open(STORE, path="a/..", context=context)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_an_array_is_no_group(self, context, zarr_format):
        root = ts.Group.open(STORE, create=True, zarr_format=zarr_format, context=context).result()
        root.create_array("a", dtype="int8", shape=[1]).result()

        for create in (False, True):
            with pytest.raises(ts.MismatchError, match='"/a" is an array, not a group'):
                ts.Group.open(STORE, path="a", context=context, open=True, create=create).result()
        with pytest.raises(ts.FailedPreconditionError, match='"/a" is an array'):
            ts.Group.open(STORE, path="a/b", create=True, context=context).result()

    def test_a_store_in_a_transaction_is_a_group_in_it(self):
        with ts.Transaction() as transaction:
            store = ts.KvStore.open("memory://", transaction=transaction).result()
            group = ts.Group.open(store, create=True).result()
            assert group.transaction is transaction
            plain = ts.KvStore.open("memory://").result()
            assert plain.list().result() == []

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_consolidated_metadata_is_used_as_asked(self, context, zarr_format):
        group = ts.Group.open(STORE, create=True, zarr_format=zarr_format, context=context).result()

        with pytest.raises(ts.NotFoundError, match=r"no consolidated metadata.*consolidate\(\)"):
            ts.Group.open(STORE, consolidated=True, context=context).result()
        assert not ts.Group.open(STORE, context=context).result().consolidated
        group.consolidate().result()
        assert ts.Group.open(STORE, context=context).result().consolidated
        assert ts.Group.open(STORE, consolidated=True, context=context).result().consolidated
        assert not ts.Group.open(STORE, consolidated=False, context=context).result().consolidated

    def test_attributes_are_checked_at_once(self):
        with pytest.raises(ts.SpecError, match="a: a set is no JSON"):
            ts.Group.open("memory://", create=True, attributes={"a": {1}})

    def test_a_transaction_that_is_over_is_refused_at_once(self):
        transaction = ts.Transaction()
        transaction.abort()

        with pytest.raises(ts.FailedPreconditionError):
            ts.Group.open("memory://", transaction=transaction)

    def test_an_archive_is_found_out(self, tmp_path):
        file = tmp_path / "a.zip"
        inside = ts.Group.open(f"{file.as_uri()}|zip:", create=True, zarr_format=2).result()
        inside.create_group("g").result()

        assert list(ts.Group.open(file).result()) == ["g"]
        assert ts.Group.open(file.as_uri(), path="g").result().path == "g"
        with pytest.raises(ts.NotFoundError, match=r"a\.zip"):
            ts.Group.open(file, path="h").result()
        (tmp_path / "b").write_bytes(b"plain")
        with pytest.raises(ts.FailedPreconditionError, match="no known format"):
            ts.Group.open(tmp_path / "b").result()


@pytest.fixture(params=[2, 3])
def root(request):
    return ts.Group.open(
        {"driver": "counted_memory"}, create=True, zarr_format=request.param
    ).result()


class TestGroupArrays:
    def test_a_new_array_with_all_above_it(self, root):
        array = root.create_array(
            "a/b/c", dtype="int16", shape=[4, 6], fill_value=7, attributes={"u": "nm"}
        ).result()
        array[1] = 1

        assert array.read().result()[:2].tolist() == [[7] * 6, [1] * 6]
        assert root["a/b/c"].attrs == {"u": "nm"}
        assert dict(root.groups(None)).keys() == {"a", "a/b"}

    def test_labels_are_dimension_names(self, root):
        domain = ts.IndexDomain(shape=[2, 3], labels=["y", "x"])
        root.create_array("a", dtype="int8", domain=domain, attributes={"u": 1}).result()

        found = root["a"]

        assert found.domain.labels == ("y", "x")
        names = {"_ARRAY_DIMENSIONS": ["y", "x"]} if root.zarr_format == 2 else {}
        assert found.attrs == {"u": 1, **names}

    def test_attributes_that_name_dimensions_are_labels(self):
        root = ts.Group.open("memory://", create=True, zarr_format=2).result()
        names = {"_ARRAY_DIMENSIONS": ["t", "x"]}

        root.create_array("a", dtype="int8", shape=[2, 3], attributes=names).result()

        assert root["a"].domain.labels == ("t", "x")
        assert root["a"].attrs == names

    @pytest.mark.parametrize("labels", [["x"], ["x", "x"], "xy", [1, 2], None])
    def test_labels_that_it_cannot_have_are_only_attributes(self, labels):
        root = ts.Group.open("memory://", create=True, zarr_format=2).result()
        names = {"_ARRAY_DIMENSIONS": labels}
        root.create_array("a", dtype="int8", shape=[2, 3], attributes=names).result()

        assert root["a"].domain.labels == ("", "")

    def test_members_of_the_drivers_spec(self, root):
        metadata = {"shape": [4], "dtype": "|i1", "fill_value": 3}
        if root.zarr_format == 3:
            metadata = {"shape": [4], "data_type": "int8", "fill_value": 3, "attributes": {"a": 1}}
        array = root.create_array(
            "a", dtype="int8", metadata=metadata, attributes={"b": 2}
        ).result()

        assert (array.shape, array.fill_value) == ((4,), 3)
        assert array.attrs["b"] == 2
        with pytest.raises(ts.SpecError, match="chunk_layout"):
            root.create_array("b", dtype="int8", shape=[4], chunks=[2])
        with pytest.raises(ts.SpecError, match="metadatas"):
            root.create_array("b", dtype="int8", shape=[4], metadatas={})
        with pytest.raises(ts.SpecError, match="kvstore"):
            root.create_array("b", dtype="int8", shape=[4], kvstore="memory://")

    def test_what_is_there_is_refused(self, root):
        root.create_group("g").result()
        root.create_array("a", dtype="int8", shape=[2]).result()

        for path in ("a", "g"):
            with pytest.raises(ts.AlreadyExistsError, match=path):
                root.create_array(path, dtype="int8", shape=[2]).result()
        with pytest.raises(ts.FailedPreconditionError, match='"/a" is an array'):
            root.create_array("a/b", dtype="int8", shape=[2]).result()
        root.create_array("g/x", dtype="int8", shape=[2]).result()
        root.create_array("g", dtype="int8", shape=[3], delete_existing=True).result()
        assert (root["g"].shape, "g/x" in root) == ((3,), False)

    def test_an_array_that_is_required(self, root):
        first = root.require_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()
        first[:] = 1
        second = root.require_array("a", dtype="int8", shape=[2], attributes={"x": 2}).result()

        assert second.read().result().tolist() == [1, 1]
        assert second.attrs == {"x": 1}
        with pytest.raises(ts.MismatchError, match="dtype"):
            root.require_array("a", dtype="int16", shape=[2]).result()
        root.create_group("g").result()
        with pytest.raises(ts.MismatchError, match='"/g" is a group, not an array'):
            root.require_array("g", dtype="int8", shape=[2]).result()

    def test_one_request_opens_an_array(self, root):
        root.create_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()
        asked = counts(root)

        array = root.open("a").result()

        keys = ["a/zarr.json"] if root.zarr_format == 3 else ["a/.zarray", "a/.zattrs"]
        assert asked.reads == dict.fromkeys(keys, 1)
        assert array.shape == (2,)

    def test_a_new_array_costs_no_look_at_its_group(self):
        root = ts.Group.open({"driver": "counted_memory"}, create=True).result()
        asked = counts(root)

        root.create_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()

        assert (asked.reads, asked.writes) == ({}, {"a/zarr.json": 1})

    def test_options_say_what_is_expected(self, root):
        root.create_array("a", dtype="int8", shape=[2]).result()

        assert root.open("a", dtype="int8", recheck_cached_data=False).result().shape == (2,)
        with pytest.raises(ts.MismatchError, match="dtype"):
            root.open("a", dtype="int16").result()
        root.create_group("g").result()
        with pytest.raises(ts.MismatchError, match='"/g" is a group'):
            root.open("g", dtype="int8").result()

    def test_what_was_seen_before_is_seen_again_though_it_changed(self, root):
        array = root.create_array("a", dtype="int8", shape=[2]).result()
        root.open("a").result()
        array.resize(exclusive_max=[5]).result()

        assert root.open("a").result().shape == (5,)

    def test_an_array_from_an_old_copy_grows_from_what_is_stored(self, root):
        root.create_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()
        root.consolidate().result()
        here, there = (
            ts.Group.open(place).result() for place in [root.kvstore.spec(retain_context=True)] * 2
        )
        old = here["a"]
        with pytest.warns(UserWarning, match="out of date"):
            there["a"].append([1, 1, 1]).result()

        assert old.shape == (2,)
        with pytest.warns(UserWarning, match="out of date"):
            old.append([2]).result()

        fresh = ts.Group.open(root.kvstore, consolidated=False).result()["a"]
        assert fresh.read().result().tolist() == [0, 0, 1, 1, 1, 2]
        assert fresh.attrs == {"x": 1}

    def test_attributes_that_are_no_numbers(self, root):
        attributes = {"all": [float("inf"), {"x": float("nan")}], "nan": float("nan")}
        root.create_array("a", dtype="int8", shape=[2], attributes=attributes).result()

        assert repr(root["a"].attrs.asdict()) == repr(attributes)
        spec = root["a"].spec(retain_context=True)
        assert ts.open(spec).result().shape == (2,)
        again = root.require_array("a", dtype="int8", shape=[2], attributes=attributes).result()
        assert again.shape == (2,)


ALL = ["a", "e", "g", "g/b", "g/h", "g/h/c"]


@pytest.fixture(params=[2, 3])
def nested_group(request):
    root = ts.Group.open(
        {"driver": "counted_memory"}, create=True, zarr_format=request.param
    ).result()
    for path in ("a", "g/b", "g/h/c"):
        root.create_array(path, dtype="int8", shape=[2]).result()
    root.create_group("e").result()
    return root


class TestGroupContents:
    def test_where_it_is(self, nested_group):
        inner = nested_group["g/h"]

        assert (nested_group.path, nested_group.name, nested_group.basename) == ("", "/", "")
        assert (inner.path, inner.name, inner.basename) == ("g/h", "/g/h", "h")
        assert inner.kvstore.path == "g/h/"
        assert inner.zarr_format == nested_group.zarr_format
        assert inner.transaction is None
        assert ts.Group.open("memory://x/", create=True).result().url == "memory://x/"

    def test_members_by_depth_and_kind(self, nested_group):
        assert [path for path, _ in nested_group.members()] == ["a", "e", "g"]
        assert [path for path, _ in nested_group.members(1)] == ["a", "e", "g", "g/b", "g/h"]
        assert [path for path, _ in nested_group.members(None)] == ALL
        assert [path for path, _ in nested_group.arrays(None)] == ["a", "g/b", "g/h/c"]
        assert [path for path, _ in nested_group.groups(None)] == ["e", "g", "g/h"]
        assert [path for path, _ in nested_group["g"].members(None)] == ["b", "h", "h/c"]
        for _, node in nested_group.arrays(None):
            assert node.shape == (2,)
        assert {node.path for _, node in nested_group.groups(None)} == {"e", "g", "g/h"}

    def test_as_a_dictionary(self, nested_group):
        assert (list(nested_group), nested_group.keys(), len(nested_group)) == (
            ["a", "e", "g"],
            ["a", "e", "g"],
            3,
        )
        assert "g/h/c" in nested_group
        assert "g/h/d" not in nested_group
        assert 1 not in nested_group
        assert nested_group["/g//h/"].path == "g/h"
        assert nested_group["e"]
        assert nested_group._ipython_key_completions_() == nested_group.keys()
        with pytest.raises(KeyError, match='nothing is at "/g/x"'):
            nested_group["g/x"]
        with pytest.raises(ts.NotFoundError, match='nothing is at "/x"'):
            nested_group.open("x").result()
        with pytest.raises(ts.SpecError, match=r"\.\."):
            nested_group["g/.."]

    def test_names_cost_one_listing(self, nested_group):
        asked = counts(nested_group)

        assert nested_group["g"].names().result() == ["b", "h"]
        assert nested_group["g"].names(None).result() == ["b", "h", "h/c"]

        assert asked.directories == {"g/": 2, "g/h/": 1}

    def test_a_picture(self, nested_group):
        assert str(nested_group.tree().result()) == (
            "/\n├── a (2,) int8\n├── e\n└── g\n"
            "    ├── b (2,) int8\n    └── h\n        └── c (2,) int8"
        )
        assert str(nested_group["g"].tree(0).result()) == "/g\n├── b (2,) int8\n└── h"
        html = nested_group.tree().result()._repr_html_()
        assert html.count("<details") == 2
        assert ">h/ <" in html

    def test_ten_thousand_arrays_cost_one_listing_a_group(self):
        nested_group = ts.Group.open({"driver": "counted_memory"}, create=True).result()
        for number in range(10):
            nested_group.create_group(f"g{number}").result()
        asked = counts(nested_group)
        for number in range(10_000):
            nested_group.kvstore[f"g{number % 10}/a{number:05}/zarr.json"] = b"{}"
        asked.reset()

        assert len(nested_group["g3"]) == 1000
        names = nested_group.names(max_depth=1).result()

        assert (len(names), names[-1]) == (10_010, "g9/a09999")
        assert asked.directories == {"": 1, "g3/": 2, **{f"g{n}/": 1 for n in range(10) if n != 3}}
        assert asked.reads == {"g3/zarr.json": 2} | {
            f"g{n}/zarr.json": 1 for n in range(10) if n != 3
        }
        assert asked.lists == {}

    def test_one_request_opens_a_consolidated_tree_and_all_in_it(self, nested_group):
        nested_group["g/b"].attrs["x"] = 1
        nested_group["e"].attrs["y"] = 2
        nested_group.consolidate().result()
        asked = counts(nested_group)

        opened = ts.Group.open(nested_group.kvstore).result()
        paths = [path for path, _ in opened.members(None)]
        attributes = [opened["g/b"].attrs["x"], opened["e"].attrs["y"], dict(opened.attrs)]
        names, picture = list(opened["g"]), str(opened.tree().result())

        assert (paths, attributes, names) == (ALL, [1, 2, {}], ["b", "h"])
        assert "c (2,) int8" in picture
        key = ".zmetadata" if nested_group.zarr_format == 2 else "zarr.json"
        tried = ["zarr.json", key] if nested_group.zarr_format == 2 else [key]
        assert asked.reads == dict.fromkeys(tried, 1)
        assert (asked.lists, asked.directories) == ({}, {})

    def test_within_a_transaction(self, nested_group):
        with ts.Transaction() as transaction:
            inside = nested_group.with_transaction(transaction)
            inside.create_array("g/new", dtype="int8", shape=[1]).result()
            inside.delete("a").result()
            assert list(inside) == ["e", "g"]
            assert list(inside["g"]) == ["b", "h", "new"]
            assert inside["g/new"].transaction is transaction
            assert [path for path, _ in nested_group.members(None)] == ALL

        assert [path for path, _ in nested_group.members(None)] == [
            "e",
            "g",
            "g/b",
            "g/h",
            "g/new",
            "g/h/c",
        ]


@pytest.fixture(params=[2, 3])
def plain_group(request):
    root = ts.Group.open(
        {"driver": "counted_memory"}, create=True, zarr_format=request.param, attributes={"of": "/"}
    ).result()
    root.create_array("a/b", dtype="int16", shape=[3], attributes={"of": "b"}).result()
    return root


class TestGroupNode:
    def test_what_is_stored_is_reported_before_anything_is_opened(self, plain_group):
        nodes = plain_group.nodes(None).result()

        assert {path: node.kind for path, node in nodes.items()} == {
            "": "group",
            "a": "group",
            "a/b": "array",
        }
        assert [node.attributes for node in nodes.values()] == [{"of": "/"}, {}, {"of": "b"}]
        assert nodes["a/b"].metadata["shape"] == [3]
        assert nodes["a"].metadata["zarr_format"] == plain_group.zarr_format
        assert repr(nodes["a/b"]) == "GroupNode('a/b', array)"

    def test_opening_what_was_read_asks_for_nothing_more(self, plain_group):
        node = plain_group.nodes(None).result()["a/b"]
        asked = counts(plain_group)
        asked.reset()

        array = node.open().result()

        assert isinstance(array, ts.TensorStore)
        assert array.shape == (3,)
        assert not asked.reads
        assert isinstance(plain_group.nodes().result()["a"].open().result(), ts.Group)

    def test_paths_are_those_below_the_group(self, plain_group):
        assert list(plain_group["a"].nodes().result()) == ["", "b"]

    def test_consolidated_metadata_tells_all_without_a_request(self, plain_group):
        known = plain_group.consolidate().result()
        asked = counts(plain_group)
        asked.reset()

        nodes = known.nodes(None).result()

        assert list(nodes) == ["", "a", "a/b"]
        assert nodes["a/b"].attributes == {"of": "b"}
        assert nodes["a/b"].open().result().shape == (3,)
        assert not asked.reads
        assert not asked.directories

    def test_a_group_that_was_deleted_is_not_there(self):
        root = ts.Group.open("memory://", create=True).result()
        plain_group = root.create_group("a").result()
        root.delete("a").result()

        with pytest.raises(ts.NotFoundError, match="no group found"):
            plain_group.nodes().result()

    def test_a_closed_group_tells_nothing(self, plain_group):
        plain_group.close()

        with pytest.raises(ts.FailedPreconditionError):
            plain_group.nodes().result()


@pytest.fixture(params=[2, 3])
def group_with_array(request):
    return ts.Group.open("memory://", create=True, zarr_format=request.param).result()


@pytest.fixture
def array(group_with_array):
    return group_with_array.create_array(
        "a", dtype="int8", shape=[2], attributes={"b": [1, 2]}
    ).result()


@pytest.fixture(params=["group", "array"])
def attrs(request, group_with_array, array):
    node = group_with_array if request.param == "group" else array
    node.attrs.put({"a": 1}).result()
    return node.attrs


class TestAttributes:
    def test_they_can_be_changed_one_by_one_and_together(self, attrs):
        attrs.update({"b": (1, 2)}, c=np.float64(0.5)).result()
        attrs.set("d", None).result()
        attrs.delete("a", "never there").result()

        assert attrs.read().result() == {"b": [1, 2], "c": 0.5, "d": None}
        attrs.change(lambda found: {"kept": found["c"] * 2}).result()
        assert attrs.asdict() == {"kept": 1.0}
        attrs.put({"new": True}).result()
        assert attrs.asdict() == {"new": True}

    def test_as_a_dictionary(self, attrs):
        attrs["b"] = "x"

        assert (attrs["b"], len(attrs), "a" in attrs, "c" in attrs) == ("x", 2, True, False)
        assert (list(attrs), attrs.keys()) == (["a", "b"], ["a", "b"])
        assert (attrs.values(), attrs.items()) == ([1, "x"], [("a", 1), ("b", "x")])
        assert (attrs.get("b"), attrs.get("c"), attrs.get("c", 5)) == ("x", None, 5)
        assert dict(attrs) == {"a": 1, "b": "x"}
        assert attrs == {"a": 1, "b": "x"}
        assert attrs != {"a": 1}
        assert attrs != 1
        del attrs["b"]
        assert attrs == {"a": 1}
        with pytest.raises(KeyError):
            attrs["b"]
        with pytest.raises(KeyError):
            del attrs["b"]

    def test_numbers_that_are_none_are_kept(self, attrs):
        attrs.update(nan=math.nan, inf=math.inf).result()

        assert math.isnan(attrs["nan"])
        assert attrs["inf"] == math.inf

    def test_what_is_no_json_is_refused_at_once(self, attrs):
        for call in (
            lambda: attrs.update(b={1}),
            lambda: attrs.set("b", {"c": b""}),
            lambda: attrs.put({1: 2}),
            lambda: attrs.update([1]),
        ):
            with pytest.raises((ts.SpecError, TypeError, ValueError)):
                call()
        with pytest.raises(ts.SpecError, match="b: a set is no JSON"):
            attrs.change(lambda _: {"b": {1}}).result()
        assert attrs == {"a": 1}

    def test_an_arrays_metadata_is_not_lost(self, group_with_array, array):
        array.attrs["x"] = 1
        array.resize(exclusive_max=[5]).result()
        array.attrs["y"] = 2

        again = group_with_array["a"]

        assert (again.shape, dict(again.attrs)) == ((5,), {"b": [1, 2], "x": 1, "y": 2})

    def test_those_of_a_view_are_those_of_the_array(self, array):
        array[1:].astype("float32").attrs["c"] = 1

        assert array.attrs == {"b": [1, 2], "c": 1}
        assert array.attrs == array[0].attrs

    async def test_no_writer_loses_anything(self, group_with_array):
        async def count(attrs):
            for _ in range(10):
                await attrs.change(lambda found: {**found, "n": found.get("n", 0) + 1})

        await asyncio.gather(*(count(group_with_array.attrs) for _ in range(20)))

        assert (await group_with_array.attrs.read())["n"] == 200

    def test_within_a_transaction(self, group_with_array, array):
        transaction = ts.Transaction()
        array.attrs["outside"] = 1
        inside = array.with_transaction(transaction).attrs
        inside["inside"] = 1
        group_with_array.with_transaction(transaction).attrs["g"] = 1
        array.attrs["outside"] = 2

        assert inside == {"b": [1, 2], "outside": 2, "inside": 1}
        assert (array.attrs, group_with_array.attrs) == ({"b": [1, 2], "outside": 2}, {})
        transaction.commit_sync()
        assert array.attrs == {"b": [1, 2], "outside": 2, "inside": 1}
        assert group_with_array.attrs == {"g": 1}

    def test_an_array_without_a_format_has_none(self):
        with pytest.raises(ts.UnsupportedError, match='driver "array" has no attributes'):
            _ = ts.array([1]).attrs

    def test_those_of_a_deleted_array(self, group_with_array, array):
        group_with_array.delete("a").result()

        if group_with_array.zarr_format == 3:
            with pytest.raises(ts.NotFoundError, match=r"a/zarr\.json"):
                array.attrs.read().result()
        assert "attrs" not in repr(array)
        assert repr(array.attrs).startswith('Attributes("a/')
