import pickle
from collections import Counter

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemorySpec, MemoryStore
from tensorstore_py.testing import LoopStore

ZARR = {"driver": "zarr3", "kvstore": "memory://a/"}
DATA = np.arange(130, dtype=np.uint8).reshape(10, 13)
METHODS = ["stride", "mean", "median", "mode", "min", "max"]


@pytest.fixture
def stores():
    found = {}
    for library in (ts, reference):
        found[library] = library.open(
            ZARR, create=True, dtype="uint8", dimension_units=["4nm", None], fill_value=7,
            chunk_layout=library.ChunkLayout(chunk_shape=[4, 6]),
            domain=library.IndexDomain(shape=[10, 13], labels=["x", "y"]),
        ).result()  # fmt: skip
        found[library][...] = DATA
    return found


VIEWS = ["", "[1:8, ::2]", "[1:8, ::-1]", "[[1, 5, 3, 3]]", ".T", "[3:4]", "[:, 3:3]",
         ".translate_by[-3, 5]"]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_the_base_as_the_reference(stores, view, method):
    found = []
    for library, store in stores.items():
        base = eval(f"store{view}", {"store": store})
        smaller = library.downsample(base, [2, 3], method)
        found.append([
            str(smaller.domain), smaller.spec().to_json(), str(smaller.chunk_layout),
            str(smaller.dimension_units), str(smaller.codec),
            smaller.spec(minimal_spec=True).to_json(), smaller.read().result().tolist(),
            smaller.read(order="F").result().flags.f_contiguous,
        ])  # fmt: skip
    assert found[0] == found[1]


def naive(factors):
    rows = [DATA[low : low + factors[0]] for low in range(0, 10, factors[0])]
    return np.array([
        [int(np.rint(row[:, low : low + factors[1]].mean())) for low in range(0, 13, factors[1])]
        for row in rows
    ])  # fmt: skip


@pytest.mark.parametrize("factors", [(1, 1), (2, 3), (3, 5), (10, 13), (100, 1)], ids=str)
@pytest.mark.parametrize(
    "index",
    [np.s_[...], np.s_[0, :], np.s_[::-1], np.s_[:, ::2], np.s_[:, [0, 0]], np.s_[[0], [0]],
     np.s_[None, :, 0], np.s_[:, 0:0]],
    ids=str,
)  # fmt: skip
def test_views_of_the_smaller_array(stores, factors, index):
    smaller = ts.downsample(stores[ts], factors, "mean")
    expected = naive(factors)
    np.testing.assert_array_equal(smaller[index].read().result(), expected[index])
    stride = ts.downsample(stores[ts], factors, "stride")
    taken = DATA[:: factors[0], :: factors[1]]
    np.testing.assert_array_equal(stride[index].read().result(), taken[index])


def test_every_chunk_is_read_once(stores, monkeypatch):
    reads: Counter[str] = Counter()

    def counted(name):
        plain = getattr(MemoryStore, name)

        async def read(self, key, *arguments, **options):
            reads[key] += 1
            return await plain(self, key, *arguments, **options)

        monkeypatch.setattr(MemoryStore, name, read)

    smaller = ts.downsample(stores[ts], [2, 3], "mean")
    for name in ("read", "read_parts"):  # of the last row of chunks half is wanted
        counted(name)
    smaller.read().result()
    chunks = {f"a/c/{row}/{column}": 1 for row in range(3) for column in range(3)}
    assert reads == chunks
    reads.clear()
    smaller[0:2, 0:2].read().result()
    assert reads == {"a/c/0/0": 1}


def test_large_arrays_are_made_in_blocks(monkeypatch):
    spec = {**ZARR, "dtype": "uint8", "schema": {"domain": {"shape": [4096, 1024]}}}
    store = ts.open(
        spec, create=True, chunk_layout=ts.ChunkLayout(chunk_shape=[512, 512]), fill_value=3
    ).result()
    asked = []
    plain = type(store._driver).read

    async def read(self, transform, order):
        asked.append(transform.input_shape)
        return await plain(self, transform, order)

    monkeypatch.setattr(type(store._driver), "read", read)
    found = ts.downsample(store, [2, 2], "max").read().result()
    assert found.shape == (2048, 512)
    assert found.min() == found.max() == 3
    assert asked == [(1024, 1024)] * 4


def test_blocks_follow_the_chunks_of_a_moved_array(stores):
    moved = stores[ts].translate_by[-3, 5]
    smaller = ts.downsample(moved, [1, 1], "max")
    np.testing.assert_array_equal(smaller.read().result(), DATA)
    np.testing.assert_array_equal(smaller[-2:5, 7:9].read().result(), DATA[1:8, 2:4])


def test_resizing_and_statistics_as_the_reference(stores):
    found = []
    for library, store in stores.items():
        smaller = library.downsample(store, [2, 3], "mean")
        store.resize(exclusive_max=[12, 13]).result()
        statistics = smaller[1:3].storage_statistics(query_not_stored=True, query_fully_stored=True)
        empty = library.downsample(store.resolve().result(), [2, 3], "mean")[5:6]
        found.append([
            str(smaller.domain),
            str(smaller.resolve().result().domain),
            str(empty.domain),
            empty.read().result().tolist(),
            str(statistics.result()),
            smaller.kvstore.path,
            smaller.base.shape,
            smaller[1:2].base.shape,
        ])  # fmt: skip
    assert found[0] == found[1]
    nothing = ts.downsample(stores[ts], [2, 3], "mean")[1:1]
    assert nothing.storage_statistics(query_not_stored=True).result().not_stored is True


def test_outside(stores):
    smaller = ts.downsample(stores[ts], [2, 3], "mean")
    with pytest.raises(ts.OutOfRangeError):
        smaller[0:6].read().result()
    with pytest.raises(ts.PermissionDeniedError):
        smaller.write(1)
    with pytest.raises(NotImplementedError):
        smaller.url  # noqa: B018


def test_it_travels(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    store = ts.open(spec, create=True, dtype="int16", shape=[5]).result()
    store[...] = [1, 3, 5, 7, 9]
    smaller = ts.downsample(store[1:], [2], "mean")
    again = pickle.loads(pickle.dumps(smaller[0:2]))
    assert again.read().result().tolist() == [3, 6]
    assert ts.open(smaller.spec()).result().domain == smaller.domain


async def test_over_a_store_that_waits(monkeypatch):
    context = ts.Context()
    array = await ts.open(ZARR, create=True, dtype="uint8", shape=[10, 13], context=context)
    await array.write(DATA)
    plain = MemorySpec.open
    monkeypatch.setattr(MemorySpec, "open", lambda self: LoopStore(plain(self)))
    store = ts.downsample(await ts.open(ZARR, context=context), [2, 3], "mean")
    assert store._driver.inline is False
    np.testing.assert_array_equal(await store.read(), naive((2, 3)))
