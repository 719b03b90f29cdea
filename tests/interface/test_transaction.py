"""Transactions and batches: their life, what they overlay, and what is stored ahead of metadata."""

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py import (
    AbortedError,
    Batch,
    FailedPreconditionError,
    OutOfRangeError,
    UnavailableError,
)
from tensorstore_py._interface.batch import BatchedReads
from tensorstore_py._interface.write_ahead import WriteAhead
from tensorstore_py.kvstores.memory import MemorySpec, MemoryStore, NonAtomicMemoryStore, SharedMap
from tensorstore_py.plugin.driver import Overlay
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    ByteRange,
    KeyRange,
    ReadModifyWrite,
    ReadResult,
)
from tensorstore_py.testing import (
    CountingStore,
    FaultyStore,
    KvStoreReadSuite,
    KvStoreSuite,
    LoopStore,
)
from tests.internals import leave_to_callers
from tests.runtime.processes import run_inline, settle


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


class TestTransaction:
    @pytest.mark.parametrize("library", [ts, reference], ids=["ours", "theirs"])
    def test_its_life(self, library):
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
    def test_its_abortion(self, library):
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

    def test_its_modes(self):
        assert not ts.Transaction().atomic
        assert not ts.Transaction().repeatable_read
        transaction = ts.Transaction(True, True)
        assert transaction.atomic
        assert transaction.repeatable_read

    def test_a_block_commits_or_aborts(self, store):
        with ts.Transaction() as transaction:
            store.with_transaction(transaction)["a"] = b"1"
            assert "a" not in store
        assert store["a"] == b"1"
        with pytest.raises(KeyError, match="missing"), ts.Transaction() as transaction:
            fails_after_writing(store.with_transaction(transaction))
        assert transaction.aborted
        assert store["a"] == b"1"

    async def test_an_async_block_commits_or_aborts(self, store):
        async with ts.Transaction() as transaction:
            await store.with_transaction(transaction).write("a", b"1")
        assert store["a"] == b"1"
        with pytest.raises(KeyError, match="missing"):
            await fails_in_a_block(store)
        assert store["a"] == b"1"

    def test_operations_that_were_begun_are_part_of_it(self, store):
        transaction = ts.Transaction()
        staged = store.with_transaction(transaction)
        writes = [staged.write(str(number), b"x") for number in range(1000)]
        read = staged.read("0")
        transaction.commit_sync()
        assert all(write.done() for write in writes)
        assert read.result().state == "value"
        assert len(store.list().result()) == 1000

    def test_a_failed_operation_fails_the_commit(self, store, tmp_path):
        transaction = ts.Transaction()
        bad = files(tmp_path).with_transaction(transaction).write("a\0b", b"")
        store.with_transaction(transaction)["good"] = b""
        assert bad.exception() is None or isinstance(bad.exception(), ValueError)
        with pytest.raises(ValueError):
            transaction.commit_sync()
        assert store.list().result() == []

    def test_faces_of_one_store_share_it(self, tmp_path):
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

    def test_several_stores(self, store, tmp_path):
        local = files(tmp_path)
        with ts.Transaction() as transaction:
            for each in (store, local):
                each.with_transaction(transaction)["a"] = b"1"
        assert store["a"] == local["a"] == b"1"
        transaction = ts.Transaction(atomic=True)
        for each in (store, local):
            each.with_transaction(transaction)["a"] = b"2"
        with pytest.raises(
            FailedPreconditionError, match=r'cannot change "a", local file ".*/a" in'
        ):
            transaction.commit_sync()
        assert store["a"] == local["a"] == b"1"

    def test_a_store_copied_in_a_transaction(self, store, tmp_path):
        for key in "abc":
            store[key] = key
        local = files(tmp_path)
        with ts.Transaction() as transaction:
            store.experimental_copy_range_to(local.with_transaction(transaction)).result()
            assert local.list().result() == []
        assert sorted(local.list().result()) == [b"a", b"b", b"c"]

    def test_open_and_use_too_late(self, store):
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

    def test_a_conflict_is_the_commits_error(self, store):
        transaction = ts.Transaction(repeatable_read=True)
        staged = store.with_transaction(transaction)
        assert "a" not in staged
        staged["b"] = b"1"
        store["a"] = b"theirs"
        with pytest.raises(AbortedError, match='"a"'):
            transaction.commit_sync()
        assert isinstance(transaction.future.exception(), AbortedError)
        assert "b" not in store

    def test_awaiting_the_future_begins_nothing(self):
        async def wait():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(follow())), 0.01)

        transaction = ts.Transaction()

        async def follow():
            await transaction.future

        asyncio.run(wait())
        assert transaction.open or transaction.future.cancelled()

    def test_what_it_held_is_freed(self, store):
        transaction = ts.Transaction()
        staged = store.with_transaction(transaction)
        staged["a"] = b"1"
        overlay = weakref.ref(staged.store)
        transaction.abort()
        del staged, transaction
        settle()
        gc.collect()
        assert overlay() is None

    def test_a_commit_that_is_cancelled_stops(self, tmp_path, monkeypatch):
        leave_to_callers(monkeypatch)
        store = files(tmp_path)
        transaction = ts.Transaction()
        store.with_transaction(transaction)["a"] = b"1"
        assert transaction.commit_async().cancel()
        with pytest.raises(asyncio.CancelledError):
            transaction.commit_sync()
        with pytest.raises(FailedPreconditionError, match="not open"):
            store.with_transaction(transaction)
        assert store.list().result() == []


