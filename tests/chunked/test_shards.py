"""What shards cost, counted: reads, whole and partial writes, splices of large ones in files."""

import struct
import threading
from functools import partial

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.kvstores.file.resources import FileIoLocking
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import BulkRead
from tests.chunked.stores import Hooked, counting, once, opened, sharding
from tests.runtime.processes import occupy_workers

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


class Local(Hooked, BulkRead):
    """A store, as local files are, whose calls cost about as much as they move."""

    async def read_ranges(self, key, ranges):
        self.before("read_ranges", key)
        return await super().read_ranges(key, ranges)

    async def read_values(self, keys, room):
        return [result.value or None for result in [await self.read(key) for key in keys]]

    async def read_parts(self, key, ranges, size):
        return None


class TestChunksThatLieApart:
    """A column of inner chunks that are larger than the gaps across which a read goes on."""

    SHAPE = (256, 256)
    COLUMN = (slice(None), slice(64, 128))

    def array_in(self, store):
        members = {
            "metadata": {
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [256, 256]}},
                "codecs": sharding([64, 64], ["bytes"]),
            }
        }
        return opened(store, create=True, dtype="uint16", shape=self.SHAPE, members=members)

    @pytest.mark.parametrize("wide", [2, 64], ids=["registered", "planned"])
    def test_are_fetched_from_a_local_store_by_one_call(self, wide):
        store = Local()
        array = self.array_in(store)
        data = filled(array)
        part = (slice(None), slice(64, 64 + wide))
        found = []
        action = lambda: found.append(array[part].read().result())  # noqa: E731
        assert cost(store, action) == (1 + 1, INDEX_BYTES + 4 * 64 * 64 * 2, 0)
        np.testing.assert_array_equal(found[0], data[part])

    def test_are_fetched_from_any_other_store_one_by_one(self, store):
        array = self.array_in(store)
        data = filled(array)
        found = []
        action = lambda: found.append(array[self.COLUMN].read().result())  # noqa: E731
        assert cost(store, action)[0] == 1 + 4
        np.testing.assert_array_equal(found[0], data[self.COLUMN])

    def test_are_all_of_one_version_of_the_shard(self):
        store = Local()
        array = self.array_in(store)
        filled(array)
        store.before = once(lambda: array.write(7).result(), "read_ranges", "a/c/0/0")
        assert np.all(array[self.COLUMN].read().result() == 7)

    def test_of_a_shard_that_became_shorter_are_of_its_new_version(self):
        store = Local()
        array = self.array_in(store)
        filled(array)

        def shorten():
            array.write(0).result()
            array[:1, 64:65].write(7).result()

        store.before = once(shorten, "read_ranges", "a/c/0/0")
        assert np.count_nonzero(array[self.COLUMN].read().result()) == 1


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


#: A shard of 1 MiB, of 4 x 2 inner chunks of 128 KiB.
SHAPE = (2048, 512)


INNER = (512, 256)


LARGE_CHUNK = 2**17


LARGE_INDEX = 8 * 16 + 4


VALUES = np.random.default_rng(7).integers(1, 256, SHAPE, "uint8")


MODES = ["os", "lockfile", "none", "non_atomic"]


class Noted(FileStore):
    """Notes how many bytes each read gave, and what was kept; calls `before(operation, key)`."""

    def __init__(self, mode="os"):
        super().__init__(sync=False, locking=FileIoLocking(mode=mode))
        self.before = lambda _operation, _key: None
        self.reset()

    def reset(self):
        self.reads = []
        self.splices_made = []

    async def read(self, key, *arguments, **named):
        self.before("read", key)
        result = await super().read(key, *arguments, **named)
        self.reads.append(len(result.value))
        return result

    async def read_ranges(self, key, ranges):
        results = await super().read_ranges(key, ranges)
        self.reads += [len(result.value) for result in results]
        return results

    async def splice(self, key, parts, *, if_equal):
        self.before("splice", key)
        self.splices_made.append(len(parts))
        return await super().splice(key, parts, if_equal=if_equal)


def large_shard(
    store, path, *, location="end", codec=None, inner=INNER, dtype="uint8", shape=SHAPE
):
    configuration = {
        "chunk_shape": inner,
        "codecs": ["bytes", *([codec] if codec else [])],
        "index_location": location,
    }
    metadata = {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "codecs": [{"name": "sharding_indexed", "configuration": configuration}],
    }
    return opened(
        store, path=path, create=True, dtype=dtype, shape=shape, members={"metadata": metadata}
    )


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/a/"


