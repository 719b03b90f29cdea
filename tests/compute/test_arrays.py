from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._compute.arrays import array_arguments, contents, end_of, one_array
from tensorstore_py._runtime.inline import run_inline


def found(given):
    end = end_of(given, as_context(None))
    return run_inline(contents(end.inline, end))


def test_a_tree():
    root = ts.Group.open("memory://", create=True, zarr_format=2, attributes={"a": 1}).result()
    domain = ts.IndexDomain(shape=[3], labels=["x"])
    root.create_array("b/c", dtype="int8", domain=domain, attributes={"d": 2}).result()

    there = found(root)

    assert (sorted(there.groups), sorted(there.arrays), there.is_tree) == (["", "b"], ["b/c"], True)
    assert [there.attributes(path) for path in ("", "b", "b/c")] == [{"a": 1}, {}, {"d": 2}]


@pytest.mark.parametrize("where", ["memory://|zarr3:", "memory://|n5:"])
def test_an_array_and_a_view_of_one(where):
    array = ts.open(where, create=True, dtype="int8", shape=[4]).result()

    assert one_array(found(array), "x").array.shape == (4,)
    assert one_array(found(array[1:3]), "x").array.domain.origin == (1,)
    assert not found(array).is_tree


def test_a_part_of_a_tree():
    root = ts.Group.open("memory://", create=True).result()
    root.create_array("a/b/c", dtype="int8", shape=[2]).result()

    assert sorted(found(root["a"]).arrays) == ["b/c"]


def test_an_empty_group_is_no_array():
    root = ts.Group.open("memory://", create=True).result()

    with pytest.raises(ts.MismatchError, match=r"x takes one array, .* it has no arrays"):
        one_array(found(root), "x")


def test_an_array_that_cannot_be_read():
    options: dict[str, Any] = {
        "create": True,
        "dtype": "int8",
        "shape": [2],
        "read": False,
        "write": True,
    }
    array = ts.open("memory://|zarr3:", **options)

    with pytest.raises(ts.PermissionDeniedError, match="not opened for reading"):
        found(array.result())


def test_what_is_in_a_transaction_stays_here():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    array = ts.open(spec, create=True, dtype="int8", shape=[2]).result()
    with ts.Transaction() as transaction, pytest.raises(ts.UnsupportedError, match='"/a/b"'):
        array_arguments(array.with_transaction(transaction), "a/b")
    np.testing.assert_array_equal(array, [0, 0])


@pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
def test_a_local_path_of_any_format(driver, tmp_path):
    spec = {"driver": driver, "kvstore": tmp_path / "a"}
    ts.open(spec, create=True, dtype="int8", shape=[4]).result()

    assert one_array(found(tmp_path / "a"), "x").array.shape == (4,)
    assert one_array(found(f"file://{tmp_path}/a/"), "x").array.shape == (4,)


def test_nothing_is_there(tmp_path):
    (tmp_path / "a").mkdir()
    for nothing in (
        tmp_path / "a",
        f"file://{tmp_path}/b/",
        ts.KvStore.open("memory://a/").result(),
    ):
        with pytest.raises(ts.NotFoundError, match=r"^no array or group is at"):
            found(nothing)
