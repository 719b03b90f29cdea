"""Metadata shared through a pool: who sees what whom learned, and what is asked for again."""

import gc
import time
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py._chunked.cache import ChunkCache
from tensorstore_py._chunked.metadata_cache import MetadataState, SharedMetadata
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py.errors import FailedPreconditionError, NotFoundError
from tests.chunked.stores import counting, created, opened, pool
from tests.runtime.processes import settle

DOCUMENT = "a/zarr.json"


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


NOTHING: Any = None


def state(generation, size=100):
    return MetadataState(NOTHING, NOTHING, generation, 1.0, size)


def shared_in(cache, scope) -> Any:
    return SharedMetadata.of(cache, scope)


class TestSharedMetadata:
    def test_what_nobody_knew_better_is_learned(self):
        shared: SharedMetadata[None] = SharedMetadata()
        first, second = state(b"1"), state(b"2")
        assert shared.learn(None, first, None)
        assert shared.learn(first, second, None)
        assert shared.state is second
        assert not shared.learn(first, state(b"3"), None)
        assert not shared.learn(None, None, None)
        assert shared.state is second

    def test_the_same_generation_learned_again_is_no_news(self):
        shared: SharedMetadata[None] = SharedMetadata()
        shared.learn(None, state(b"1"), None)
        assert shared.learn(state(b"1"), state(b"2"), None)

    def test_what_was_assumed_is_like_nothing_else(self):
        shared: SharedMetadata[None] = SharedMetadata()
        shared.learn(None, state(UNKNOWN), None)
        assert not shared.learn(state(UNKNOWN), state(b"2"), None)

    def test_one_an_array_as_long_as_anybody_has_it(self):
        cache = ChunkCache(0)
        scope = cache.scope("a/", "store", "form")
        first = shared_in(cache, scope)
        assert shared_in(cache, scope) is first
        assert shared_in(cache, cache.scope("a/", "store", "other")) is not first
        first.learn(None, state(b"1"), cache)
        del first
        gc.collect()
        assert shared_in(cache, scope).state is None

    def test_a_pool_keeps_it_while_it_fits(self):
        cache = ChunkCache(10_000)
        scope = cache.scope("a/", "store", "form")
        shared_in(cache, scope).learn(None, state(b"1", size=100), cache)
        assert shared_in(cache, scope).state.generation == b"1"
        assert 100 < cache.held_bytes < 10_000
        shared_in(cache, scope).learn(state(b"1"), state(b"2", size=20_000), cache)
        assert cache.held_bytes == 0
        assert shared_in(cache, scope).state is None

    def test_what_is_gone_is_not_kept(self):
        cache = ChunkCache(10_000)
        shared = shared_in(cache, cache.scope("a/", "store", "form"))
        shared.learn(None, state(b"1"), cache)
        shared.learn(state(b"1"), None, cache)
        assert (shared.state, cache.held_bytes) == (None, 0)


