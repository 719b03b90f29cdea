"""The laws of the hot path, counted by the public door: tasks, helpers, copies, requests."""

import asyncio

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._runtime.workers import submissions, width
from tests.chunked.stores import counting, created
from tests.runtime.processes import occupy_loop, occupy_workers

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
        monkeypatch.setattr("tensorstore_py._runtime.fan_out.worth_sharing", lambda _: found)
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
