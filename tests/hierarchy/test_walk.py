import pytest

from tensorstore_py._hierarchy.consolidating import consolidate
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.walk import Walk, names_below
from tests.hierarchy.trees import run, tree

GROUPS = ["", "a", "a/b", "z"]
ARRAYS = ["a/b/x", "a/y", "m"]


def paths(found, *arguments, **options):
    async def collect():
        walk = Walk(found, *arguments, **options)
        seen = []
        while (batch := await walk.step()) is not None:
            seen += [node.path for node in batch]
        return seen

    return run(collect())


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (0, ["a", "m", "z"]),
        (1, ["a", "m", "z", "a/b", "a/y"]),
        (None, ["a", "m", "z", "a/b", "a/y", "a/b/x"]),
    ],
)
def test_a_tree_is_walked_level_by_level(driver, depth, expected):
    found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)

    assert paths(found, "", None, depth) == expected


def test_depth_begins_at_the_group():
    found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

    assert paths(found, "a", None, 0) == ["a/b", "a/y"]
    assert paths(found, "a", None, 1) == ["a/b", "a/y", "a/b/x"]


def test_a_group_costs_a_listing_and_a_node_a_request():
    found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

    paths(found, "", None, None)

    assert found.store.directories == {"": 1, "a/": 1, "a/b/": 1, "z/": 1}
    assert found.store.reads == {f"{path}/zarr.json": 1 for path in GROUPS[1:] + ARRAYS}


def test_what_holds_no_node_is_passed_by():
    found = tree("zarr3", groups=["", "a"], arrays=["b/c"])

    assert paths(found, "", None, None) == ["a"]


def test_more_nodes_than_one_step_reads():
    names = [f"n{number:04}" for number in range(600)]
    found = tree("zarr3", groups=["", "g"], arrays=names + [f"g/{name}" for name in names])

    assert paths(found, "", None, None) == ["g", *names, *(f"g/{name}" for name in names)]
    assert found.store.directories == {"": 1, "g/": 1}


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_what_is_consolidated_costs_nothing(driver):
    found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)
    known = run(consolidate(found, ""))
    found.store.reset()

    assert paths(found, "", known, None) == ["a", "m", "z", "a/b", "a/y", "a/b/x"]
    assert (found.store.reads, found.store.directories) == ({}, {})


def test_consolidated_metadata_that_is_met_on_the_way_is_used_unless_told():
    found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)
    run(consolidate(found, "a"))
    assert run(read_node(found, "a")).consolidated is not None
    found.store.reset()

    paths(found, "", None, None)
    assert found.store.directories == {"": 1, "z/": 1}
    found.store.reset()
    paths(found, "", None, None, fresh=True)
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
def test_names_are_those_of_a_walk(driver, path, depth, expected):
    found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)

    assert run(names_below(found, path, None, depth)) == expected
    assert paths(found, path, None, depth) == expected
    known = run(consolidate(found, path))
    found.store.reset()
    assert run(names_below(found, path, known, depth)) == expected
    assert (found.store.reads, found.store.directories) == ({}, {})


def test_what_is_deepest_is_not_looked_at():
    found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

    run(names_below(found, "", None, 1))

    assert found.store.directories == {"": 1, "a/": 1, "z/": 1}
    assert found.store.reads == {"a/zarr.json": 1, "m/zarr.json": 1, "z/zarr.json": 1}
