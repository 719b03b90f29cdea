from dataclasses import replace

import numpy as np
import pytest

from tensorstore_py._runtime.workers import submissions, width
from tensorstore_py.errors import DataLossError
from tests.chunked.arrays import Opened, WatchedStore, codecs_named, sharding


def filled(shape):
    return np.arange(1, np.prod(shape) + 1).reshape(shape)


class TestCounting:
    @pytest.mark.parametrize("codecs", ["raw", "zstd", "sharded"])
    def test_whole_chunks_are_never_read(self, codecs):
        listed = sharding([2, 5], codecs_named("zstd", 2)) if codecs == "sharded" else codecs
        opened = Opened((12, 10), (4, 5), codecs=listed)
        opened.write(filled((12, 10)))
        opened.write(filled((8, 5)), opened.identity[4:, :5])
        assert opened.store.counts == {"write": 6 + 2}

    def test_a_chunk_that_sticks_out_is_whole_when_all_inside_is_written(self):
        opened = Opened((5,), (4,), fill=7)
        opened.write([1, 2, 3, 4, 5])
        assert opened.store.counts == {"write": 2}
        assert np.frombuffer(opened.store.entries["a/c/1"], "<u2").tolist() == [5, 7, 7, 7]

    @pytest.mark.parametrize("codecs", ["raw", "sharded"])
    def test_one_that_sticks_out_of_a_growing_array_keeps_what_is_outside(self, codecs):
        listed = sharding([2], codecs_named("zstd", 1)) if codecs == "sharded" else codecs
        grown = Opened((7,), (4,), codecs=listed)
        opened = Opened((5,), (4,), codecs=listed, store=grown.store)
        opened.array = replace(opened.array, growing=True)
        opened.write([1, 2, 3, 4, 5])
        assert opened.store.counts == {"write": 2}
        grown.write([6, 7], grown.identity[5:])
        opened.store.counts.clear()
        opened.write([8, 8, 8, 8, 8])
        assert opened.store.counts == {"write": 3, "read": 1}
        assert grown.read().tolist() == [8, 8, 8, 8, 8, 6, 7]

    def test_a_part_of_a_chunk_costs_one_read_and_one_write(self):
        opened = Opened((12, 10), (4, 5))
        opened.write(filled((12, 10)))
        opened.store.counts.clear()
        opened.write(0, opened.identity[5, 6])
        assert opened.store.counts == {"read": 1, "write": 1}

    def test_few_submissions_however_many_chunks(self):
        opened = Opened((1000,), (1,))
        before = submissions()
        opened.write(filled(1000))
        assert submissions() - before <= width()

    def test_inner_chunks_that_do_not_change_keep_their_bytes(self):
        opened = Opened((8,), (8,), "uint8", sharding([2], codecs_named("zstd", 1)))
        opened.write([1, 2, 3, 4, 5, 6, 7, 8])
        before = opened.store.entries["a/c/0"]
        # Bytes that no encoder of ours would make show that they were kept, not made again.
        strange = np.array([5, 6], "uint8")
        chain = Opened((2,), (2,), "uint8", [
            "bytes", {"name": "zstd", "configuration": {"level": 0, "checksum": True}}, "crc32c"
        ]).chain  # fmt: skip
        assert bytes(chain.encode(strange)) not in before
        opened.write(9, opened.identity[0])
        assert opened.read().tolist() == [9, 2, 3, 4, 5, 6, 7, 8]
        index = np.frombuffer(before[-68:-4], "<u8").reshape(-1, 2)
        for offset, size in index[1:].tolist():
            assert before[offset : offset + size] in opened.store.entries["a/c/0"]


class TestFillValue:
    @pytest.mark.parametrize("codecs", ["raw", "sharded"])
    def test_a_chunk_equal_to_it_is_deleted(self, codecs):
        listed = sharding([2], ["bytes"]) if codecs == "sharded" else codecs
        opened = Opened((8,), (4,), "uint8", listed, fill=3)
        opened.write(filled(8))
        assert sorted(opened.store.entries) == ["a/c/0", "a/c/1"]
        opened.write(3, opened.identity[:4])
        assert sorted(opened.store.entries) == ["a/c/1"]
        opened.write(3, opened.identity[4:6])
        opened.write(3, opened.identity[6:])
        assert not opened.store.entries
        assert (opened.read() == 3).all()

    @pytest.mark.parametrize("codecs", ["raw", "sharded"])
    def test_stored_on_request(self, codecs):
        listed = sharding([2], ["bytes"]) if codecs == "sharded" else codecs
        opened = Opened((8,), (4,), "uint8", listed, fill=3, store_fill=True)
        opened.write(3)
        assert sorted(opened.store.entries) == ["a/c/0", "a/c/1"]

    def test_an_inner_chunk_equal_to_it_is_left_out(self):
        opened = Opened((8,), (8,), "uint8", sharding([2], ["bytes"]))
        opened.write([1, 1, 0, 0, 2, 2, 0, 0])
        assert len(opened.store.entries["a/c/0"]) == 4 + 4 * 16 + 4

    @pytest.mark.parametrize(
        ("fill", "same", "other"),
        [(0.0, 0.0, -0.0), (-0.0, -0.0, 0.0), (np.nan, np.nan, 0.0), (np.inf, np.inf, -np.inf)],
    )
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
    def test_compared_bit_for_bit(self, fill, same, other, dtype):
        opened = Opened((4,), (4,), dtype, fill=fill)
        opened.write(np.full(4, same))
        assert not opened.store.entries
        opened.write(np.full(4, other))
        assert opened.store.entries
        assert opened.read().tobytes() == np.full(4, other, dtype).tobytes()

    def test_one_element_in_the_middle_counts(self):
        opened = Opened((9,), (9,), "uint8")
        for place in range(9):
            values = np.zeros(9)
            values[place] = 1
            opened.write(values)
            assert opened.store.entries


class TestCorrupt:
    @pytest.mark.parametrize("codecs", ["gzip", "zstd", "sharded"])
    def test_a_part_of_a_corrupt_chunk_is_refused_and_the_whole_replaces_it(self, codecs):
        listed = sharding([2], ["bytes", "crc32c"]) if codecs == "sharded" else codecs
        opened = Opened((4,), (4,), "uint8", listed)
        opened.write(filled(4))
        opened.store.poke("a/c/0", b"not a chunk")
        with pytest.raises(DataLossError, match=r'"a/c/0".*write the whole chunk'):
            opened.write(9, opened.identity[1])
        assert opened.store.entries["a/c/0"] == b"not a chunk"
        opened.write(filled(4))
        assert opened.read().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("inline", [True, False])
def test_an_error_of_the_store_is_the_outcome(inline):
    opened = Opened((100,), (1,), store=WatchedStore(inline=inline))

    def full(_operation, key):
        if key == "a/c/40":
            raise OSError("no space left")

    opened.store.before = full
    with pytest.raises(OSError, match="no space"):
        opened.write(filled(100))
    assert len(opened.store.entries) < 100


def test_the_source_is_never_kept():
    opened = Opened((4,), (4,), "uint8")
    values = np.arange(1, 5, dtype="uint8")
    opened.write(values)
    values[:] = 0
    assert opened.read().tolist() == [1, 2, 3, 4]
