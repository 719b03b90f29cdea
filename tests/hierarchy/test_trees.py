"""Trees of nodes: how they are opened, walked and consolidated, and what each request asks for."""

import asyncio
import json
import warnings
from typing import Any

import pytest

from tensorstore_py import DataLossError, NotFoundError
from tensorstore_py._hierarchy.changes import consolidate
from tensorstore_py._hierarchy.consolidated import Consolidated, read_consolidated
from tensorstore_py._hierarchy.formats import find_group, formats, read_group
from tensorstore_py._hierarchy.node import Hierarchy, read_node
from tensorstore_py._hierarchy.walk import Walk, names_below, survey
from tensorstore_py._runtime.execution import start
from tensorstore_py.testing import LoopStore
from tests.hierarchy.trees import get, put, run, tree


class TestOpening:
    def test_the_newest_format_is_tried_first(self):
        found = tree("zarr", groups=["g"])
        trees = [Hierarchy(found.store, "", form) for form in formats() if form.zarr_format]

        there, node = run(find_group(trees, "g", consolidated=True))

        assert (there.form.zarr_format, node.kind) == (2, "group")
        assert list(found.store.reads) == ["g/zarr.json", "g/.zmetadata", "g/.zgroup"]
        assert run(find_group(trees, "h", consolidated=True)) is None

    @pytest.mark.parametrize(("driver", "key"), [("zarr", ".zmetadata"), ("zarr3", "zarr.json")])
    def test_one_request_opens_a_whole_tree(self, driver, key):
        found = tree(driver, "p/", groups=["", "g"], arrays=["g/a"])
        run(consolidate(found, ""))
        found.store.reset()

        node = run(read_group(found, "", consolidated=True))

        assert node.consolidated.names("g") == ["a"]
        assert found.store.reads == {f"p/{key}": 1}

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_what_is_consolidated_can_be_left_alone(self, driver):
        found = tree(driver, groups=["", "g"])
        run(consolidate(found, ""))

        assert run(read_group(found, "", consolidated=False)).consolidated is None
        assert run(read_group(found, "h", consolidated=False)) is None

    def test_a_copy_that_does_not_tell_of_its_group_is_none(self):
        found = tree("zarr", groups=[""])
        put(found, ".zmetadata", b'{"zarr_consolidated_format":1,"metadata":{}}')

        assert run(read_group(found, "", consolidated=True)).consolidated is None


NODES: Any = {path: {"zarr.json": {"path": path}} for path in ("", "a", "a/b", "x/orphan")}


class TestConsolidated:
    def test_it_tells_of_the_nodes_below_its_group(self):
        known = Consolidated(NODES, "base", 1.0, "there")

        assert known.documents("base/a/b") == {"zarr.json": {"path": "a/b"}}
        assert known.documents("base") == {"zarr.json": {"path": ""}}
        assert known.documents("base/c") is None
        assert (known.names("base"), known.names("base/a"), known.names("base/a/b")) == (
            ["a"],
            ["b"],
            [],
        )
        assert (
            repr(known)
            == "Consolidated(['base', 'base/a', 'base/a/b', 'base/x/orphan'], stale=False)"
        )

    def test_the_first_change_is_warned_of(self):
        known = Consolidated(NODES, "", 1.0, '"zarr.json"')
        node = known.at("a")
        assert node.documents() == {"zarr.json": {"path": "a"}}

        with pytest.warns(
            UserWarning, match=r'in "zarr\.json" is out of date, since "/a" was changed'
        ):
            node.spoil()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            known.spoil("a/b")

        assert known.stale
        assert node.documents() is None

    def test_a_document_of_its_own_is_read(self):
        found = tree("zarr", "p/")
        put(
            found,
            "p/g/.zmetadata",
            b'{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2}}}',
        )

        known = run(read_consolidated(found.form, found.store, "p/g/", "g"))

        assert known.documents("g") == {".zgroup": {"zarr_format": 2}}
        assert run(read_consolidated(found.form, found.store, "p/h/", "h")) is None
        assert run(read_consolidated(tree("zarr3").form, found.store, "p/g/", "g")) is None

    def test_a_corrupt_document_is_named(self):
        found = tree("zarr")
        put(found, ".zmetadata", b'{"zarr_consolidated_format":2}')

        with pytest.raises(
            DataLossError, match=r'"\.zmetadata": zarr_consolidated_format: expected 1'
        ):
            run(read_consolidated(found.form, found.store, "", ""))


