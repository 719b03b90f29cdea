"""What reads and writes may cost: tasks, other threads, copies, requests and memory."""

import asyncio
import tracemalloc

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import Opened, codecs_named, counting, created, opened, sharding
from tests.runtime.processes import occupy_loop, occupy_workers, share, submissions, width

SHAPE = (8, 24, 32)


VALUES = np.arange(1, np.prod(SHAPE) + 1, dtype="uint16").reshape(SHAPE)


COMPRESSED = ["zstd", "gzip", "blosc"]


LAYOUTS = {
    "small": ([2, 6, 4], ["bytes", "zstd"]),
    "raw": ([2, 6, 4], ["bytes"]),
    "planes": ([1, 24, 32], ["bytes", "zstd"]),
    "shards": ([8, 24, 16], [{
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [2, 6, 4], "codecs": ["bytes", "zstd"]},
    }]),
}  # fmt: skip


def created_as(store, name, dtype="uint16", shape=SHAPE):
    chunks, codecs = LAYOUTS[name]
    grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    return created(
        store, shape, None, dtype, members={"metadata": {"codecs": codecs, "chunk_grid": grid}}
    )


@pytest.fixture
def store():
    return counting()


@pytest.fixture
def on_files(tmp_path):
    """Opens an array of small chunks in files."""

    def opened(name):
        chunks, codecs = LAYOUTS[name]
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        kvstore = {"driver": "file", "path": f"{tmp_path}/{name}/"}
        return ts.open(
            {"driver": "zarr3", "kvstore": kvstore, "metadata": {
                "shape": SHAPE, "data_type": "uint16", "codecs": codecs, "chunk_grid": grid,
            }},
            create=True,
        ).result()  # fmt: skip

    return opened


class TestTasks:
    """A local read or write makes no task on anybody's loop."""

    @pytest.mark.parametrize("name", sorted(LAYOUTS))
    def test_awaited_on_a_loop(self, name, on_files):
        made: list[object] = []

        def factory(loop, coroutine, **options):
            made.append(coroutine)
            return asyncio.Task(coroutine, loop=loop, **options)

        async def main():
            asyncio.get_running_loop().set_task_factory(factory)
            array = on_files(name)
            await array.write(VALUES)
            whole = await array.read()
            part = await array[3, 5:9, 7].read()
            await array[3, 5].write(7)
            return whole, part, list(made)  # the loop makes some of its own when it ends

        whole, part, tasks = asyncio.run(main())
        np.testing.assert_array_equal(whole, VALUES)
        np.testing.assert_array_equal(part, VALUES[3, 5:9, 7])
        assert tasks == []


@pytest.mark.parametrize("name", sorted(LAYOUTS))
class TestSubmissions:
    """However many chunks there are, other threads are asked to help at most once each."""

    @pytest.fixture(params=[True, False], ids=["worth", "not worth"])
    def worth(self, request, monkeypatch):
        found = request.param
        share(monkeypatch, found)
        return found

    def test_of_a_read(self, name, worth, store):
        array = created_as(store, name)
        array.write(VALUES).result()
        before = submissions()
        np.testing.assert_array_equal(array.read().result(), VALUES)
        assert submissions() - before <= width()

    def test_of_a_write(self, name, worth, store):
        array = created_as(store, name)
        before = submissions()
        array.write(VALUES).result()
        # That of a shard is shared out once more.
        shards = 2 if name == "shards" else 0
        assert submissions() - before <= width() + shards * (width() - 1)

    def test_of_small_parts_of_many_chunks(self, name, worth, store):
        array = created_as(store, name)
        array.write(VALUES).result()
        before = submissions()
        np.testing.assert_array_equal(array[:, 3, 5].read().result(), VALUES[:, 3, 5])
        assert submissions() - before <= width()


class TestLoopStores:
    """What is little more than copied wakes no thread; a shard wakes one for all its chunks."""

    def test_reading_and_writing_chunks_that_are_light(self):
        array = created_as(counting(inline=False), "raw")
        before = submissions()
        array.write(VALUES).result()
        np.testing.assert_array_equal(array.read().result(), VALUES)
        assert submissions() == before

    def test_encoding_chunks_that_are_not(self):
        array = created_as(counting(inline=False), "small")
        before = submissions()
        array.write(VALUES).result()
        assert submissions() - before == 128  # one each

    @pytest.mark.parametrize("codec", ["bytes", "zstd"])
    def test_encoding_shards(self, codec):
        codecs = [{
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 6, 4], "codecs": ["bytes"] + [codec] * (codec != "bytes"),
            },
        }]  # fmt: skip
        grid = {"name": "regular", "configuration": {"chunk_shape": [8, 24, 16]}}
        metadata = {"codecs": codecs, "chunk_grid": grid}
        array = created(
            counting(inline=False), SHAPE, None, "uint16", members={"metadata": metadata}
        )
        before = submissions()
        array.write(VALUES).result()
        # Of 64 inner chunks each all are copied on the loop, or compressed by a thread that may ask
        # others to help.
        assert submissions() - before <= (0 if codec == "bytes" else 2 * width())
        np.testing.assert_array_equal(array.read().result(), VALUES)


