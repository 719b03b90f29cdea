"""Reads of any selection, counted: whole chunks, parts of raw ones, missing and corrupt ones."""

import asyncio
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import AbortedError, DataLossError, NotFoundError, ResourceExhaustedError
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.kvstores.memory import MemoryStore
from tensorstore_py.plugin.codec import CodecChain
from tensorstore_py.plugin.kvstore import WHOLE
from tensorstore_py.testing import CountedWaits
from tests.chunked.stores import (
    Opened,
    WatchedStore,
    codecs_named,
    counting,
    created,
    opened,
    sharding,
)
from tests.runtime.processes import share, start, submissions, width

VALUES = np.arange(12 * 10, dtype="uint16").reshape(12, 10) + 1


def written(codecs="zstd", **options):
    opened = Opened((12, 10), (4, 5), "uint16", codecs, **options)
    opened.write(VALUES)
    opened.store.counts.clear()
    opened.store.bytes_read = 0
    return opened


def sharded(**options):
    return written(sharding([2, 5], codecs_named("zstd", 2)), **options)


class TestCounting:
    def test_one_store_read_a_chunk(self):
        opened = written()
        opened.read()
        assert opened.store.counts == {"read": 6}

    def test_only_the_chunks_wanted(self):
        opened = written()
        opened.read(opened.identity[5:7, 3:5])
        assert opened.store.counts == {"read": 1}
        opened.read(opened.identity.oindex[[0, 11], [1, 2]])
        assert opened.store.counts == {"read": 3}
        opened.read(opened.identity.vindex[[0, 11, 1], [1, 2, 2]])
        assert opened.store.counts == {"read": 5}

    def test_nothing_for_nothing(self):
        opened = written()
        assert opened.read(opened.identity[3:3]).shape == (0, 10)
        assert not opened.store.counts

    def test_a_whole_chunk_never_passes_through_scratch(self, monkeypatch):
        used: list[int] = []
        monkeypatch.setattr(sys.modules[CodecChain.__module__], "scratch", used.append)
        opened = Opened((4, 5), (4, 5), "uint16", "gzip")
        opened.write(VALUES[:4, :5])
        np.testing.assert_array_equal(opened.read(), VALUES[:4, :5])
        assert not used

    @pytest.mark.parametrize(("codecs", "handed_over"), [("raw", 0), ("big", 0), ("zstd", 6)])
    def test_a_thread_is_woken_for_what_takes_longer_than_that(self, codecs, handed_over):
        opened = Opened((12, 10), (4, 5), "uint16", codecs, store=WatchedStore(inline=False))
        opened.write(VALUES)
        before = submissions()
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert submissions() - before == handed_over

    def test_the_loop_does_not_wait_for_a_place(self):
        opened = Opened((12, 10), (4, 5), "uint16", "raw", store=WatchedStore(inline=False))
        opened.write(VALUES)
        copying = opened.array.limits.copying
        for _ in range(copying.limit):
            copying.acquire()
        reading = opened.start_read()
        start(False, partial(asyncio.sleep, 0)).result(timeout=60)  # it still turns
        assert not reading.done()
        for _ in range(copying.limit):
            copying.release()
        np.testing.assert_array_equal(reading.result(), VALUES)
        assert copying.available == copying.limit

    def test_few_submissions_however_many_chunks(self):
        opened = Opened((1000,), (1,), "uint8", store_fill=True)
        opened.write(np.ones(1000))
        before = submissions()
        opened.read()
        # The operation itself, and its helpers.
        assert submissions() - before <= width()

    @pytest.mark.parametrize("codecs", ["raw", "big", "zstd"])
    def test_no_thread_is_woken_for_chunks_that_take_no_longer_than_that(self, codecs, monkeypatch):
        share(monkeypatch, False)
        store = WatchedStore()
        store.width = 4
        opened = Opened((64, 64, 256), (16, 16, 16), "uint16", codecs, store=store)
        values = np.arange(2**20, dtype="u2").reshape(64, 64, 256)
        opened.write(values)
        before = submissions()
        np.testing.assert_array_equal(opened.read(), values)
        assert submissions() == before


