"""The cache pool: least recently used out first, never more bytes than allowed."""

import threading
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._chunked.cache import CachedChunk, ChunkCache

#: What an entry counts besides its data.
SHARE = CachedChunk(None, b"", 0.0).size_bytes


def entry(size, generation=b"g"):
    return CachedChunk(np.zeros(size, "uint8"), generation, 1.0)


KEYS = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 600)),
        st.tuples(st.just("get"), KEYS, st.just(0)),
        st.tuples(st.just("drop"), KEYS, st.just(0)),
    ),
    max_size=40,
)


@given(st.integers(0, 2500), STEPS)
def test_it_is_a_least_recently_used_map_bounded_in_bytes(limit, steps):
    cache = ChunkCache(limit)
    model: OrderedDict[int, CachedChunk] = OrderedDict()
    for operation, key, size in steps:
        if operation == "put":
            made = entry(size)
            cache.put(key, made)
            model.pop(key, None)
            if made.size_bytes <= limit:
                model[key] = made
            while sum(each.size_bytes for each in model.values()) > limit:
                model.popitem(last=False)
        elif operation == "get":
            assert cache.get(key) is model.get(key)
            if key in model:
                model.move_to_end(key)
        else:
            cache.drop(key)
            model.pop(key, None)
        assert len(cache) == len(model)
        assert cache.held_bytes == sum(each.size_bytes for each in model.values()) <= limit


class TestPut:
    def test_replaces_what_the_key_had(self):
        cache = ChunkCache(10**6)
        cache.put("a", entry(100))
        cache.put("a", entry(10))
        assert (len(cache), cache.held_bytes) == (1, SHARE + 10)

    def test_what_does_not_fit_drops_the_entry_it_would_have_replaced(self):
        cache = ChunkCache(SHARE + 100)
        cache.put("a", entry(100))
        cache.put("a", entry(101))
        assert (cache.get("a"), cache.held_bytes) == (None, 0)

    def test_what_does_not_fit_leaves_others_alone(self):
        cache = ChunkCache(SHARE + 100)
        cache.put("a", entry(100))
        cache.put("b", entry(101))
        assert cache.get("a") is not None

    def test_missing_chunks_count_too(self):
        cache = ChunkCache(3 * SHARE)
        for key in range(10):
            cache.put(key, CachedChunk(None, b"", 1.0))
        assert [key for key in range(10) if cache.get(key)] == [7, 8, 9]

    def test_a_pool_of_nothing_keeps_nothing(self):
        cache = ChunkCache(0)
        cache.put("a", CachedChunk(None, b"", 1.0))
        assert (len(cache), cache.get("a")) == (0, None)


class TestReading:
    def test_what_was_read_before_a_drop_is_not_kept_after_it(self):
        cache = ChunkCache(10**6)
        with cache.reading("a"):
            cache.drop("a")
            cache.put("a", entry(1))
        assert cache.get("a") is None

    def test_another_key_does_not_matter(self):
        cache = ChunkCache(10**6)
        with cache.reading("a"):
            cache.drop("b")
            cache.put("a", entry(1))
        assert cache.get("a") is not None

    def test_the_next_reader_begins_anew(self):
        cache = ChunkCache(10**6)
        with cache.reading("a"):
            cache.drop("a")
        with cache.reading("a"):
            cache.put("a", entry(1))
        assert cache.get("a") is not None

    def test_a_reader_who_fails_leaves_no_trace(self):
        cache = ChunkCache(10**6)

        def read():
            with cache.reading("a"):
                cache.drop("a")
                raise OSError("unplugged")

        with pytest.raises(OSError, match="unplugged"):
            read()
        cache.put("a", entry(1))
        assert cache.get("a") is not None


class TestScope:
    ASKED: ClassVar[dict[str, Any]] = {"path": "a/", "store": ["store", 1], "form": b"zarr"}

    def test_the_same_array_has_the_same_whoever_asks(self):
        cache = ChunkCache(1)
        assert cache.scope(**self.ASKED) is cache.scope(**self.ASKED)

    @pytest.mark.parametrize("other", [{"path": "b/"}, {"store": ["store", 2]}, {"form": b"n5"}])
    def test_other_arrays_have_others(self, other):
        cache = ChunkCache(1)
        assert cache.scope(**self.ASKED) is not cache.scope(**{**self.ASKED, **other})

    def test_old_ones_of_a_path_are_let_go(self):
        cache = ChunkCache(1)
        first = cache.scope(**self.ASKED)
        for number in range(20):
            cache.scope("a/", "store", number)
        assert cache.scope(**self.ASKED) is not first


def test_many_threads_leave_the_books_in_order():
    cache = ChunkCache(20 * SHARE)

    def work(seed):
        random = np.random.default_rng(seed)
        for key, size, operation in random.integers(0, [40, 300, 3], (300, 3)).tolist():
            if operation == 0:
                cache.get(key)
            elif operation == 1:
                cache.drop(key)
            else:
                with cache.reading(key):
                    cache.put(key, entry(size))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    kept = [cache.get(key) for key in range(40)]
    assert cache.held_bytes == sum(each.size_bytes for each in kept if each) <= cache.limit_bytes
    for key in range(40):
        cache.drop(key)
    assert (len(cache), cache.held_bytes) == (0, 0)
