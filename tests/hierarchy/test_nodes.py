"""Nodes of a hierarchy: their paths and documents; making, changing, moving, deleting them."""

import asyncio
import math

import numpy as np
import pytest

from tensorstore_py import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    SpecError,
)
from tensorstore_py._hierarchy.changes import (
    check_absent,
    create_group,
    delete_node,
    make_parents,
    move_node,
)
from tensorstore_py._hierarchy.consolidated import Consolidated
from tensorstore_py._hierarchy.document import (
    AttributesFile,
    ChangeDocument,
    as_attributes,
    parse_document,
    read_document,
    serialize_document,
)
from tensorstore_py._hierarchy.formats import format_of, formats
from tensorstore_py._hierarchy.node import names_in, read_node, read_nodes
from tensorstore_py._hierarchy.path import check_new, join, normalised, parents
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._interface.hierarchy import KnownNode
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import LoopStore
from tests.hierarchy.trees import get, keys, put, run, tree


class TestPath:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("", ""),
            ("/", ""),
            ("a", "a"),
            ("/a/b/", "a/b"),
            ("a//b///c", "a/b/c"),
            ("a\\b", "a/b"),
            ("a/...", "a/..."),
            ("ä/ ", "ä/ "),
        ],
    )
    def test_a_path_has_one_form(self, path, expected):
        assert normalised(path) == expected

    @pytest.mark.parametrize("path", [".", "..", "a/.", "../a", "a\\..\\b"])
    def test_no_path_leads_elsewhere(self, path):
        with pytest.raises(SpecError, match=r'has the part "\.\.?"'):
            normalised(path)

    def test_a_path_is_text(self):
        with pytest.raises(TypeError, match="int"):
            normalised(1)

    def test_paths_are_joined(self):
        assert [join("", ""), join("a", ""), join("", "b/c"), join("a", "b/c")] == [
            "",
            "a",
            "b/c",
            "a/b/c",
        ]

    def test_parents_come_outermost_first(self):
        assert parents("a/b/c") == ["", "a", "a/b"]
        assert parents("a/b/c", "") == ["a", "a/b"]
        assert parents("a/b/c", "a/b") == []
        assert parents("") == []

    def test_reserved_names_are_for_the_format_alone(self):
        form = tree("zarr3").form
        check_new(form, "")
        check_new(form, "a/b__")
        with pytest.raises(SpecError, match="__meta"):
            check_new(form, "a/__meta/b")


class TestFormats:
    def test_the_newest_comes_first(self):
        versions = [form.zarr_format for form in formats() if form.zarr_format]

        assert versions == sorted(versions, reverse=True)
        assert {2, 3} <= set(versions)

    def test_a_format_is_found_by_its_driver(self):
        for form in formats():
            assert format_of(form.driver) is form
        assert format_of("cast") is None


class TestDocument:
    def test_numbers_that_are_none_survive(self):
        document = {"a": math.inf, "b": -math.inf, "c": [math.nan]}

        text = serialize_document(document)

        assert text == b'{"a":Infinity,"b":-Infinity,"c":[NaN]}'
        assert repr(parse_document(text, "here")) == repr(document)

    @pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
    def test_what_is_no_object_is_named(self, text):
        with pytest.raises(DataLossError, match="Error reading here"):
            parse_document(text, "here")

    def test_a_change_sees_what_is_stored_by_then(self):
        change = ChangeDocument(lambda found: {**(found or {}), "n": len(found or {})}, "here")

        assert run_inline(change.apply(None)) == b'{"n":0}'
        assert run_inline(change.apply(b'{"a":1}')) == b'{"a":1,"n":1}'

    def test_a_refused_change_says_where(self):
        def refuse(_):
            raise SpecError("no JSON", ("a",))

        with pytest.raises(SpecError, match="Error changing here: a: no JSON"):
            run_inline(ChangeDocument(refuse, "here").apply(None))

    @pytest.mark.parametrize("count", [1, 10_000])
    async def test_a_loop_does_something_else_while_a_large_document_is_parsed(self, count):
        text = serialize_document({str(number): number for number in range(count)})
        turns: list[int] = []

        async def other():
            while len(turns) < 3:
                turns.append(1)
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        document = await read_document(LoopStore(MemoryStore(SharedMap())), text, "here")

        assert len(document) == count
        assert bool(turns) == (count > 1)
        await beside


