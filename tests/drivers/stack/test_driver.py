import pickle

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemorySpec
from tensorstore_py.testing import CountingStore, LoopStore

INDEXES = [
    np.s_[...],
    np.s_[2:9, 3:4],
    np.s_[5],
    np.s_[::-1, ::3],
    np.s_[8:1:-2, 1],
    np.s_[[7, 0, 3, 3], 2:],
    np.s_[[1, 5], [4, 9]],
    np.s_[None, 3, :, None],
]
CORNERS = [(0, 0, 10, 12), (2, 3, 5, 6), (4, 0, 3, 12), (9, 11, 1, 1), (2, 4, 1, 2)]


def mosaic(library):
    """Overlapping tiles, and the array that they make up."""
    layers = []
    expected = np.full((10, 12), -1, np.int32)
    for number, (row, column, height, width) in enumerate(CORNERS):
        tile = np.arange(height * width, dtype=np.int32).reshape(height, width) + 1000 * number
        layers.append(library.array(tile).translate_to[row, column])
        expected[row : row + height, column : column + width] = tile
    return library.overlay(layers), expected


@pytest.mark.parametrize("index", INDEXES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_as_from_one_array(index, order):
    store, expected = mosaic(ts)
    found = store[index].read(order=order).result()
    assert found.flags[f"{order}_CONTIGUOUS"]
    np.testing.assert_array_equal(found, expected[index])


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_writes_reach_the_layer_on_top(index):
    (store, expected), (theirs, _) = mosaic(ts), mosaic(reference)
    shape = expected[index].shape
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)
    for each in (store, theirs):
        each[index].write(values).result()
    expected[index] = values
    np.testing.assert_array_equal(store.read().result(), expected)
    np.testing.assert_array_equal(theirs.read().result(), expected)


def test_what_lies_below_is_not_touched():
    low, high = ts.array(np.zeros(5, np.int32)), ts.array(np.ones(2, np.int32))
    store = ts.overlay([low, high.translate_to[1]])
    store.write(7).result()
    assert low.read().result().tolist() == [7, 0, 0, 7, 7]
    assert high.read().result().tolist() == [7, 7]


@pytest.mark.parametrize(("index", "place"), [(np.s_[...], "[2]"), (np.s_[[0, 5, 3]], "[3]")])
def test_where_no_layer_is(index, place):
    memory = np.array([1, 2])
    store = ts.overlay([ts.array(memory), ts.array([5, 6]).translate_to[4]])
    assert store[4:].read().result().tolist() == [5, 6]
    assert store[2:2].read().result().tolist() == []
    for attempt in (store[index].read, lambda: store[index].write(9)):
        with pytest.raises(ts.OutOfRangeError) as caught:
            attempt().result()
        assert place in str(caught.value)
    assert memory.tolist() == [1, 2]  # nothing was written before it was found


def test_layers_without_bounds():
    ground = {"driver": "array", "dtype": "int64", "array": 7,
              "transform": {"input_rank": 1, "output": []}}  # fmt: skip
    store = ts.overlay([ts.Spec(ground), ts.array([1, 2])])
    assert str(store.domain) == "{ (-inf, +inf) }"
    assert store[-2:3].read().result().tolist() == [7, 7, 1, 2, 7]


def test_no_dimensions():
    store = ts.overlay([ts.array(1), ts.array(2)])
    assert store.read().result() == 2
    store.write(3).result()
    assert store.read().result() == 3


def test_one_layer_alone_is_read_as_it_is(monkeypatch):
    asked = []
    array = ts.array(np.arange(100))
    plain = type(array._driver).read

    async def read(self, transform, order):
        asked.append(transform.input_shape)
        return await plain(self, transform, order)

    monkeypatch.setattr(type(array._driver), "read", read)
    store = ts.overlay([array, ts.array([0]).translate_to[100], ts.array([0]).translate_to[-1]])
    assert store[10:90].read().result().tolist() == list(range(10, 90))
    assert asked == [(80,)]
    store[98:101].read().result()
    assert sorted(asked[1:]) == [(1,), (2,)]


def test_layers_of_two_execution_modes(monkeypatch):
    context = ts.Context()
    where = {"driver": "zarr3", "kvstore": "memory://a/"}
    ts.open(where, create=True, dtype="int32", shape=[4], context=context).result()[...] = 5
    near = ts.array(np.arange(4, dtype=np.int32))
    spec_type = MemorySpec
    plain = spec_type.open
    monkeypatch.setattr(spec_type, "open", lambda self: LoopStore(CountingStore(plain(self))))
    far = ts.open(where, context=context).result()
    store = ts.concat([near, far], axis=0)
    assert store._driver.inline is False
    assert store.read().result().tolist() == [0, 1, 2, 3, 5, 5, 5, 5]
    store.write(np.arange(8, dtype=np.int32)).result()
    assert near.read().result().tolist() == [0, 1, 2, 3]
    assert far.read().result().tolist() == [4, 5, 6, 7]


def test_properties():
    store, _ = mosaic(ts)
    assert store.resolve().result().domain == store.domain
    assert store.chunk_layout == ts.ChunkLayout()
    assert (store.base, store.kvstore, store.fill_value) == (None, None, None)
    assert store.resize().exception(timeout=60).__class__ is ts.UnsupportedError
    for attempt in (lambda: store.url, store.storage_statistics().result):
        with pytest.raises(NotImplementedError):
            attempt()


def test_it_travels():
    store, expected = mosaic(ts)
    again = pickle.loads(pickle.dumps(store[1:8]))
    assert again.domain == store[1:8].domain
    np.testing.assert_array_equal(again.read().result(), expected[1:8])


async def test_in_an_event_loop():
    store, expected = mosaic(ts)
    await store[3:5].write(1)
    expected[3:5] = 1
    np.testing.assert_array_equal(await store.read(), expected)