@pytest.fixture
def file(tmp_path):
    """Where the shard is."""
    return tmp_path / "a/c/0/0"


def in_memory():
    return MemoryStore(SharedMap())


def stored(array, values=VALUES):
    array.write(values).result()
    if isinstance(store := array._driver.kvstore[1], Noted):
        store.reset()
    return array


def shard_of(array):
    return bytes(array.kvstore["c/0/0"])


CHANGES = {
    "one element": [((5, 9), 7)],
    "a part of an inner chunk": [((slice(520, 900), slice(0, 100)), 7)],
    "a whole inner chunk": [((slice(512, 1024), slice(256, 512)), 7)],
    "some of each": [((slice(500, 1100), slice(200, 512)), 7)],
    "all but one": [((slice(0, 2048), slice(0, 255)), 7), ((slice(0, 1500), 300), 8)],
    "every third": [((slice(0, 2048, 3), slice(3, 500, 7)), 7)],
    "index arrays": [(([1, 1000, 3], slice(None)), 7)],
    "back to fill": [((slice(0, 512), slice(0, 256)), 0)],
    "back to fill in parts": [
        ((slice(0, 512), slice(0, 99)), 0),
        ((slice(0, 512), slice(99, 256)), 0),
    ],
    "the last inner chunk": [((slice(1536, 2048), slice(256, 512)), 7)],
}


class TestReadsOfSplices:
    """The index, one byte that shows that the shard is all there, and what changes in part."""

    @pytest.fixture
    def array(self, path, location):
        return stored(large_shard(Noted(), path, location=location))

    @pytest.fixture
    def store(self, array):
        return array._driver.kvstore[1]

    @pytest.mark.parametrize(
        ("index", "pieces"),
        [
            ((5, 9), [1]),
            ((slice(600, 700), slice(0, 200)), [1]),
            ((slice(600, 700), slice(0, 512)), [2]),  # neighbours, in one request
            ((slice(500, 600), slice(0, 200)), [1, 1]),
            ((slice(0, 512), slice(0, 256)), []),
            ((slice(512, 2048), slice(0, 512)), []),
            ((slice(0, 600), slice(0, 256)), [1]),  # one as a whole, one in part
            ((slice(1536, 2048), slice(256, 512)), []),
        ],
        ids=str,
    )
    def test_are_no_more_than_that(self, array, store, index, pieces):
        array[index].write(7).result()

        assert store.reads[:2] == [LARGE_INDEX, 1]
        assert sorted(store.reads[2:]) == [LARGE_CHUNK * count for count in pieces]
        assert len(store.splices_made) == 1

    def test_of_what_was_dropped_are_none(self, array, store, file):
        array[:512, :256].write(0).result()
        size = file.stat().st_size
        store.reset()

        array[5, 9].write(7).result()

        assert store.reads == [LARGE_INDEX, 1]
        assert file.stat().st_size - size == LARGE_CHUNK
        assert array[5, 8:11].read().result().tolist() == [0, 7, 0]

    def test_of_several_writes_under_way_are_made_once(self, array, store):
        free = occupy_workers()
        try:
            futures = [array[number, 5:9].write(number) for number in range(6)]
        finally:
            free.set()
        for future in futures:
            future.result()

        assert store.reads == [LARGE_INDEX, 1, LARGE_CHUNK]
        assert len(store.splices_made) == 1
        assert array[:6, 6].read().result().tolist() == list(range(6))

    def test_become_none_with_the_last_inner_chunk(self, array, file):
        for row in range(4):
            array[512 * row : 512 * (row + 1)].write(0).result()

        assert not file.exists()

    def test_of_a_shard_that_is_not_there_find_nothing(self, array, store, file):
        file.unlink()

        array[5, 9].write(7).result()

        assert store.reads == [0]
        assert array[4:7, 9].read().result().tolist() == [0, 7, 0]
        assert list(file.parent.iterdir()) == [file]


