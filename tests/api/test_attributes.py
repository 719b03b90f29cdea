import asyncio
import math

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.fixture(params=[2, 3])
def group(request):
    return ts.Group.open("memory://", create=True, zarr_format=request.param).result()


@pytest.fixture
def array(group):
    return group.create_array("a", dtype="int8", shape=[2], attributes={"b": [1, 2]}).result()


@pytest.fixture(params=["group", "array"])
def attrs(request, group, array):
    node = group if request.param == "group" else array
    node.attrs.put({"a": 1}).result()
    return node.attrs


def test_they_can_be_changed_one_by_one_and_together(attrs):
    attrs.update({"b": (1, 2)}, c=np.float64(0.5)).result()
    attrs.set("d", None).result()
    attrs.delete("a", "never there").result()

    assert attrs.read().result() == {"b": [1, 2], "c": 0.5, "d": None}
    attrs.change(lambda found: {"kept": found["c"] * 2}).result()
    assert attrs.asdict() == {"kept": 1.0}
    attrs.put({"new": True}).result()
    assert attrs.asdict() == {"new": True}


def test_as_a_dictionary(attrs):
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


def test_numbers_that_are_none_are_kept(attrs):
    attrs.update(nan=math.nan, inf=math.inf).result()

    assert math.isnan(attrs["nan"])
    assert attrs["inf"] == math.inf


def test_what_is_no_json_is_refused_at_once(attrs):
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


def test_an_arrays_metadata_is_not_lost(group, array):
    array.attrs["x"] = 1
    array.resize(exclusive_max=[5]).result()
    array.attrs["y"] = 2

    again = group["a"]

    assert (again.shape, dict(again.attrs)) == ((5,), {"b": [1, 2], "x": 1, "y": 2})


def test_those_of_a_view_are_those_of_the_array(array):
    array[1:].astype("float32").attrs["c"] = 1

    assert array.attrs == {"b": [1, 2], "c": 1}
    assert array.attrs == array[0].attrs


async def test_no_writer_loses_anything(group):
    async def count(attrs):
        for _ in range(10):
            await attrs.change(lambda found: {**found, "n": found.get("n", 0) + 1})

    await asyncio.gather(*(count(group.attrs) for _ in range(20)))

    assert (await group.attrs.read())["n"] == 200


def test_within_a_transaction(group, array):
    transaction = ts.Transaction()
    array.attrs["outside"] = 1
    inside = array.with_transaction(transaction).attrs
    inside["inside"] = 1
    group.with_transaction(transaction).attrs["g"] = 1
    array.attrs["outside"] = 2

    assert inside == {"b": [1, 2], "outside": 2, "inside": 1}
    assert (array.attrs, group.attrs) == ({"b": [1, 2], "outside": 2}, {})
    transaction.commit_sync()
    assert array.attrs == {"b": [1, 2], "outside": 2, "inside": 1}
    assert group.attrs == {"g": 1}


def test_an_array_without_a_format_has_none():
    with pytest.raises(ts.UnsupportedError, match='driver "array" has no attributes'):
        _ = ts.array([1]).attrs


def test_those_of_a_deleted_array(group, array):
    group.delete("a").result()

    if group.zarr_format == 3:
        with pytest.raises(ts.NotFoundError, match=r"a/zarr\.json"):
            array.attrs.read().result()
    assert "attrs" not in repr(array)
    assert repr(array.attrs).startswith('Attributes("a/')
