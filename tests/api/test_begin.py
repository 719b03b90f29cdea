import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    AbortedError,
    FailedPreconditionError,
    NotFoundError,
    UnsupportedError,
)

SHARDED = {
    "driver": "zarr3",
    "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2]}}],
}


def new_array(kind="zarr", kvstore="memory://", **options):
    spec = {"driver": "zarr" if kind == "zarr" else "zarr3", "kvstore": kvstore}
    if kind == "sharded":
        options["codec"] = ts.CodecSpec(SHARDED)
    layout = ts.ChunkLayout(write_chunk_shape=[4, 4])
    return ts.open(
        spec, create=True, dtype="int32", shape=[8, 8], chunk_layout=layout, **options
    ).result()


@pytest.fixture(params=["memory", "file"])
def kvstore(request, tmp_path):
    return "memory://" if request.param == "memory" else tmp_path.as_uri() + "/"


@pytest.mark.parametrize("kind", ["zarr", "zarr3", "sharded"])
def test_reads_see_its_own_writes_and_no_other_does(kind, kvstore):
    store = new_array(kind, kvstore)
    store[...] = 1
    transaction = ts.Transaction()
    staged = store.with_transaction(transaction)
    assert staged.transaction is transaction
    assert staged[1:3].transaction is transaction
    assert store.transaction is None
    staged[1:3, 1:7] = 2
    staged[4:, 4:] = 3
    staged[2, 2].write(4).result()
    expected = np.ones((8, 8))
    expected[1:3, 1:7], expected[4:, 4:], expected[2, 2] = 2, 3, 4
    assert np.array_equal(staged.read().result(), expected)
    assert np.array_equal(staged[1:6, 2:5].read().result(), expected[1:6, 2:5])
    assert np.array_equal(store.read().result(), np.ones((8, 8)))
    transaction.commit_sync()
    assert np.array_equal(store.read().result(), expected)
    assert np.array_equal(staged.with_transaction(None).read().result(), expected)


@pytest.mark.parametrize("kind", ["zarr", "sharded"])
def test_parts_of_one_chunk_by_several_transactions(kind, kvstore):
    store = new_array(kind, kvstore)
    transactions = [ts.Transaction() for _ in range(4)]
    for row, transaction in enumerate(transactions):
        store.with_transaction(transaction)[row] = row + 1
    store[5] = 9
    for transaction in transactions:
        transaction.commit_sync()
    assert store[:6, 0].read().result().tolist() == [1, 2, 3, 4, 0, 9]


def test_the_source_may_change_after_the_write():
    store = new_array()
    source = np.full((3, 3), 7, "int32")
    with ts.Transaction() as transaction:
        store.with_transaction(transaction)[:3, :3].write(source).result()
        source[:] = 0
    assert store[2, 2].read().result() == 7


@pytest.mark.parametrize("pool", [0, 10**6])
def test_caches_learn_of_it(pool):
    context = ts.Context({"cache_pool": {"total_bytes_limit": pool}})
    store = new_array(context=context, recheck_cached=False)
    assert store[0, 0].read().result() == 0
    with ts.Transaction() as transaction:
        staged = store.with_transaction(transaction)
        staged[0, 0] = 5
        staged.resize(exclusive_max=[12, 8]).result()
        assert store[0, 0].read().result() == 0
        assert store.shape == (8, 8)
    assert store[0, 0].read().result() == 5
    assert store.resolve().result().shape == (12, 8)


def test_resizing_is_part_of_it(kvstore):
    store = new_array(kvstore=kvstore)
    store[...] = 1
    transaction = ts.Transaction()
    staged = store.with_transaction(transaction).resize(exclusive_max=[4, 12]).result()
    staged[0, 11] = 7
    assert staged.shape == (4, 12)
    assert store.resolve().result().shape == (8, 8)
    transaction.commit_sync()
    now = store.resolve().result()
    assert now.shape == (4, 12)
    assert now[0].read().result().tolist() == [1] * 8 + [0, 0, 0, 7]
    assert sorted(store.kvstore.list().result()) == [b".zarray", b"0.0", b"0.1", b"0.2"]


def test_a_resize_by_another_handle_in_between():
    store = new_array()
    transaction = ts.Transaction()
    store.with_transaction(transaction).resize(exclusive_max=[4, 4]).result()
    store.resize(exclusive_max=[9, 9]).result()
    with pytest.raises(AbortedError, match=r"\.zarray"):
        transaction.commit_sync()
    assert store.resolve().result().shape == (9, 9)


def test_creating_is_part_of_it(kvstore):
    context = ts.Context()
    with ts.Transaction() as transaction:
        store = new_array(kvstore=kvstore, transaction=transaction, context=context)
        store[...] = 3
        spec = {"driver": "zarr", "kvstore": kvstore}
        with pytest.raises(NotFoundError):
            ts.open(spec, context=context).result()
        again = ts.open(spec, context=context, transaction=transaction).result()
        assert again[0, 0].read().result() == 3
    assert ts.open(spec, context=context).result()[7, 7].read().result() == 3