class TestConsolidating:
    def test_a_document_of_its_own(self):
        found = tree("zarr", "p/", groups=["", "g"], arrays=["g/a", "o"])
        put(found, "p/g/.zattrs", b'{"u":1}')
        put(found, "p/g/a/.zattrs", b'{"v":2}')

        known = run(consolidate(found, "g"))

        assert json.loads(get(found, "p/g/.zmetadata")) == {
            "zarr_consolidated_format": 1,
            "metadata": {
                ".zgroup": {"zarr_format": 2},
                ".zattrs": {"u": 1},
                "a/.zarray": {"zarr_format": 2, "shape": [3]},
                "a/.zattrs": {"v": 2},
            },
        }
        assert known.names("g") == ["a"]

    def test_inline_in_the_group(self):
        found = tree("zarr3", groups=["", "g"], arrays=["g/a"])
        put(found, "zarr.json", b'{"zarr_format":3,"node_type":"group","attributes":{"a":1},"x":2}')

        run(consolidate(found, ""))
        run(consolidate(found, ""))  # the old copy is no part of the new one

        assert json.loads(get(found, "zarr.json")) == {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {"a": 1},
            "x": 2,
            "consolidated_metadata": {
                "kind": "inline",
                "must_understand": False,
                "metadata": {
                    "g": {"zarr_format": 3, "node_type": "group", "attributes": {}},
                    "g/a": {"zarr_format": 3, "node_type": "array", "shape": [3]},
                },
            },
        }

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_what_it_returns_is_what_is_read(self, driver):
        found = tree(driver, groups=["", "g"], arrays=["g/a"])

        known = run(consolidate(found, ""))
        read = run(read_group(found, "", consolidated=True)).consolidated

        for path in ("g", "g/a"):
            assert known.documents(path) == read.documents(path)

    def test_a_group_that_is_not_there(self):
        with pytest.raises(NotFoundError, match='no group found at "g/zarr'):
            run(consolidate(tree(), "g"))


GROUPS = ["", "a", "a/b", "z"]


ARRAYS = ["a/b/x", "a/y", "m"]


def walked(found, *arguments, **options):
    async def collect():
        walk = Walk(found, *arguments, **options)
        seen = []
        while (batch := await walk.step()) is not None:
            seen += [node.path for node in batch]
        return seen

    return run(collect())


class TestWalk:
    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    @pytest.mark.parametrize(
        ("depth", "expected"),
        [
            (0, ["a", "m", "z"]),
            (1, ["a", "m", "z", "a/b", "a/y"]),
            (None, ["a", "m", "z", "a/b", "a/y", "a/b/x"]),
        ],
    )
    def test_a_tree_is_walked_level_by_level(self, driver, depth, expected):
        found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)

        assert walked(found, "", None, depth) == expected

    def test_depth_begins_at_the_group(self):
        found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

        assert walked(found, "a", None, 0) == ["a/b", "a/y"]
        assert walked(found, "a", None, 1) == ["a/b", "a/y", "a/b/x"]

    def test_a_group_costs_a_listing_and_a_node_a_request(self):
        found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

        walked(found, "", None, None)

        assert found.store.directories == {"": 1, "a/": 1, "a/b/": 1, "z/": 1}
        assert found.store.reads == {f"{path}/zarr.json": 1 for path in GROUPS[1:] + ARRAYS}

    def test_what_holds_no_node_is_passed_by(self):
        found = tree("zarr3", groups=["", "a"], arrays=["b/c"])

        assert walked(found, "", None, None) == ["a"]

    def test_more_nodes_than_one_step_reads(self):
        names = [f"n{number:04}" for number in range(600)]
        found = tree("zarr3", groups=["", "g"], arrays=names + [f"g/{name}" for name in names])

        assert walked(found, "", None, None) == ["g", *names, *(f"g/{name}" for name in names)]
        assert found.store.directories == {"": 1, "g/": 1}

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_what_is_consolidated_costs_nothing(self, driver):
        found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)
        known = run(consolidate(found, ""))
        found.store.reset()

        assert walked(found, "", known, None) == ["a", "m", "z", "a/b", "a/y", "a/b/x"]
        assert (found.store.reads, found.store.directories) == ({}, {})

    def test_consolidated_metadata_that_is_met_on_the_way_is_used_unless_forbidden(self):
        found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)
        run(consolidate(found, "a"))
        assert run(read_node(found, "a")).consolidated is not None
        found.store.reset()

        walked(found, "", None, None)
        assert found.store.directories == {"": 1, "z/": 1}
        found.store.reset()
        walked(found, "", None, None, fresh=True)
        assert found.store.directories == {"": 1, "a/": 1, "a/b/": 1, "z/": 1}

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    @pytest.mark.parametrize(
        ("path", "depth", "expected"),
        [
            ("", 0, ["a", "m", "z"]),
            ("", 1, ["a", "m", "z", "a/b", "a/y"]),
            ("", None, ["a", "m", "z", "a/b", "a/y", "a/b/x"]),
            ("a", 0, ["a/b", "a/y"]),
            ("a", None, ["a/b", "a/y", "a/b/x"]),
        ],
    )
    def test_names_are_those_of_a_walk(self, driver, path, depth, expected):
        found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)

        assert run(names_below(found, path, None, depth)) == expected
        assert walked(found, path, None, depth) == expected
        known = run(consolidate(found, path))
        found.store.reset()
        assert run(names_below(found, path, known, depth)) == expected
        assert (found.store.reads, found.store.directories) == ({}, {})

    def test_what_is_deepest_is_not_looked_at(self):
        found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

        run(names_below(found, "", None, 1))

        assert found.store.directories == {"": 1, "a/": 1, "z/": 1}
        assert found.store.reads == {"a/zarr.json": 1, "m/zarr.json": 1, "z/zarr.json": 1}


