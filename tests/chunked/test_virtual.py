# ruff: noqa: ARG001 - the functions of an array are called with three arguments, needed or not
import math
import time

import numpy as np
import pytest

import tensorstore_py as ts

UNKNOWN = b""


def stamp(generation, at=math.inf):
    return ts.KvStore.TimestampedStorageGeneration(generation, at)


class Backing:
    """Chunks of a NumPy array, and a note of every call."""

    def __init__(self, array, origin=None, versions=False):
        self.array = array
        self.origin = origin or (0,) * array.ndim
        self.versions = versions
        self.version = 1
        self.calls = []

    def _part(self, domain):
        bounds = zip(domain.inclusive_min, domain.exclusive_max, self.origin, strict=True)
        return tuple(slice(low - start, high - start) for low, high, start in bounds)

    def _stamp(self):
        return stamp(b"%d" % self.version, time.time()) if self.versions else None

    def read(self, domain, chunk, parameters):
        assert chunk.shape == domain.shape
        self.calls.append(("read", domain.origin, parameters.if_not_equal))
        chunk[...] = self.array[self._part(domain)]
        return self._stamp()

    def write(self, domain, chunk, parameters):
        assert not chunk.flags.writeable
        self.calls.append(("write", domain.origin, parameters.if_equal))
        self.array[self._part(domain)] = chunk
        self.version += 1
        return self._stamp()

    def open(self, chunk=(3, 4), **options):
        layout = ts.ChunkLayout(read_chunk_shape=chunk)
        domain = ts.IndexDomain(inclusive_min=self.origin, shape=self.array.shape)
        return ts.virtual_chunked(
            self.read, self.write, dtype=self.array.dtype, domain=domain,
            **{"chunk_layout": layout, **options},
        )  # fmt: skip


def data():
    return np.arange(80, dtype=np.int32).reshape(8, 10)


INDEXES = [
    np.s_[...],
    np.s_[2:7, 3],
    np.s_[::-1, ::3],
    np.s_[[7, 0, 3, 3], 2:],
    np.s_[[1, 5], [4, 9]],
    np.s_[None, 3, :, None],
    np.s_[3:3],
]


@pytest.mark.parametrize("index", INDEXES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_as_from_one_array(index, order):
    backing = Backing(data())
    found = backing.open()[index].read(order=order).result()
    assert found.flags[f"{order}_CONTIGUOUS"]
    np.testing.assert_array_equal(found, data()[index])


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_writes_as_to_one_array(index):
    backing = Backing(data())
    expected = data()
    values = np.arange(100, 100 + expected[index].size, dtype=np.int32)
    values = values.reshape(expected[index].shape)
    backing.open()[index].write(values).result()
    expected[index] = values
    np.testing.assert_array_equal(backing.array, expected)


def test_chunks_begin_at_the_domains_origin_or_where_the_layout_says():
    backing = Backing(data(), origin=(-3, 5))
    store = backing.open()
    assert store.chunk_layout.grid_origin == (0, 1)
    np.testing.assert_array_equal(store.read().result(), data())
    assert {origin for _, origin, _ in backing.calls} == {
        (row, column) for row in (-3, 0, 3) for column in (5, 9, 13)
    }
    backing.calls.clear()
    layout = ts.ChunkLayout(read_chunk_shape=[3, 4], grid_origin=[1, 0])
    store = backing.open(chunk_layout=layout)
    np.testing.assert_array_equal(store.read().result(), data())
    assert {origin for _, origin, _ in backing.calls} == {
        (row, column) for row in (-3, -2, 1, 4) for column in (5, 8, 12)
    }


def test_an_array_without_bounds():
    def read(domain, chunk, parameters):
        chunk[...] = domain.inclusive_min[0]

    layout = ts.ChunkLayout(read_chunk_shape=[4])
    store = ts.virtual_chunked(read, dtype="int64", rank=1, chunk_layout=layout)
    assert str(store.domain) == "{ (-inf, +inf) }"
    assert store[-5:2].read().result().tolist() == [-8, -4, -4, -4, -4, 0, 0]
    assert store[[10**9, -(10**9) - 1]].read().result().tolist() == [10**9, -(10**9) - 4]


def test_no_dimensions():
    store = ts.virtual_chunked(lambda _, chunk, __: chunk.fill(7), dtype="int8", shape=[])
    assert store.read().result() == 7


def test_only_the_chunks_that_are_needed_are_made():
    backing = Backing(data())
    backing.open()[3:6, 4:6].read().result()
    assert backing.calls == [("read", (3, 4), UNKNOWN)]


def test_a_whole_chunk_is_written_without_being_read():
    backing = Backing(data())
    store = backing.open()
    store[3:6, 4:8].write(1).result()
    store[6:8, 8:10].write(2).result()  # as far as it lies inside
    assert backing.calls == [("write", (3, 4), UNKNOWN), ("write", (6, 8), UNKNOWN)]
    backing.calls.clear()
    store[3, 4].write(3).result()
    assert [what for what, _, _ in backing.calls] == ["read", "write"]
    assert backing.array[3, 4:8].tolist() == [3, 1, 1, 1]


def test_the_order_in_memory_is_the_layouts():
    seen = []

    def read(domain, chunk, parameters):
        seen.append(chunk.flags.f_contiguous and not chunk.flags.c_contiguous)
        chunk[...] = np.arange(6).reshape(2, 3)

    layout = ts.ChunkLayout(inner_order=[1, 0])
    store = ts.virtual_chunked(read, dtype="int8", shape=[2, 3], chunk_layout=layout)
    assert store.chunk_layout.inner_order == (1, 0)
    assert store.read().result().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert seen == [True]


def pool():
    return ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})


