"""Small reads of shards that are under way together, counted."""

import numpy as np
import pytest

from tensorstore_py._chunked.small_shard import SmallShardReads
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing import CountingStore, FaultyStore
from tests.chunked.stores import Hooked, counting, once, opened

#: A shard of 4 x 4 chunks of 4 x 4 bytes, without compression.
CHUNK_BYTES = 16
INDEX_BYTES = 16 * 16 + 4
DATA = (np.arange(32 * 32) % 255 + 1).astype("uint8").reshape(32, 32)


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


def sharded(store, codecs=("bytes",), data=DATA):
    configuration = {"chunk_shape": [4, 4], "codecs": list(codecs)}
    metadata = {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}},
        "codecs": [{"name": "sharding_indexed", "configuration": configuration}],
    }
    members = {"metadata": metadata}
    array = opened(store, create=True, dtype="uint8", shape=(32, 32), members=members)
    if data is not None:
        array.write(data).result()
    store.reset()
    return array


def asked(array, *indices):
    driver = array._driver
    reads = [driver.reading(array[index]._get_transform(), "C") for index in indices]
    assert isinstance(driver._small, SmallShardReads)
    return reads


def result(array, read):
    return start(array._driver.inline, read).result().tolist()


def assert_right(array, *indices):
    reads = asked(array, *indices)
    assert [result(array, read) for read in reads] == [DATA[index].tolist() for index in indices]


class TestTogether:
    def test_one_index_and_each_inner_chunk_once(self, store):
        array = sharded(store)
        assert_right(array, np.s_[0:2, 0:2], np.s_[1:3, 1:3], np.s_[2, 3])
        assert store.reads.total() == 2
        assert store.bytes_read.total() == INDEX_BYTES + CHUNK_BYTES

    def test_neighbours_are_fetched_together(self, store):
        array = sharded(store)
        assert_right(array, np.s_[0, 0], np.s_[0, 5], np.s_[1, 10:14])
        assert store.reads.total() == 2
        assert store.bytes_read.total() == INDEX_BYTES + 4 * CHUNK_BYTES

    def test_a_read_across_shards(self, store):
        array = sharded(store)
        assert_right(array, np.s_[14:18, 15:17], np.s_[15, 15], np.s_[16, 16])
        assert store.reads.total() == 8  # four shards

    def test_what_is_missing_reads_as_the_fill_value(self, store):
        array = sharded(store, data=None)
        array[:4, :4].write(5).result()
        reads = asked(array, np.s_[3:5, 3], np.s_[20, 20])
        assert [result(array, read) for read in reads] == [[5, 0], 0]


class TestConsistency:
    def test_a_shard_that_is_replaced_is_read_anew(self):
        store = Hooked()
        array = sharded(store)
        reads = asked(array, np.s_[0, 0:2], np.s_[8, 8:10])
        store.after = once(lambda: array.write(7).result(), "read", "a/c/0/0")
        assert [result(array, read) for read in reads] == [[7, 7], [7, 7]]

    def test_a_corrupt_index_is_named(self):
        store = FaultyStore(counting())
        array = sharded(CountingStore(store))
        store.alter("a/c/0/0", lambda value: value[:-1] + b"!")
        for read in asked(array, np.s_[0, 0], np.s_[1, 1]):
            with pytest.raises(DataLossError, match="a/c/0/0"):
                result(array, read)

    def test_a_corrupt_inner_chunk_is_named(self):
        store = FaultyStore(counting())
        array = sharded(CountingStore(store), codecs=["bytes", "crc32c"])

        def flipped(value):
            return value if len(value) >= INDEX_BYTES else bytes([value[0] ^ 1]) + value[1:]

        store.alter("a/c/0/0", flipped)
        (read,) = asked(array, np.s_[0, 0])
        with pytest.raises(DataLossError, match=r"inner chunk \(0, 0\) of shard .*a/c/0/0"):
            result(array, read)


def test_a_shard_of_shards_goes_the_long_way():
    inner = {"chunk_shape": [2], "codecs": ["bytes"]}
    outer = {
        "chunk_shape": [4],
        "codecs": [{"name": "sharding_indexed", "configuration": inner}],
    }
    metadata = {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16]}},
        "codecs": [{"name": "sharding_indexed", "configuration": outer}],
    }
    members = {"metadata": metadata}
    array = opened(counting(), create=True, dtype="uint8", shape=[16], members=members)
    array.write(np.arange(16, dtype="uint8")).result()
    assert array[5:7].read().result().tolist() == [5, 6]
    assert array._driver._small is None
