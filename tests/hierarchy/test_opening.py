import pytest

from tensorstore_py._hierarchy.consolidating import consolidate
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py._hierarchy.node import Hierarchy
from tensorstore_py._hierarchy.opening import find_group, read_group
from tests.hierarchy.trees import put, run, tree


def test_the_newest_format_is_tried_first():
    found = tree("zarr", groups=["g"])
    trees = [Hierarchy(found.store, "", form) for form in formats() if form.zarr_format]

    there, node = run(find_group(trees, "g", consolidated=True))

    assert (there.form.zarr_format, node.kind) == (2, "group")
    assert list(found.store.reads) == ["g/zarr.json", "g/.zmetadata", "g/.zgroup"]
    assert run(find_group(trees, "h", consolidated=True)) is None


@pytest.mark.parametrize(("driver", "key"), [("zarr", ".zmetadata"), ("zarr3", "zarr.json")])
def test_one_request_opens_a_whole_tree(driver, key):
    found = tree(driver, "p/", groups=["", "g"], arrays=["g/a"])
    run(consolidate(found, ""))
    found.store.reset()

    node = run(read_group(found, "", consolidated=True))

    assert node.consolidated.names("g") == ["a"]
    assert found.store.reads == {f"p/{key}": 1}


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_what_is_consolidated_can_be_left_alone(driver):
    found = tree(driver, groups=["", "g"])
    run(consolidate(found, ""))

    assert run(read_group(found, "", consolidated=False)).consolidated is None
    assert run(read_group(found, "h", consolidated=False)) is None


def test_a_copy_that_does_not_tell_of_its_group_is_none():
    found = tree("zarr", groups=[""])
    put(found, ".zmetadata", b'{"zarr_consolidated_format":1,"metadata":{}}')

    assert run(read_group(found, "", consolidated=True)).consolidated is None