class TestMissing:
    @pytest.mark.parametrize("inline", [True, False])
    def test_reads_as_the_fill_value(self, inline):
        opened = Opened((5, 5), (2, 2), fill=9, store=WatchedStore(inline=inline))
        assert (opened.read() == 9).all()

    def test_a_chunk_is_an_error_on_request_and_named(self):
        opened = Opened((5, 5), (2, 2), fill_missing=False)
        opened.write(1, opened.identity[:2, :2])
        assert (opened.read(opened.identity[:2, :2]) == 1).all()
        with pytest.raises(NotFoundError, match=r'"a/c/0/1".*fill_missing_data_reads'):
            opened.read(opened.identity[:2])

    def test_an_inner_chunk_is_an_error_on_request_and_named(self):
        opened = Opened((4, 4), (4, 4), "uint8", sharding([2, 2], ["bytes"]), fill_missing=False)
        opened.write(1, opened.identity[:2, :2])
        assert (opened.read(opened.identity[:2, :2]) == 1).all()
        with pytest.raises(NotFoundError, match=r"inner chunk \(1, 1\) of shard .*a/c/0/0"):
            opened.read(opened.identity[2:, 2:])

    def test_inner_chunks_read_as_the_fill_value(self):
        opened = Opened((4, 4), (4, 4), "uint8", sharding([2, 2], ["bytes"]), fill=3)
        opened.write(1, opened.identity[:2, :2])
        expected = np.full((4, 4), 3)
        expected[:2, :2] = 1
        np.testing.assert_array_equal(opened.read(), expected)


class TestCorrupt:
    @pytest.mark.parametrize("codecs", ["raw", "big", "gzip", "blosc", "zstd"])
    @pytest.mark.parametrize("part", [slice(0, 2), slice(2, 4)])
    @pytest.mark.parametrize("damage", ["truncated", "empty", "longer", "garbage"])
    def test_a_chunk_is_named_and_never_returned(self, codecs, part, damage):
        opened = written(codecs)
        good = opened.store.entries["a/c/1/0"]
        if codecs in {"raw", "big"} and damage == "garbage":
            damage = "longer"  # any bytes of the right number are a chunk
        bad = {
            "truncated": good[:-1],
            "empty": b"",
            "longer": good + b"\0",
            "garbage": bytes(byte ^ 0x5A for byte in good),
        }[damage]
        if codecs == "blosc" and damage == "longer":
            bad = good[:8] + (0).to_bytes(4, "little") + good[12:]
        opened.store.poke("a/c/1/0", bad)
        whole = part == slice(0, 2)
        view = opened.identity if whole else opened.identity[4:6, 1:3]
        with pytest.raises(DataLossError, match='"a/c/1/0"'):
            opened.read(view)

    @pytest.mark.parametrize("location", ["start", "end"])
    def test_every_damaged_byte_of_a_shard_is_found(self, location):
        codecs = sharding([2, 5], ["bytes", "crc32c"], location)
        opened = written(codecs)
        good = opened.store.entries["a/c/1/0"]
        for place in range(0, len(good), 3):
            bad = bytearray(good)
            bad[place] ^= 1
            opened.store.poke("a/c/1/0", bytes(bad))
            with pytest.raises(DataLossError, match=r"a/c/1/0"):
                opened.read()
        opened.store.poke("a/c/1/0", good)
        np.testing.assert_array_equal(opened.read(), VALUES)

    @pytest.mark.parametrize("location", ["start", "end"])
    def test_a_shard_cut_short_anywhere_is_found(self, location):
        opened = written(sharding([2, 5], ["bytes", "crc32c"], location))
        good = opened.store.entries["a/c/1/0"]
        for size in range(0, len(good), 5):
            opened.store.poke("a/c/1/0", good[:size])
            with pytest.raises(DataLossError, match=r"a/c/1/0"):
                opened.read()

    def test_an_index_that_points_outside(self):
        index = ["bytes"]
        codecs = sharding([2, 5], ["bytes"])
        codecs[0]["configuration"]["index_codecs"] = index
        opened = written(codecs)
        for entry in ([10**6, 20], [0, 10**6], [2**64 - 2, 5], [2**64 - 1, 20], [5, 2**64 - 1]):
            good = opened.store.entries["a/c/1/0"]
            bad = np.frombuffer(good[-32:], "<u8").copy()
            bad[:2] = entry
            opened.store.poke("a/c/1/0", good[:-32] + bad.tobytes())
            with pytest.raises(DataLossError, match=r"a/c/1/0"):
                opened.read()
            opened.store.poke("a/c/1/0", good)

    def test_a_chunk_that_memory_has_no_room_for_is_named(self, monkeypatch):
        opened = written("zstd")

        def exhausted(*_):
            raise MemoryError

        monkeypatch.setattr(CodecChain, "decode_into", exhausted)
        monkeypatch.setattr(CodecChain, "decode_scratch", exhausted)
        message = r'Error reading "a/c/1/0".*of shape \[4, 5\] and type uint16 takes 40 bytes'
        with pytest.raises(ResourceExhaustedError, match=message):
            opened.read(opened.identity[4:8, :5])

    def test_a_stored_boolean_that_is_none(self):
        opened = Opened((4,), (4,), "bool")
        opened.store.poke("a/c/0", b"\0\1\2\1")
        with pytest.raises(DataLossError, match='"a/c/0"'):
            opened.read()


