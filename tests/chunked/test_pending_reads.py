"""Small reads that are pending together, counted: one request and one decode for all of them."""

import asyncio
import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import DataLossError, NotFoundError, OutOfRangeError
from tensorstore_py._chunked import read as read_module
from tensorstore_py._chunked.array import StoredChunks
from tensorstore_py._chunked.pending import ReadRequest
from tensorstore_py.plugin.codec import CodecChain
from tensorstore_py.testing import CountingStore, FaultyStore
from tests.chunked.stores import Hooked, counting, created, once, opened
from tests.runtime.processes import (
    occupy_loop,
    occupy_workers,
    settle,
    share,
    start,
    submissions,
    width,
)

VALUES = np.arange(1, 13, dtype="uint8")


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


@pytest.fixture
def decoded(monkeypatch):
    """Counts the chunks that are decoded."""
    count = [0]

    def counted(decode):
        def wrapper(self, *arguments):
            count[0] += 1
            return decode(self, *arguments)

        return wrapper

    for decode in (CodecChain.decode_into, CodecChain.decode_scratch):
        monkeypatch.setattr(CodecChain, decode.__name__, counted(decode))
    return count


@pytest.fixture
def busy():
    """No worker begins anything, so that what is asked for together is asked for before it runs."""
    free = occupy_workers()
    yield
    free.set()


def filled(store, chunks=6, **options):
    created(store, [12], [chunks]).write(VALUES).result()
    array = opened(store, **options)
    store.reset()
    return array


def in_table(array):
    """The pending reads, by chunk."""
    driver = array._driver
    return driver._reads(driver._known).pending._pending


def asked(array, *indices):
    """Reads that were asked for and have not begun."""
    driver = array._driver
    reads = [driver.prepare_read(array[index]._get_transform(), "C") for index in indices]
    assert all(isinstance(read, ReadRequest) for read in reads)
    return reads


def result(array, read):
    return start(array._driver.inline, read).result().tolist()


async def nothing():
    return None


class TestTogether:
    def test_one_request_and_one_decode_for_a_chunk(self, store, decoded):
        array = filled(store)
        reads = asked(array, *[slice(i, i + 2) for i in range(5)])
        assert [result(array, read) for read in reads] == [[i + 1, i + 2] for i in range(5)]
        assert (store.reads, decoded) == ({"a/c/0": 1}, [1])

    @pytest.mark.usefixtures("busy")
    def test_by_the_public_door(self, decoded):
        store = counting()
        array = filled(store)
        futures = [array[i % 12].read() for i in range(40)]
        assert [int(future.result()) for future in futures] == [i % 12 + 1 for i in range(40)]
        assert (store.reads, decoded) == ({"a/c/0": 1, "a/c/1": 1}, [2])

    def test_awaited(self, store):
        array = filled(store)

        async def gathered():
            return await asyncio.gather(*(array[i].read() for i in range(12)))

        assert [int(found) for found in asyncio.run(gathered())] == VALUES.tolist()

    def test_a_read_of_several_chunks_takes_what_others_have_begun(self, store, decoded):
        array = filled(store, chunks=4)
        across, right, left = asked(array, slice(3, 5), slice(5, 6), slice(0, 2))
        assert result(array, right) == [6]
        assert result(array, across) == [4, 5]
        assert result(array, left) == [1, 2]
        assert (store.reads, decoded) == ({"a/c/0": 1, "a/c/1": 1}, [2])

    def test_memory_order(self):
        array = created(counting(), [8, 8], [4, 8])
        array.write(np.arange(64, dtype="uint8").reshape(8, 8)).result()
        found = array[1:3, 2:4].read(order="F").result()
        assert found.flags.f_contiguous
        assert found.tolist() == [[10, 11], [18, 19]]

    def test_a_missing_chunk_is_asked_for_once(self, store):
        array = created(store, [12], [6], fill_value=7)
        store.reset()
        reads = asked(array, 1, 2, 3)
        assert [result(array, read) for read in reads] == [7, 7, 7]
        assert store.reads == {"a/c/0": 1}

    def test_under_a_small_limit_on_memory(self, store, decoded):
        context = ts.Context({"memory_limit": {"limit_bytes": 8}})
        array = filled(store, context=context)
        reads = asked(array, 0, 7, 1, 8)
        assert [result(array, read) for read in reads] == [1, 8, 2, 9]
        assert decoded == [2]
        assert array._driver.memory.held == 0


