"""Every data type in every driver that can hold it, without dimensions and with some."""

import pickle

import numpy as np
import pytest

import tensorstore_py as ts
from tests.drivers.elements import DATA_TYPES, RECORD, elements, same

#: Without dimensions nearly everything is tried, with some what the drivers have in common.
SHAPES = [(), (2, 1)]


def zarr(driver):
    def opened(array, data_type):
        store = ts.open({"driver": driver, "kvstore": "memory://"}, create=True, dtype=data_type,
                        shape=array.shape).result()  # fmt: skip
        store.write(array).result()
        return store

    return opened


def json_document(array, data_type):
    if data_type.name != "json":
        raise ts.UnsupportedError("the driver holds JSON")
    store = ts.open({"driver": "json", "kvstore": "memory://a.json"}, create=True).result()
    store.write(array).result()
    return store


def in_memory(array, data_type):
    return ts.array(array.copy(), data_type)


def virtual(array, data_type):
    kept = array.copy()

    def part(domain):
        return (*map(slice, domain.inclusive_min, domain.exclusive_max), ...)

    def read(domain, chunk, _):
        chunk[...] = kept[part(domain)]

    def write(domain, chunk, _):
        kept[part(domain)] = chunk

    return ts.virtual_chunked(
        read, write, dtype=data_type, shape=array.shape,
        chunk_layout=ts.ChunkLayout(read_chunk_shape=[2] * array.ndim),
    )  # fmt: skip


def stacked(array, data_type):
    return ts.stack([in_memory(array[place, ...], data_type) for place in range(len(array))])


def downsampled(method):
    def opened(array, data_type):
        return ts.downsample(in_memory(array, data_type), [1] * array.ndim, method)

    return opened


DRIVERS = {
    "array": in_memory,
    "zarr": zarr("zarr"),
    "zarr3": zarr("zarr3"),
    "n5": zarr("n5"),
    "json": json_document,
    "overlay": lambda array, kind: ts.overlay([in_memory(array, kind), in_memory(array, kind)]),
    "stack": stacked,
    "cast": lambda array, kind: ts.cast(in_memory(array, kind), kind),
    "virtual_chunked": virtual,
    "stride": downsampled("stride"),
    "mode": downsampled("mode"),
}
#: How many of the 42 data types a driver holds.
HELD = {
    "array": 42, "zarr": 39, "zarr3": 38, "n5": 10, "json": 1, "overlay": 42, "stack": 42,
    "cast": 42, "virtual_chunked": 42, "stride": 42, "mode": 40,
}  # fmt: skip

CASES = [
    (driver, shape)
    for driver in DRIVERS
    for shape in SHAPES
    if driver in (("array", "zarr3", "stack") if shape else DRIVERS.keys() - {"stack"})
]


def each_store(driver, shape):
    """For each data type that the driver holds: its name, an open array, and what is in it."""
    count = 0
    for kind in [*DATA_TYPES, RECORD]:
        data_type, array = ts.dtype(kind), elements(kind, shape)
        try:
            store = DRIVERS[driver](array, data_type)
        except ts.TensorStoreError:
            continue
        count += 1
        yield data_type.name, store, array
    assert count == HELD[driver]


def cases(*drivers):
    chosen = [case for case in CASES if case[0] in drivers]
    return pytest.mark.parametrize(("driver", "shape"), chosen, ids=str)


@cases(*DRIVERS)
def test_reads(driver, shape):
    rank = len(shape)
    for name, store, array in each_store(driver, shape):
        assert same(store.read().result(), array), name
        assert same(store.read(order="F").result(), array), name
        assert same(np.asarray(store), array), name
        assert same(store.astype(store.dtype).read().result(), array), name
        for view, expected in [
            (store[...], array),
            (store[()], array),
            (store[None], array[None]),
            (store[..., None], array[..., None]),
            (store.vindex[..., None], array[..., None]),
            (store.T, array.T),
            (store[(0,) * rank], array[(*(0,) * rank, ...)]),
            (store[ts.IndexTransform(store.domain)], array),
            (store.translate_to[(5,) * rank] if rank else store, array),
        ]:
            assert same(view.read().result(), expected), (name, view.domain)
        assert str(store)
        assert str(store.schema)
        assert store.resolve().result().domain == store.domain


@cases(*(DRIVERS.keys() - {"stride", "mode"}))
def test_writes(driver, shape):
    rank = len(shape)
    for name, store, array in each_store(driver, shape):
        other = elements(store.dtype, shape, start=1)
        one = other.reshape(-1)[:1].reshape(())
        filled = np.empty_like(array)
        filled.reshape(-1)[:] = one.reshape(1)
        for source, expected in [
            (other, other),
            (one, filled),
            (array, array),
            (ts.array(other.copy(), store.dtype), other),
        ]:
            store.write(source).result()
            assert same(store.read().result(), expected), (name, source)
        store[...] = array
        assert same(store.read().result(), array), name
        store[None].write(other).result()
        assert same(store.read().result(), other), name
        store[(0,) * rank].write(array[(*(0,) * rank, ...)]).result()
        expected = other.copy()
        expected.reshape(-1)[:1] = array.reshape(-1)[:1]
        assert same(store.read().result(), expected), name


@cases("zarr", "zarr3", "n5", "json")
def test_writes_in_a_transaction(driver, shape):
    for name, store, array in each_store(driver, shape):
        other = elements(store.dtype, shape, start=1)
        with ts.Transaction() as transaction:
            inside = store.with_transaction(transaction)
            inside.write(other).result()
            assert same(inside.read().result(), other), name
            assert same(store.read().result(), array), name
        assert same(store.read().result(), other), name


@cases("array", "overlay", "stack", "cast", "stride", "mode")
def test_what_is_in_memory_travels_in_its_spec(driver, shape):
    for name, store, array in each_store(driver, shape):
        for view, expected in [(store, array), (store[None], array[None])]:
            again = ts.open(view.spec()).result()
            assert same(again.read().result(), expected), name
        assert same(pickle.loads(pickle.dumps(store)).read().result(), array), name


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_downsampling(shape):
    for name, store, array in each_store("array", shape):
        for method in ("stride", "mean", "median", "mode", "min", "max"):
            try:
                smaller = ts.downsample(store, [1] * len(shape), method)
            except ts.SpecError:
                continue
            if name != "object":  # whose elements have no order
                assert same(smaller.read().result(), array), (name, method)


def test_a_view_without_dimensions_can_be_downsampled():
    store = ts.array(np.arange(6).reshape(2, 3))
    for method in ("stride", "mean", "median", "mode", "min", "max"):
        assert ts.downsample(store[1, 2], [], method).read().result() == 5
    with pytest.raises(ts.SpecError, match="1 factors, but 0 dimensions"):
        ts.downsample(store[1, 2], [2], "mean")
