"""What the tutorial of zarr-python does with arrays, done here; in less space."""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import zarr

import tensorstore_py as ts
from tests.chunked.stores import counting, opened

BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def created(where="memory://", *, shape=(90, 160), chunks=(30, 40), dtype="<i4", **metadata):
    members = {"shape": list(shape), "chunks": list(chunks), "dtype": dtype, **metadata}
    spec = {"driver": "zarr", "kvstore": where, "metadata": members}
    return ts.open(spec, create=True).result()


def chunks(store):
    """How many chunks are stored."""
    keys = store.kvstore.list().result()
    return sum(not key.rsplit(b"/")[-1].startswith(b".") for key in keys)


@pytest.fixture
def where(tmp_path):
    return {"driver": "file", "path": f"{tmp_path}/tides.zarr/", "file_io_sync": False}


class TestReadingAndWriting:
    def test_chunks_are_made_as_they_are_written(self):
        z = created(compressor=BLOSC, fill_value=-3)
        assert z.dtype == ts.int32
        assert (z.shape, z.chunk_layout.write_chunk.shape) == ((90, 160), (30, 40))
        assert chunks(z) == 0
        assert z[89, 159].read().result() == -3
        z[30:60, 80:] = 8
        assert chunks(z) == 2
        z[...] = 9
        assert chunks(z) == 12

    def test_regions_are_written_and_read(self):
        z = created(fill_value=0)
        expected = np.zeros((90, 160), "i4")
        writes: list[tuple[Any, npt.ArrayLike]] = [
            (np.s_[:], 6),
            (np.s_[45], np.arange(160, dtype="i4")),
            (np.s_[80:, ::3], np.arange(10, dtype="i4")[:, None]),
        ]
        for index, value in writes:
            z[index] = expected[index] = value
            np.testing.assert_array_equal(z[:], expected)
        np.testing.assert_array_equal(z[44:82, 3], expected[44:82, 3])

    def test_what_is_on_disk_can_be_opened_again_by_both(self, where):
        tides = np.random.default_rng(3).integers(-400, 400, (90, 160), "i4")
        created(where, fill_value=0)[:] = tides
        again = ts.open({"driver": "zarr", "kvstore": where}, read=True).result()
        assert again.mode == "r"
        theirs = zarr.open_array(where["path"], mode="r", zarr_format=2)
        for reader in (again, theirs):
            np.testing.assert_array_equal(np.asarray(reader[:]), tides)


class TestResizingAndAppending:
    def test_data_stay_where_they_are_and_chunks_outside_are_deleted(self):
        z = created(dtype="<f8", fill_value=0)
        z[:] = 0.25
        z = z.resize(exclusive_max=[150, 160]).result()
        assert (z.shape, chunks(z)) == ((150, 160), 12)
        statistics = z.storage_statistics(query_not_stored=True, query_fully_stored=True)
        assert statistics.result() == ts.TensorStore.StorageStatistics(
            not_stored=False, fully_stored=False
        )
        z = z.resize(exclusive_max=[31, 160]).result()
        assert chunks(z) == 8
        assert z[30].read().result().tolist() == [0.25] * 160

    def test_data_are_appended_to_any_axis(self, where):
        week = np.arange(7 * 48, dtype="i4").reshape(7, 48)
        z = created(where, shape=(7, 48), chunks=(7, 12), fill_value=None)
        z[:] = week
        assert chunks(z) == 4
        # Handles don't change; each append looks up the size that the array has by then.
        assert z.append(-week).result().shape == (14, 48)
        z = z.append(np.ones((14, 12), "i4"), axis=1).result()
        assert (z.shape, chunks(z)) == ((14, 60), 10)
        expected = np.hstack([np.vstack([week, -week]), np.ones((14, 12))])
        np.testing.assert_array_equal(z[:], expected)
        theirs = zarr.open_array(where["path"], zarr_format=2)
        assert theirs.append(np.zeros((1, 60))) == (15, 60)
        assert z.resolve().result().shape == (15, 60)


COMPRESSORS = [
    {"id": "blosc", "cname": "lz4hc", "clevel": 7, "shuffle": 1, "blocksize": 0},
    {"id": "zlib", "level": 4},
    {
        "id": "lzma", "format": 1, "check": -1, "preset": None,
        "filters": [{"dist": 8, "id": 3}, {"preset": 3, "id": 33}],
    },
    {"id": "blosc", "cname": "zstd", "clevel": 2, "shuffle": 0, "blocksize": 0},
    {"id": "bz2", "level": 5},
    None,
]  # fmt: skip

FILTERS = [
    [{"id": "delta", "dtype": "<i4"}],
    [{"id": "fixedscaleoffset", "dtype": "<i4", "astype": "<i4", "offset": -50, "scale": 1}],
    [{"id": "shuffle", "elementsize": 4}],
]


class TestCompressorsAndFilters:
    @pytest.mark.parametrize("compressor", COMPRESSORS, ids=str)
    def test_compressors_are_read_by_both(self, where, compressor):
        data = np.arange(90_000, dtype="i4").reshape(300, 300)
        z = created(where, compressor=compressor, shape=(300, 300), chunks=(150, 150))
        theirs = zarr.open_array(where["path"], zarr_format=2)
        theirs[:] = data
        np.testing.assert_array_equal(z[:], data)
        z[:, 7] = data[:, 7] = 5
        sizes = [len(z.kvstore[f"{i}.{j}"]) for i in range(2) for j in range(2)]
        if compressor is None:
            assert sizes == [90_000] * 4
        else:
            assert sum(sizes) < 360_000
        # The library behind it compresses with filters of lzma's, but does not decompress.
        if "filters" not in (compressor or {}):
            np.testing.assert_array_equal(theirs[:], data)

    @pytest.mark.parametrize("filters", FILTERS, ids=str)
    def test_filters_are_read_by_both(self, where, filters):
        data = np.arange(10_000, dtype="i4").reshape(100, 100)
        z = created(where, shape=(100, 100), chunks=(50, 50), compressor=BLOSC, filters=filters)
        z[:] = data
        theirs = zarr.open_array(where["path"], zarr_format=2)
        np.testing.assert_array_equal(theirs[:], data)
        theirs[3:60, 7] = 5
        data[3:60, 7] = 5
        np.testing.assert_array_equal(z[:], data)


class TestWritingTogether:
    """An array of 60 elements in three chunks, written by several threads; no locks are needed."""

    @pytest.fixture(params=[True, False], ids=["inline", "loop"])
    def z(self, request):
        store = counting(request.param)
        members = {"metadata": {"shape": [60], "chunks": [20], "dtype": "<i4", "fill_value": 0}}
        opened(store, driver="zarr", members=members, create=True)
        store.reset()
        return store, [opened(store, driver="zarr") for _ in range(3)]

    def together(self, handles, size):
        def write(part, handle):
            handle[part * size : (part + 1) * size].write(part + 1).result()

        threads = [threading.Thread(target=write, args=each) for each in enumerate(handles)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_regions_along_chunks_are_written_without_a_read(self, z):
        store, handles = z
        store.reset()
        self.together(handles, 20)
        assert store.reads.total() == 0
        assert handles[0].read().result().tolist() == [1] * 20 + [2] * 20 + [3] * 20

    def test_regions_that_meet_in_a_chunk_lose_nothing(self, z):
        _, handles = z
        for _ in range(5):
            handles[0][:].write(0).result()
            self.together(handles[:2], 30)
            assert handles[2].read().result().tolist() == [1] * 30 + [2] * 30
