import pytest

from tensorstore_py._hierarchy.creating import check_absent, create_group, make_parents
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import AlreadyExistsError, FailedPreconditionError, MismatchError
from tests.hierarchy.trees import get, keys, tree


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
def test_a_new_group(driver, documents):
    found = tree(driver, "p/")

    node = run_inline(create_group(found, "g", {"a": 1}))

    assert (node.kind, node.path) == ("group", "g")
    assert {key: get(found, f"p/g/{key}") for key in documents} == documents
    assert len(keys(found)) == len(documents)


def test_one_request_makes_a_group_of_one_document():
    found = tree("zarr3")

    run_inline(create_group(found, "g", {}))

    assert (found.store.reads, found.store.writes) == ({}, {"g/zarr.json": 1})


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_what_is_there_is_found_or_refused(driver):
    found = tree(driver, groups=["g"], arrays=["a"])

    assert run_inline(create_group(found, "g", {"a": 1}, may_exist=True)).path == "g"
    with pytest.raises(AlreadyExistsError, match='"/g" exists already, a group'):
        run_inline(create_group(found, "g", {}))
    with pytest.raises(AlreadyExistsError, match='"/a" exists already, an array'):
        run_inline(create_group(found, "a", {}))
    with pytest.raises(MismatchError, match='"/a" is an array'):
        run_inline(create_group(found, "a", {}, may_exist=True))


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_what_is_there_is_replaced(driver):
    found = tree(driver, groups=["", "g"], arrays=["g/a", "ga"])
    before = keys(tree(driver, groups=["", "g"], arrays=["ga"]))

    run_inline(create_group(found, "g", {}, delete_existing=True))

    assert keys(found) == before


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_groups_above_a_node_are_made(driver):
    found = tree(driver, groups=["a"])

    assert run_inline(make_parents(found, "a/b/c/d")) == ["", "a/b", "a/b/c"]
    assert keys(found) == keys(tree(driver, groups=["", "a", "a/b", "a/b/c"]))
    assert run_inline(make_parents(found, "a/b/c/d")) == []


def test_those_that_are_known_to_be_there_are_not_asked_for():
    found = tree("zarr3", groups=["", "a"])

    run_inline(make_parents(found, "a/b", "a"))

    assert not found.store.reads


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_nothing_is_made_below_an_array(driver):
    found = tree(driver, groups=[""], arrays=["a"])

    with pytest.raises(FailedPreconditionError, match='cannot create "/a/b/c": "/a" is an array'):
        run_inline(make_parents(found, "a/b/c"))
    assert keys(found) == keys(tree(driver, groups=[""], arrays=["a"]))


def test_a_node_of_another_format_is_in_the_way():
    found = tree("zarr", groups=["g"])

    run_inline(check_absent([found], "h"))
    with pytest.raises(AlreadyExistsError, match=r"\.zgroup"):
        run_inline(check_absent([found], "g"))
