"""Migrations that are cut short at every point, and what is there then."""

import json

import numpy as np
import pytest

import tensorstore_py as ts
from tests.conversion.breaking_memory import BrokenError, store_of

WHERE = {"driver": "breaking_memory", "path": "h/"}
DATA = np.arange(12, dtype="int16").reshape(3, 4)


def hierarchy(context, *, consolidated=True):
    root = ts.Group.open(
        WHERE, create=True, zarr_format=2, attributes={"a": 1}, context=context
    ).result()
    image = root.create_array(
        "raw/image",
        dtype="int16",
        domain=ts.IndexDomain(shape=[3, 4], labels=["y", "x"]),
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 2]),
        attributes={"unit": "V"},
    ).result()
    image[...] = DATA
    labels = {"id": "categorize", "labels": ["a", "b"], "dtype": "<U1", "astype": "|u1"}
    text = root.create_array(
        "text",
        metadata={
            "shape": [3], "chunks": [2], "dtype": "<U1", "filters": [labels], "compressor": None,
            "fill_value": None,
        },
    ).result()  # fmt: skip
    text[...] = np.array(["b", "a", "b"])
    if consolidated:
        root.consolidate().result()
    return root


def check(context, zarr_format=None):
    group = ts.Group.open(WHERE, context=context).result()
    if zarr_format is not None:
        assert group.zarr_format == zarr_format
    assert group.attrs.asdict() == {"a": 1}
    assert {path for path, _ in group.members(max_depth=None)} == {"raw", "raw/image", "text"}
    np.testing.assert_array_equal(group["raw/image"].read().result(), DATA)
    assert group["raw/image"].attrs["unit"] == "V"
    assert group["raw/image"].domain.labels == ("y", "x")
    assert group["text"].read().result().tolist() == ["b", "a", "b"]


def keys(context):
    return [
        key.decode() for key in ts.KvStore.open(WHERE, context=context).result().list().result()
    ]


def test_what_is_old_goes(context):
    hierarchy(context)

    done = ts.migrate(WHERE, context=context).result()

    assert [(step.path, step.action) for step in done.steps] == [
        ("", "metadata"),
        ("raw", "metadata"),
        ("raw/image", "metadata"),
        ("text", "chunks"),
    ]
    check(context, 3)
    assert ts.Group.open(WHERE, context=context).result().consolidated
    assert sorted(keys(context)) == [
        "raw/image/0.0", "raw/image/0.1", "raw/image/1.0", "raw/image/1.1", "raw/image/zarr.json",
        "raw/zarr.json", "text/c/0", "text/c/1", "text/zarr.json", "zarr.json",
    ]  # fmt: skip


@pytest.mark.parametrize("consolidated", [True, False])
def test_wherever_it_breaks_all_of_it_can_be_read_and_it_is_finished_later(consolidated):
    left = 0
    while True:
        context = ts.Context()
        hierarchy(context, consolidated=consolidated)
        store = store_of(context)
        store.left = left
        try:
            ts.migrate(WHERE, context=context).result()
        except BrokenError:
            store.restore()
            check(context)
            ts.migrate(WHERE, context=context).result()
        else:
            break
        check(context, 3)
        assert not [key for key in keys(context) if "/.z" in f"/{key}" or key == "text/0"]
        left += 1
    assert left > 12


@pytest.fixture
def context():
    return ts.Context()


def test_old_documents_may_be_kept(context):
    hierarchy(context)
    before = set(keys(context))

    ts.migrate(WHERE, keep=True, context=context).result()

    assert before < set(keys(context))
    check(context, 3)
    old = ts.Group.open({"driver": "zarr2", "kvstore": WHERE}, context=context).result()
    np.testing.assert_array_equal(old["raw/image"].read().result(), DATA)
    again = ts.migrate(WHERE, context=context).result()
    assert {step.action for step in again.steps} == {"finish"}
    assert not [key for key in keys(context) if "/.z" in f"/{key}"]
    check(context, 3)


def test_a_second_time_there_is_nothing_to_do(context):
    hierarchy(context)
    ts.migrate(WHERE, context=context).result()
    store_of(context).restore()

    done = ts.migrate(WHERE, context=context).result()

    assert done.changes == 0
    assert not store_of(context).written


def test_a_dry_run_changes_nothing(context):
    hierarchy(context)
    store_of(context).restore()

    done = ts.migrate(WHERE, dry_run=True, context=context).result()

    assert done.dry_run
    assert done.changes == 4
    assert not store_of(context).written


def test_documents_that_do_not_agree_are_left_alone(context):
    hierarchy(context)
    ts.migrate(WHERE, keep=True, context=context).result()
    store = ts.KvStore.open(WHERE, context=context).result()
    new = json.loads(store["raw/image/zarr.json"])
    store["raw/image/zarr.json"] = json.dumps({**new, "shape": [9, 9]}).encode()

    with pytest.raises(ts.FailedPreconditionError, match=r'"/raw/image" .* shape would be'):
        ts.migrate(WHERE, context=context).result()

    store["raw/image/zarr.json"] = json.dumps(new).encode()
    ts.Group.open(WHERE, context=context, consolidated=False).result().attrs["a"] = 2
    with pytest.raises(ts.FailedPreconditionError, match="attributes differ"):
        ts.migrate(WHERE, context=context).result()


def test_what_is_impossible_is_refused_before_anything_is_done(context):
    root = hierarchy(context, consolidated=False)
    dtype = [["a", "<i2", [3]], ["b", "|u1"]]
    root.create_array(
        "odd", metadata={"shape": [2], "chunks": [2], "dtype": dtype, "compressor": None}
    ).result()
    before = keys(context)

    plan = ts.migrate(WHERE, dry_run=True, context=context).result()
    with pytest.raises(ts.UnsupportedError, match="nothing was changed: /odd"):
        ts.migrate(WHERE, context=context).result()

    assert [step.path for step in plan.impossible] == ["odd"]
    assert keys(context) == before


def test_a_store_on_the_loop():
    context = ts.Context()
    hierarchy(context)

    ts.migrate({**WHERE, "loop": True}, context=context).result()

    check(context, 3)