class TestNewEnough:
    def test_what_is_asked_for_after_a_write_shows_it(self, store):
        array = filled(store)
        (before,) = asked(array, 0)
        array[1] = 99
        (after,) = asked(array, 1)
        # Whoever runs first, what is fetched was asked for by both before.
        assert result(array, before) == 1
        assert result(array, after) == 99
        assert store.reads["a/c/0"] == 2  # one of them is the writer's

    def test_a_read_asked_for_while_the_chunk_is_fetched_asks_again(self):
        store = Hooked()
        array = filled(store)
        late = []

        def write_and_ask():
            array[1] = 99
            late.extend(asked(array, 1))

        store.after = once(write_and_ask, "read", "a/c/0")
        (early,) = asked(array, 0)
        assert result(array, early) == 1
        assert result(array, late[0]) == 99

    def test_a_resize_is_seen(self, store):
        array = filled(store)
        other = opened(store)
        other.resize(exclusive_max=[20]).result()
        with pytest.raises(IndexError):
            array[15].read().result()
        assert array.resolve().result()[15].read().result() == 0


class TestNothingIsKept:
    def test_of_a_chunk(self, store, decoded):
        array = filled(store)
        for count in (1, 2, 3):
            assert array[2].read().result() == 3
            assert (store.reads, decoded) == ({"a/c/0": count}, [count])

    def test_of_a_read_that_is_over(self, store):
        array = filled(store)
        reads = asked(array, 0, 1)
        gone = [weakref.ref(read) for read in reads]
        for _ in range(2):
            result(array, reads.pop())
        settle()
        gc.collect()
        assert [ref() for ref in gone] == [None, None]

    @staticmethod
    @contextmanager
    def uncollected():
        """Nothing is freed by the cycle collector: results are large, and it comes by some time."""
        gc.collect()
        gc.disable()
        try:
            yield
        finally:
            gc.enable()

    @pytest.mark.parametrize("index", [1, slice(1, 2), slice(3, 5), slice(3, 9)], ids=str)
    def test_of_its_result_once_no_handle_is_left(self, store, index):
        array = filled(store, chunks=4)
        with self.uncollected():
            future = array[index].read()
            result = future.result()
            gone = [weakref.ref(each) for each in (future, result)]
            settle()
            del future, result
            assert [ref() for ref in gone] == [None, None]

    def test_of_reads_that_others_have_served(self, store):
        array = filled(store, chunks=4)
        with self.uncollected():
            reads = asked(array, slice(3, 5), slice(0, 2), slice(5, 7))
            gone = [weakref.ref(each) for read in reads for each in (read, read.out)]
            while reads:
                result(array, reads.pop(0))
            settle()
            assert [ref() for ref in gone] == [None] * 6

    def test_of_one_that_failed(self, store):
        array = filled(CountingStore(faulty := FaultyStore(store.base)), chunks=4)
        with self.uncollected():
            for _ in range(2):
                faulty.fail("read", OSError("unplugged"), key="a/c/0")
            (read,) = asked(array, slice(3, 5))
            future = start(array._driver.inline, read)
            with pytest.raises(OSError, match="unplugged"):
                future.result()
            assert in_table(array) == {}
            assert read.pending == []

    def test_of_one_that_was_cancelled(self, store):
        array = filled(store, chunks=4)
        free = occupy_workers() if store.inline else occupy_loop()
        with self.uncollected():
            future = array[3:5].read()
            ((want,), _) = in_table(array).values()
            gone = [weakref.ref(each) for each in (future, want.request, want.request.out)]
            del want, _
            assert future.cancel()
            free.set()
            settle()
            del future
            assert [ref() for ref in gone] == [None] * 3
        assert in_table(array) == {}

    @pytest.mark.usefixtures("busy")
    def test_of_a_read_that_was_cancelled_before_it_began(self, decoded):
        store = counting()
        array = filled(store)
        cancelled, *others = [array[i].read() for i in range(3)]
        wanted = in_table(array)[(0,)]
        assert len(wanted) == 3
        assert cancelled.cancel()
        assert len(in_table(array)[(0,)]) == 2
        assert [int(other.result()) for other in others] == [2, 3]
        assert in_table(array) == {}
        assert decoded == [1]