def test_without_a_pool_every_read_calls():
    backing = Backing(data())
    store = backing.open((8, 10))
    for _ in range(2):
        store.read().result()
    assert len(backing.calls) == 2


def test_a_chunk_without_a_generation_is_kept_for_ever():
    backing = Backing(data())
    store = backing.open((8, 10), context=pool())
    for _ in range(3):
        store.read().result()
    assert len(backing.calls) == 1


def test_a_chunk_that_is_still_current_need_not_be_filled():
    calls = []

    def read(domain, chunk, parameters):
        calls.append(parameters.if_not_equal)
        assert parameters.staleness_bound <= time.time()
        if parameters.if_not_equal != b"v":
            chunk[...] = 5
        return stamp(b"v", time.time())

    store = ts.virtual_chunked(read, dtype="int8", shape=[3], context=pool())
    for _ in range(3):
        assert store.read().result().tolist() == [5, 5, 5]
    assert calls == [UNKNOWN, b"v", b"v"]


@pytest.mark.parametrize(("bound", "count"), [(True, 3), (False, 1), ("open", 1), (0.0, 1)])
def test_staleness(bound, count):
    backing = Backing(data(), versions=True)
    spec = backing.open((8, 10)).spec()
    store = ts.open(spec, context=pool(), recheck_cached_data=bound).result()
    for _ in range(3):
        backing.version += 1
        store.read().result()
    assert len(backing.calls) == count


def test_what_was_written_is_read():
    backing = Backing(data())
    store = backing.open((8, 10), context=pool())
    store.read().result()
    store[2, 2].write(1000).result()
    assert store[2, 2].read().result() == 1000


def test_each_handle_has_a_cache_of_its_own():
    backing, context = Backing(data()), pool()
    spec = backing.open((8, 10), context=context).spec()
    for _ in range(2):
        ts.open(spec, context=context).result().read().result()
    assert len(backing.calls) == 2


def test_a_write_that_lost_the_race_is_made_again():
    backing = Backing(np.zeros(4, np.int32), versions=True)
    refused: list[bytes] = []

    def write(domain, chunk, parameters):
        if not refused:
            backing.array[3] = 9
            backing.version += 1
            refused.append(parameters.if_equal)
            return stamp(UNKNOWN)
        assert parameters.if_equal == b"2"
        return backing.write(domain, chunk, parameters)

    store = ts.virtual_chunked(backing.read, write, dtype="int32", shape=[4])
    store[1].write(5).result()
    assert refused == [b"1"]
    assert backing.array.tolist() == [0, 5, 0, 9]


def test_a_write_only_array_takes_whole_chunks():
    backing = Backing(data())
    layout = ts.ChunkLayout(write_chunk_shape=[3, 4])
    store = ts.virtual_chunked(
        write_function=backing.write, dtype="int32", shape=[8, 10], chunk_layout=layout
    )
    assert store.mode == "w"
    with pytest.raises(ts.FailedPreconditionError, match="part of a chunk"):
        store[0:4].write(1).result()
    assert backing.calls == []
    store[0:3, 8:].write(1).result()
    assert backing.array[0:3, 8:].tolist() == [[1, 1]] * 3


def test_errors_of_the_functions_arrive():
    def read(domain, chunk, parameters):
        raise KeyError("not there")

    with pytest.raises(KeyError, match="not there"):
        ts.virtual_chunked(read, dtype="int8", shape=[3]).read().result()
    for wrong in (5, b"", "v"):
        store = ts.virtual_chunked(lambda *_, found=wrong: found, dtype="int8", shape=[3])
        with pytest.raises(TypeError, match="the read function must return"):
            store.read().result()


def test_one_may_be_made_of_another():
    below = ts.virtual_chunked(
        lambda domain, chunk, _: chunk.fill(domain.origin[0]), dtype="int64", shape=[12],
        chunk_layout=ts.ChunkLayout(read_chunk_shape=[1]),
    )  # fmt: skip

    def read(domain, chunk, parameters):
        chunk[...] = below[domain].read().result() * 2

    layout = ts.ChunkLayout(read_chunk_shape=[2])
    store = ts.virtual_chunked(read, dtype="int64", shape=[12], chunk_layout=layout)
    assert store.read().result().tolist() == [2 * place for place in range(12)]


def test_parameters_have_defaults():
    read, write = ts.VirtualChunkedReadParameters(), ts.VirtualChunkedWriteParameters()
    assert (read.if_not_equal, read.staleness_bound, read.batch) == (b"", -math.inf, None)
    assert write.if_equal == b""
