"""dask reads and writes open arrays as they are: any origin, any alignment, any scheduler."""

import multiprocessing
import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py.integrations.dask import from_dask, to_dask
from tests.api.counted_memory import counts

VALUES = np.arange(60 * 50, dtype="int32").reshape(60, 50)
COUNTED = {"driver": "zarr3", "kvstore": {"driver": "counted_memory"}}
SHARDED = {"driver": "zarr3", "codecs": [{
    "name": "sharding_indexed", "configuration": {"chunk_shape": [4, 5], "codecs": ["bytes"]},
}]}  # fmt: skip


def created(spec=COUNTED, values=VALUES, chunks=(8, 10), **options):
    store = ts.open(
        spec, create=True, dtype=values.dtype, shape=values.shape,
        chunk_layout=ts.ChunkLayout(write_chunk_shape=chunks), context=ts.Context(), **options,
    ).result()  # fmt: skip
    store[...] = values
    return store


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


def multiples(chunks, grid):
    """Whether all borders of chunks are borders of the grid."""
    return all(
        set(np.cumsum(mine)) <= {*np.cumsum(theirs)}
        for mine, theirs in zip(chunks, grid, strict=True)
    )


class TestFromArray:
    @pytest.mark.parametrize(
        "view", [np.s_[...], np.s_[7:, 3:], np.s_[::-1, 4], np.s_[::3, ::-2], np.s_[[5, 3, 59]]]
    )
    @pytest.mark.parametrize("origin", [None, -30, 70])
    def test_needs_nothing_more(self, view, origin):
        store, expected = created()[view], VALUES[view]
        if origin is not None:
            store = store.translate_to[origin]
        for source in (store, store.np):
            x = da.from_array(source)
            assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
            assert type(x._meta) is np.ndarray
            np.testing.assert_array_equal(x.compute(), expected)
            np.testing.assert_array_equal(x[1:3].compute(), expected[1:3])

    def test_nothing_is_read_before_it_is_wanted(self):
        store = created()
        requests = counts(store)
        x = da.from_array(store)[10:20].sum(axis=0)
        assert not requests.reads
        x.compute()
        assert not requests.reads.get("c/3/0")

    def test_chunks_are_multiples_of_the_stored_ones(self):
        with dask.config.set({"array.chunk-size": "4 kiB"}):
            for store in (created(), created()[3:, 7:], created(codec=SHARDED, chunks=(20, 25))):
                x = da.from_array(store)
                requests = counts(store)
                assert x.npartitions > 1
                grid = da.core.normalize_chunks(store.np.shards or store.np.chunks, store.shape)
                assert multiples(x.chunks, grid)
                x.compute()
                if store.np.shards is None:
                    assert set(requests.reads.values()) == {1}

    def test_fancy_indices_go_through(self):
        x = da.from_array(created().translate_to[5, 5], chunks=(16, 20))
        np.testing.assert_array_equal(x[[40, 2, 17]][:, ::-3], VALUES[[40, 2, 17]][:, ::-3])

    def test_other_functions_take_stores(self):
        store = created()[2:]
        np.testing.assert_array_equal(da.asarray(store) + 1, VALUES[2:] + 1)
        np.testing.assert_array_equal(da.asanyarray(store.np).T, VALUES[2:].T)


class TestNames:
    def test_say_which_elements_are_meant(self, tmp_path):
        spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}
        store = created(spec)
        again = ts.open(spec).result()
        assert da.from_array(store).name == da.from_array(again).name == to_dask(store).name
        assert to_dask(store).name != to_dask(store[1:]).name
        assert to_dask(store, name=False).name != to_dask(store, name=False).name
        assert to_dask(store, name="a").name == "a"
        assert tokenize(store) == tokenize(again) != tokenize(store.np)


class TestStore:
    @pytest.mark.parametrize("chunks", [(8, 10), (7, 9), (60, 50), (1, 50)])
    @pytest.mark.parametrize("face", ["store", "np"])
    def test_any_alignment_without_a_lock(self, chunks, face):
        store = created(values=VALUES * 0)
        x = da.from_array(VALUES, chunks=chunks)
        da.store(x, store if face == "store" else store.translate_to[-9, 4].np, lock=False)
        np.testing.assert_array_equal(store, VALUES)

    def test_any_alignment_of_shards(self):
        store = created(values=VALUES * 0, codec=SHARDED, chunks=(20, 25))
        da.store(da.from_array(VALUES, chunks=(7, 9)), store, lock=False)
        np.testing.assert_array_equal(store, VALUES)

    def test_a_region_and_what_was_stored(self):
        store = created(values=VALUES * 0)
        x = da.from_array(VALUES[:10, :20], chunks=(3, 7))
        found = da.store(x, store.np, lock=False, regions=np.s_[13:23, 5:25], return_stored=True)
        np.testing.assert_array_equal(found, VALUES[:10, :20])
        np.testing.assert_array_equal(store[13:23, 5:25], VALUES[:10, :20])
        assert store.np.sum() == VALUES[:10, :20].sum()


