"""Metadata: what opening reads, stores and refuses, and what handles of one pool share."""

import gc
import math
import time
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    SpecError,
    UnsupportedError,
)
from tensorstore_py._chunked.metadata import MetadataState, SharedMetadata
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py.plugin.kvstore import UNKNOWN, ChunkCache
from tests.chunked.stores import WatchedStore, counting, created, opened, pool, start_opening
from tests.runtime.processes import settle, start


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def watched(request):
    return WatchedStore(inline=request.param)


MEMBERS = {
    "shape": [6],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
}


def open_(watched, **members):
    return start_opening(watched, path="o/", members={"metadata": MEMBERS, **members}).result()


class TestDocuments:
    def refused(self, watched, text):
        watched.poke("o/zarr.json", text)
        with pytest.raises((DataLossError, UnsupportedError)) as caught:
            open_(watched)
        assert 'Error reading "o/zarr.json"' in str(caught.value)
        return str(caught.value)

    @pytest.fixture
    def document(self, watched):
        open_(watched, create=True)
        return watched.entries["o/zarr.json"]

    @pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"zarr_format": 3}', b"\xff\xfe"])
    def test_what_is_no_metadata_is_named(self, watched, text):
        self.refused(watched, text)

    def test_numbers_beyond_all_bounds_are_named(self, watched, document):
        codec = b'{"name":"gzip","configuration":{"level":18446744073709551616}}'
        text = document.replace(b'"codecs":[', b'"codecs":[' + codec + b",")
        found = self.refused(watched, text)
        assert "codecs[0].configuration: 18446744073709551616" in found

    def test_what_is_not_supported_is_named(self, watched, document):
        assert "string" in self.refused(watched, document.replace(b'"uint8"', b'"string"'))

    def test_equal_ones_are_parsed_once(self, watched, document):
        first, second = open_(watched), open_(watched)
        assert first._driver._known.state.layout is second._driver._known.state.layout

    def test_what_cannot_be_bound_is_not_stored(self, watched, monkeypatch):
        open_(watched, assume_metadata=True, open=True)

        def refuse(_spec, _metadata):
            raise UnsupportedError("no such chunk grid")

        kind = type(ts.Spec({"driver": "zarr3"}).model)
        monkeypatch.setattr(kind, "layout", refuse)
        with pytest.raises(UnsupportedError, match="chunk grid"):
            open_(watched, create=True, metadata={**MEMBERS, "shape": [17]})
        assert not watched.entries


