import pytest

from tensorstore_py._hierarchy.moving import delete_node, move_node
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import AlreadyExistsError, NotFoundError, SpecError
from tests.hierarchy.trees import get, keys, put, tree


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_a_node_goes_with_all_below_it(driver):
    found = tree(driver, "p/", groups=["", "g"], arrays=["g/a", "gg"])

    run_inline(delete_node(found, "g"))

    assert keys(found) == keys(tree(driver, "p/", groups=[""], arrays=["gg"]))


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_a_node_moves_with_all_below_it(driver):
    found = tree(driver, "p/", groups=["", "g"], arrays=["g/a", "gg"])
    put(found, "p/g/a/c/0", b"chunk")

    run_inline(move_node(found, "g", "x/y/g", ""))

    expected = tree(driver, "p/", groups=["", "x", "x/y", "x/y/g"], arrays=["x/y/g/a", "gg"])
    assert keys(found) == sorted([*keys(expected), "p/x/y/g/a/c/0"])
    assert get(found, "p/x/y/g/a/c/0") == b"chunk"


def test_what_makes_it_a_node_comes_last():
    found = tree("zarr3", groups=[""], arrays=["a"])
    put(found, "a/c/0", b"chunk")
    found.store.reset()

    run_inline(move_node(found, "a", "b", ""))

    assert list(found.store.writes) == ["b/c/0", "b/zarr.json"]


def test_nothing_is_lost_where_it_cannot_go():
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