class TestToDask:
    def test_takes_what_open_takes(self, tmp_path):
        spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}
        created(spec)
        for source in (spec, f"file://{tmp_path}/a/|zarr3:", ts.Spec(spec)):
            np.testing.assert_array_equal(to_dask(source), VALUES)

    @pytest.mark.parametrize(
        ("chunks", "expected"),
        [
            (None, ((5, 8, 8, 8, 8, 8, 8, 4), (10,) * 5)),
            ("auto", ((57,), (50,))),
            (-1, ((57,), (50,))),
            ((30, "auto"), ((30, 27), (50,))),
            ({"y": 20}, ((20, 20, 17), (50,))),
            ({1: 25, 0: (50, 7)}, ((50, 7), (25, 25))),
        ],
    )
    def test_chunks(self, chunks, expected):
        x = to_dask(created()[3:].label["y", "x"], chunks)
        assert x.chunks == expected
        np.testing.assert_array_equal(x, VALUES[3:])

    @pytest.mark.parametrize(
        ("limit", "chunksize"),
        [("8 kiB", (40, 50)), ("2 kiB", (20, 25)), ("1 kiB", (12, 15)), ("1 B", (4, 5))],
    )
    def test_of_large_shards_parts_are_read(self, limit, chunksize):
        store = created(codec=SHARDED, chunks=(20, 25))
        assert to_dask(store, None).chunksize == (20, 25)
        with dask.config.set({"array.chunk-size": limit}):
            x = to_dask(store)
        assert x.chunksize == chunksize
        np.testing.assert_array_equal(x, VALUES)

    def test_an_array_without_chunks(self):
        assert to_dask(ts.array(VALUES), None).chunks == ((60,), (50,))
        with dask.config.set({"array.chunk-size": "1 kiB"}):
            assert to_dask(ts.array(VALUES)).npartitions > 1

    def test_text(self):
        store = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="ustring", shape=[3],
            chunk_layout=ts.ChunkLayout(chunk_shape=[2]), context=ts.Context(),
        ).result()  # fmt: skip
        store[...] = ["a", "bc", "d"]
        x = to_dask(store)
        assert x.chunks == ((2, 1),)
        assert x.compute().tolist() == ["a", "bc", "d"]

    def test_the_arrays_of_zarrs_names(self):
        z = ts.zarr.array(VALUES, chunks=(8, 10))
        np.testing.assert_array_equal(to_dask(z) + 1, VALUES + 1)
        np.testing.assert_array_equal(da.from_array(z), VALUES)
        assert da.from_array(z).name == da.from_array(ts.zarr.Array(z.ts)).name
        from_dask(da.from_array(VALUES + 1, chunks=9), z)
        np.testing.assert_array_equal(z, VALUES + 1)

    def test_no_such_label(self):
        with pytest.raises(ValueError, match=r"no dimension 'z'; there are \['y', 'x'\]"):
            to_dask(created().label["y", "x"], {"z": 1})

    @pytest.mark.parametrize("inline", [True, False])
    def test_handles_are_in_tasks_or_beside_them(self, inline):
        x = to_dask(created(), None, inline_array=inline)
        handles = [key for key in dict(x.dask) if isinstance(key, str)]
        assert len(handles) == (0 if inline else 1)
        np.testing.assert_array_equal(x, VALUES)


