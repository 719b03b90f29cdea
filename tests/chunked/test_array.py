"""What a chunked array says of itself: its shards, its fill chunks, what equals the fill value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.chunked.arrays import Opened, codecs_named, sharding, transposed


class TestSharded:
    def test_a_chain_of_nothing_but_shards_can_be_looked_into(self):
        array = Opened((8, 8), (4, 4), codecs=sharding([2, 2], ["bytes"])).array
        assert array.sharded is array.chain.to_bytes

    def test_other_serializers_are_opaque(self):
        assert Opened((8, 8), (4, 4), codecs=["bytes"]).array.sharded is None

    @pytest.mark.parametrize("codecs", [
        [*sharding([2, 2], ["bytes"]), "gzip"],
        [transposed(2), *sharding([2, 2], ["bytes"])],
    ], ids=["compressed", "transposed"])  # fmt: skip
    def test_a_shard_that_must_be_decoded_first_is_opaque(self, codecs):
        opened = Opened((8, 8), (4, 4), codecs=codecs)
        assert opened.array.sharded is None
        values = np.arange(64, dtype="uint16").reshape(8, 8)
        opened.write(values)
        opened.write(7, opened.identity[1:3, 5])
        values[1:3, 5] = 7
        np.testing.assert_array_equal(opened.read(), values)


class TestFilledChunk:
    def test_is_fresh_each_time(self):
        array = Opened((8,), (4,), fill=7).array
        first = array.filled_chunk()
        first[...] = 0
        assert array.filled_chunk().tolist() == [7, 7, 7, 7]

    def test_has_the_type_and_shape_of_a_chunk(self):
        chunk = Opened((5, 9), (4, 3), ">f4", fill=1.5).array.filled_chunk()
        assert (chunk.shape, chunk.dtype) == ((4, 3), np.dtype(">f4"))


DTYPES = ["bool", "int8", "uint16", ">i4", "float16", "float32", "float64", "complex64"]


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
def test_equal_to_the_fill_value_means_the_same_bits_everywhere(case):
    fill, array = case
    kept = Opened(array.shape, [max(size, 1) for size in array.shape], fill.dtype, fill=fill).array
    bits = fill.astype(kept.chain.chunk.dtype).tobytes()
    array = array.astype(kept.chain.chunk.dtype)
    expected = all(element.tobytes() == bits for element in array.reshape(-1))
    assert kept.is_fill(array) == expected


@pytest.mark.parametrize("middle", [0, 1])
def test_what_lies_between_the_corners_counts(middle):
    array = Opened((2**10,), (2**10,), "uint8").array
    chunk = np.zeros(2**10, "uint8")
    chunk[300] = middle
    assert array.is_fill(chunk) == (middle == 0)


@pytest.mark.parametrize("codec", ["raw", "zstd", "blosc"])
def test_an_array_of_each_encoding_knows_its_fill_chunks(codec):
    opened = Opened((4, 4), (2, 2), fill=9, codecs=codecs_named(codec, 2))
    assert opened.array.is_fill(opened.array.filled_chunk())
    opened.write(9)
    assert opened.store.entries == {}


class TestCells:
    def test_are_those_that_a_box_touches(self):
        array = Opened((8, 6), (4, 4)).array
        assert [*array.cells([(3, 5), (0, 4)])] == [(0, 0), (1, 0)]
        assert [*array.cells([(0, 8), (4, 4)])] == []

    def test_of_a_scalar_is_its_only_one(self):
        assert [*Opened((), ()).array.cells([])] == [()]
