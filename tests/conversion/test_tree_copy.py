"""How much a copy asks of stores; what comes of it is in test_copy."""

import pytest

import tensorstore_py as ts
from tests.conversion.breaking_memory import store_of

OLD = {"driver": "breaking_memory", "path": "old/"}
NEW = {"driver": "breaking_memory", "path": "new/"}


@pytest.fixture
def context():
    return ts.Context()


def test_nothing_is_stored_twice(context):
    old = ts.Group.open(OLD, create=True, attributes={"a": 1}, context=context).result()
    for number in range(20):
        array = old.create_array(f"g{number % 3}/{number}", dtype="int8", shape=[4]).result()
        array[...] = 1
    store = store_of(context)
    store.restore()

    done = ts.copy(OLD, NEW, context=context).result()

    assert (done.arrays, done.groups) == (20, 4)
    assert set(store.written.values()) == {1}
    assert len(store.written) == 20 * 2 + 4


def test_a_manifest_is_stored_less_often_than_blocks_are(context):
    old = ts.Group.open(OLD, create=True, context=context).result()
    for number in range(5):
        old.create_array(f"{number}", dtype="int8", shape=[4]).result()[...] = 1
    store = store_of(context)
    store.restore()

    ts.copy(OLD, NEW, manifest={**NEW, "path": "m.json"}, context=context).result()

    # begun; each array's only block; each array
    assert store.written["m.json"] <= 1 + 2 * 5


def test_a_dry_run_stores_nothing(context):
    old = ts.Group.open(OLD, create=True, context=context).result()
    old.create_array("a", dtype="int8", shape=[4]).result()
    store = store_of(context)
    store.restore()

    done = ts.copy(OLD, NEW, dry_run=True, manifest={**NEW, "path": "m.json"},
                   context=context).result()  # fmt: skip

    assert done.dry_run
    assert (done.arrays, done.groups) == (1, 1)
    assert not store.written
