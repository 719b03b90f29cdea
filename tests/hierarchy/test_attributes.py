import math

import numpy as np
import pytest

from tensorstore_py._hierarchy.attributes import AttributesFile, as_attributes
from tensorstore_py._interface.hierarchy import KnownNode
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError, NotFoundError, SpecError
from tests.hierarchy.trees import get, put, tree


def file_of(found, known=None):
    return AttributesFile(found.store, found.below("g"), found.form, known)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_a_change_keeps_the_rest(driver):
    found = tree(driver, groups=["g"])
    file = file_of(found)

    run_inline(file.change(lambda old: {**old, "a": 1}))
    run_inline(file.change(lambda old: {**old, "b": (1, np.float32(0.5))}))

    assert run_inline(file.read()) == {"a": 1, "b": [1, 0.5]}


def test_the_rest_of_a_document_stays():
    found = tree()
    put(found, "g/zarr.json", b'{"node_type":"group","zarr_format":3,"foreign":{"a":[1]}}')

    run_inline(file_of(found).change(lambda _: {"b": 1}))

    assert get(found, "g/zarr.json") == (
        b'{"node_type":"group","zarr_format":3,"foreign":{"a":[1]},"attributes":{"b":1}}'
    )


def test_attributes_of_a_deleted_node_are_not_made_anew():
    file = file_of(tree("zarr3"))

    with pytest.raises(NotFoundError, match=r'"g/zarr\.json" does not exist'):
        run_inline(file.read())
    with pytest.raises(NotFoundError, match=r'"g/zarr\.json" does not exist'):
        run_inline(file.change(lambda old: old))


def test_a_node_without_a_document_for_them_has_none():
    found = tree("zarr", groups=["g"])

    assert run_inline(file_of(found).read()) == {}
    assert found.store.reads == {"g/.zattrs": 1}


def test_attributes_that_are_no_object_are_corrupt():
    found = tree()
    put(found, "g/zarr.json", b'{"node_type":"group","zarr_format":3,"attributes":[1]}')

    with pytest.raises(DataLossError, match=r'"g/zarr\.json": attributes: expected an object'):
        run_inline(file_of(found).read())


class Copy(KnownNode):
    """A copy of one group."""

    told = False

    def documents(self):
        return None if self.told else {".zattrs": {"copied": True}}

    def spoil(self):
        self.told = True


def test_a_copy_is_asked_as_long_as_it_is_true():
    found = tree("zarr", groups=["g"])
    copy = Copy()
    file = file_of(found, copy)

    assert run_inline(file.read()) == {"copied": True}
    assert not found.store.reads
    copy.spoil()
    assert run_inline(file.read()) == {}


def test_attributes_become_plain_json():
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
def test_what_is_no_json_is_named(given, message):
    with pytest.raises(SpecError, match=message):
        as_attributes(given)