class TestShards:
    def test_one_inner_chunk_costs_the_index_and_its_bytes(self):
        opened = Opened((64, 64), (64, 64), "uint8", sharding([8, 8], ["bytes"]))
        opened.write(np.arange(64 * 64).reshape(64, 64) % 251 + 1)
        opened.store.counts.clear()
        opened.store.bytes_read = 0
        opened.read(opened.identity[8:16, 16:24])
        assert opened.store.counts == {"read": 2}
        assert opened.store.bytes_read == 64 + 64 * 16 + 4

    def test_neighbouring_inner_chunks_come_in_one_request(self):
        opened = sharded()
        opened.read()
        assert opened.store.counts == {"read": 2 * 6}

    def test_distant_ones_are_fetched_apart(self):
        opened = Opened((1 << 15,), (1 << 15,), "uint8", sharding([1024], ["bytes"]))
        opened.write(np.ones(1 << 15))
        opened.store.counts.clear()
        opened.store.bytes_read = 0
        opened.read(opened.identity.oindex[[0, (1 << 15) - 1]])
        assert opened.store.counts == {"read": 3}
        assert opened.store.bytes_read == 2048 + 32 * 16 + 4

    def test_batches_are_bounded(self):
        opened = Opened((5 << 20,), (5 << 20,), "uint8", sharding([1 << 20], ["bytes"]))
        opened.write(np.ones(5 << 20))
        opened.store.counts.clear()
        opened.read()
        assert opened.store.counts["read"] == 1 + 3

    def test_a_shard_replaced_while_it_is_read_gives_the_new_one_only(self):
        opened = sharded()
        other = sharded()
        other.write(VALUES + 1000)
        replacements = iter(range(3))

        def interfere(_operation, key):
            if (
                key == "a/c/0/0"
                and opened.store.counts["read"] % 2 == 0
                and next(replacements, None) is not None
            ):
                opened.store.poke(key, other.store.entries[key])

        opened.store.before = interfere
        found = opened.read(opened.identity[:4, :5])
        np.testing.assert_array_equal(found, VALUES[:4, :5] + 1000)
        assert opened.store.counts["read"] == 2 * 4

    def test_a_shard_deleted_while_it_is_read_reads_as_missing(self):
        opened = sharded(fill=9)

        def interfere(_operation, key):
            if opened.store.counts["read"] == 2:
                opened.store.poke(key, None)

        opened.store.before = interfere
        assert (opened.read(opened.identity[:4, :5]) == 9).all()

    def test_a_shard_that_never_holds_still_is_given_up(self):
        opened = sharded()

        def interfere(operation, key):
            if operation == "read":
                opened.store.poke(key, opened.store.entries[key])

        opened.store.before = interfere
        with CountedWaits() as waits, pytest.raises(AbortedError, match=r'"a/c/0/0"') as lost:
            opened.read(opened.identity[:4, :5])
        assert len(waits.seconds) == lost.value.attempts - 1 == 999