class TestOrder:
    """Others may have stored inner chunks in any order."""

    @staticmethod
    def reversed_shard(data, number, location):
        """The same shard with its inner chunks stored last to first, and their index."""
        size = number * 16 + 4
        start = size if location == "start" else 0
        width = (len(data) - size) // number
        chunks = [data[start + width * k :][:width] for k in range(number)]
        index = b"".join(
            struct.pack("<QQ", start + width * (number - 1 - k), width) for k in range(number)
        )
        checked = index + struct.pack("<I", crc32c(index))
        body = b"".join(reversed(chunks))
        return checked + body if location == "start" else body + checked

    @pytest.mark.parametrize(
        ("inner", "spliced"), [((512, 256), True), ((128, 128), False)], ids=["large", "small"]
    )
    def test_reversed(self, path, file, location, inner, spliced):
        number = VALUES.size // (inner[0] * inner[1])
        store, memory = Noted(), in_memory()
        array = stored(large_shard(store, path, location=location, inner=inner))
        other = stored(large_shard(memory, "a/", location=location, inner=inner))
        scattered = self.reversed_shard(shard_of(array), number, location)
        file.write_bytes(scattered)
        other.kvstore["c/0/0"] = scattered
        np.testing.assert_array_equal(array.read().result(), VALUES)
        store.reset()

        for each in (array, other):
            each[500:600, 3:300].write(7).result()

        assert (max(store.reads) < len(scattered)) == spliced
        assert shard_of(array) == shard_of(other)
        expected = VALUES.copy()
        expected[500:600, 3:300] = 7
        np.testing.assert_array_equal(array.read().result(), expected)

    def test_many_small_neighbours_are_few_pieces(self, path):
        store = Noted()
        array = stored(large_shard(store, path, inner=(128, 128)))
        array[500:510, 3:5].write(7).result()
        assert store.reads == [64 * 16 + 4, 1, 2**14]


def crc32c(data):
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