class TestFailure:
    @pytest.fixture
    def faulty(self, store):
        return FaultyStore(store.base)

    def test_of_the_one_that_serves_is_not_that_of_the_others(self, faulty):
        store = CountingStore(faulty)
        array = filled(store)
        faulty.fail("read", OSError("unplugged"), key="a/c/0")
        first, second, third = asked(array, 0, slice(5, 7), 1)
        with pytest.raises(OSError, match="unplugged"):
            result(array, first)
        assert result(array, second) == [6, 7]
        assert result(array, third) == 2
        assert store.reads == {"a/c/0": 2, "a/c/1": 1}

    def test_of_a_codec_names_the_key_to_everyone(self, faulty):
        array = filled(CountingStore(faulty))
        faulty.alter("a/c/0", lambda value: value[:3])
        for read in asked(array, 0, 1):
            with pytest.raises(DataLossError, match="a/c/0"):
                result(array, read)

    def test_of_a_read_withdraws_what_it_wanted_elsewhere(self, faulty):
        store = CountingStore(faulty)
        array = filled(store)
        faulty.fail("read", OSError("unplugged"), key="a/c/0")
        (across,) = asked(array, slice(4, 8))
        with pytest.raises(OSError, match="unplugged"):
            result(array, across)
        assert in_table(array) == {}

    def test_a_missing_chunk_may_be_an_error_for_everyone(self, store):
        created(store, [12], [6])
        array = opened(store, members={"fill_missing_data_reads": False})
        for read in asked(array, 0, 1):
            with pytest.raises(NotFoundError, match="a/c/0"):
                result(array, read)

    def test_what_lies_outside_is_an_error_of_the_future(self, store):
        array = filled(store)
        view = array[10:]
        opened(store).resize(exclusive_max=[5]).result()
        array.resolve().result()
        future = view[11].read()
        with pytest.raises(OutOfRangeError, match="11"):
            future.result()


def test_a_few_small_chunks_are_shared(decoded):
    array = filled(counting())
    first, second = asked(array, slice(None), slice(6, 12))

    assert result(array, first) == VALUES.tolist()
    assert result(array, second) == VALUES[6:].tolist()

    assert decoded == [2]


class TestOthersGoAlone:
    def test_large_ones(self, store):
        array = filled(store, chunks=2)
        reading = array._driver.prepare_read(array[:10]._get_transform(), "C")
        assert not isinstance(reading, ReadRequest)

    def test_in_a_transaction_and_a_batch(self, store):
        array = filled(store)
        transaction = ts.Transaction()
        batch = ts.Batch()
        for driver in (
            array.with_transaction(transaction)._driver,
            array._driver.with_batch(batch),
        ):
            reading = driver.prepare_read(array[:1]._get_transform(), "C")
            assert not isinstance(reading, ReadRequest)
        batch.submit()
        transaction.abort()

    def test_where_metadata_is_asked_for_at_each_read(self, store):
        array = filled(store, recheck_cached_metadata=True)
        reading = array._driver.prepare_read(array[:1]._get_transform(), "C")
        assert not isinstance(reading, ReadRequest)
        assert array[:1].read().result().tolist() == [1]


@pytest.mark.parametrize("worth", [False, True])
def test_one_read_of_much_is_shared_out_where_that_is_worth_it(worth, monkeypatch):
    # 16 chunks of 128 KiB are four threads' worth: what a read wants itself is no crowd.
    share(monkeypatch, worth)
    store = counting(True)
    array = created(store, [16, 2**17], [1, 2**17])
    before = submissions()

    future = array[:, 5].read()
    future.result()

    assert submissions() - before == (min(width(), 4) - 1 if worth else 0)