class TestNode:
    @pytest.mark.parametrize("path", ["", "a", "a/b"])
    def test_one_request_tells_what_a_node_of_one_document_is(self, path):
        found = tree("zarr3", "data/", groups=["a"], arrays=["", "a/b"])

        node = run(read_node(found, path))

        assert node.kind == ("group" if path == "a" else "array")
        assert found.store.reads == {found.below(path) + "zarr.json": 1}
        assert node.read()["zarr.json"].stamp.generation != UNKNOWN

    def test_what_is_likely_is_looked_for_first(self):
        found = tree("zarr", groups=["g"], arrays=["a"])

        assert run(read_node(found, "g", likely="group")).kind == "group"
        assert found.store.reads == {"g/.zgroup": 1}
        found.store.reset()
        assert run(read_node(found, "a")).kind == "array"
        assert found.store.reads == {"a/.zarray": 1, "a/.zattrs": 1}

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_nothing_is_no_node(self, driver):
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
    def test_a_corrupt_document_is_named(self, text, message):
        found = tree()
        put(found, "a/zarr.json", text)

        with pytest.raises(DataLossError, match=rf'"a/zarr\.json": {message}'):
            run(read_node(found, "a"))

    def test_names_come_from_one_listing(self):
        found = tree("zarr3", "p/", groups=["g"], arrays=["g/b", "g/a", "g/c/d"])
        put(found, "p/g/a/c/0", b"chunk")
        put(found, "p/g/__hidden/x", b"")
        found.store.reset()

        assert run(names_in(found, "g")) == ["a", "b", "c"]
        assert found.store.directories == {"p/g/": 1}
        assert not found.store.reads

    def test_a_copy_tells_without_a_request(self):
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

    def test_a_corrupt_copy_is_named(self):
        known = Consolidated({"": {"zarr.json": {"zarr_format": 3}}}, "", 5.0, "there")

        with pytest.raises(DataLossError, match=r"consolidated metadata of .*node_type"):
            run(read_node(tree(), "", known))


def file_of(found, known=None):
    return AttributesFile(found.store, found.below("g"), found.form, known)


class Copy(KnownNode):
    """A copy of one group."""

    told = False

    def documents(self):
        return None if self.told else {".zattrs": {"copied": True}}

    def spoil(self):
        self.told = True


class TestAttributes:
    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_a_change_keeps_the_rest(self, driver):
        found = tree(driver, groups=["g"])
        file = file_of(found)

        run_inline(file.change(lambda old: {**old, "a": 1}))
        run_inline(file.change(lambda old: {**old, "b": (1, np.float32(0.5))}))

        assert run_inline(file.read()) == {"a": 1, "b": [1, 0.5]}

    def test_the_rest_of_a_document_stays(self):
        found = tree()
        put(found, "g/zarr.json", b'{"node_type":"group","zarr_format":3,"foreign":{"a":[1]}}')

        run_inline(file_of(found).change(lambda _: {"b": 1}))

        assert get(found, "g/zarr.json") == (
            b'{"node_type":"group","zarr_format":3,"foreign":{"a":[1]},"attributes":{"b":1}}'
        )

    def test_attributes_of_a_deleted_node_are_not_made_anew(self):
        file = file_of(tree("zarr3"))

        with pytest.raises(NotFoundError, match=r'"g/zarr\.json" does not exist'):
            run_inline(file.read())
        with pytest.raises(NotFoundError, match=r'"g/zarr\.json" does not exist'):
            run_inline(file.change(lambda old: old))

    def test_a_node_without_a_document_for_them_has_none(self):
        found = tree("zarr", groups=["g"])

        assert run_inline(file_of(found).read()) == {}
        assert found.store.reads == {"g/.zattrs": 1}

    def test_attributes_that_are_no_object_are_corrupt(self):
        found = tree()
        put(found, "g/zarr.json", b'{"node_type":"group","zarr_format":3,"attributes":[1]}')

        with pytest.raises(DataLossError, match=r'"g/zarr\.json": attributes: expected an object'):
            run_inline(file_of(found).read())

    def test_a_copy_is_asked_as_long_as_it_is_true(self):
        found = tree("zarr", groups=["g"])
        copy = Copy()
        file = file_of(found, copy)

        assert run_inline(file.read()) == {"copied": True}
        assert not found.store.reads
        copy.spoil()
        assert run_inline(file.read()) == {}

    def test_attributes_become_plain_json(self):
        given = {
            "a": (1, [2.5, None]),
            "b": np.arange(3),
            "c": {"d": np.bool_(True)},
            "e": np.array("x"),
            "f": math.nan,
        }

        assert repr(as_attributes(given)) == (
            "{'a': [1, [2.5, None]], 'b': [0, 1, 2], 'c': {'d': True}, 'e': 'x', 'f': nan}"
        )

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ([1], "must be a mapping"),
            ({"a": {1}}, "a: a set is no JSON"),
            ({"a": [0, {"b": b""}]}, r"a\[1\]\.b: a bytes is no JSON"),
            ({"a": {1: 2}}, "a: a name must be text"),
            ({"a": np.datetime64("2020-01-01")}, "a: a date is no JSON"),
        ],
    )
    def test_what_is_no_json_is_named(self, given, message):
        with pytest.raises(SpecError, match=message):
            as_attributes(given)


