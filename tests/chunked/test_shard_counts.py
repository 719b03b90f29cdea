"""What shards cost, counted: requests and bytes of reads and writes, whole and in part."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import Hooked, counting, once, opened

#: A shard of 4 x 4 chunks of 4 x 4 bytes, without compression, so that a chunk is 16 bytes.
CHUNK_BYTES = 16
INDEX_BYTES = 16 * 16 + 4
SHARD = "a/c/0/0"


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


@pytest.fixture(params=["end", "start"])
def location(request):
    return request.param


def sharded(store, shape=(32, 32), location="end", codecs=("bytes",), **options):
    configuration = {
        "chunk_shape": [4, 4], "codecs": list(codecs), "index_location": location,
    }  # fmt: skip
    metadata = {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}},
        "codecs": [{"name": "sharding_indexed", "configuration": configuration}],
    }
    members = {"metadata": metadata}
    return opened(store, create=True, dtype="uint8", shape=shape, members=members, **options)


def filled(array):
    """Every element is stored, and none is the fill value."""
    data = (np.arange(array.size) % 255 + 1).astype("uint8").reshape(array.shape)
    array.write(data).result()
    return data


def cost(store, action):
    """Reads, bytes read and writes of a piece of work."""
    store.reset()
    action()
    return store.reads.total(), store.bytes_read.total(), store.writes.total()


class TestReads:
    def test_of_one_chunk_fetch_the_index_once_and_one_range(self, store, location):
        array = sharded(store, location=location)
        data = filled(array)
        found = []
        action = lambda: found.append(array[4:8, 8:12].read().result())  # noqa: E731
        assert cost(store, action) == (2, INDEX_BYTES + CHUNK_BYTES, 0)
        np.testing.assert_array_equal(found[0], data[4:8, 8:12])

    def test_of_one_element_cost_as_much_as_its_chunk(self, store):
        array = sharded(store)
        filled(array)
        read = lambda: array[5, 9].read().result()  # noqa: E731
        assert cost(store, read) == (2, INDEX_BYTES + CHUNK_BYTES, 0)

    def test_of_a_row_of_chunks_fetch_them_together(self, store):
        array = sharded(store)
        filled(array)
        read = lambda: array[4:8, :16].read().result()  # noqa: E731
        assert cost(store, read) == (2, INDEX_BYTES + 4 * CHUNK_BYTES, 0)

    def test_of_several_shards_open_each_once(self, store):
        array = sharded(store)
        filled(array)
        read = lambda: array[:4].read().result()  # noqa: E731
        assert cost(store, read) == (4, 2 * (INDEX_BYTES + 4 * CHUNK_BYTES), 0)

    def test_of_what_is_not_stored_end_with_the_index(self, store):
        array = sharded(store)
        array[:4, :4].write(1).result()
        assert cost(store, lambda: array[4:8, :4].read().result()) == (1, INDEX_BYTES, 0)
        assert cost(store, lambda: array[20, 20].read().result()) == (1, 0, 0)

    def test_of_a_chunk_in_a_shard_in_a_shard_open_both(self, store):
        inner = {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2, 2], "codecs": ["bytes"]},
        }
        array = sharded(store, codecs=[inner])
        filled(array)
        read = lambda: array[5, 9].read().result()  # noqa: E731
        assert cost(store, read) == (3, INDEX_BYTES + (4 * 16 + 4) + 4, 0)


class TestWholeShards:
    @pytest.mark.parametrize("codecs", [["bytes"], ["bytes", "zstd"]], ids=str)
    def test_are_stored_without_a_read(self, store, location, codecs):
        array = sharded(store, location=location, codecs=codecs)
        filled(array)
        assert cost(store, lambda: array.write(7).result()) == (0, 0, 4)
        assert cost(store, lambda: array[16:, :16].write(8).result()) == (0, 0, 1)
        assert (array[16:, :16].read().result() == 8).all()

    def test_at_the_end_of_the_array_are_whole_too(self, store):
        array = sharded(store, shape=(18, 21))
        filled(array)
        assert cost(store, lambda: array[16:, 16:].write(8).result()) == (0, 0, 1)

    def test_from_behind_or_transposed_are_whole_too(self, store):
        array = sharded(store)
        filled(array)
        for view in (array.T, array[::-1], array[:, ::-1].T):
            assert cost(store, lambda view=view: view.write(9).result())[0] == 0

    def test_of_the_fill_value_are_deleted_without_a_read(self, store):
        array = sharded(store)
        filled(array)
        store.reset()
        array[:16].write(0).result()
        assert (store.reads.total(), store.deletes.total()) == (0, 2)


class TestPartsOfShards:
    @pytest.mark.parametrize(
        ("rows", "columns", "kept"),
        [
            (slice(0, 4), slice(0, 4), 15),
            (slice(4, 8), slice(0, 16), 12),
            (slice(0, 12), slice(0, 16), 4),
            (slice(0, 16), slice(4, 8), 12),
            (slice(0, 5), slice(0, 16), 12),
            (slice(0, 16), slice(0, 15), 4),
        ],
        ids=str,
    )
    def test_never_read_what_they_overwrite_whole(self, store, location, rows, columns, kept):
        array = sharded(store, location=location)
        data = filled(array)
        _, size, writes = cost(store, lambda: array[rows, columns].write(9).result())
        assert (size, writes) == (INDEX_BYTES + kept * CHUNK_BYTES, 1)
        data[rows, columns] = 9
        np.testing.assert_array_equal(array.read().result(), data)

    def test_fetch_neighbours_that_stay_together(self, store):
        array = sharded(store)
        filled(array)
        reads, _, _ = cost(store, lambda: array[4:8, :16].write(9).result())
        assert reads == 3  # the index, what is before, what is behind

    def test_without_a_whole_chunk_cost_one_read(self, store):
        array = sharded(store)
        filled(array)
        assert cost(store, lambda: array[1, 1].write(9).result()) == (
            1, INDEX_BYTES + 16 * CHUNK_BYTES, 1,
        )  # fmt: skip

    def test_that_leave_nothing_as_it_was_read_the_index_only(self, store):
        array = sharded(store)
        array[:8, :16].write(1).result()
        assert cost(store, lambda: array[:12, :16].write(2).result()) == (1, INDEX_BYTES, 1)

    def test_of_a_shard_that_is_not_stored_read_nothing_of_it(self, store):
        array = sharded(store)
        assert cost(store, lambda: array[:4, :4].write(1).result()) == (1, 0, 1)

    def test_chunks_at_the_end_of_the_array_are_whole_as_far_as_it_goes(self, store):
        array = sharded(store, shape=(18, 21))
        data = filled(array)
        before = array.kvstore["c/1/0"]
        kept = 4 * CHUNK_BYTES - 2 * CHUNK_BYTES
        assert len(before) == INDEX_BYTES + 4 * CHUNK_BYTES
        _, size, _ = cost(store, lambda: array[16:, 8:16].write(9).result())
        assert size == INDEX_BYTES + kept
        data[16:, 8:16] = 9
        np.testing.assert_array_equal(array.read().result(), data)

    def test_transposed_and_by_index_arrays(self, store):
        array = sharded(store)
        data = filled(array)
        _, size, _ = cost(store, lambda: array.T[:16, 4:8].write(9).result())
        assert size == INDEX_BYTES + 12 * CHUNK_BYTES
        data[4:8, :16] = 9
        rows = [1, 5, 6]
        array.oindex[rows].write(3).result()
        data[rows] = 3
        np.testing.assert_array_equal(array.read().result(), data)


def test_a_shard_that_is_replaced_between_index_and_chunks_is_begun_again():
    store = Hooked()
    array = sharded(store)
    data = filled(array)
    other = opened(store)
    store.after = once(lambda: other[12:16, :16].write(5).result(), "read", SHARD)
    array[:4, :16].write(9).result()
    data[:4, :16], data[12:16, :16] = 9, 5
    np.testing.assert_array_equal(opened(store).read().result(), data)


def test_one_that_is_damaged_where_it_is_overwritten_is_mended():
    store = counting()
    array = sharded(store, codecs=["bytes", "crc32c"])
    data = filled(array)
    damaged = bytearray(array.kvstore["c/0/0"])
    damaged[3] ^= 1  # in the first chunk
    array.kvstore["c/0/0"] = bytes(damaged)
    with pytest.raises(ts.DataLossError, match="a/c/0/0"):
        array[:4, :4].read().result()
    array[:4, :4].write(9).result()
    data[:4, :4] = 9
    np.testing.assert_array_equal(array.read().result(), data)