class TestRuns:
    """A read that wants something of many small chunks fetches them in runs."""

    WIDE = np.arange(1, 8 * 64 + 1, dtype="uint16").reshape(8, 64)

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        """Runs of four chunks of 8 elements of 2 bytes."""
        monkeypatch.setattr(read_module, "RUN_BYTES", 4 * 8 * 2)

    @pytest.fixture
    def runs(self, monkeypatch):
        """How many chunks were fetched together each time."""
        lengths: list[int] = []
        values = StoredChunks.values

        async def noted(self, cells, room):
            lengths.append(len(cells))
            return await values(self, cells, room)

        monkeypatch.setattr(StoredChunks, "values", noted)
        return lengths

    def wide(self, store, codecs="zstd", **options):
        metadata = {"codecs": ["bytes", *([] if codecs == "raw" else [codecs])]}
        created(store, [8, 64], [1, 8], "uint16", members={"metadata": metadata}).write(
            self.WIDE
        ).result()
        array = opened(store, **options)
        store.reset()
        return array

    @pytest.mark.parametrize("codecs", ["zstd", "gzip", "blosc"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_each_chunk_is_asked_for_and_decoded_once(self, codecs, order, decoded, runs):
        store = counting()
        array = self.wide(store, codecs)
        found = array[:, 3:4].read(order=order).result()
        assert found.tolist() == self.WIDE[:, 3:4].tolist()
        assert (decoded, sum(runs)) == ([8], 8)
        assert set(store.reads.values()) == {1}

    def test_planes_read_together_share_them(self, decoded, runs):
        store = counting()
        array = self.wide(store)
        reads = asked(array, *[(slice(None), slice(i, i + 1)) for i in range(8)])
        for i, read in enumerate(reads):
            assert result(array, read) == self.WIDE[:, i : i + 1].tolist()
        assert decoded == [8]
        assert len(store.reads) == sum(store.reads.values()) == 8
        assert runs == [4, 4]

    @pytest.mark.usefixtures("busy")
    def test_by_the_public_door(self, decoded):
        store = counting()
        array = self.wide(store)
        futures = [array[:, i].read() for i in range(64)]
        for i, future in enumerate(futures):
            assert future.result().tolist() == self.WIDE[:, i].tolist()
        assert decoded == [64]
        assert sum(store.reads.values()) == 64

    def test_what_others_have_served_is_left_out(self, decoded, runs):
        store = counting()
        array = self.wide(store)
        plane, point, corner = asked(array, (slice(None), 5), (2, slice(1, 3)), (7, slice(0, 1)))
        assert result(array, point) == self.WIDE[2, 1:3].tolist()
        assert result(array, corner) == self.WIDE[7, :1].tolist()
        assert result(array, plane) == self.WIDE[:, 5].tolist()
        # The point's chunk, and the last ones of the plane; then the others.
        assert (decoded, runs) == ([8], [4, 4])

    def test_a_missing_chunk_of_a_run(self, runs):
        store = counting()
        array = self.wide(store)
        array[2:4] = 0
        store.reset()
        assert array[:, 3].read().result().tolist() == [
            0 if row in {2, 3} else self.WIDE[row, 3] for row in range(8)
        ]
        assert runs == [4, 4]

    def test_one_that_is_an_error_is_named_to_everyone(self):
        store = counting()
        self.wide(store)
        array = opened(store, members={"fill_missing_data_reads": False})
        opened(store)[2] = 0
        for read in asked(array, (slice(None), 3), (slice(None), 4)):
            with pytest.raises(NotFoundError, match="a/c/2/0"):
                result(array, read)
        assert in_table(array) == {}

    def test_an_error_in_a_run_leaves_the_others_to_themselves(self, decoded):
        faulty = FaultyStore(counting().base)
        store = CountingStore(faulty)
        array = self.wide(store)
        for _ in range(2):  # in a run, and alone
            faulty.fail("read", OSError("unplugged"), key="a/c/1/0")
        first, second, point = asked(array, (slice(None), 0), (slice(None), 7), (0, slice(1, 3)))
        with pytest.raises(OSError, match="unplugged"):
            result(array, first)
        assert result(array, second) == self.WIDE[:, 7].tolist()
        assert result(array, point) == self.WIDE[0, 1:3].tolist()
        assert store.reads["a/c/1/0"] == 3
        assert in_table(array) == {}

    def test_a_corrupt_chunk_in_a_run_is_named_to_everyone(self):
        faulty = FaultyStore(counting().base)
        array = self.wide(CountingStore(faulty))
        faulty.alter("a/c/2/0", lambda value: value[:3])
        point, *planes = asked(array, (0, slice(1, 3)), (slice(None), 3), (slice(None), 4))
        for read in planes:
            with pytest.raises(DataLossError, match="a/c/2/0"):
                result(array, read)
        assert result(array, point) == self.WIDE[0, 1:3].tolist()

    def test_under_a_small_limit_on_memory_each_goes_alone(self, decoded, runs):
        store = counting()
        array = self.wide(store, context=ts.Context({"memory_limit": {"limit_bytes": 32}}))
        reads = asked(array, (slice(None), 0), (slice(None), 7))
        assert result(array, reads[0]) == self.WIDE[:, 0].tolist()
        assert result(array, reads[1]) == self.WIDE[:, 7].tolist()
        assert (decoded, runs) == ([8], [])
        assert array._driver.memory.held == 0

    def test_on_the_loop_they_go_alone(self, decoded, runs):
        store = counting(False)
        array = self.wide(store)
        assert array[:, 3].read().result().tolist() == self.WIDE[:, 3].tolist()
        assert (decoded, runs) == ([8], [])

    def test_a_few_make_a_run(self, runs):
        store = counting()
        array = self.wide(store)
        assert array[:6, 3].read().result().tolist() == self.WIDE[:6, 3].tolist()
        assert array[7, 3:6].read().result().tolist() == self.WIDE[7, 3:6].tolist()
        assert runs == [4, 2]

    def test_a_reader_of_one_chunk_serves_others_from_the_end_of_the_line(self, decoded, runs):
        store = counting()
        array = self.wide(store)
        reads = asked(array, *[(row, slice(1, 3)) for row in range(8)])
        found = [result(array, reads[0]), *[read.left for read in reads[1:]]]
        assert found == [self.WIDE[0, 1:3].tolist(), 1, 1, 1, 1, 0, 0, 0]
        assert (decoded, runs) == ([4], [4])
        for row, read in enumerate(reads[1:], 1):
            assert result(array, read) == self.WIDE[row, 1:3].tolist()
        assert (decoded, runs) == ([8], [4, 4])
        assert sum(store.reads.values()) == 8

    @pytest.mark.parametrize("shared", [False, True])
    def test_any_box_is_what_each_chunk_by_itself_gives(self, shared, monkeypatch, runs):
        share(monkeypatch, shared)
        array = self.wide(counting())
        boxes = [(slice(a, 8), slice(b, b + 3)) for a in range(3) for b in range(0, 60, 5)]
        boxes += [(slice(0, 8), slice(b, 64, 9)) for b in range(9)]
        found = [array[box].read().result().tolist() for box in boxes]
        assert found == [self.WIDE[box].tolist() for box in boxes]
        assert runs
        runs.clear()
        monkeypatch.setattr(read_module, "RUN_BYTES", 0)
        array = self.wide(counting())
        assert [array[box].read().result().tolist() for box in boxes] == found
        assert runs == []


LINE = np.arange(24, dtype="uint8")


@pytest.fixture
def line():
    store = counting()
    created(store, [24], [6]).write(LINE).result()
    return opened(store)


@pytest.fixture
def uncollected():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class TestLifetime:
    @pytest.mark.usefixtures("uncollected")
    @pytest.mark.parametrize("index", [3, slice(4, 8), slice(5, 13)])
    def test_nothing_outlives_it(self, line, index):
        (read,) = asked(line, index)
        result = start(line._driver.inline, read).result()
        np.testing.assert_array_equal(result, LINE[index])
        gone = weakref.ref(read), weakref.ref(result)
        del read, result
        assert [each() for each in gone] == [None, None]

    @pytest.mark.usefixtures("uncollected")
    def test_nothing_outlives_one_that_was_withdrawn(self, line):
        (read,) = asked(line, slice(4, 8))
        gone = weakref.ref(read)
        read.withdraw()
        del read
        assert gone() is None
        assert in_table(line) == {}

    def test_where_its_elements_are_is_found_when_it_is_needed(self, line):
        (read,) = asked(line, slice(4, 8))
        assert (len(read.pending), read.slices) == (2, None)
        slices = read.cut([6])
        assert (
            [each.cell for each in slices] == [want.cell for want in read.pending] == [(0,), (1,)]
        )
        assert read.slices is slices
        read.withdraw()


#: A shard of 4 x 4 chunks of 4 x 4 bytes, without compression.
CHUNK_BYTES = 16


INDEX_BYTES = 16 * 16 + 4


DATA = (np.arange(32 * 32) % 255 + 1).astype("uint8").reshape(32, 32)


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


def assert_right(array, *indices):
    reads = asked(array, *indices)
    assert [result(array, read) for read in reads] == [DATA[index].tolist() for index in indices]


class TestShardsTogether:
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


class TestShardsChanging:
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


class TestShardsOfShards:
    """Shards of 16 of shards of 4 of chunks of 2, each with an index of 16 bytes an entry."""

    @pytest.fixture
    def array(self, store):
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
        array = opened(store, create=True, dtype="uint8", shape=[16], members=members)
        array.write(np.arange(16, dtype="uint8")).result()
        store.reset()
        return array

    def test_registered_reads_share_what_they_fetch_and_decode(self, array, store, decoded):
        (alone,) = asked(array, slice(5, 7))
        assert result(array, alone) == [5, 6]
        before = store.reads.total(), decoded[0]  # the outer index, the inner index, both chunks
        store.reset()
        decoded[0] = 0
        reads = asked(array, slice(5, 7), 6, slice(4, 6))
        assert [result(array, read) for read in reads] == [[5, 6], 6, [4, 5]]
        assert (store.reads.total(), decoded[0]) == before

    def test_registered_reads_across_inner_shards(self, array):
        reads = asked(array, slice(3, 5), 6, slice(7, 9))
        assert [result(array, read) for read in reads] == [[3, 4], 6, [7, 8]]

    def test_what_is_missing_reads_as_the_fill_value(self, array):
        array[4:8] = 0
        reads = asked(array, slice(3, 5), 6, slice(7, 9))
        assert [result(array, read) for read in reads] == [[3, 0], 0, [0, 8]]