def test_creating_what_was_created_meanwhile():
    context = ts.Context()
    transaction = ts.Transaction()
    new_array(transaction=transaction, context=context)[...] = 3
    theirs = new_array(context=context)
    theirs[...] = 4
    with pytest.raises(AbortedError, match=r"\.zarray"):
        transaction.commit_sync()
    assert theirs[0, 0].read().result() == 4


def test_replacing_is_part_of_it(kvstore):
    context = ts.Context()
    new_array(kvstore=kvstore, context=context)[...] = 1
    with ts.Transaction() as transaction:
        new_array(kvstore=kvstore, context=context, transaction=transaction, delete_existing=True)
    again = ts.open({"driver": "zarr", "kvstore": kvstore}, context=context).result()
    assert again.read().result().max() == 0
    assert again.kvstore is not None
    assert again.kvstore.list().result() == [b".zarray"]


def test_atomic_over_chunks_where_the_store_can(tmp_path):
    with ts.Transaction(atomic=True) as transaction:
        store = new_array()
        store.with_transaction(transaction)[...] = 5
    assert store.read().result().min() == 5
    local = new_array(kvstore=tmp_path.as_uri() + "/")
    transaction = ts.Transaction(atomic=True)
    staged = local.with_transaction(transaction)
    staged[:4, :4] = 1
    with pytest.raises(FailedPreconditionError, match=r"0\.0.* and .*0\.1.* in one atomic"):
        staged[:4, 4:] = 1
    with pytest.raises(AbortedError):
        transaction.commit_sync()
    assert local.read().result().max() == 0


def test_repeatable_reads_of_chunks():
    store = new_array()
    transaction = ts.Transaction(repeatable_read=True)
    staged = store.with_transaction(transaction)
    assert staged[0, 0].read().result() == 0
    staged[7, 7] = 1
    store[1, 1] = 9
    with pytest.raises(AbortedError, match=r"0\.0"):
        transaction.commit_sync()
    assert store[7, 7].read().result() == 0


def test_copies_in_it():
    source, target = new_array(), new_array()
    source[...] = np.arange(64, dtype="int32").reshape(8, 8)
    with ts.Transaction() as transaction:
        target.with_transaction(transaction)[:4].write(source[::2]).result()
        assert target.read().result().max() == 0
    assert np.array_equal(target[:4].read().result(), source[::2].read().result())


def test_arrays_over_arrays():
    low, high = new_array(), new_array()
    with ts.Transaction() as transaction:
        stacked = ts.stack([low, high]).with_transaction(transaction)
        stacked[:, 0, 0] = np.array([1, 2], "int32")
        cast = ts.cast(low, "float64").with_transaction(transaction)
        assert cast.transaction is transaction
        cast[0, 1] = 3.0
        half = ts.downsample(low, [1, 2], "max").with_transaction(transaction)
        assert half[0, 0].read().result() == 3
        assert stacked[0, 0, :2].read().result().tolist() == [1, 3]
        assert low[0, 0].read().result() == 0
    assert [each[0, 0].read().result() for each in (low, high)] == [1, 2]


def test_json_documents():
    spec = {"driver": "json", "kvstore": {"driver": "memory", "path": "doc"}}
    shared = ts.Context()
    document = ts.open(spec, context=shared).result()
    document.write({"a": 1, "b": 2}).result()
    transactions = [ts.Transaction() for _ in "ab"]
    for name, transaction in zip("ab", transactions, strict=True):
        member = ts.open({**spec, "json_pointer": f"/{name}"}, context=shared).result()
        staged = member.with_transaction(transaction)
        staged.write(name * 3).result()
        assert staged.read().result() == name * 3
    assert document.read().result() == {"a": 1, "b": 2}
    for transaction in transactions:
        transaction.commit_sync()
    assert document.read().result() == {"a": "aaa", "b": "bbb"}


def test_drivers_without_transactions():
    transaction = ts.Transaction()
    with pytest.raises(UnsupportedError, match="cannot be used in a transaction"):
        ts.array([1, 2]).with_transaction(transaction)
    with pytest.raises(UnsupportedError, match="cannot be used in a transaction"):
        ts.virtual_chunked(
            lambda *_: None,
            dtype="int8",
            shape=[3],
            transaction=transaction,  # type: ignore[arg-type]
        )


def test_spec_and_store_in_it():
    store = new_array()
    with ts.Transaction() as transaction:
        staged = store.with_transaction(transaction)
        assert json.dumps(staged.spec().to_json()) == json.dumps(store.spec().to_json())
        assert staged.kvstore.transaction is transaction
        staged.kvstore["extra"] = b"1"
        assert "extra" not in store.kvstore
    assert store.kvstore["extra"] == b"1"
