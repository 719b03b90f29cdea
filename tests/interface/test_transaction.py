import asyncio
import gc
import weakref

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import AbortedError, FailedPreconditionError
from tests.runtime.processes import settle


@pytest.fixture
def store():
    return ts.KvStore.open("memory://").result()


def files(path):
    return ts.KvStore.open(path.as_uri() + "/").result()


def fails_after_writing(staged):
    staged["a"] = b"2"
    return staged["missing"]


async def fails_in_a_block(store):
    async with ts.Transaction() as transaction:
        fails_after_writing(store.with_transaction(transaction))


@pytest.mark.parametrize("library", [ts, reference], ids=["ours", "theirs"])
def test_its_life(library):
    transaction = library.Transaction()
    states = [(transaction.open, transaction.commit_started, transaction.aborted)]
    future = transaction.commit_async()
    assert future.result() is None
    states.append((transaction.open, transaction.commit_started, transaction.aborted))
    transaction.abort()
    transaction.commit_sync()
    states.append((transaction.open, transaction.commit_started, transaction.aborted))
    assert states == [(True, False, False), (False, True, False), (False, True, False)]
    assert transaction.future.result() is None


@pytest.mark.parametrize("library", [ts, reference], ids=["ours", "theirs"])
def test_its_abortion(library):
    transaction = library.Transaction()
    transaction.abort()
    transaction.abort()
    assert (transaction.open, transaction.commit_started, transaction.aborted) == (
        False,
        False,
        True,
    )
    for ask in (transaction.future.result, transaction.commit_sync):
        with pytest.raises(ValueError, match="Transaction aborted"):
            ask()
    store = library.KvStore.open("memory://").result()
    with pytest.raises(ValueError, match="Transaction not open"):
        store.with_transaction(transaction)["a"] = b"1"


def test_its_modes():
    assert not ts.Transaction().atomic
    assert not ts.Transaction().repeatable_read
    transaction = ts.Transaction(True, True)
    assert transaction.atomic
    assert transaction.repeatable_read


def test_a_block_commits_or_aborts(store):
    with ts.Transaction() as transaction:
        store.with_transaction(transaction)["a"] = b"1"
        assert "a" not in store
    assert store["a"] == b"1"
    with pytest.raises(KeyError, match="missing"), ts.Transaction() as transaction:
        fails_after_writing(store.with_transaction(transaction))
    assert transaction.aborted
    assert store["a"] == b"1"


async def test_an_async_block_commits_or_aborts(store):
    async with ts.Transaction() as transaction:
        await store.with_transaction(transaction).write("a", b"1")
    assert store["a"] == b"1"
    with pytest.raises(KeyError, match="missing"):
        await fails_in_a_block(store)
    assert store["a"] == b"1"


def test_operations_that_were_begun_are_part_of_it(store):
    transaction = ts.Transaction()
    staged = store.with_transaction(transaction)
    writes = [staged.write(str(number), b"x") for number in range(1000)]
    read = staged.read("0")
    transaction.commit_sync()
    assert all(write.done() for write in writes)
    assert read.result().state == "value"
    assert len(store.list().result()) == 1000


def test_a_failed_operation_fails_the_commit(store, tmp_path):
    transaction = ts.Transaction()
    bad = files(tmp_path).with_transaction(transaction).write("a\0b", b"")
    store.with_transaction(transaction)["good"] = b""
    assert bad.exception() is None or isinstance(bad.exception(), ValueError)
    with pytest.raises(ValueError):
        transaction.commit_sync()
    assert store.list().result() == []


def test_faces_of_one_store_share_it(tmp_path):
    one, other = files(tmp_path), files(tmp_path) / "sub/"
    transaction = ts.Transaction()
    one.with_transaction(transaction)["sub/a"] = b"1"
    bound = other.with_transaction(transaction)
    assert bound["a"] == b"1"
    assert bound.transaction is transaction
    assert (bound / "x").transaction is transaction
    assert bound.with_transaction(None).transaction is None
    assert other.transaction is None
    other.transaction = transaction
    assert other["a"] == b"1"
    other.transaction = None
    assert "a" not in other


def test_several_stores(store, tmp_path):
    local = files(tmp_path)
    with ts.Transaction() as transaction:
        for each in (store, local):
            each.with_transaction(transaction)["a"] = b"1"
    assert store["a"] == local["a"] == b"1"
    transaction = ts.Transaction(atomic=True)
    for each in (store, local):
        each.with_transaction(transaction)["a"] = b"2"
    with pytest.raises(FailedPreconditionError, match=r'cannot change "a", local file ".*/a" in'):
        transaction.commit_sync()
    assert store["a"] == local["a"] == b"1"


def test_a_store_copied_in_a_transaction(store, tmp_path):
    for key in "abc":
        store[key] = key
    local = files(tmp_path)
    with ts.Transaction() as transaction:
        store.experimental_copy_range_to(local.with_transaction(transaction)).result()
        assert local.list().result() == []
    assert sorted(local.list().result()) == [b"a", b"b", b"c"]


def test_open_and_use_too_late(store):
    transaction = ts.Transaction()
    staged = store.with_transaction(transaction)
    transaction.commit_sync()
    for use in (
        lambda: staged.read("a"),
        lambda: staged.write("a", b""),
        staged.list,
        lambda: store.with_transaction(transaction),
        lambda: ts.KvStore.open("memory://", transaction=transaction),
        lambda: ts.open({"driver": "zarr", "kvstore": "memory://"}, transaction=transaction),
    ):
        with pytest.raises(FailedPreconditionError, match="commit already started"):
            use()
    with pytest.raises(TypeError, match="must be a Transaction, not str"):
        store.with_transaction("t")


def test_a_conflict_is_the_commits_error(store):
    transaction = ts.Transaction(repeatable_read=True)
    staged = store.with_transaction(transaction)
    assert "a" not in staged
    staged["b"] = b"1"
    store["a"] = b"theirs"
    with pytest.raises(AbortedError, match='"a"'):
        transaction.commit_sync()
    assert isinstance(transaction.future.exception(), AbortedError)
    assert "b" not in store


def test_awaiting_the_future_begins_nothing():
    async def wait():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(follow())), 0.01)

    transaction = ts.Transaction()

    async def follow():
        await transaction.future

    asyncio.run(wait())
    assert transaction.open or transaction.future.cancelled()


def test_what_it_held_is_freed(store):
    transaction = ts.Transaction()
    staged = store.with_transaction(transaction)
    staged["a"] = b"1"
    overlay = weakref.ref(staged.store)
    transaction.abort()
    del staged, transaction
    settle()
    gc.collect()
    assert overlay() is None


def test_a_commit_that_is_cancelled_stops(tmp_path, monkeypatch):
    monkeypatch.setattr("tensorstore_py._runtime.start.hand_in", lambda _: None)
    store = files(tmp_path)
    transaction = ts.Transaction()
    store.with_transaction(transaction)["a"] = b"1"
    assert transaction.commit_async().cancel()
    with pytest.raises(asyncio.CancelledError):
        transaction.commit_sync()
    with pytest.raises(FailedPreconditionError, match="not open"):
        store.with_transaction(transaction)
    assert store.list().result() == []
