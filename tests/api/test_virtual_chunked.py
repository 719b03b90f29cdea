# ruff: noqa: ARG001 - the functions of an array are called with three arguments, needed or not
import gc
import pickle
import weakref

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts


def fill(domain, chunk, parameters):
    chunk[...] = 42


def take(domain, chunk, parameters):
    pass


OPTIONS = [
    "dtype='int32', shape=[2, 3]",
    "dtype=np.int32, shape=[4, 5], chunk_layout=ts.ChunkLayout(read_chunk_shape=[2, 3])",
    "dtype='int32', rank=2",
    "dtype='ustring', domain=ts.IndexDomain(inclusive_min=[-3], shape=[7], labels=['x'])",
    "dtype='int32', shape=[9], chunk_layout=ts.ChunkLayout(read_chunk_shape=[3], grid_origin=[1])",
    "dtype='int32', shape=[200, 300], chunk_layout=ts.ChunkLayout(chunk_elements=1000)",
    "dtype='int32', shape=[20000, 30000]",
    "dtype='int32', shape=[2], dimension_units=['nm']",
    "dtype='int32', shape=[2, 3], chunk_layout=ts.ChunkLayout(inner_order=[1, 0])",
    "schema=ts.Schema(dtype='int8', domain=ts.IndexDomain(shape=[2]))",
    "dtype='int8', domain=ts.IndexDomain(shape=[2], implicit_upper_bounds=[True])",
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("functions", ["fill", "None, take", "fill, take"])
def test_handles_as_the_reference(functions, options):
    found = []
    for library in (ts, reference):
        names = {"ts": library, "np": np, "fill": fill, "take": take}
        store = eval(f"ts.virtual_chunked({functions}, {options})", names)
        spec = store.spec()
        found.append([
            str(store.domain), str(store.schema), str(store.chunk_layout), store.mode,
            store.dtype.name, repr(store), repr(spec), str(spec.schema), str(spec.domain),
            str(spec.open_mode), store.kvstore, store.base, str(store.dimension_units),
            str(library.open(spec).result().domain),
        ])  # fmt: skip
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("virtual_chunked(dtype='int8', shape=[2])", ts.SpecError),
        ("virtual_chunked(fill, shape=[2])", ts.SpecError),
        ("virtual_chunked(fill, dtype='int8')", ts.SpecError),
        ("virtual_chunked(fill, dtype='int9', shape=[2])", ts.SpecError),
        ("virtual_chunked(fill, dtype='int8', rank=1, shape=[2, 3])", ts.MismatchError),
        ("virtual_chunked(fill, schema=ts.Schema(dtype='int8', rank=1, fill_value=3))",
         ts.SpecError),
        ("virtual_chunked(fill, dtype='int8', shape=[2], fill_value=3)", TypeError),
        ("virtual_chunked(fill, dtype='int8', shape=[2]).spec().to_json()", ts.UnsupportedError),
        ("virtual_chunked(fill, dtype='int8', shape=[2]).url", ts.UnsupportedError),
        ("Spec({'driver': 'virtual_chunked'})", ts.SpecError),
    ],
)  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        eval(f"ts.{call}", {"ts": ts, "fill": fill})
    with pytest.raises((ValueError, TypeError, NotImplementedError)):
        eval(f"ts.{call}", {"ts": reference, "fill": fill})


def test_what_is_no_function():
    with pytest.raises(TypeError, match="a function is expected"):
        ts.virtual_chunked(5, dtype="int8", shape=[2])  # type: ignore[arg-type]
    with pytest.raises(ts.UnsupportedError):
        ts.virtual_chunked(fill, dtype="int8", shape=[2], transaction=object())  # type: ignore[arg-type]


async def test_coroutines_and_futures():
    source = ts.array(np.arange(12).reshape(3, 4))
    written = {}

    async def read(domain, chunk, parameters):
        chunk[...] = (await source[domain].read()) + 100

    async def write(domain, chunk, parameters):
        written[domain.origin] = chunk.tolist()

    layout = ts.ChunkLayout(read_chunk_shape=[1, 2])
    store = ts.virtual_chunked(
        read, write, dtype="int64", domain=source.domain, chunk_layout=layout
    )
    np.testing.assert_array_equal(await store.read(), np.arange(12).reshape(3, 4) + 100)
    await store[1, :3].write(0)
    assert written == {(1, 0): [[0, 0]], (1, 2): [[0, 107]]}


def test_a_coroutine_function_needs_no_event_loop():
    async def read(domain, chunk, parameters):
        chunk[...] = 9

    assert ts.virtual_chunked(read, dtype="int8", shape=[2]).read().result().tolist() == [9, 9]


def test_a_function_may_return_a_future():
    source = ts.array([1, 2, 3])
    copies = []

    def write(domain, chunk, parameters):
        copies.append(source[domain].write(chunk).commit)
        return copies[-1]

    store = ts.virtual_chunked(write_function=write, dtype="int64", shape=[3])
    store.write([4, 5, 6]).result()
    assert copies[0].done()
    assert source.read().result().tolist() == [4, 5, 6]


def test_layers_and_casts_of_virtual_arrays():
    store = ts.virtual_chunked(fill, dtype="int32", shape=[2])
    assert ts.cast(store, "ustring").read().result().tolist() == ["42", "42"]
    assert ts.stack([store, ts.array([1, 2], dtype="int32")]).read().result().tolist() == [
        [42, 42], [1, 2],
    ]  # fmt: skip
    assert repr(ts.stack([store])) == "TensorStore(...)"


def test_it_travels():
    store = ts.virtual_chunked(fill, dtype="int32", shape=[2, 3])
    again = pickle.loads(pickle.dumps(store[1:]))
    assert again.schema == store[1:].schema
    assert again.read().result().tolist() == [[42, 42, 42]]


def test_cycles_are_collected():
    def read(domain, chunk, parameters):
        chunk[...] = 1

    store = ts.virtual_chunked(read, dtype="int8", shape=[2])
    spec = store.spec()
    read.store, read.spec = store, spec  # type: ignore[attr-defined]
    seen = [weakref.ref(each) for each in (read, store, spec)]
    del read, store, spec
    gc.collect()
    assert [each() for each in seen] == [None, None, None]
