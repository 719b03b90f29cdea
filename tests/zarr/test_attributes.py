"""Attributes in zarr-python's words: a dictionary, whose changes are stored when calls return."""

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.fixture(params=["array", "group"])
def node(request, tmp_path):
    where = tmp_path / "node"
    if request.param == "array":
        ts.zarr.create_array(where, shape=(4,), dtype="i4", attributes={"a": 1})
    else:
        ts.zarr.create_group(where, attributes={"a": 1})
    return where


def stored(where):
    return ts.zarr.open(where, mode="r").attrs.asdict()


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (lambda attrs: attrs.update({"b": 2}), {"a": 1, "b": 2}),
        (lambda attrs: attrs.update([("b", 2)], c=np.int64(3)), {"a": 1, "b": 2, "c": 3}),
        (lambda attrs: attrs.update(b=(1, 2)), {"a": 1, "b": [1, 2]}),
        (lambda attrs: attrs.put({"b": 2}), {"b": 2}),
        (lambda attrs: attrs.clear(), {}),
        (lambda attrs: attrs.__setitem__("b", 2), {"a": 1, "b": 2}),
        (lambda attrs: attrs.__delitem__("a"), {}),
        (lambda attrs: attrs.setdefault("b", 2), {"a": 1, "b": 2}),
        (lambda attrs: attrs.change(lambda found: {"a": found["a"] + 1}), {"a": 2}),
        (lambda attrs: attrs.refresh(), {"a": 1}),
    ],
)
def test_a_change_is_stored_when_the_call_returns(node, change, after):
    change(ts.zarr.open(node, mode="r+").attrs)

    assert stored(node) == after


def test_what_is_popped_is_returned_and_gone(node):
    attrs = ts.zarr.open(node, mode="r+").attrs

    assert attrs.pop("a") == 1
    assert attrs.pop("a", "none") == "none"
    with pytest.raises(KeyError):
        attrs.popitem()
    assert stored(node) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda node: node.attrs.update(b=2),
        lambda node: node.attrs.put({}),
        lambda node: node.attrs.__setitem__("b", 2),
        lambda node: node.attrs.__delitem__("a"),
        lambda node: node.attrs.change(lambda found: found),
        lambda node: node.attrs.clear(),
        lambda node: node.update_attributes({"b": 2}),
    ],
)
def test_what_is_opened_to_be_read_only_refuses_changes(node, change):
    with pytest.raises(ts.zarr.ReadOnlyError, match=r"mode='r\+'"):
        change(ts.zarr.open(node, mode="r"))

    assert stored(node) == {"a": 1}


def test_it_is_a_mapping(node):
    attrs = ts.zarr.open(node, mode="r").attrs

    assert repr(attrs) == "{'a': 1}"
    assert attrs == {"a": 1}
    assert attrs == ts.zarr.open(node, mode="r").ts.attrs
    assert attrs == ts.zarr.open(node, mode="r").attrs
    assert attrs != {"a": 2}
    assert attrs != 1
    assert list(attrs) == ["a"]
    assert len(attrs) == 1
    assert "a" in attrs
    assert "b" not in attrs
    assert attrs.get("b", 5) == 5
