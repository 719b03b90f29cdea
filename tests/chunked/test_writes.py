import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError
from tests.chunked.stores import (
    CODECS,
    Opened,
    WatchedStore,
    codecs_named,
    nothing,
    sharding,
    transposed,
)
from tests.chunked.stores import opened as handle
from tests.runtime.processes import occupy_loop, occupy_workers, submissions, width


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


DTYPES = ["bool", "int8", "uint16", "int32", "float16", "float32", "float64", "complex64"]


@st.composite
def nearly_filled(draw):
    """A fill value, and a view of an array that is filled with it apart from a few elements."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    element = hnp.from_dtype(dtype, allow_nan=True)
    fill = np.array(draw(element), dtype)
    array = np.full(draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)), fill)
    for _ in range(draw(st.integers(0, 2))):
        if array.size:
            position = draw(st.integers(0, array.size - 1))
            array.reshape(-1)[position] = np.array(
                draw(st.one_of(element, st.just(fill[()]))), dtype
            )
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    if array.ndim and draw(st.booleans()):
        array = array[::-1]
    return fill, array


@given(nearly_filled())
def test_nothing_is_stored_of_a_chunk_that_has_the_bits_of_the_fill_value(case):
    fill, array = case
    opened = Opened(array.shape, [max(size, 1) for size in array.shape], fill.dtype, fill=fill)
    opened.write(array)
    same = all(element.tobytes() == fill.tobytes() for element in array.reshape(-1))
    assert bool(opened.store.entries) != same


class TestGrown:
    """An array that grew while it was open, so that other writers may know of further bounds."""

    @pytest.fixture(params=["raw", "sharded"])
    def codecs(self, request):
        return CODECS["raw"] if request.param == "raw" else sharding([2], codecs_named("zstd", 1))

    def handles(self, store, codecs):
        """One that knows of 5 elements, and one that knows of 7, of chunks of 4."""
        grid = {"name": "regular", "configuration": {"chunk_shape": [4]}}
        members = {"metadata": {"chunk_grid": grid, "codecs": codecs}}
        made = handle(store, create=True, dtype="uint16", shape=[3], members=members)
        known = made.resize(exclusive_max=[5]).result()
        grown = handle(store).resize(exclusive_max=[7]).result()
        store.counts.clear()
        return known, grown

    def test_a_chunk_that_sticks_out_is_stored_unread_where_nothing_is(self, codecs):
        store = WatchedStore()
        known, grown = self.handles(store, codecs)
        known.write([1, 2, 3, 4, 5]).result()
        assert store.counts == {"write": 2}
        assert grown.read().result().tolist() == [1, 2, 3, 4, 5, 0, 0]

    def test_else_it_is_changed_in_part(self, codecs):
        store = WatchedStore()
        known, grown = self.handles(store, codecs)
        grown[5:] = [6, 7]
        store.counts.clear()
        known.write([8, 8, 8, 8, 8]).result()
        # That nothing is there is tried first, and costs a write.
        assert store.counts == {"write": 3, "read": 1}
        assert grown.read().result().tolist() == [8, 8, 8, 8, 8, 6, 7]

    def test_what_another_stored_between_is_kept(self, codecs):
        store = WatchedStore()
        known, grown = self.handles(store, codecs)

        def interfere(operation, key):
            if (operation, key) == ("write", "a/c/1"):
                store.before = nothing
                grown[5:] = [6, 7]

        store.before = interfere
        known.write([8, 8, 8, 8, 8]).result()
        assert grown.read().result().tolist() == [8, 8, 8, 8, 8, 6, 7]

    @pytest.mark.parametrize("inline", [True, False])
    @pytest.mark.parametrize("there", [True, False])
    def test_nothing_is_lost_of_writes_that_are_pending_on_the_same_chunk(
        self, codecs, inline, there
    ):
        store = WatchedStore(inline=inline)
        known, grown = self.handles(store, codecs)
        if there:
            grown[6] = 7
        free = occupy_workers() if inline else occupy_loop()
        try:
            futures = [
                known[4].write(50), known.write([1, 2, 3, 4, 5]), known[4].write(60),
                grown[5].write(6),
            ]  # fmt: skip
        finally:
            free.set()
        for future in futures:
            future.result()
        found = grown.read().result().tolist()
        assert found[:4] == [1, 2, 3, 4]
        assert found[4] in {5, 50, 60}
        assert found[5:] == [6, 7 * there]


class TestStaged:
    """Changes that a transaction holds until it is committed."""

    @pytest.fixture(params=["raw", "sharded"])
    def opened(self, request):
        codecs = sharding([2], ["bytes"]) if request.param == "sharded" else "raw"
        return Opened([8], [8], codecs=codecs, fill=9)

    def test_several_become_one_in_their_order(self, opened):
        with ts.Transaction() as transaction:
            within = opened.handle.with_transaction(transaction)
            for begin, values in ((0, [1, 1, 1]), (2, [2, 2, 2, 2]), (1, [3]), (7, [4])):
                within[begin : begin + len(values)] = values
            assert within.read().result().tolist() == [1, 3, 2, 2, 2, 2, 9, 4]
        assert opened.store.counts["write"] == 1
        assert opened.read().tolist() == [1, 3, 2, 2, 2, 2, 9, 4]

    def test_they_are_independent_of_their_source(self, opened):
        values = np.array([1, 2, 3], "uint16")
        with ts.Transaction() as transaction:
            opened.handle.with_transaction(transaction)[1:4].write(values).result()
            values[:] = 0
        assert opened.read().tolist() == [9, 1, 2, 3, 9, 9, 9, 9]

    def test_back_to_the_fill_value_is_nothing_to_store(self, opened):
        opened.write(1, opened.identity[2:3])
        with ts.Transaction() as transaction:
            opened.handle.with_transaction(transaction)[2] = 9
        assert not opened.store.entries

    def test_those_of_another_form_of_the_same_chunk_stay_apart(self):
        with ts.Transaction() as transaction:
            little = Opened([4], [4], codecs="raw")
            big = Opened([4], [4], codecs="big", store=little.store)
            one, other = (each.handle.with_transaction(transaction) for each in (little, big))
            one[0], other[1], one[2] = 1, 2, 3
        assert little.read().tolist() == [1, 2 << 8, 3, 0]


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


@pytest.mark.parametrize("codecs", [
    [*sharding([2, 2], ["bytes"]), "gzip"],
    [transposed(2), *sharding([2, 2], ["bytes"])],
], ids=["compressed", "transposed"])  # fmt: skip
def test_a_shard_that_must_be_decoded_first_is_changed_as_a_whole(codecs):
    opened = Opened((8, 8), (4, 4), codecs=codecs)
    values = np.arange(64, dtype="uint16").reshape(8, 8)
    opened.write(values)
    opened.write(7, opened.identity[1:3, 5])
    values[1:3, 5] = 7
    np.testing.assert_array_equal(opened.read(), values)


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
