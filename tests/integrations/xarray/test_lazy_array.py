import asyncio
import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from xarray.core.indexing import (
    BasicIndexer,
    LazilyIndexedArray,
    NumpyIndexingAdapter,
    OuterIndexer,
    VectorizedIndexer,
)

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.lazy_array import LazyArray
from tests.api.counted_memory import counts

CHUNKS = ts.ChunkLayout(chunk_shape=[2])
VALUES = np.arange(60).reshape(3, 4, 5)
TERMS: list[Any] = [
    slice(None),
    slice(None, None, -1),
    slice(-2, None),
    slice(5, 1),
    slice(0, 100, 2),
    slice(None, None, -2),
    1,
    -1,
]
SLICES = [term for term in TERMS if isinstance(term, slice)]
KEYS = [
    *(BasicIndexer(terms) for terms in itertools.product(TERMS, repeat=3)),
    *(OuterIndexer((np.array([0, -1, 0]), *terms)) for terms in itertools.product(TERMS, repeat=2)),
    *(VectorizedIndexer((np.array([[0, -1, 0]]), term, np.array([[1, 1, -2]]))) for term in SLICES),
]


def taken(key, values=VALUES):
    adapter = NumpyIndexingAdapter(values)
    if isinstance(key, OuterIndexer):
        return adapter.oindex[key]
    return adapter.vindex[key] if isinstance(key, VectorizedIndexer) else adapter[key]


@pytest.mark.parametrize("ahead", [False, True])
def test_indexers_of_all_kinds_mean_what_they_do_for_numpy(ahead):
    array = LazyArray(ts.array(VALUES))
    if ahead:
        array.fetch()

    for key in KEYS:
        np.testing.assert_array_equal(array[key], taken(key), err_msg=str(key), strict=True)


def test_waiting_in_an_event_loop_gives_the_same():
    array = LazyArray(ts.array(VALUES))

    async def all_of_them():
        return await asyncio.gather(*(array.async_getitem(key) for key in KEYS))

    for key, found in zip(KEYS, asyncio.run(all_of_them()), strict=True):
        np.testing.assert_array_equal(found, taken(key), err_msg=str(key))


@pytest.fixture
def counted():
    root = ts.Group.open({"driver": "counted_memory"}, create=True).result()
    store = root.create_array("a", dtype="int16", shape=[6], chunk_layout=CHUNKS).result()
    store[...] = np.arange(6, dtype="i2")
    return LazyArray(store), counts(root)


def chunks(asked):
    return {key: count for key, count in asked.reads.items() if "/c/" in key}


def test_what_was_fetched_ahead_is_not_read_again_and_not_kept(counted):
    array, asked = counted
    array.fetch()

    assert array[BasicIndexer((slice(1, 3),))].tolist() == [1, 2]
    assert array[BasicIndexer((slice(None),))].tolist() == list(range(6))
    assert chunks(asked) == {"a/c/0": 1, "a/c/1": 1, "a/c/2": 1}

    assert array[BasicIndexer((slice(None),))].tolist() == list(range(6))
    assert chunks(asked) == {"a/c/0": 2, "a/c/1": 2, "a/c/2": 2}


def test_ends_are_fetched_ahead_alone(counted):
    array, asked = counted
    array.fetch_ends()

    assert array[BasicIndexer((slice(0, 1),))].tolist() == [0]
    assert array[BasicIndexer((slice(-1, None),))].tolist() == [5]
    assert chunks(asked) == {"a/c/0": 1, "a/c/2": 1}


def test_ends_of_no_and_of_several_dimensions():
    scalar = LazyArray(ts.array(np.float32(2.5)))
    scalar.fetch_ends()
    assert scalar[BasicIndexer(())] == 2.5
    cube = LazyArray(ts.array(VALUES))
    cube.fetch_ends()
    assert cube[BasicIndexer((0, 0, slice(0, 1)))].tolist() == [0]
    assert cube[BasicIndexer((slice(-1, None),) * 3)].tolist() == [[[59]]]
    empty = LazyArray(ts.array(np.zeros(0)))
    empty.fetch_ends()
    assert empty[BasicIndexer((slice(None),))].shape == (0,)


def test_only_chunks_that_are_wanted_are_read(counted):
    array, asked = counted
    lazy = LazilyIndexedArray(array)

    sliced = lazy[BasicIndexer((slice(2, 6),))][BasicIndexer((slice(0, 1),))]

    assert chunks(asked) == {}
    assert np.asarray(sliced).tolist() == [2]
    assert chunks(asked) == {"a/c/1": 1}


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies_read_the_same_and_wait_for_nothing(again, tmp_path):
    store = ts.open(
        {"driver": "zarr3", "kvstore": tmp_path}, create=True, dtype="int16", shape=[3]
    ).result()
    store[...] = [1, 2, 3]
    array = LazyArray(store)
    array.fetch()

    assert again(array)[BasicIndexer((slice(1, None),))].tolist() == [2, 3]


def test_bytes_and_text():
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": {"dtype": "|S3"}}
    store = ts.open(spec, create=True, shape=[2, 3]).result()
    array = LazyArray(store, np.dtype("S3"))
    array[BasicIndexer((slice(None),))] = [b"abc", b"d"]

    assert array.shape == (2,)
    assert array[BasicIndexer((slice(None),))].tolist() == [b"abc", b"d"]
    assert array[BasicIndexer((1,))].item() == b"d"
    assert array[OuterIndexer((np.array([1, 0]),))].tolist() == [b"d", b"abc"]

    text = LazyArray(ts.array(np.array(["a", "été"], object), ts.ustring), np.dtypes.StringDType())
    text[BasicIndexer((0,))] = "b"

    assert text[BasicIndexer((slice(None),))].dtype == np.dtypes.StringDType()
    assert text[BasicIndexer((slice(None),))].tolist() == ["b", "été"]


def test_what_is_assigned_is_stored():
    store = ts.array(np.zeros((2, 3), np.int16))
    lazy = LazilyIndexedArray(LazyArray(store))

    lazy[BasicIndexer((0, slice(None)))] = 1.0
    lazy.oindex[OuterIndexer((np.array([1]), np.array([0, 2])))] = [[5, 6]]
    lazy.array.vindex[VectorizedIndexer((np.array([1, 0]), np.array([1, 1])))] = [7, 8]

    assert store[...].read().result().tolist() == [[1, 8, 1], [5, 7, 6]]