class TestDamage:
    """A shard that is shorter than its index says."""

    @pytest.fixture
    def array(self, path, location):
        return stored(large_shard(Noted(), path, location=location))

    @pytest.fixture
    def short(self, array, file, location):
        """The shard without the second half of its last inner chunk."""
        data = shard_of(array)
        end = len(data) - (LARGE_INDEX if location == "end" else 0)
        cut = data[: end - LARGE_CHUNK // 2] + data[end:]
        file.write_bytes(cut)
        return cut

    @pytest.mark.parametrize(
        "index",
        [(5, 9), (slice(0, 512), slice(0, 256)), (2000, 500), (slice(1500, 2048), slice(250, 511))],
        ids=str,
    )
    def test_is_an_error_that_names_it_and_changes_nothing(self, array, short, file, index):
        with pytest.raises(ts.DataLossError, match=r"a/c/0/0.*shorter than its index"):
            array[index].write(7).result()

        assert file.read_bytes() == short
        assert list(file.parent.iterdir()) == [file]

    @pytest.mark.usefixtures("short")
    def test_is_mended_where_all_that_is_missing_is_replaced(self, array):
        array[1536:, 256:].write(7).result()

        expected = VALUES.copy()
        expected[1536:, 256:] = 7
        np.testing.assert_array_equal(array.read().result(), expected)

    def test_of_the_index_is_one_too(self, array, file):
        file.write_bytes(b"short")

        with pytest.raises(ts.DataLossError, match=r"a/c/0/0.*too short for its index"):
            array[5, 9].write(7).result()

        assert file.read_bytes() == b"short"


class TestTwoWriters:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("moment", ["read", "splice"])
    def test_the_faster_writer_loses_nothing(self, path, mode, moment):
        store = Noted(mode)
        array = stored(large_shard(store, path, codec="zstd"))
        other = opened(Noted(mode), path=path)
        # Of another size, so that nothing would be where it was.
        theirs = partial(other[:512, :].write, 5)
        key = path + "c/0/0"
        store.before = once(lambda: theirs().result(), moment, key)

        array[1000:1100, 100:400].write(7).result()

        expected = VALUES.copy()
        expected[:512] = 5
        expected[1000:1100, 100:400] = 7
        np.testing.assert_array_equal(array.read().result(), expected)

    def test_nor_one_who_deletes_it(self, path, file):
        store = Noted()
        array = stored(large_shard(store, path))
        store.before = once(file.unlink, "splice", str(file))

        array[5, 9].write(7).result()

        found = array.read().result()
        assert found[5, 9] == 7
        assert np.count_nonzero(found) == 1

    def test_between_the_index_and_an_inner_chunk(self, path):
        store = Noted()
        array = stored(large_shard(store, path, codec="zstd"))
        other = opened(Noted(), path=path)
        later = once(lambda: other[:512, :].write(5).result(), "read", path + "c/0/0")
        store.before = lambda *at: later(*at) if store.reads else None

        array[1000:1100, 100:400].write(7).result()

        expected = VALUES.copy()
        expected[:512] = 5
        expected[1000:1100, 100:400] = 7
        np.testing.assert_array_equal(array.read().result(), expected)

    @pytest.mark.parametrize("mode", ["os", "lockfile"])
    def test_at_a_time_lose_nothing(self, path, mode):
        stored(large_shard(Noted(mode), path))
        begin = threading.Barrier(2)

        def write(first):
            array = opened(Noted(mode), path=path)
            begin.wait()
            for number in range(first, 12, 2):
                array[number * 170, 3 : 300 + number].write(number).result()

        threads = [threading.Thread(target=write, args=(first,)) for first in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        expected = VALUES.copy()
        for number in range(12):
            expected[number * 170, 3 : 300 + number] = number
        np.testing.assert_array_equal(opened(Noted(), path=path).read().result(), expected)


class TestSplices:
    @pytest.mark.parametrize("codec", [None, "zstd"], ids=["raw", "zstd"])
    @pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
    def test_what_is_stored_is_what_any_store_has(self, path, location, codec, changes):
        array = stored(large_shard(Noted(), path, location=location, codec=codec))
        other = stored(large_shard(in_memory(), "a/", location=location, codec=codec))
        expected = VALUES.copy()

        for index, value in changes:
            array[index].write(value).result()
            other[index].write(value).result()
            expected[index] = value

        assert shard_of(array) == shard_of(other)
        np.testing.assert_array_equal(array.read().result(), expected)

    def test_of_wider_elements_too(self, path, file):
        values = VALUES.view("uint16")
        array = stored(
            large_shard(Noted(), path, dtype="uint16", inner=(512, 128), shape=(2048, 256)), values
        )
        array[5:9, 100:200] = 7
        expected = values.copy()
        expected[5:9, 100:200] = 7
        assert array._driver.kvstore[1].reads == [LARGE_INDEX, 1, 2 * LARGE_CHUNK]
        np.testing.assert_array_equal(array.read().result(), expected)
        assert file.stat().st_size == values.nbytes + LARGE_INDEX

    @pytest.mark.parametrize("index", [slice(0, 2**16), slice(100, 2**17), slice(5, 9)], ids=str)
    def test_of_one_field_the_others_stay(self, path, index):
        size = 2**19
        names = ["a", "b"]
        metadata = {
            "shape": [size],
            "data_type": {
                "name": "structured",
                "configuration": {"fields": [[name, "uint16"] for name in names]},
            },
            "fill_value": "AAAAAA==",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [size]}},
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {"chunk_shape": [2**16], "codecs": ["bytes"]},
                }
            ],
        }
        store = Noted()
        opened(store, path=path, create=True, members={"metadata": metadata, "field": "a"})
        expected = np.random.default_rng(3).integers(1, 2**16, (2, size), "uint16")
        fields = [opened(store, path=path, members={"field": name}) for name in names]
        for field, values in zip(fields, expected, strict=True):
            field.write(values).result()

        fields[1][index].write(7).result()

        expected[1][index] = 7
        for field, values in zip(fields, expected, strict=True):
            np.testing.assert_array_equal(field.read().result(), values)

    def test_a_small_shard_is_read_and_written_as_a_whole(self, path):
        store = Noted()
        array = stored(large_shard(store, path, inner=(512, 128), shape=(1024, 512)), VALUES[:1024])
        array[5, 9].write(7).result()
        assert sum(store.reads) >= 2**19
        assert array[5, 8:11].read().result().tolist() == [VALUES[5, 8], 7, VALUES[5, 10]]


@pytest.mark.parametrize("depth", [1, 2])
def test_shards_of_no_dimensions(store, location, depth):
    codecs: list[object] = ["bytes"]
    for _ in range(depth):
        configuration = {"chunk_shape": [], "codecs": codecs, "index_location": location}
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    array = opened(
        store, create=True, dtype="uint16", shape=[], members={"metadata": {"codecs": codecs}}
    )
    assert array.read().result() == 0
    array.write(7).result()
    assert [each.result() for each in [array.read(), array.read()]] == [7, 7]
    assert store.writes["a/c"] == 1
    assert len(array.kvstore["c"]) == 2 + 20 * depth  # an index of one entry each
    array.write(0).result()
    assert store.deletes["a/c"] == 1
