"""Closing arrays, key-value stores and contexts: nothing is lost, and nothing is begun after."""

import asyncio
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import counting, created, opened, pool
from tests.runtime.processes import occupy_loop

JSON = {"driver": "zarr3", "kvstore": "memory://"}


def _cache_of(array: Any) -> Any:
    return array._driver._cache


closed = pytest.raises(ts.FailedPreconditionError, match="closed; open it again")


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


class TestArrays:
    def test_writes_under_way_are_stored_first(self, store):
        with created(store, [64], [1]) as array:
            writes = [array[i].write(i + 1) for i in range(64)]
        assert all(each.done() for each in writes)
        assert opened(store).read().result().tolist() == list(range(1, 65))

    def test_in_an_event_loop(self, store):
        async def run():
            async with created(store, [64], [1]) as array:
                writes = [array[i].write(i + 1) for i in range(64)]
            assert all(each.done() for each in writes)
            with closed:
                await array.read()

        asyncio.run(run())
        assert opened(store).read().result().tolist() == list(range(1, 65))

    @pytest.mark.parametrize(
        "use",
        [
            lambda array: array.read(),
            lambda array: array[2:].read(),
            lambda array: array.write(1),
            lambda array: array.write(ts.array([1, 2, 3, 4])),
            lambda array: ts.array(np.zeros(4, "uint8")).write(array),
            lambda array: array.append([1]),
            lambda array: array.resize(exclusive_max=[3]),
            lambda array: array.resolve(),
            lambda array: array.storage_statistics(query_not_stored=True),
            lambda array: array.__setitem__(1, 1),
            np.asarray,
            lambda array: array.astype("int32").read(),
            lambda array: ts.cast(array, "int32").read(),
            lambda array: ts.stack([array, array]),
            lambda array: array.with_transaction(ts.Transaction()).read(),
            lambda array: array.kvstore,
            lambda array: array.__enter__(),
        ],
    )
    def test_it_begins_nothing_more(self, store, use):
        array = created(store, [4], [2])
        array.close()
        store.reset()
        with closed:
            use(array)
        assert store.reads.total() + store.writes.total() == 0

    def test_its_views_and_what_is_over_it_are_closed_with_it(self, store):
        array = created(store, [4], [2])
        views = [array[1:], array.astype("int32"), array.with_transaction(None), array.kvstore]
        with array[2:]:
            pass
        assert all(each.closed for each in [array, *views])

    def test_other_handles_are_not(self, store):
        array = created(store, [4], [2])
        other = opened(store)
        array.close()
        other.write(3).result()

    def test_it_still_says_what_it_was(self, store):
        array = created(store, [4], [2])
        array.close()
        assert (array.shape, array.dtype) == ((4,), ts.uint8)
        assert array.spec()
        assert "zarr3" in repr(array) or repr(array)

    def test_again_is_without_effect(self, store):
        array = created(store, [4], [2])
        for _ in range(3):
            array.close()
        asyncio.run(array.aclose())

    def test_a_write_that_fails_meanwhile_is_reported(self, monkeypatch):
        store = counting(False)
        array = created(store, [4], [2])
        array[:2].write(1).result()
        array.kvstore["c/1"] = b"corrupt"
        free, stop = occupy_loop(), type(array._life)._stop

        def then_free(life):
            under_way = stop(life)
            free.set()
            return under_way

        monkeypatch.setattr(type(array._life), "_stop", then_free)
        writes = [array[3].write(i) for i in range(5)]
        with pytest.raises(ts.DataLossError):
            array.close()
        assert all(each.done() for each in writes)
        assert array.closed

    def test_a_pool_of_its_own_is_let_go(self):
        context = {"cache_pool": {"total_bytes_limit": 10**6}}
        spec = {**JSON, "context": context}
        array = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
        array.write(1).result()
        cache = _cache_of(array)
        assert len(cache)
        array.close()
        assert (len(cache), cache.limit_bytes) == (0, 0)

    def test_a_pool_that_it_shares_is_not(self, store):
        context = pool()
        with created(store, [4], [2], context=context) as array:
            array.write(1).result()
        assert len(_cache_of(array))


class TestContexts:
    def test_what_was_opened_with_it_is_closed_and_pools_are_empty(self, store):
        context = pool()
        with context:
            arrays = [created(store, [4], [2], path=p, context=context) for p in ("a/", "b/")]
            for array in arrays:
                array.write(5)
        cache = _cache_of(arrays[0])
        assert (len(cache), cache.held_bytes) == (0, 0)
        assert all(array.closed for array in arrays)
        with closed:
            arrays[0].read()
        assert opened(store).read().result().tolist() == [5] * 4

    def test_nothing_is_opened_with_it_any_more(self):
        context = ts.Context()
        asyncio.run(context.aclose())
        for one in (context, ts.Context({}, context)):
            with closed:
                ts.open(JSON, context=one, create=True, dtype="uint8", shape=[1])
            with closed:
                ts.KvStore.open("memory://", context=one)
        assert context.closed

    def test_pools_of_a_parent_stay(self, store):
        parent = pool()
        array = created(store, [4], [2], context=parent)
        array.write(3).result()
        array.read().result()
        child = ts.Context({}, parent)
        other = opened(store, context=child)
        child.close()
        assert len(_cache_of(array))
        assert array.read().result().tolist() == [3] * 4
        assert other.closed

    def test_reads_under_way_keep_nothing_after(self, store):
        context = pool()
        array = created(store, [64], [1], context=context)
        array.write(7).result()
        reads = [array[i : i + 8].read() for i in range(50)]
        context.close()
        assert all(each.result().tolist() == [7] * 8 for each in reads)
        assert len(_cache_of(array)) == 0

    def test_arrays_without_references_are_not_kept(self):
        with ts.Context() as context:
            for _ in range(10):
                created(counting(), [1], [1], context=context)
            assert len(context.life._inner or ()) <= 1


class TestKvStores:
    def test_writes_under_way_are_stored_first(self):
        context = ts.Context()
        with ts.KvStore.open("memory://", context=context).result() as store:
            writes = [store.write(str(i), b"x") for i in range(50)]
        assert all(each.done() for each in writes)
        assert len(ts.KvStore.open("memory://", context=context).result().list().result()) == 50

    @pytest.mark.parametrize(
        "use",
        [
            lambda store: store.read("a"),
            lambda store: store.write("a", b""),
            lambda store: store.list(),
            lambda store: store.delete_range(ts.KvStore.KeyRange()),
            lambda store: store["a"],
            lambda store: "a" in store,
            lambda store: (store / "b").read("a"),
            lambda store: store.copy().read("a"),
            lambda store: store.with_transaction(ts.Transaction()).read("a"),
            lambda store: store.experimental_copy_range_to(ts.KvStore.open("memory://").result()),
            lambda store: ts.KvStore.open("memory://").result().experimental_copy_range_to(store),
        ],
    )
    def test_it_begins_nothing_more(self, use):
        store = ts.KvStore.open("memory://").result()
        store.close()
        with closed:
            use(store)

    def test_with_its_context(self):
        with ts.Context() as context:
            store = ts.KvStore.open("memory://", context=context).result()
        assert store.closed