class TestCreating:
    @pytest.mark.parametrize(
        ("driver", "documents"),
        [
            ("zarr", {".zgroup": b'{"zarr_format":2}', ".zattrs": b'{"a":1}'}),
            (
                "zarr3",
                {"zarr.json": b'{"zarr_format":3,"node_type":"group","attributes":{"a":1}}'},
            ),
        ],
    )
    def test_a_new_group(self, driver, documents):
        found = tree(driver, "p/")

        node = run_inline(create_group(found, "g", {"a": 1}))

        assert (node.kind, node.path) == ("group", "g")
        assert {key: get(found, f"p/g/{key}") for key in documents} == documents
        assert len(keys(found)) == len(documents)

    def test_one_request_makes_a_group_of_one_document(self):
        found = tree("zarr3")

        run_inline(create_group(found, "g", {}))

        assert (found.store.reads, found.store.writes) == ({}, {"g/zarr.json": 1})

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_what_is_there_is_found_or_refused(self, driver):
        found = tree(driver, groups=["g"], arrays=["a"])

        assert run_inline(create_group(found, "g", {"a": 1}, may_exist=True)).path == "g"
        with pytest.raises(AlreadyExistsError, match='"/g" exists already, a group'):
            run_inline(create_group(found, "g", {}))
        with pytest.raises(AlreadyExistsError, match='"/a" exists already, an array'):
            run_inline(create_group(found, "a", {}))
        with pytest.raises(MismatchError, match='"/a" is an array'):
            run_inline(create_group(found, "a", {}, may_exist=True))

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_what_is_there_is_replaced(self, driver):
        found = tree(driver, groups=["", "g"], arrays=["g/a", "ga"])
        before = keys(tree(driver, groups=["", "g"], arrays=["ga"]))

        run_inline(create_group(found, "g", {}, delete_existing=True))

        assert keys(found) == before

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_groups_above_a_node_are_made(self, driver):
        found = tree(driver, groups=["a"])

        assert run_inline(make_parents(found, "a/b/c/d")) == ["", "a/b", "a/b/c"]
        assert keys(found) == keys(tree(driver, groups=["", "a", "a/b", "a/b/c"]))
        assert run_inline(make_parents(found, "a/b/c/d")) == []

    def test_those_that_are_known_to_be_there_are_not_asked_for(self):
        found = tree("zarr3", groups=["", "a"])

        run_inline(make_parents(found, "a/b", "a"))

        assert not found.store.reads

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_nothing_is_made_below_an_array(self, driver):
        found = tree(driver, groups=[""], arrays=["a"])

        with pytest.raises(
            FailedPreconditionError, match='cannot create "/a/b/c": "/a" is an array'
        ):
            run_inline(make_parents(found, "a/b/c"))
        assert keys(found) == keys(tree(driver, groups=[""], arrays=["a"]))

    def test_a_node_of_another_format_is_in_the_way(self):
        found = tree("zarr", groups=["g"])

        run_inline(check_absent([found], "h"))
        with pytest.raises(AlreadyExistsError, match=r"\.zgroup"):
            run_inline(check_absent([found], "g"))


class TestMoving:
    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_a_node_goes_with_all_below_it(self, driver):
        found = tree(driver, "p/", groups=["", "g"], arrays=["g/a", "gg"])

        run_inline(delete_node(found, "g"))

        assert keys(found) == keys(tree(driver, "p/", groups=[""], arrays=["gg"]))

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_a_node_moves_with_all_below_it(self, driver):
        found = tree(driver, "p/", groups=["", "g"], arrays=["g/a", "gg"])
        put(found, "p/g/a/c/0", b"chunk")

        run_inline(move_node(found, "g", "x/y/g", ""))

        expected = tree(driver, "p/", groups=["", "x", "x/y", "x/y/g"], arrays=["x/y/g/a", "gg"])
        assert keys(found) == sorted([*keys(expected), "p/x/y/g/a/c/0"])
        assert get(found, "p/x/y/g/a/c/0") == b"chunk"

    def test_what_makes_it_a_node_comes_last(self):
        found = tree("zarr3", groups=[""], arrays=["a"])
        put(found, "a/c/0", b"chunk")
        found.store.reset()

        run_inline(move_node(found, "a", "b", ""))

        assert list(found.store.writes) == ["b/c/0", "b/zarr.json"]

    def test_nothing_is_lost_where_it_cannot_go(self):
        found = tree("zarr3", groups=["", "g"], arrays=["g/a", "b"])
        before = keys(found)

        with pytest.raises(AlreadyExistsError, match='"/g" to "/b": something is there'):
            run_inline(move_node(found, "g", "b", ""))
        with pytest.raises(NotFoundError, match='cannot move "/x"'):
            run_inline(move_node(found, "x", "y", ""))
        for target in ("g", "g/h"):
            with pytest.raises(SpecError, match="which is inside it"):
                run_inline(move_node(found, "g", target, ""))
        with pytest.raises(NotFoundError, match='cannot delete "/x"'):
            run_inline(delete_node(found, "x"))
        assert keys(found) == before