class TestOpening:
    """How often the document is read, and whether its bytes are sent."""

    def requests(self, store, **options):
        store.reset()
        array = opened(store, **options)
        return array, (store.reads[DOCUMENT], store.bytes_read[DOCUMENT] > 0)

    @pytest.mark.parametrize("size", [0, 10**6])
    def test_never_again_what_somebody_has_open(self, store, size):
        created(store, [4], [2])
        context = pool(size)
        first, read = self.requests(store, context=context, recheck_cached_metadata=False)
        assert read == (1, True)
        second, read = self.requests(store, context=context, recheck_cached_metadata=False)
        assert read == (0, False)
        assert first.spec() == second.spec()

    @pytest.mark.parametrize(("size", "read"), [(0, (1, True)), (10**6, (0, False))])
    def test_a_pool_remembers_what_nobody_has_open(self, store, size, read):
        created(store, [4], [2])
        context = pool(size)
        for expected in ((1, True), read):
            _, found = self.requests(store, context=context, recheck_cached_metadata=False)
            del _
            settle()
            gc.collect()
            assert found == expected

    @pytest.mark.parametrize("bound", ["open", True])
    def test_again_but_not_its_bytes(self, store, bound):
        created(store, [4], [2])
        context = pool()
        _, read = self.requests(store, context=context, recheck_cached_metadata=bound)
        assert read == (1, True)
        _, read = self.requests(store, context=context, recheck_cached_metadata=bound)
        assert read == (1, False)

    def test_again_if_it_is_older_than_asked(self, store):
        created(store, [4], [2])
        context = pool()
        before = time.time()
        self.requests(store, context=context)
        for bound, reads in ((before, 0), (time.time() + 1000, 1)):
            _, read = self.requests(store, context=context, recheck_cached_metadata=bound)
            assert read == (reads, False)

    def test_other_contexts_have_metadata_of_their_own(self, store):
        created(store, [4], [2])
        _, read = self.requests(store, context=pool(), recheck_cached_metadata=False)
        _, read = self.requests(store, context=pool(), recheck_cached_metadata=False)
        assert read == (1, True)

    def test_a_pool_for_metadata_alone(self, store):
        created(store, [4], [2])[...] = 1
        context = ts.Context({"cache_pool#meta": {"total_bytes_limit": 10**6}})
        members = {"metadata_cache_pool": "cache_pool#meta", "recheck_cached_data": False}
        for reads in (1, 0):
            store.reset()
            array = opened(store, members=members, context=context, recheck_cached_metadata=False)
            array.read().result()
            del array
            settle()
            gc.collect()
            assert store.reads[DOCUMENT] == reads
            assert store.reads["a/c/0"] == 1

    def test_creating_makes_it_known(self, store):
        context = pool()
        created(store, [4], [2], context=context)
        store.reset()
        array = opened(store, context=context, recheck_cached_metadata=False)
        assert (array.shape, store.reads[DOCUMENT]) == ((4,), 0)

    def test_nothing_there_is_not_remembered(self, store):
        context = pool()
        with pytest.raises(NotFoundError):
            opened(store, context=context, recheck_cached_metadata=False)
        created(store, [4], [2])
        assert opened(store, context=context, recheck_cached_metadata=False).shape == (4,)


class TestHandlesOfOnePool:
    def pair(self, store, **options):
        context = ts.Context()
        first = created(store, [4], [2], context=context)
        return first, opened(store, context=context, **options)

    @pytest.mark.parametrize("bound", ["open", False])
    def test_what_one_resized_the_other_sees_without_a_request(self, store, bound):
        first, second = self.pair(store, recheck_cached_metadata=bound)
        first.resize(exclusive_max=[9]).result()
        store.reset()
        assert second.read().result().shape == (9,)
        assert second.spec().to_json()["metadata"]["shape"] == [9]
        assert store.reads[DOCUMENT] == 0

    def test_what_one_looked_up_the_other_sees(self, store):
        first, second = self.pair(store)
        opened(store).resize(exclusive_max=[9]).result()
        assert second.read().result().shape == (4,)
        first.resolve().result()
        assert second.read().result().shape == (9,)

    def test_never_to_look_again_holds_for_resolve(self, store):
        first, second = self.pair(store, recheck_cached_metadata=False)
        opened(store).resize(exclusive_max=[9]).result()
        store.reset()
        assert second.resolve().result().shape == (4,)
        assert store.reads[DOCUMENT] == 0
        first.resolve().result()
        assert second.resolve().result().shape == (9,)

    def test_what_one_replaced_by_another_kind_of_array_must_be_opened_again(self, store):
        context = ts.Context()
        first = created(store, [4], [2], context=context)
        replace = {"create": True, "delete_existing": True, "dtype": "int16", "shape": [7]}
        opened(store, **replace)
        assert first.read().result().shape == (4,)  # not asked for, and in another context
        opened(store, **replace, context=context)
        with pytest.raises(FailedPreconditionError, match="open the array again"):
            first.read().result()
        assert "uint8" in repr(first)

    def test_two_resizes_from_one_state_lose_nothing(self, store):
        first, second = self.pair(store)
        first.resize(exclusive_max=[9]).result()
        second.resize(exclusive_max=[11]).result()
        assert first.read().result().shape == second.read().result().shape == (11,)