SHAPE = (8, 24, 6)


CUBE = np.arange(np.prod(SHAPE), dtype="uint16").reshape(SHAPE) + 1


BIG = [{"name": "bytes", "configuration": {"endian": "big"}}]


@pytest.fixture(params=["memory", "file"])
def base(request, tmp_path):
    if request.param == "memory":
        return {"driver": "memory"}
    return {"driver": "file", "path": f"{tmp_path}/"}


@pytest.fixture
def fetched(monkeypatch):
    """How many bytes were asked for of each chunk, by parts and as a whole."""
    found: list[list[int] | str] = []
    for kind in (MemoryStore, FileStore):
        read_parts, read = kind.read_parts, kind.read

        async def noted_parts(self, key, ranges, size, read_parts=read_parts):
            values = await read_parts(self, key, ranges, size)
            if values is not None and values[0] is not None:
                found.append([len(value) for value in values])
            return values

        async def noted(self, key, byte_range=WHOLE, read=read, **named):
            if not key.endswith("json"):
                found.append("whole")
            return await read(self, key, byte_range, **named)

        monkeypatch.setattr(kind, "read_parts", noted_parts)
        monkeypatch.setattr(kind, "read", noted)
    return found


def made(base, codecs=("bytes",), chunks=(8, 8, 6), dtype="uint16", **options):
    array = ts.open(
        {"driver": "zarr3", "kvstore": base, "metadata": {"codecs": list(codecs)}},
        create=True, dtype=dtype, shape=SHAPE, chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
        **options,
    ).result()  # fmt: skip
    array.write(CUBE.astype(dtype)).result()
    return array


