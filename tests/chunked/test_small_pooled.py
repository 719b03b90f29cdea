"""Small reads through a cache pool, counted."""

import numpy as np
import pytest

from tensorstore_py._chunked.small_pooled import PooledSmallReads
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing import CountingStore, FaultyStore
from tests.chunked.stores import counting, created, opened, pool

VALUES = np.arange(1, 13, dtype="uint8")


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


def filled(store, **options):
    created(store, [12], [6]).write(VALUES).result()
    array = opened(store, context=pool(), **options)
    store.reset()
    return array


def asked(array, *indices):
    driver = array._driver
    reads = [driver.reading(array[index]._get_transform(), "C") for index in indices]
    assert isinstance(driver._small, PooledSmallReads)
    return reads


def result(array, read):
    return start(array._driver.inline, read).result().tolist()


class TestWhatIsAsked:
    def test_reads_that_were_asked_for_together_ask_once(self, store):
        array = filled(store)
        reads = asked(array, 0, slice(1, 3), 5)
        assert [result(array, read) for read in reads] == [1, [2, 3], 6]
        assert store.reads == {"a/c/0": 1}

    def test_a_chunk_that_was_fetched_since_is_used_unasked(self, store):
        array = filled(store)
        late, other = asked(array, 0, 7)
        array[1:3].read().result()
        (later,) = asked(array, 3)
        assert result(array, other) == 8
        assert store.reads == {"a/c/0": 1, "a/c/1": 1}
        assert result(array, late) == 1
        assert result(array, later) == 4
        assert store.bytes_read["a/c/0"] == 6

    def test_by_default_a_later_read_asks_and_nothing_is_sent(self, store):
        array = filled(store)
        for _ in range(3):
            assert array[2].read().result() == 3
        assert (store.reads["a/c/0"], store.bytes_read["a/c/0"]) == (3, 6)

    def test_never(self, store):
        array = filled(store, recheck_cached_data=False)
        for _ in range(3):
            assert array[2].read().result() == 3
        assert store.reads == {"a/c/0": 1}


class TestWhatIsFound:
    def test_ones_own_writes(self, store):
        array = filled(store, recheck_cached_data=False)
        assert array[2].read().result() == 3
        array[2] = 99
        assert array[2].read().result() == 99

    def test_those_of_others(self, store):
        array = filled(store)
        assert array[2].read().result() == 3
        opened(store)[2] = 99
        assert array[2].read().result() == 99

    def test_a_missing_chunk(self, store):
        created(store, [12], [6])
        array = opened(store, context=pool(), recheck_cached_data=False)
        store.reset()
        for _ in range(2):
            assert array[2].read().result() == 0
        assert store.reads == {"a/c/0": 1}

    def test_no_reader_can_change_what_is_kept(self, store):
        array = filled(store, recheck_cached_data=False)
        array[:2].read().result()[...] = 0
        assert array[:2].read().result().tolist() == [1, 2]

    def test_a_corrupt_chunk_is_named(self):
        faulty = FaultyStore(counting())
        array = filled(CountingStore(faulty))
        faulty.alter("a/c/0", lambda value: value[:3])
        for read in asked(array, 0, 1):
            with pytest.raises(DataLossError, match="a/c/0"):
                result(array, read)
