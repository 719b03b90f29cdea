"""Chunks of different shapes: each is encoded by the chain of its shape, whatever is selected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py.plugin.codec import ChunkType
from tensorstore_py.plugin.driver import (
    ChainsByShape,
    bind_chain,
)
from tests.chunked.stores import CODECS, Opened, sharding
from tests.chunked.views import look_up, views


class Uneven(Opened):
    """An array whose chunks have the given sizes in each dimension."""

    def __init__(self, shape, sizes, dtype="uint16", codecs="raw", **options):
        grid = {
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [list(each) for each in sizes]},
        }
        super().__init__(shape, [max(each) for each in sizes], dtype, codecs, grid=grid, **options)


@st.composite
def cases(draw, unit=1):
    """An array's shape, and the sizes of its chunks, multiples of `unit`."""
    shape, sizes = [], []
    for _ in range(draw(st.integers(1, 3))):
        each = [unit * size for size in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))]
        sizes.append(each)
        shape.append(draw(st.integers(sum(each[:-1]) + 1, sum(each))))
    return shape, sizes


@given(cases(), st.sampled_from(sorted(CODECS)), st.data())
def test_reads_are_what_numpy_says(case, codecs, data):
    shape, sizes = case
    array = Uneven(shape, sizes, codecs=codecs)
    values = np.arange(1, np.prod(shape) + 1, dtype="uint16").reshape(shape)
    array.write(values)
    view = data.draw(views(shape))
    np.testing.assert_array_equal(array.read(view), look_up(values, view))
    np.testing.assert_array_equal(array.read(order="F"), values)


@given(cases(), st.sampled_from(sorted(CODECS)), st.data())
def test_writes_are_what_numpy_says(case, codecs, data):
    shape, sizes = case
    array = Uneven(shape, sizes, codecs=codecs)
    values = np.zeros(shape, "uint16")
    where = np.arange(values.size).reshape(shape)
    for number in range(1, data.draw(st.integers(2, 4))):
        view = data.draw(views(shape, distinct=True))
        array.write(number, view)
        values.reshape(-1)[look_up(where, view).reshape(-1)] = number
    np.testing.assert_array_equal(array.read(), values)


@given(cases(unit=2), st.sampled_from(["end", "start"]), st.data())
def test_shards_of_different_shapes(case, location, data):
    shape, sizes = case
    inner = sharding([2] * len(shape), ["bytes", "crc32c"], location)
    array = Uneven(shape, sizes, codecs=inner)
    values = np.zeros(shape, "uint16")
    where = np.arange(values.size).reshape(shape)
    for number in range(1, 4):
        view = data.draw(views(shape, distinct=True))
        array.write(number, view)
        values.reshape(-1)[look_up(where, view).reshape(-1)] = number
    view = data.draw(views(shape))
    np.testing.assert_array_equal(array.read(view), look_up(values, view))


def test_chunks_are_stored_in_their_own_shape():
    array = Uneven((7, 5), [[2, 5], [4, 3]])
    array.write(np.arange(1, 36).reshape(7, 5))
    sizes = {key: len(value) for key, value in array.store.entries.items()}
    assert sizes == {"a/c/0/0": 16, "a/c/0/1": 12, "a/c/1/0": 40, "a/c/1/1": 30}


def test_what_is_written_in_full_is_not_read_before():
    array = Uneven((9,), [[2, 3, 4]])
    array.write(7, array.identity[2:5])
    assert array.store.counts == {"write": 1}
    array.write(7, array.identity[4:8])
    assert array.store.counts == {"write": 3, "read": 2}


def test_an_empty_chunk_is_deleted():
    array = Uneven((9,), [[2, 3, 4]], fill=3)
    array.write(np.arange(9))
    array.write(3, array.identity[2:5])
    assert sorted(array.store.entries) == ["a/c/0", "a/c/2"]
    assert array.read().tolist() == [0, 1, 3, 3, 3, 5, 6, 7, 8]


def test_memory_is_counted_by_the_chunk(monkeypatch):
    taken = []
    context = ts.Context({"memory_limit": {"limit_bytes": 100}})
    array = Uneven((9,), [[2, 3, 4]], context=context)
    budget = type(array.array.limits.memory)
    acquire = budget.acquire

    async def noted(self, inline, size):
        taken.append(size)
        return await acquire(self, inline, size)

    monkeypatch.setattr(budget, "acquire", noted)
    array.write(np.arange(1, 10))
    array.read()
    # a chunk and its encoded form, two bytes an element
    assert taken == [2 * 2 * size for size in (2, 3, 4, 2, 3, 4)]


def test_one_chain_is_bound_for_each_shape():
    array = Uneven((20, 6), [[2, 3, 2, 3, 2, 3, 2, 3], [4, 2]])
    array.write(1)
    chains = [array.array.at((row, column)).chain for row in range(8) for column in range(2)]
    assert len({id(chain) for chain in chains}) == 4
    assert array.array.at((0, 1)).shapes is None


def test_an_array_of_even_chunks_is_the_same_for_all_of_them():
    array = Opened((9,), (4,)).array
    assert array.at((2,)) is array


def test_shapes_are_not_remembered_without_end():
    zero = np.zeros((), "uint8")
    chains = ChainsByShape(lambda shape: bind_chain((), ChunkType(shape, zero.dtype, zero)))
    first = chains.of((1,))
    for size in range(2, 1100):
        chains.of((size,))
    assert chains.of((1,)) is not first


@pytest.mark.parametrize("codecs", ["raw", sharding([1], ["bytes"])], ids=["plain", "sharded"])
def test_a_great_many_shapes_in_one_operation(codecs):
    sizes = list(range(1, 301))
    array = Uneven((sum(sizes),), [sizes], codecs=codecs)
    every = np.cumsum([0, *sizes[:-1]])
    view = array.identity.oindex[every]
    array.write(np.arange(300), view)
    assert array.read(view).tolist() == list(range(300))
    assert len(array.store.entries) == 299