class TestCopies:
    """Nothing is copied of a whole chunk beyond decoding it: it is decoded where it is wanted."""

    @pytest.mark.parametrize("codec", COMPRESSED)
    @pytest.mark.parametrize("chunks", [[1, 24, 32], [2, 24, 32], [8, 24, 32], [1, 1, 32]])
    def test_a_chunk_is_decompressed_into_what_is_returned(self, codec, chunks, store, monkeypatch):
        array = created(store, SHAPE, chunks, "uint16", members={
            "metadata": {"codecs": ["bytes", codec]}
        })  # fmt: skip
        array.write(VALUES).result()
        (compressor,) = array._driver._known.array.chain.compressors
        written: list[np.ndarray] = []
        decode_into = type(compressor).decode_into

        def noted(self, data, out):
            written.append(np.frombuffer(out, "u1"))
            decode_into(self, data, out)

        monkeypatch.setattr(type(compressor), "decode_into", noted)
        found = array.read().result()

        np.testing.assert_array_equal(found, VALUES)
        assert all(np.shares_memory(memory, found) for memory in written)
        assert sum(memory.nbytes for memory in written) == found.nbytes

    @pytest.mark.parametrize("codec", COMPRESSED)
    def test_one_that_is_written_is_encoded_where_it_stands(self, codec, store, monkeypatch):
        array = created(store, SHAPE, [1, 24, 32], "uint16", members={
            "metadata": {"codecs": ["bytes", codec]}
        })  # fmt: skip
        (compressor,) = array._driver._known.array.chain.compressors
        encoded: list[np.ndarray] = []
        encode = type(compressor).encode

        def noted(self, data):
            encoded.append(np.frombuffer(data, "u1"))
            return encode(self, data)

        monkeypatch.setattr(type(compressor), "encode", noted)
        values = VALUES.copy()
        array.write(values, can_reference_source_data_indefinitely=True).result()

        assert len(encoded) == 8
        assert all(np.shares_memory(memory, values) for memory in encoded)


class TestRequests:
    @pytest.mark.parametrize("name", sorted(LAYOUTS))
    @pytest.mark.parametrize("inline", [True, False])
    def test_what_is_wholly_overwritten_is_never_read(self, name, inline):
        store = counting(inline)
        array = created_as(store, name)
        array.write(VALUES).result()
        chunks = len(store.writes) - 1  # besides the metadata
        store.reset()
        array.write(VALUES + 1).result()
        assert (sum(store.reads.values()), sum(store.writes.values())) == (0, chunks)

    @pytest.mark.parametrize("name", ["planes", "shards"])
    @pytest.mark.parametrize("inline", [True, False])
    def test_parts_of_one_chunk_that_are_in_flight_together_are_written_once(self, name, inline):
        store = counting(inline)
        array = created_as(store, name)
        store.reset()

        async def main():
            places = np.ndindex(8, 8)
            writes = [array[0, row, column].write(7) for row, column in places]
            free.set()
            await asyncio.gather(*writes)

        free = occupy_workers() if inline else occupy_loop()
        asyncio.run(main())
        assert list(store.writes.values()) == [1]
        assert (array[0, :8, :8].read().result() == 7).all()

    @pytest.mark.parametrize(("inline", "requests"), [(True, 4), (False, 2)])
    def test_all_of_a_small_shard_takes_one_request_far_away(self, inline, requests):
        store = counting(inline)
        array = created_as(store, "shards")
        array[:, :12].write(VALUES[:, :12]).result()  # half of the inner chunks stay missing
        store.reset()
        found = array.read().result()
        assert sum(store.reads.values()) == requests
        np.testing.assert_array_equal(found[:, :12], VALUES[:, :12])
        assert not found[:, 12:].any()

    @pytest.mark.parametrize("part", [np.s_[1:], np.s_[:, ::2], np.s_[3, 5]])
    def test_a_part_of_a_shard_takes_its_index_first(self, part):
        store = counting(inline=False)
        array = created_as(store, "shards")
        array.write(VALUES).result()
        store.reset()
        np.testing.assert_array_equal(array[part].read().result(), VALUES[part])
        assert set(store.reads.values()) == {2}

    def test_what_is_missing_of_a_shard_is_an_error_far_away_too(self):
        store = counting(inline=False)
        created_as(store, "shards")[:, :12].write(VALUES[:, :12]).result()
        strict = opened(store, members={"fill_missing_data_reads": False})
        with pytest.raises(ts.NotFoundError, match="missing"):
            strict.read().result()