class Append(ReadModifyWrite):
    def __init__(self, tail, log=None):
        self.tail = tail
        self.log = log

    async def apply(self, stored):
        if self.log is not None:
            self.log.append(bytes(stored or b""))
        return bytes(stored or b"") + self.tail


def over(base, *, repeatable=False, atomic=False):
    return Overlay(base, repeatable=repeatable, atomic=atomic, check=lambda: None)


def memory(*, atomic=True):
    return (MemoryStore if atomic else NonAtomicMemoryStore)(SharedMap())


def get(store, key):
    result = run_inline(store.read(key))
    return bytes(result.value) if result.state == "value" else None


def put(store, key, value, **conditions):
    return run_inline(store.write(key, value, **conditions))


class TestOverlayOnMemory(KvStoreSuite):
    """Within a transaction a store keeps every promise."""

    @pytest.fixture
    def store(self):
        return over(memory())


class TestOverlayOnALoopStore(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return over(LoopStore(memory(atomic=False)))


@pytest.fixture(params=[True, False], ids=["together", "one by one"])
def base(request):
    base = CountingStore(memory(atomic=request.param))
    for key in "abc":
        put(base, key, key.encode())
    base.reset()
    return base


class TestOverlay:
    def test_a_generation_that_is_not_known_is_no_condition(self, base):
        staged = over(base)
        put(staged, "a", b"mine", if_equal=UNKNOWN)
        put(base, "a", b"theirs")

        run_inline(staged.commit())

        assert get(base, "a") == b"mine"

    def test_nothing_is_stored_before_the_commit(self, base):
        staged = over(base)
        put(staged, "a", b"new")
        put(staged, "b", None)
        run_inline(staged.update("c", Append(b"!")))
        put(staged, "d", b"more")
        assert [get(staged, key) for key in "abcd"] == [b"new", None, b"c!", b"more"]
        assert [get(base, key) for key in "abcd"] == [b"a", b"b", b"c", None]
        assert base.writes.total() == base.deletes.total() == 0

        run_inline(staged.commit())

        assert [get(base, key) for key in "abcd"] == [b"new", None, b"c!", b"more"]
        assert dict(base.writes) == {"a": 1, "c": 1, "d": 1}
        assert dict(base.deletes) == {"b": 1}

    def test_updates_change_what_is_stored_by_then(self, base):
        one, other = over(base), over(base)
        run_inline(one.update("a", Append(b"1")))
        run_inline(other.update("a", Append(b"2")))
        assert get(one, "a") == b"a1"
        put(base, "a", b"A")
        assert get(one, "a") == b"A1"
        run_inline(one.commit())
        run_inline(other.commit())
        assert get(base, "a") == b"A12"

    def test_an_update_is_not_made_again_for_every_read(self, base):
        log: list[bytes] = []
        staged = over(base)
        run_inline(staged.update("a", Append(b"1", log)))
        for _ in range(3):
            assert get(staged, "a") == b"a1"
        assert log == [b"a"]
        put(staged, "b", b"x")
        run_inline(staged.update("b", Append(b"1", log)))
        base.reset()
        for _ in range(3):
            assert get(staged, "b") == b"x1"
        assert len(log) == 2
        assert not base.reads

    def test_ranges_of_what_is_staged(self, base):
        staged = over(base)
        put(staged, "a", b"0123456789")
        assert bytes(run_inline(staged.read("a", ByteRange(2, 5))).value) == b"234"

    def test_a_condition_is_checked_at_once_and_at_the_end(self, base):
        staged = over(base)
        before = run_inline(base.read("a")).stamp.generation
        assert put(staged, "a", b"x", if_equal=b"other").generation == UNKNOWN
        assert put(staged, "new", b"x", if_equal=NO_VALUE).generation != UNKNOWN
        assert put(staged, "a", b"x", if_equal=before).generation != UNKNOWN
        put(staged, "c", b"free")
        put(base, "a", b"theirs")
        with pytest.raises(
            AbortedError, match='Error writing "a": it was changed by somebody else'
        ):
            run_inline(staged.commit())
        assert [get(base, key) for key in ("a", "new", "c")] == [b"theirs", None, b"c"]

    def test_conditions_within_the_transaction(self, base):
        staged = over(base)
        stamp = put(staged, "a", b"1")
        assert put(staged, "a", b"2", if_equal=b"old").generation == UNKNOWN
        stamp = put(staged, "a", b"2", if_equal=stamp.generation)
        put(staged, "a", None)
        assert put(staged, "a", b"3", if_equal=stamp.generation).generation == UNKNOWN
        assert put(staged, "a", b"3", if_equal=NO_VALUE).generation != UNKNOWN
        run_inline(staged.commit())
        assert get(base, "a") == b"3"

    @pytest.mark.parametrize("key", ["a", "missing"])
    def test_repeatable_reads(self, base, key):
        staged = over(base, repeatable=True)
        get(staged, key)
        put(staged, "b", b"mine")
        put(base, key, b"theirs")
        with pytest.raises(AbortedError, match=f'"{key}"'):
            get(staged, key)
        with pytest.raises(AbortedError, match=f'"{key}"'):
            run_inline(staged.commit())
        assert get(base, "b") == b"b"

    def test_repeatable_reads_of_what_is_changed_too(self, base):
        staged = over(base, repeatable=True)
        get(staged, "a")
        run_inline(staged.update("a", Append(b"1")))
        put(base, "a", b"theirs")
        with pytest.raises(AbortedError, match='"a"'):
            run_inline(staged.commit())
        assert get(base, "a") == b"theirs"

    def test_without_changes_there_is_nothing_to_do(self, base):
        staged = over(base)
        get(staged, "a")
        base.reset()
        run_inline(staged.commit())
        assert not base.reads
        assert not base.writes

    def test_an_atomic_store_changes_several_keys_while_others_do(self):
        base = CountingStore(memory())
        put(base, "a", b"a")
        staged = over(base, atomic=True)

        class Interfering(Append):
            async def apply(self, stored):
                if stored == b"a":
                    put(base, "a", b"b")
                return await super().apply(stored)

        run_inline(staged.update("a", Interfering(b"1")))
        put(staged, "z", b"z")
        run_inline(staged.commit())
        assert (get(base, "a"), get(base, "z")) == (b"b1", b"z")

    def test_another_store_changes_one_key_atomically(self):
        staged = over(memory(atomic=False), atomic=True)
        put(staged, "a", b"1")
        put(staged, "a", b"2")
        with pytest.raises(
            FailedPreconditionError, match='cannot change "a" and "b" in one atomic'
        ):
            put(staged, "b", b"1")
        run_inline(staged.commit())
        assert get(staged.base, "a") == b"2"

    def test_ranges_are_deleted_and_listed(self, base):
        staged = over(base)
        put(staged, "d", b"1")
        run_inline(staged.update("e", Append(b"22")))
        put(staged, "a", None)

        async def entries(store):
            return sorted([tuple(entry) async for entry in store.list()])

        assert run_inline(entries(staged)) == [("b", 1), ("c", 1), ("d", 1), ("e", 2)]
        run_inline(staged.delete_range(KeyRange(b"b", b"e")))
        assert run_inline(entries(staged)) == [("e", 2)]
        run_inline(staged.commit())
        assert run_inline(entries(base)) == [("e", 2)]

    def test_conditional_keys_are_stored_last(self):
        base = FaultyStore(memory(atomic=False))
        base.fail("write", OSError("full"), key="chunk")
        staged = over(base)
        put(staged, "metadata", b"m", if_equal=NO_VALUE)
        put(staged, "chunk", b"c")
        with pytest.raises(OSError, match="full"):
            run_inline(staged.commit())
        assert get(base, "metadata") is None

    def test_steps_afterwards(self, base):
        staged = over(base)
        done = []

        async def step():
            done.append(get(base, "a"))

        put(staged, "a", b"1")
        staged.afterwards(step)
        assert not done
        run_inline(staged.commit())
        assert done == [b"1"]

    def test_threads_stage_updates_of_one_key(self, base):
        staged = over(base)
        begin = threading.Barrier(4)

        def work():
            begin.wait()
            for _ in range(100):
                run_inline(staged.update("a", Append(b".")))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run_inline(staged.commit())
        assert get(base, "a") == b"a" + b"." * 400

    async def test_on_a_loop(self):
        base = LoopStore(memory(atomic=False))
        staged = over(base)
        await asyncio.gather(*(staged.update(str(n % 3), Append(b".")) for n in range(30)))
        await staged.commit()
        assert [bytes((await base.read(key)).value) for key in "012"] == [b"." * 10] * 3

    def test_what_was_only_listed_may_change(self):
        store = memory()
        overlay = over(store, repeatable=True)
        put(store, "k", b"1")
        run_inline(overlay.update("k", Append(b"+")))

        async def listed():
            return [entry async for entry in overlay.list()]

        assert run_inline(listed()) == [("k", 2)]
        put(store, "k", b"22")
        assert run_inline(listed()) == [("k", 3)]
        assert get(overlay, "k") == b"22+"
        put(store, "k", b"3")
        with pytest.raises(AbortedError, match='"k"'):
            run_inline(overlay.commit())
        assert get(store, "k") == b"3"

    def test_whatever_becomes_of_a_commit_caches_of_what_it_changes_are_invalidated(self):
        base = FaultyStore(memory(atomic=False))
        overlay = over(base)
        told = []
        overlay.changing(lambda: told.append(get(base, "a")))
        put(overlay, "a", b"1")
        put(overlay, "b", b"2")
        assert not told
        base.fail("write", OSError("full"), key="b")
        with pytest.raises(OSError, match="full"):
            run_inline(overlay.commit())
        assert told == [b"1"]

    def test_what_was_dropped_is_gone(self):
        overlay = over(memory())
        put(overlay, "a", b"1")
        overlay.drop()
        assert overlay.first_changed is None
        assert get(overlay, "a") is None

    def test_one_level_shows_what_is_staged_in_it(self):
        base = CountingStore(memory())
        for key in ("a/b/1", "a/c/1", "z/1"):
            run_inline(base.write(key, b"1"))
        store = over(base)

        async def names(prefix):
            return [name async for name in store.list_directory(prefix)]

        run_inline(store.write("a/b/1", None))
        run_inline(store.write("a/new", b"2"))

        run_inline(store.write("a/d/1", b"2"))
        run_inline(store.write("a/c/2", None))
        run_inline(store.write("z/1", None))

        assert sorted(run_inline(names("a/"))) == ["c/", "d/", "new"]
        assert sorted(run_inline(names(""))) == ["a/"]
        base.reset()
        assert run_inline(names("z/")) == []
        assert sorted(run_inline(names("a/d/"))) == ["1"]
        assert (base.directories, base.lists) == ({"z/": 1, "a/d/": 1}, {})


class Plain(NonAtomicMemoryStore):
    """Stores one key at a time."""

    def __init__(self):
        super().__init__(SharedMap())

    async def value(self, key):
        return (await self.read(key)).value


async def begun(store):
    """The overlay with the metadata staged."""
    stamp = await store.write("meta", b"1")
    ahead = WriteAhead()
    overlay = ahead.overlay(MemorySpec(), store)
    await overlay.write("meta", b"2", if_equal=stamp.generation)
    return ahead, overlay


class TestWriteAhead:
    async def test_only_the_metadata_is_staged(self):
        store = Plain()
        ahead, overlay = await begun(store)

        await overlay.write("chunk", b"new")
        assert (await store.value("chunk"), await store.value("meta")) == (b"new", b"1")
        assert (await overlay.read("meta")).value == b"2"

        await ahead.finish()
        assert await store.value("meta") == b"2"

    async def test_chunks_are_not_stored_once_the_metadata_has_changed(self):
        store = Plain()
        ahead, overlay = await begun(store)
        await store.write("chunk", b"theirs")
        await store.write("meta", b"3")

        for condition in (None, b"\x00" + (2).to_bytes(8, "little")):
            with pytest.raises(AbortedError, match="nothing of others is lost"):
                await overlay.write("chunk", b"mine", if_equal=condition)
        with pytest.raises(AbortedError):
            await ahead.finish()
        assert (await store.value("chunk"), await store.value("meta")) == (b"theirs", b"3")

    async def test_what_a_crash_left_is_written_over(self):
        store = Plain()
        ahead, overlay = await begun(store)
        await store.write("chunk", b"left")

        await overlay.write("chunk", b"mine")
        await ahead.finish()

        assert await store.value("chunk") == b"mine"

    async def test_giving_up_invalidates_handles_that_hold_old_values(self):
        ahead, overlay = await begun(Plain())
        told = []
        overlay.changing(lambda: told.append(True))

        ahead.give_up()

        assert told == [True]
        assert not ahead.open

    async def test_a_store_of_several_keys_at_once_gets_them_at_the_end(self):
        store = MemoryStore(SharedMap())
        ahead, overlay = await begun(store)

        await overlay.write("chunk", b"new")
        assert (await store.read("chunk")).state == "missing"
        await ahead.finish()
        assert (await store.read("chunk")).value == b"new"


def filled(**values):
    store = MemoryStore(SharedMap())
    for key, value in values.items():
        run_inline(store.write(key, value))
    return store


class TestBatchedReadsInline(KvStoreReadSuite):
    """Seen through a batch a store keeps its promises of reading."""

    @pytest.fixture
    def store(self):
        return BatchedReads(MemoryStore(SharedMap()))

    async def put(self, store, key, value):
        store._known.clear()  # a batch does not outlive what it reads
        await store.base.write(key, value)


class TestBatchedReadsOnALoop(KvStoreReadSuite):
    @pytest.fixture
    def store(self):
        return BatchedReads(LoopStore(MemoryStore(SharedMap())))

    async def put(self, store, key, value):
        await store.base.write(key, value)


@pytest.mark.parametrize("library", [ts, reference], ids=["ours", "theirs"])
class TestLikeTheReference:
    def test_reads_begin_when_it_is_submitted(self, library):
        store = library.KvStore.open("memory://").result()
        store["a"] = b"12345"
        with library.Batch() as batch:
            whole = store.read("a", batch=batch)
            part = store.read("a", batch=batch, byte_range=slice(1, 3))
        assert whole.result().value == b"12345"
        assert part.result().value == b"23"

    def test_nothing_can_be_added_later(self, library):
        store = library.KvStore.open("memory://").result()
        batch = library.Batch()
        batch.submit()
        batch.submit()
        with pytest.raises(ValueError, match="batch was already submitted"):
            store.read("a", batch=batch)

    def test_a_block_that_fails_submits_too(self, library):
        store = library.KvStore.open("memory://").result()
        batch = library.Batch()
        with pytest.raises(KeyError), batch:
            raise KeyError
        with pytest.raises(ValueError, match="already submitted"):
            store.read("a", batch=batch)


SHARDED = {
    "driver": "zarr3",
    "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 4]}}],
}


class TestBatch:
    def test_it_begins_when_no_handle_is_left(self):
        store = ts.KvStore.open("memory://").result()
        batch = Batch()
        read = store.read("a", batch=batch)
        del batch
        gc.collect()
        assert read.result(timeout=60).state == "missing"

    def test_a_read_that_is_awaited_too_early_begins_alone(self):
        batch = Batch()
        read = ts.KvStore.open("memory://").result().read("a", batch=batch)
        assert read.result().state == "missing"
        batch.submit()

    def test_what_changes_in_between_is_read_anew(self):
        store = filled(a=b"12345")
        batched = BatchedReads(store)
        old = run_inline(batched.read("a", ByteRange(0, 1))).stamp.generation
        run_inline(store.write("a", b"67890"))
        assert run_inline(batched.read("a", ByteRange(1, 2), if_equal=old)).state == "unspecified"
        assert bytes(run_inline(batched.read("a", ByteRange(0, 1))).value) == b"6"

    async def test_what_many_want_at_once_is_one_request(self):
        store = CountingStore(LoopStore(filled(a=bytes(range(100)), b=b"b")))
        batched = BatchedReads(store)
        ranges = [ByteRange(n, n + 10) for n in range(0, 90, 10)] * 2
        results = await asyncio.gather(
            *(batched.read("a", each) for each in ranges), batched.read("b"), batched.read("b")
        )
        assert [bytes(each.value)[0] for each in results[:18]] == [*range(0, 90, 10)] * 2
        assert [bytes(each.value) for each in results[18:]] == [b"b", b"b"]
        assert dict(store.reads) == {"a": 1, "b": 1}
        assert store.bytes_read["a"] == 90

    async def test_somebody_elses_error_is_not_mine(self):
        batched = BatchedReads(LoopStore(filled(a=b"12345")))
        good, bad = await asyncio.gather(
            batched.read("a", ByteRange(0, 2)),
            batched.read("a", ByteRange(3, 9)),
            return_exceptions=True,
        )
        assert isinstance(good, ReadResult)
        assert bytes(good.value) == b"12"
        assert isinstance(bad, OutOfRangeError)

    async def test_a_failure_is_everybodys(self):
        store = FaultyStore(LoopStore(filled(a=b"12345")))
        store.fail("read", UnavailableError("down"))
        results = await asyncio.gather(
            *(BatchedReads(store).read("a") for _ in range(1)), return_exceptions=True
        )
        assert [type(each) for each in results] == [UnavailableError]

    async def test_conditions_are_each_readers_own(self):
        store = LoopStore(filled(a=b"12345"))
        generation = (await store.read("a")).stamp.generation
        batched = BatchedReads(store)
        results = await asyncio.gather(
            batched.read("a", ByteRange(0, 1), if_equal=generation),
            batched.read("a", ByteRange(1, 2), if_equal=b"other"),
            batched.read("a", if_not_equal=generation),
        )
        assert [each.state for each in results] == ["value", "unspecified", "unspecified"]

    def test_inline_readers_ask_once_for_small_parts(self):
        store = CountingStore(filled(a=b"12345"))
        batched = BatchedReads(store)
        for _ in range(3):
            assert bytes(run_inline(batched.read("a", ByteRange(0, 2))).value) == b"12"
        assert store.reads["a"] == 1

    @pytest.mark.parametrize("loop", [False, True])
    def test_chunks_of_one_shard_in_few_requests(self, loop, monkeypatch):
        base = MemoryStore(SharedMap())
        store = CountingStore(LoopStore(base) if loop else base)
        monkeypatch.setattr("tensorstore_py.kvstores.memory.MemorySpec.open", lambda _: store)
        array = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"},
            create=True,
            dtype="int32",
            shape=[16, 16],
            codec=ts.CodecSpec(SHARDED),
            chunk_layout=ts.ChunkLayout(write_chunk_shape=[16, 16]),
        ).result()
        values = np.arange(256, dtype="int32").reshape(16, 16)
        array.write(values).result()
        views = [array[x : x + 4, y : y + 4] for x in range(0, 16, 4) for y in range(0, 16, 4)]

        store.reset()
        with ts.Batch() as batch:
            reads = [view.read(batch=batch) for view in views]
        for view, read in zip(views, reads, strict=True):
            origin = view.origin
            assert np.array_equal(
                read.result(),
                values[origin[0] : origin[0] + 4, origin[1] : origin[1] + 4],
            )
        assert store.reads["c/0/0"] == (2 if loop else 17)

        store.reset()
        for view in views:
            view.read().result()
        assert store.reads["c/0/0"] == 32

    def test_adapters_read_in_it(self):
        base = ts.array(np.arange(12, dtype="int32").reshape(3, 4))
        with ts.Batch() as batch:
            reads = [
                ts.cast(base, "float64").read(batch=batch),
                ts.stack([base, base]).read(batch=batch),
                ts.downsample(base, [1, 2], "max").read(batch=batch),
            ]
        assert [read.result().shape for read in reads] == [(3, 4), (2, 3, 4), (3, 2)]

    def test_opening_and_resolving_in_it(self):
        context = ts.Context()
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        with ts.Batch() as batch:
            made = ts.open(spec, create=True, dtype="int8", shape=[3], context=context, batch=batch)
        with ts.Batch() as batch:
            again = ts.open(spec, context=context, batch=batch)
            bounds = made.result().resolve(batch=batch)
        assert again.result().shape == bounds.result().shape == (3,)
