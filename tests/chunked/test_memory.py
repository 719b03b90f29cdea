"""Memory in flight: a read costs its result and a few chunks, a write a few chunks."""

import tracemalloc

import numpy as np
import pytest

from tensorstore_py._runtime.workers import width
from tests.chunked.arrays import Opened, codecs_named, sharding

CHUNK = 1 << 18
COUNT = 64
VALUES = np.random.default_rng(0).integers(1, 255, CHUNK * COUNT, "uint8")
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


def opened(codecs):
    if codecs != "sharded":
        return Opened((CHUNK * COUNT,), (CHUNK,), "uint8", codecs)
    inner = codecs_named("zstd", 1)
    return Opened((CHUNK * COUNT,), (CHUNK * 4,), "uint8", sharding([CHUNK // 16], inner))


@pytest.mark.parametrize("codecs", ["raw", "zstd", "gzip"])
def test_reading_costs_its_result_and_a_few_chunks(peak, codecs):
    array = opened(codecs)
    array.write(VALUES)
    peak()
    found = array.read()
    assert peak() < found.nbytes + ROOM


@pytest.mark.parametrize("codecs", ["raw", "zstd", "sharded"])
def test_reading_a_little_of_every_chunk_costs_a_few_chunks(peak, codecs):
    array = opened(codecs)
    array.write(VALUES)
    peak()
    array.read(array.identity[:: CHUNK // 4])
    assert peak() < ROOM


@pytest.mark.parametrize("codecs", ["zstd", "gzip"])
def test_writing_costs_what_is_stored_and_a_few_chunks(peak, codecs):
    array = opened(codecs)
    peak()
    array.write(VALUES)
    stored = sum(map(len, array.store.entries.values()))
    assert peak() < stored + ROOM


def test_nothing_but_scratch_is_kept_after_a_read(peak):
    array = opened("zstd")
    array.write(VALUES)
    peak()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(3):
        array.read()
    assert tracemalloc.get_traced_memory()[0] - before < ROOM


#: Chunks in one line, of two elements each, and what may be held for all of them together.
LINE = 20_000
LINE_ROOM = 3 << 19


def line(count=LINE):
    """An array of very many chunks, none of which is stored."""
    return Opened((2 * count,), (2,), "uint8", "raw")


VIEWS = {
    "whole": slice(None),
    "backwards": slice(None, None, -1),
    "strided": slice(None, None, -2),
}


@pytest.mark.parametrize("view", VIEWS)
def test_reading_takes_no_memory_per_chunk(peak, view):
    array = line()
    line(8).read()
    peak()
    found = array.read(array.identity[VIEWS[view]])
    assert peak() < found.nbytes + LINE_ROOM


@pytest.mark.parametrize("view", VIEWS)
def test_writing_takes_no_memory_per_chunk(peak, view):
    array = line()
    transform = array.identity[VIEWS[view]]
    values = np.zeros(transform.input_shape, "uint8")  # the fill value: nothing is stored
    line(8).write(values[:16])
    peak()
    array.write(values, transform)
    assert peak() < LINE_ROOM
    assert not array.store.entries


def test_gathering_takes_a_few_numbers_per_chunk(peak):
    array = line()
    indices = np.random.default_rng(0).permutation(2 * LINE)[::2]
    transform = array.identity[indices]
    line(8).read()
    peak()
    array.read(transform)
    assert peak() < LINE_ROOM + 12 * indices.nbytes