CHUNK = 1 << 18


COUNT = 64


BYTES = np.random.default_rng(0).integers(1, 255, CHUNK * COUNT, "uint8")


#: Per thread: a chunk as stored, a chunk in scratch, and the codec's own needs.
ROOM = width() * 4 * CHUNK + (1 << 20)


@pytest.fixture
def peak():
    """How many bytes more than before were in use at worst, since the last call."""
    tracemalloc.start()

    def since():
        _, most = tracemalloc.get_traced_memory()
        before, held[0] = held[0], 0
        tracemalloc.reset_peak()
        held[0] = tracemalloc.get_traced_memory()[0]
        return most - before

    held = [0]
    yield since
    tracemalloc.stop()


def array_of(codecs):
    if codecs != "sharded":
        return Opened((CHUNK * COUNT,), (CHUNK,), "uint8", codecs)
    inner = codecs_named("zstd", 1)
    return Opened((CHUNK * COUNT,), (CHUNK * 4,), "uint8", sharding([CHUNK // 16], inner))


#: Chunks in one line, of two elements each, and what may be held for all of them together.
LINE = 6_000


LINE_ROOM = 15 << 16  # with a thousand notes of metrics that are not added up yet


def line(count=LINE):
    """An array of very many chunks, none of which is stored."""
    return Opened((2 * count,), (2,), "uint8", "raw")


VIEWS = {
    "whole": slice(None),
    "backwards": slice(None, None, -1),
    "strided": slice(None, None, -2),
}


class TestMemory:
    @pytest.mark.parametrize("codecs", ["raw", "zstd", "gzip"])
    def test_reading_costs_its_result_and_a_few_chunks(self, peak, codecs):
        array = array_of(codecs)
        array.write(BYTES)
        peak()
        found = array.read()
        assert peak() < found.nbytes + ROOM

    @pytest.mark.parametrize("codecs", ["raw", "zstd", "sharded"])
    def test_reading_a_little_of_every_chunk_costs_a_few_chunks(self, peak, codecs):
        array = array_of(codecs)
        array.write(BYTES)
        peak()
        array.read(array.identity[:: CHUNK // 4])
        assert peak() < ROOM

    @pytest.mark.parametrize("codecs", ["zstd", "gzip"])
    def test_writing_costs_what_is_stored_and_a_few_chunks(self, peak, codecs):
        array = array_of(codecs)
        peak()
        array.write(BYTES)
        stored = sum(map(len, array.store.entries.values()))
        assert peak() < stored + ROOM

    def test_nothing_but_scratch_is_kept_after_a_read(self, peak):
        array = array_of("zstd")
        array.write(BYTES)
        peak()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            array.read()
        assert tracemalloc.get_traced_memory()[0] - before < ROOM

    @pytest.mark.parametrize("view", VIEWS)
    def test_reading_takes_no_memory_per_chunk(self, peak, view):
        array = line()
        line(8).read()
        peak()
        found = array.read(array.identity[VIEWS[view]])
        assert peak() < found.nbytes + LINE_ROOM

    @pytest.mark.parametrize("view", VIEWS)
    def test_writing_takes_no_memory_per_chunk(self, peak, view):
        array = line()
        transform = array.identity[VIEWS[view]]
        values = np.zeros(transform.input_shape, "uint8")  # the fill value: nothing is stored
        line(8).write(values[:16])
        peak()
        array.write(values, transform)
        assert peak() < LINE_ROOM
        assert not array.store.entries

    def test_gathering_takes_a_few_numbers_per_chunk(self, peak):
        array = line()
        indices = np.random.default_rng(0).permutation(2 * LINE)[::2]
        transform = array.identity[indices]
        line(8).read()
        peak()
        array.read(transform)
        assert peak() < LINE_ROOM + 12 * indices.nbytes