class TestPartsOfRawChunks:
    @pytest.mark.parametrize("codecs", [["bytes"], BIG], ids=["native", "swapped"])
    def test_a_plane_is_fetched_alone(self, base, fetched, codecs):
        array = made(base, codecs)
        np.testing.assert_array_equal(array[3].read().result(), CUBE[3])
        assert fetched == [[96]] * 3

    def test_a_few_planes_are_fetched_in_one_piece(self, base, fetched):
        array = made(base)
        np.testing.assert_array_equal(array[2:5, 4:12, 1].read().result(), CUBE[2:5, 4:12, 1])
        assert fetched == [[3 * 96], [3 * 96]]

    def test_most_of_a_chunk_is_fetched_as_a_whole(self, base, fetched):
        array = made(base)
        np.testing.assert_array_equal(array[1:6, 3, :2].read().result(), CUBE[1:6, 3, :2])
        assert fetched == ["whole"]

    def test_what_several_want_is_fetched_in_pieces(self, fetched):
        array = made({"driver": "memory"})
        driver = array._driver
        boxes: list[Any] = [
            (5, 1),
            (slice(1, 2), slice(2, 4)),
            (slice(2, 3), 5, slice(0, 2)),
            (5, 0, 0),
        ]
        reads = [driver.prepare_read(array[box]._get_transform(), "C") for box in boxes]
        for box, read in zip(boxes, reads, strict=True):
            np.testing.assert_array_equal(start(True, read).result(), CUBE[box])
        assert fetched == [[2 * 96, 96]]

    @pytest.mark.parametrize("dtype", ["int8", "bool", "float32", "complex64", "bfloat16", "U3"])
    def test_types(self, base, dtype):
        values = CUBE.astype("U3" if dtype == "U3" else "float32")
        if dtype == "U3":
            array = ts.open(
                {"driver": "zarr", "kvstore": base}, dtype="U3",
                codec=ts.CodecSpec({"driver": "zarr", "compressor": None}), create=True,
                shape=SHAPE, chunk_layout=ts.ChunkLayout(chunk_shape=(8, 8, 6)),
            ).result()  # fmt: skip
        else:
            array = made(base, dtype="float32" if dtype == "bfloat16" else dtype)
            values = CUBE.astype(dtype if dtype != "bfloat16" else "float32")
        array.write(values).result()
        for box in [(2,), (slice(3, 5), 7), (7, slice(None), 5)]:
            np.testing.assert_array_equal(array[box].read().result(), values[box])

    @pytest.mark.parametrize("codecs", [["bytes", "zstd"], ["bytes", "crc32c"], ["transpose"]])
    def test_what_is_encoded_further_is_fetched_as_a_whole(self, base, fetched, codecs):
        if codecs == ["transpose"]:
            codecs = [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}, "bytes"]
        array = made(base, codecs)
        np.testing.assert_array_equal(array[3, 2].read().result(), CUBE[3, 2])
        assert fetched in (["whole"], [])
        assert fetched or base["driver"] == "file"

    def test_a_missing_chunk_reads_as_fill_values(self, base, fetched):
        array = made(base)
        array[:, 8:16] = 0
        fetched.clear()
        assert array[3, 6:18, 0].read().result().tolist() == [
            0 if 8 <= at < 16 else CUBE[3, at, 0] for at in range(6, 18)
        ]
        strict = ts.open(
            {"driver": "zarr3", "kvstore": base, "fill_missing_data_reads": False}
        ).result() if base["driver"] == "file" else None  # fmt: skip
        if strict is not None:
            with pytest.raises(NotFoundError, match="c/0/1/0"):
                strict[3, 9].read().result()

    @pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x"])
    def test_a_chunk_of_another_size_is_corrupt_wherever_it_is_read(self, tmp_path, change):
        base = {"driver": "file", "path": f"{tmp_path}/"}
        array = made(base)
        path = tmp_path / "c/0/0/0"
        path.write_bytes(change(path.read_bytes()))
        with pytest.raises(DataLossError, match="c/0/0/0"):
            array[0, 0].read().result()

    def test_a_stored_boolean_that_is_none_is_corrupt(self, tmp_path):
        base = {"driver": "file", "path": f"{tmp_path}/"}
        array = made(base, dtype="bool")
        path = tmp_path / "c/0/0/0"
        path.write_bytes(b"\x02" + path.read_bytes()[1:])
        with pytest.raises(DataLossError, match="c/0/0/0"):
            array[0, 0].read().result()
        assert array[1, 0].read().result().all()

    def test_a_store_that_cannot_tell_is_read_as_a_whole(self):
        store = counting()
        created(store, [8, 4], [8, 4], members={"metadata": {"codecs": ["bytes"]}}).write(
            np.arange(32, dtype="uint8").reshape(8, 4)
        ).result()
        array = opened(store)
        store.reset()
        assert array[3].read().result().tolist() == [12, 13, 14, 15]
        assert store.reads == {"a/c/0/0": 1}


IN_BLOCKS = ["bytes", {"name": "blosc", "configuration": {"cname": "zstd", "blocksize": 4096}}]
LARGE = (np.arange(150 * 48 * 64) // 7).astype("uint16").reshape(150, 48, 64)


@pytest.fixture(scope="module", params=["chunks", "shards"])
def in_blocks(request):
    """An array whose chunks are large, and made of blocks."""
    codecs = IN_BLOCKS if request.param == "chunks" else sharding([60, 40, 64], IN_BLOCKS)
    chunks = (60, 40, 64) if request.param == "chunks" else (120, 80, 64)
    opened = Opened(LARGE.shape, chunks, "uint16", codecs)
    opened.write(LARGE)
    assert opened.array.chain.part_row_bytes or request.param == "shards"
    return opened


def ends(size):
    return st.tuples(st.integers(0, size - 1), st.integers(1, size)).map(sorted)


@given(
    rows=ends(150),
    columns=ends(48),
    step=st.sampled_from([1, 2, 7, -1, -3]),
    row=st.none() | st.integers(0, 149),
)
def test_of_chunks_made_of_blocks_any_part_is_what_was_written(in_blocks, rows, columns, step, row):
    first = row if row is not None else slice(*rows)
    view = in_blocks.identity[first, slice(*columns)]
    expected = LARGE[first, slice(*columns)]
    if row is None:
        view, expected = view[::step], expected[::step]
    np.testing.assert_array_equal(in_blocks.read(view), expected)