class TestFromDask:
    def test_makes_the_array(self):
        x = da.from_array(VALUES, chunks=(16, 25))
        store = from_dask(x, COUNTED, create=True, context=ts.Context())
        assert store.dtype == ts.int32
        assert store.chunk_layout.write_chunk.shape == (16, 25)
        np.testing.assert_array_equal(store, VALUES)

    def test_what_is_said_holds(self):
        x = da.from_array(VALUES, chunks=(16, 25))
        store = from_dask(
            x, COUNTED, create=True, context=ts.Context(), dtype="int64", codec=SHARDED,
            chunk_layout=ts.ChunkLayout(write_chunk_shape=[20, 50]), dimension_units=["nm", None],
        )  # fmt: skip
        assert store.np.shards == (20, 50)
        assert (store.dtype, store.dimension_units) == (ts.int64, (ts.Unit("nm"), None))
        np.testing.assert_array_equal(store, VALUES)

    @pytest.mark.parametrize("align", [True, False])
    @pytest.mark.parametrize("origin", [0, -7, 100])
    def test_stores_into_what_is_open(self, align, origin):
        store = created(values=VALUES * 0).translate_to[origin]
        x = da.from_array(VALUES, chunks=(11, 13))
        assert from_dask(x, store, align=align) is store
        np.testing.assert_array_equal(store, VALUES)
        part = store.np.ts[5:20]
        from_dask(x[:15] + 1, part.np, align=align)
        np.testing.assert_array_equal(store.np[5:20], VALUES[:15] + 1)

    def test_aligned_each_chunk_is_written_once_and_none_is_read(self):
        store = created(values=VALUES * 0)
        for chunks in [(20, 25), (8, 50), (60, 50)]:
            requests = counts(store)
            from_dask(da.from_array(VALUES + 1, chunks=chunks), store)
            assert set(requests.writes.values()) == {1}
            assert not requests.reads
        np.testing.assert_array_equal(store, VALUES + 1)

    def test_nothing_is_computed_before_it_is_wanted(self):
        store = created(values=VALUES * 0)
        done = from_dask(da.from_array(VALUES, chunks=(11, 13)), store, compute=False)
        assert not np.asarray(store).any()
        np.testing.assert_array_equal(done.compute(), VALUES)

    @settings(max_examples=settings().max_examples // 4)
    @given(st.data())
    def test_any_chunks_of_both(self, data):
        extents = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
        values = np.arange(np.prod(extents)).reshape(extents)
        sizes = [data.draw(st.integers(1, extent)) for extent in extents]
        store = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="int64",
            shape=extents, chunk_layout=ts.ChunkLayout(chunk_shape=sizes), context=ts.Context(),
        ).result().translate_to[data.draw(st.integers(-5, 5))]  # fmt: skip
        chunks = tuple(data.draw(st.integers(1, extent)) for extent in extents)
        from_dask(da.from_array(values, chunks=chunks), store, align=data.draw(st.booleans()))
        np.testing.assert_array_equal(store, values)

    def test_what_does_not_fit_is_refused_before_anything_is_stored(self):
        store = created()
        x = da.from_array(VALUES, chunks=16)
        requests = counts(store)
        with pytest.raises(ts.MismatchError, match=r"\(59, 50\) in an array of shape \(60, 50\)"):
            from_dask(x[1:], store)
        with pytest.raises(TypeError, match=r"convert them first: x.astype\('int32'\)"):
            from_dask(x * 1.5, store)
        with pytest.raises(ts.MismatchError, match=r"compute_chunk_sizes\(\)"):
            from_dask(x[x[:, 0] > 3], store)
        with pytest.raises(TypeError, match="create"):
            from_dask(x, store, create=True)
        assert not requests.writes

    def test_an_array_that_exists_is_not_replaced(self):
        store = created()
        again = store.spec(retain_context=True)
        with pytest.raises(ts.AlreadyExistsError):
            from_dask(da.zeros((60, 50), dtype="int32"), again, create=True)
        from_dask(da.zeros((60, 50), dtype="int32"), again)
        assert not np.asarray(store).any()


class TestProcesses:
    @pytest.fixture
    def file_store(self, tmp_path):
        return created({"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"})

    def test_handles_travel_and_elements_do_not(self, tmp_path):
        store = ts.open(
            {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}, create=True,
            dtype="int32", shape=[10**5, 10**5],
        ).result()  # fmt: skip
        assert len(pickle.dumps(to_dask(store[5:]))) < 20_000

    def test_of_dask(self, tmp_path, file_store):
        target = created({"driver": "zarr3", "kvstore": f"file://{tmp_path}/b/"}, VALUES * 0)
        with dask.config.set(scheduler="processes", num_workers=2):
            from_dask(to_dask(file_store[7:], (30, 50)) + 1, target[7:], align=False)
        np.testing.assert_array_equal(target[7:], VALUES[7:] + 1)

    def test_of_distributed(self, file_store, caplog):
        caplog.set_level("CRITICAL")  # what fails on purpose is reported at length
        before = set(multiprocessing.active_children())
        memory = created({"driver": "zarr3", "kvstore": "memory://"})
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        with cluster, Client(cluster):
            x = da.from_array(VALUES + 1, chunks=(7, 9))
            da.store(x, file_store.translate_to[5].np, lock=False)
            np.testing.assert_array_equal(file_store, VALUES + 1)
            read = da.from_array(file_store[7:], (20, 50)).sum().compute()
            assert read == (VALUES[7:] + 1).sum()
            for work in (to_dask(memory).sum(), from_dask(x, memory, compute=False)):
                with pytest.raises(ts.FailedPreconditionError, match="is not here"):
                    work.compute()
            np.testing.assert_array_equal(memory, VALUES)
        assert set(multiprocessing.active_children()) == before