ALL = ["", "a", "m", "z", "a/b", "a/y", "a/b/x"]


def paths(nodes):
    return [node.path for node in nodes]


class TestSurvey:
    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    @pytest.mark.parametrize(("depth", "expected"), [(0, ALL[:4]), (1, ALL[:6]), (None, ALL)])
    def test_the_group_and_what_is_below_it_level_by_level(self, driver, depth, expected):
        found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)

        assert paths(run(survey(found, "", None, depth))) == expected
        known = run(consolidate(found, ""))
        found.store.reset()
        assert paths(run(survey(found, "", known, depth))) == expected
        assert (found.store.reads, found.store.directories) == ({}, {})

    def test_locally_nothing_is_asked_in_vain(self):
        found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

        run(survey(found, "", None, None))

        assert found.store.directories == {"": 1, "a/": 1, "a/b/": 1, "z/": 1}
        assert found.store.reads == {f"{path}/zarr.json".lstrip("/"): 1 for path in GROUPS + ARRAYS}

    def test_attributes_of_version_2_come_along(self):
        found = tree("zarr", groups=["", "a"], arrays=["a/x"])
        put(found, "a/.zattrs", b'{"of": "a"}')
        put(found, "a/x/.zattrs", b'{"of": "x"}')

        nodes = run(survey(found, "", None, None))

        assert [node.documents.get(".zattrs") for node in nodes] == [None, {"of": "a"}, {"of": "x"}]

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_over_a_network_a_level_is_listed_while_it_is_read(self, driver):
        found = tree(driver, groups=GROUPS, arrays=ARRAYS)
        far = found._replace(store=LoopStore(found.store))

        nodes = start(False, lambda: survey(far, "", None, None)).result()

        assert paths(nodes) == ALL
        # What turned out to be an array was listed, too, each by one request.
        assert found.store.directories == {
            f"{path}/" if path else "": 1 for path in GROUPS + ARRAYS
        }
        assert set(found.store.reads.values()) == {1}

    def test_of_a_large_level_only_groups_are_listed(self):
        names = [f"n{number:03}" for number in range(300)]
        found = tree("zarr3", groups=["", "g"], arrays=names)
        far = found._replace(store=LoopStore(found.store))

        nodes = start(False, lambda: survey(far, "", None, None)).result()

        assert paths(nodes) == ["", "g", *names]
        assert found.store.directories == {"": 1, "g/": 1}

    def test_the_listing_of_an_array_ends_when_it_is_known_to_be_one(self):
        found = tree("zarr3", groups=[""], arrays=["a"])
        for number in range(50):
            put(found, f"a/c{number}/0", b"")
        listed = []

        class Slow(LoopStore):
            async def list_directory(self, prefix):
                async for name in super().list_directory(prefix):
                    await asyncio.sleep(0)
                    if prefix == "a/":
                        listed.append(name)
                    yield name

        far = found._replace(store=Slow(found.store))

        assert paths(start(False, lambda: survey(far, "", None, None)).result()) == ["", "a"]
        assert len(listed) < 50

    def test_consolidated_metadata_that_is_met_on_the_way_is_used(self):
        found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)
        run(consolidate(found, "a"))
        found.store.reset()

        nodes = run(survey(found, "", None, None))

        assert sorted(paths(nodes)) == sorted(ALL)
        assert found.store.directories == {"": 1, "z/": 1}
        assert paths(run(survey(found, "", None, 0))) == ALL[:4]
        assert sorted(paths(run(survey(found, "", None, 1)))) == sorted(ALL[:6])

    def test_nothing_is_there(self):
        assert run(survey(tree("zarr3"), "", None, None)) == []

    def test_a_corrupt_document_is_named(self):
        found = tree("zarr3", groups=[""])
        put(found, "a/zarr.json", b"[]")

        with pytest.raises(DataLossError, match=r"a/zarr\.json"):
            run(survey(found, "", None, None))
