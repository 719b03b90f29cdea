import asyncio

import pytest

from tensorstore_py._hierarchy.consolidating import consolidate
from tensorstore_py._hierarchy.survey import survey
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing import LoopStore
from tests.hierarchy.trees import put, run, tree

GROUPS = ["", "a", "a/b", "z"]
ARRAYS = ["a/b/x", "a/y", "m"]
ALL = ["", "a", "m", "z", "a/b", "a/y", "a/b/x"]


def paths(nodes):
    return [node.path for node in nodes]


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize(("depth", "expected"), [(0, ALL[:4]), (1, ALL[:6]), (None, ALL)])
def test_the_group_and_what_is_below_it_level_by_level(driver, depth, expected):
    found = tree(driver, "p/", groups=GROUPS, arrays=ARRAYS)

    assert paths(run(survey(found, "", None, depth))) == expected
    known = run(consolidate(found, ""))
    found.store.reset()
    assert paths(run(survey(found, "", known, depth))) == expected
    assert (found.store.reads, found.store.directories) == ({}, {})


def test_locally_nothing_is_asked_in_vain():
    found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)

    run(survey(found, "", None, None))

    assert found.store.directories == {"": 1, "a/": 1, "a/b/": 1, "z/": 1}
    assert found.store.reads == {f"{path}/zarr.json".lstrip("/"): 1 for path in GROUPS + ARRAYS}


def test_attributes_of_version_2_come_along():
    found = tree("zarr", groups=["", "a"], arrays=["a/x"])
    put(found, "a/.zattrs", b'{"of": "a"}')
    put(found, "a/x/.zattrs", b'{"of": "x"}')

    nodes = run(survey(found, "", None, None))

    assert [node.documents.get(".zattrs") for node in nodes] == [None, {"of": "a"}, {"of": "x"}]


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_over_a_network_a_level_is_listed_while_it_is_read(driver):
    found = tree(driver, groups=GROUPS, arrays=ARRAYS)
    far = found._replace(store=LoopStore(found.store))

    nodes = start(False, lambda: survey(far, "", None, None)).result()

    assert paths(nodes) == ALL
    # What turned out to be an array was listed, too, each by one request.
    assert found.store.directories == {f"{path}/" if path else "": 1 for path in GROUPS + ARRAYS}
    assert set(found.store.reads.values()) == {1}


def test_of_a_large_level_only_groups_are_listed():
    names = [f"n{number:03}" for number in range(300)]
    found = tree("zarr3", groups=["", "g"], arrays=names)
    far = found._replace(store=LoopStore(found.store))

    nodes = start(False, lambda: survey(far, "", None, None)).result()

    assert paths(nodes) == ["", "g", *names]
    assert found.store.directories == {"": 1, "g/": 1}


def test_the_listing_of_an_array_ends_when_it_is_known_to_be_one():
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


def test_consolidated_metadata_that_is_met_on_the_way_is_used():
    found = tree("zarr3", groups=GROUPS, arrays=ARRAYS)
    run(consolidate(found, "a"))
    found.store.reset()

    nodes = run(survey(found, "", None, None))

    assert sorted(paths(nodes)) == sorted(ALL)
    assert found.store.directories == {"": 1, "z/": 1}
    assert paths(run(survey(found, "", None, 0))) == ALL[:4]
    assert sorted(paths(run(survey(found, "", None, 1)))) == sorted(ALL[:6])


def test_nothing_is_there():
    assert run(survey(tree("zarr3"), "", None, None)) == []


def test_a_corrupt_document_is_named():
    found = tree("zarr3", groups=[""])
    put(found, "a/zarr.json", b"[]")

    with pytest.raises(DataLossError, match=r"a/zarr\.json"):
        run(survey(found, "", None, None))