class TestOpening:
    def test_creating_writes_one_document_on_condition(self, watched):
        open_(watched, create=True)
        assert watched.counts == {"write": 1}
        assert list(watched.entries) == ["o/zarr.json"]

    def test_opening_reads_one_document(self, watched):
        open_(watched, create=True)
        watched.counts.clear()
        assert open_(watched).domain.shape == (6,)
        assert watched.counts == {"read": 1}

    def test_nothing_there(self, watched):
        with pytest.raises(NotFoundError, match=r'"o/zarr\.json".*create=True'):
            open_(watched)
        assert not watched.entries

    def test_something_there(self, watched):
        open_(watched, create=True)
        with pytest.raises(AlreadyExistsError, match=r'"o/zarr\.json".*open=True'):
            open_(watched, create=True)

    def test_open_or_create_either_way(self, watched):
        first = open_(watched, open=True, create=True)
        watched.counts.clear()
        second = open_(watched, open=True, create=True)
        assert first.spec().to_json() == second.spec().to_json()
        assert watched.counts == {"read": 1}

    def test_a_lost_race_to_create_or_open_opens_what_won(self, watched):
        open_(watched, create=True)
        document = watched.entries["o/zarr.json"]
        watched.poke("o/zarr.json", None)

        def win(operation, key):
            if operation == "write":
                watched.poke(key, document)
                watched.before = lambda _operation, _key: None

        watched.before = win
        assert open_(watched, open=True, create=True).domain.shape == (6,)

    def test_a_lost_race_to_create_fails(self, watched):
        open_(watched, create=True)
        document = watched.entries["o/zarr.json"]
        watched.poke("o/zarr.json", None)
        watched.before = lambda operation, key: operation == "write" and watched.poke(key, document)
        with pytest.raises(AlreadyExistsError):
            open_(watched, create=True)

    def test_what_is_there_must_be_what_was_asked(self, watched):
        open_(watched, create=True)
        for mode in ({}, {"open": True, "create": True}):
            with pytest.raises(MismatchError, match=r'"o/zarr\.json".*shape'):
                open_(watched, metadata={**MEMBERS, "shape": [7]}, **mode)

    def test_deleting_first_takes_everything_below_the_path(self, watched):
        for key in ("o/zarr.json", "o/c/0", "o/other", "ox/c/0"):
            watched.poke(key, b"old")
        open_(watched, create=True, delete_existing=True)
        assert sorted(watched.entries) == ["o/zarr.json", "ox/c/0"]
        assert watched.entries["o/zarr.json"] != b"old"

    @pytest.mark.parametrize("name", ["assume_metadata", "assume_cached_metadata"])
    def test_assuming_touches_nothing(self, watched, name):
        driver = open_(watched, open=True, **{name: True})
        assert driver.domain.shape == (6,)
        assert not watched.counts

    @pytest.mark.parametrize(
        "mode",
        [
            {"delete_existing": True},
            {"delete_existing": True, "open": True, "create": True},
            {"assume_metadata": True, "create": True},
        ],
    )
    def test_flags_that_exclude_each_other(self, watched, mode):
        with pytest.raises(SpecError, match=r"need|\"delete_existing\" makes place"):
            open_(watched, **mode)
        assert not watched.counts

    def test_what_cannot_be_created_stores_nothing(self, watched):
        with pytest.raises(SpecError):
            open_(watched, create=True, metadata={"shape": [6]})
        assert not watched.entries


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
    def test_what_was_unknown_is_learned(self):
        shared: SharedMetadata[Any] = SharedMetadata()
        first, second = state(b"1"), state(b"2")
        assert shared.learn(None, first, None)
        assert shared.learn(first, second, None)
        assert shared.state is second
        assert not shared.learn(first, state(b"3"), None)
        assert not shared.learn(None, None, None)
        assert shared.state is second

    def test_the_same_generation_learned_again_is_no_news(self):
        shared: SharedMetadata[Any] = SharedMetadata()
        shared.learn(None, state(b"1"), None)
        assert shared.learn(state(b"1"), state(b"2"), None)

    def test_what_was_assumed_is_like_nothing_else(self):
        shared: SharedMetadata[Any] = SharedMetadata()
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


class TestLruCache:
    def test_made_once_for_equal_content(self):
        seen: LruCache[object] = LruCache(2)
        first = seen.get((1, "a"), object)
        assert seen.get((1, "a"), object) is first
        assert seen.get((1, "b"), object) is not first

    def test_the_least_recently_used_is_forgotten(self):
        seen: LruCache[object] = LruCache(2)
        first, second = seen.get("a", object), seen.get("b", object)
        seen.get("a", object)
        seen.get("c", object)
        assert seen.get("a", object) is first
        assert seen.get("b", object) is not second

    def test_what_could_not_be_made_is_tried_again(self):
        seen: LruCache[int] = LruCache(2)

        def fail():
            raise KeyError

        with pytest.raises(KeyError):
            seen.get("a", fail)
        assert seen.get("a", lambda: 5) == 5

    def test_making_may_ask_for_something_else(self):
        seen: LruCache[int] = LruCache(4)
        assert seen.get("a", lambda: 1 + seen.get("b", lambda: 2)) == 3


class TestOpeningThroughAPool:
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
    def test_a_pool_remembers_what_is_no_longer_open(self, store, size, read):
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


class TestTaken:
    """A document that others read, of a group or a copy, is as good as one's own if it is new."""

    @pytest.fixture
    def file(self, store):
        created(store, [4], [2])
        array = opened(store)
        array.kvstore["zarr.json"] = array.kvstore["zarr.json"]
        return array._driver._file

    def document(self, file):
        return start(file.store.inline, lambda: file.store.read("a/zarr.json")).result()

    def test_it_is_taken_unless_something_newer_is_known(self, store, file):
        document = self.document(file)
        taken = file.take(document)
        assert (file.known, taken.generation) == (taken, document.stamp.generation)
        assert file.take(document) is taken
        opened(store).resize(exclusive_max=[9]).result()
        newer = file.take(self.document(file))
        assert newer.layout.domain.shape == (9,)
        assert file.take(document) is newer

    def test_a_copy_tells_less_than_anything_that_was_read(self, file):
        known, stored = file.known, self.document(file)
        copy = type(stored)("value", stored.value, type(stored.stamp)(UNKNOWN, math.inf))
        assert file.take(copy) is known
