"""Working block by block gives the same results, costs as little, and says how far it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tests.chunked.stores import counting, created, opened
from tests.internals import set_block_bytes

both = pytest.mark.parametrize("inline", [True, False], ids=["inline", "loop"])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """As if arrays of some hundred bytes were large."""
    set_block_bytes(monkeypatch, least=8, most=64)


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


def last(seen, nbytes, chunks):
    """The figures are those of one operation that came to its end."""
    assert seen[0] == ts.Progress(0, nbytes, 0, chunks)
    assert seen[-1] == ts.Progress(nbytes, nbytes, chunks, chunks)
    assert seen == sorted(seen)
    return len(seen) - 1


class TestFigures:
    def test_of_a_read(self, store):
        array = created(store, [8, 8], [4, 4], dtype="int16")
        values = np.arange(64, dtype="int16").reshape(8, 8)
        array.write(values).result()
        seen: list[ts.Progress] = []
        np.testing.assert_array_equal(array.read(progress=seen.append).result(), values)
        assert last(seen, 128, 4) == 4

    def test_of_a_write(self, store):
        array = created(store, [8, 8], [4, 4], dtype="int16")
        values = np.arange(64, dtype="int16").reshape(8, 8)
        seen: list[ts.Progress] = []
        array.write(values, progress=seen.append).result()
        assert last(seen, 128, 4) == 4
        np.testing.assert_array_equal(array.read().result(), values)

    def test_of_a_copy(self, store):
        array = created(store, [8, 8], [4, 4], dtype="int16")
        source = created(counting(), [8, 8], [2, 8], path="b/")
        source.write(3).result()
        seen: list[ts.Progress] = []
        array.write(source, progress=seen.append).result()
        assert last(seen, 128, 4)
        np.testing.assert_array_equal(array.read().result(), 3)

    def test_of_nothing(self, store):
        array = created(store, [8], [4])
        seen: list[ts.Progress] = []
        array[3:3].read(progress=seen.append).result()
        array[3:3].write(0, progress=seen.append).result()
        assert seen == [ts.Progress(0, 0, 0, 0)] * 2

    def test_a_number_is_as_much_as_the_view_that_it_fills(self, store):
        array = created(store, [8], [4])
        seen: list[ts.Progress] = []
        array.write(7, progress=seen.append).result()
        assert seen[-1] == ts.Progress(8, 8, 2, 2)

    def test_parts_of_chunks_count_as_chunks(self, store):
        array = created(store, [8], [4])
        seen: list[ts.Progress] = []
        array[3:5].read(progress=seen.append).result()
        assert seen[-1] == ts.Progress(2, 2, 2, 2)

    def test_of_arrays_in_memory(self):
        seen: list[ts.Progress] = []
        array = ts.array(np.arange(10, dtype="uint8"))
        assert array.read(progress=seen.append).result().tolist() == list(range(10))
        assert seen[-1].fraction == 1


class TestCosts:
    def test_chunks_are_stored_without_a_read(self, store):
        array = created(store, [8, 8], [4, 4])
        store.reset()
        array.write(np.ones((8, 8), "uint8"), progress=lambda _: None).result()
        assert store.reads.total() == 0
        assert store.writes == {f"a/c/{i}/{j}": 1 for i in range(2) for j in range(2)}

    def test_chunks_are_read_once(self, store):
        array = created(store, [8, 8], [4, 4])
        array.write(1).result()
        store.reset()
        array.read(progress=lambda _: None).result()
        assert set(store.reads.values()) == {1}

    def test_small_chunks_are_read_several_at_a_time(self, store):
        array = created(store, [4, 64], [1, 1])
        seen: list[ts.Progress] = []
        array.read(progress=seen.append).result()
        assert last(seen, 256, 256) == 256 // 8

    def test_the_index_of_a_shard_is_read_once_if_it_is_a_block(self, store):
        codec = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2]}}
        grid = {"name": "regular", "configuration": {"chunk_shape": [8, 8]}}
        members = {"metadata": {"chunk_grid": grid, "codecs": [codec]}}
        array = opened(store, path="a/", members=members, create=True, dtype="uint8", shape=[16, 8])
        array.write(np.arange(128).reshape(16, 8).astype("uint8")).result()
        store.reset()
        seen: list[ts.Progress] = []
        array.read(progress=seen.append).result()
        assert last(seen, 128, 32) == 2
        # The index, and what is in the shard; far away, a small shard comes by one request.
        assert set(store.reads.values()) == {2 if store.inline else 1}


@both
@pytest.mark.parametrize("when", [0, 1, 3])
@pytest.mark.parametrize("what", ["read", "write", "copy"])
def test_what_it_raises_fails_the_operation(inline, when, what):
    def refuse(progress):
        if progress.chunks_done >= when:
            raise KeyError("no more")

    store = counting(inline)
    array = created(store, [64], [8])
    store.reset()
    actions = {
        "read": lambda: array.read(progress=refuse),
        "write": lambda: array.write(1, progress=refuse),
        "copy": lambda: array.write(ts.array(np.ones(64, "uint8")), progress=refuse),
    }
    with pytest.raises(KeyError, match="no more"):
        actions[what]().result()
    memory = array._driver.memory
    assert (memory.held, memory.blocks.held) == (0, 0)
    if when == 0:
        assert store.writes.total() == 0
    array.write(2).result()
    assert array.read().result().tolist() == [2] * 64


def test_reading_in_a_batch_and_in_a_transaction():
    array = created(counting(), [64], [8])
    seen: list[ts.Progress] = []
    with ts.Transaction() as transaction:
        array.with_transaction(transaction).write(5, progress=seen.append).result()
        assert array.read().result().tolist() == [0] * 64
    assert seen[-1].fraction == 1
    with ts.Batch() as batch:
        found = array.read(batch=batch, progress=seen.append)
    assert found.result().tolist() == [5] * 64


@given(st.data())
def test_any_view_is_read_and_written_as_without(data):
    shape = [data.draw(st.integers(1, 20)) for _ in range(data.draw(st.integers(0, 3)))]
    chunk = [data.draw(st.integers(1, 6)) for _ in shape]
    values = np.arange(np.prod(shape, dtype=int), dtype="uint16").reshape(shape)
    array = created(counting(data.draw(st.booleans())), shape, chunk, dtype="uint16")
    array.write(values).result()
    view = array[::-1, ...] if shape and data.draw(st.booleans()) else array
    if shape and shape[0] and data.draw(st.booleans()):
        picks = data.draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=9))
        view = array[picks]
    order = data.draw(st.sampled_from("CF"))
    expected = view.read(order=order).result()
    found = view.read(order=order, progress=lambda _: None).result()
    np.testing.assert_array_equal(found, expected)
    assert found.flags[f"{order}_CONTIGUOUS"]
    assert found.dtype == expected.dtype
    fresh = np.arange(found.size, dtype="uint16")[::-1].reshape(found.shape)
    other = created(counting(), shape, chunk, path="b/", dtype="uint16")
    same = view._with_transform(view._transform)
    same._driver = other._driver
    if view is array or len(set(np.ravel(expected).tolist())) == expected.size:
        same.write(fresh, progress=lambda _: None).result()
        np.testing.assert_array_equal(same.read().result(), fresh)
