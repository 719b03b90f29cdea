"""How datasets are opened, and arrays that are read when they are needed."""

import asyncio
import copy
import itertools
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xarray as xr
from xarray.core.indexing import (
    BasicIndexer,
    LazilyIndexedArray,
    NumpyIndexingAdapter,
    OuterIndexer,
    VectorizedIndexer,
)

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import open_concatenated_zarrs, open_zarr, read
from tensorstore_py.integrations.xarray.engine import OPTIONS, open_groups
from tensorstore_py.integrations.xarray.lazy_array import LazyArray
from tests.api.counted_memory import counts
from tests.integrations.xarray.datasets import dataset


@pytest.fixture(params=[2, 3])
def group(request):
    spec = {"driver": "counted_memory"}
    root = ts.Group.open(spec, create=True, zarr_format=request.param).result()
    for path in ("t", "v", "g/x", "g/v"):
        name = path.rpartition("/")[2]
        units = {"units": "days since 2000-01-01"} if name in "tx" else {}
        domain = ts.IndexDomain(shape=[2], labels=["t" if "/" not in path else "x"])
        made = root.create_array(path, dtype="int64", domain=domain, attributes=units).result()
        made[...] = [1, 2]
    return root


def chunks(asked):
    return sorted(key for key in asked.reads.elements() if key[-1].isdigit())


class TestOpening:
    def test_a_group_and_all_below_it(self, group):
        assert list(open_groups(group, tree=False)) == ["/"]
        found = open_groups(group, tree=True)
        assert list(found) == ["/", "/g"]
        assert set(found["/g"].variables) == {"x", "v"}

    def test_coordinates_are_read_once_and_data_not_at_all(self, group):
        asked = counts(group)

        found = xr.open_datatree(group, engine="tensorstore")

        assert {key.rpartition("/")[0].removesuffix("/c") for key in chunks(asked)} == {"t", "g/x"}
        assert len(chunks(asked)) == 2
        assert max(asked.reads.values()) == 1
        assert found["v"].sum() == 3
        assert len(chunks(asked)) == 3

    def test_nothing_is_read_ahead_unless_wanted(self, group):
        asked = counts(group)

        found = xr.open_dataset(
            group,
            engine="tensorstore",
            prefetch=False,
            create_default_indexes=False,
            decode_times=False,
        )

        assert chunks(asked) == []
        assert found["t"].values.tolist() == [1, 2]

    def test_consolidated_metadata_costs_nothing_more(self, group):
        known = group.consolidate().result()
        asked = counts(group)

        xr.open_datatree(known, engine="tensorstore")

        assert len(asked.reads) == len(chunks(asked)) == 2
        assert not asked.directories

    def test_what_is_no_keyword_is_refused(self, group):
        with pytest.raises(TypeError, match=r"takes no 'mode'; it takes mask_and_scale.*prefetch"):
            open_groups(group, tree=False, mode="r")
        assert len(set(OPTIONS)) == len(OPTIONS)

    def test_what_was_opened_is_closed_if_something_goes_wrong(self, tmp_path):
        root = ts.Group.open(tmp_path, create=True).result()
        root.create_array("nameless", dtype="int8", shape=[2]).result()
        context = ts.Context()

        with pytest.raises(ts.UnsupportedError):
            open_groups(tmp_path, tree=True, context=context)
        assert open_groups(tmp_path, tree=False, context=context, drop_variables=["nameless"])


class TestImport:
    def test_a_missing_library_is_named_with_its_extra(self):
        code = (
            "import sys; sys.modules['xarray'] = None\n"
            "try:\n"
            "    import tensorstore_py.integrations.xarray\n"
            "except ImportError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
        )

        assert 'pip install "tensorstore-py[xarray]"' in done.stdout


def split(tmp_path, whole, dim="time", **options):
    paths = []
    for number in range(whole.sizes[dim]):
        path = tmp_path / f"{number}.zarr"
        whole.isel({dim: [number]}).to_zarr(path, zarr_format=2, **options)
        paths.append(str(path))
    return paths


class TestConcatenated:
    def test_stores_are_one_dataset(self, tmp_path):
        paths = split(tmp_path, dataset())

        found = open_concatenated_zarrs(paths, "time")

        assert found["t2m"].variable._in_memory is False
        xr.testing.assert_equal(found.load(), dataset())
        begun = read(open_concatenated_zarrs(paths, "time", drop_variables="name").isel(x=[0, 2]))
        xr.testing.assert_equal(begun.compute(), dataset().drop_vars("name").isel(x=[0, 2]))
        again = pickle.loads(pickle.dumps(open_concatenated_zarrs(paths, "time")))
        xr.testing.assert_equal(again.load(), dataset())

    def test_closing_closes_all(self, tmp_path):
        found = open_concatenated_zarrs(split(tmp_path, dataset()), "time", cache=False)
        found.close()

        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            _ = found["t2m"].values

    def test_as_open_mfdataset_does(self, tmp_path):
        paths = split(tmp_path, dataset())

        theirs = xr.open_mfdataset(
            paths,
            engine="zarr",
            combine="nested",
            concat_dim="time",
            data_vars="minimal",
            coords="minimal",
            compat="override",
            join="override",
        )
        ours = open_concatenated_zarrs(paths, "time")

        xr.testing.assert_identical(ours.load(), theirs.load())

    def test_stores_that_differ_are_named(self, tmp_path):
        paths = split(tmp_path, dataset())
        odd = str(tmp_path / "odd.zarr")

        def joined(other):
            other.to_zarr(odd, zarr_format=2, mode="w")
            return open_concatenated_zarrs([*paths, odd], "time")

        part = dataset().isel(time=[0])
        with pytest.raises(ts.MismatchError, match=r'"t2m" is in .*0\.zarr.*not in .*odd\.zarr'):
            joined(part.drop_vars("t2m"))
        with pytest.raises(
            ts.MismatchError, match=r'"t2m" has type float32.*but float64.*odd\.zarr'
        ):
            joined(part.assign(t2m=part["t2m"].astype("f8")))
        with pytest.raises(ts.MismatchError, match=r'"scaled" has sizes \(5,\).*but \(4,\)'):
            joined(part.isel(x=slice(4)))
        with pytest.raises(ts.MismatchError, match=r'"scaled" has dimensions'):
            joined(part.transpose("x", "y", "time"))
        other = part.copy(deep=True)
        other["scaled"].encoding["scale_factor"] = 0.25
        with pytest.raises(
            ts.MismatchError, match=r'"scaled" is stored with .*0\.25.*open_mfdataset'
        ):
            joined(other)

    def test_there_is_nothing_to_concatenate(self, tmp_path):
        paths = split(tmp_path, dataset())

        with pytest.raises(ValueError, match="no paths"):
            open_concatenated_zarrs([], "time")
        with pytest.raises(ValueError, match=r'"t".*\[.time., .x., .y.\]'):
            open_concatenated_zarrs(paths, "t")
        with pytest.raises(ts.NotFoundError, match="nowhere"):
            open_concatenated_zarrs([*paths, str(tmp_path / "nowhere")], "time")

    def test_each_store_costs_its_metadata_and_its_coordinate_once(self):
        root = ts.Group.open({"driver": "counted_memory"}, create=True).result()
        for number in range(20):
            group = root.create_group(f"g{number:02}", attributes={"of": number}).result()
            for name in ("t", "v"):
                domain = ts.IndexDomain(shape=[1], labels=["t"])
                group.create_array(name, dtype="int32", domain=domain).result()[...] = number
        groups = [group for _, group in root.groups()]
        asked = counts(root)

        found = open_concatenated_zarrs(groups, "t")

        assert found["t"].values.tolist() == list(range(20))
        assert len([key for key in asked.reads if "/v/c/" in key]) == 0
        assert {key: count for key, count in asked.reads.items() if count > 1} == {}
        assert len(asked.reads) == 20 * 4  # documents of a group and two arrays, and a chunk


@pytest.fixture
def begun_group():
    root = ts.Group.open({"driver": "counted_memory"}, create=True, zarr_format=2).result()
    for name in ("a", "b"):
        store = root.create_array(
            name,
            dtype="int16",
            fill_value=-1,
            domain=ts.IndexDomain(shape=[2, 3], labels=["y", "x"]),
            attributes={"scale_factor": 0.5},
        ).result()
        store[...] = np.arange(6, dtype="i2").reshape(2, 3)
    return root


class TestBegun:
    def test_all_are_begun_and_each_is_read_once(self, begun_group):
        dataset = open_zarr(begun_group).isel(x=slice(1, None)).transpose("x", "y")
        asked = counts(begun_group)

        begun = read(dataset)

        assert begun.sizes == {"x": 2, "y": 2}
        expected = [[0.5, 2.0], [1.0, 2.5]]
        assert begun["a"].values.tolist() == begun["b"].values.tolist() == expected
        assert set(asked.reads.values()) == {1}
        assert begun["a"].values.tolist() == expected
        assert set(asked.reads.values()) == {1}

    def test_what_is_done_with_it_before_it_is_there(self, begun_group):
        dataset = read(open_zarr(begun_group))

        assert dataset["a"].isel(x=[2, 0], y=0).values.tolist() == [1.0, 0.0]
        assert dataset["a"].T.values.tolist() == [[0, 1.5], [0.5, 2], [1, 2.5]]
        points = dataset["a"].isel(
            x=xr.DataArray([0, 1], dims="p"), y=xr.DataArray([1, 1], dims="p")
        )
        assert points.values.tolist() == [1.5, 2.0]
        for again in (dataset.copy(), dataset.copy(deep=True), pickle.loads(pickle.dumps(dataset))):
            assert again["b"].values.tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
        assert read(dataset).compute().identical(dataset.compute())

    def test_one_array_and_what_is_in_memory(self, begun_group):
        assert read(open_zarr(begun_group)["a"]).values.tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
        memory = xr.Dataset({"a": ("x", [1, 2])})
        assert read(memory).identical(memory)
        assert (
            read(xr.open_dataset(begun_group, engine="tensorstore", chunks={}))["a"].chunks
            is not None
        )
        with pytest.raises(TypeError, match=r"Dataset or a DataArray.*dict"):
            read({})  # type: ignore[type-var]

    def test_an_error_comes_when_the_values_are_wanted(self, begun_group):
        begun_group.kvstore.write("a/0.0", b"nonsense").result()

        begun = read(open_zarr(begun_group))

        assert begun["b"].values.shape == (2, 3)
        with pytest.raises(ts.DataLossError, match=r"a/0\.0"):
            _ = begun["a"].values


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


@pytest.fixture
def counted():
    root = ts.Group.open({"driver": "counted_memory"}, create=True).result()
    store = root.create_array("a", dtype="int16", shape=[6], chunk_layout=CHUNKS).result()
    store[...] = np.arange(6, dtype="i2")
    return LazyArray(store), counts(root)


def lazy_chunks(asked):
    return {key: count for key, count in asked.reads.items() if "/c/" in key}


class TestLazyArray:
    @pytest.mark.parametrize("ahead", [False, True])
    def test_indexers_of_all_kinds_mean_what_they_do_for_numpy(self, ahead):
        array = LazyArray(ts.array(VALUES))
        if ahead:
            array.fetch()

        for key in KEYS:
            np.testing.assert_array_equal(array[key], taken(key), err_msg=str(key), strict=True)

    def test_waiting_in_an_event_loop_gives_the_same(self):
        array = LazyArray(ts.array(VALUES))

        async def all_of_them():
            return await asyncio.gather(*(array.async_getitem(key) for key in KEYS))

        for key, found in zip(KEYS, asyncio.run(all_of_them()), strict=True):
            np.testing.assert_array_equal(found, taken(key), err_msg=str(key))

    def test_what_was_fetched_ahead_is_not_read_again_and_not_kept(self, counted):
        array, asked = counted
        array.fetch()

        assert array[BasicIndexer((slice(1, 3),))].tolist() == [1, 2]
        assert array[BasicIndexer((slice(None),))].tolist() == list(range(6))
        assert lazy_chunks(asked) == {"a/c/0": 1, "a/c/1": 1, "a/c/2": 1}

        assert array[BasicIndexer((slice(None),))].tolist() == list(range(6))
        assert lazy_chunks(asked) == {"a/c/0": 2, "a/c/1": 2, "a/c/2": 2}

    def test_ends_are_fetched_ahead_alone(self, counted):
        array, asked = counted
        array.fetch_ends()

        assert array[BasicIndexer((slice(0, 1),))].tolist() == [0]
        assert array[BasicIndexer((slice(-1, None),))].tolist() == [5]
        assert lazy_chunks(asked) == {"a/c/0": 1, "a/c/2": 1}

    def test_ends_of_no_and_of_several_dimensions(self):
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

    def test_only_chunks_that_are_wanted_are_read(self, counted):
        array, asked = counted
        lazy = LazilyIndexedArray(array)

        sliced = lazy[BasicIndexer((slice(2, 6),))][BasicIndexer((slice(0, 1),))]

        assert lazy_chunks(asked) == {}
        assert np.asarray(sliced).tolist() == [2]
        assert lazy_chunks(asked) == {"a/c/1": 1}

    @pytest.mark.parametrize(
        "again", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
    )
    def test_copies_read_the_same_and_wait_for_nothing(self, again, tmp_path):
        store = ts.open(
            {"driver": "zarr3", "kvstore": tmp_path}, create=True, dtype="int16", shape=[3]
        ).result()
        store[...] = [1, 2, 3]
        array = LazyArray(store)
        array.fetch()

        assert again(array)[BasicIndexer((slice(1, None),))].tolist() == [2, 3]

    def test_bytes_and_text(self):
        spec = {"driver": "zarr", "kvstore": "memory://", "metadata": {"dtype": "|S3"}}
        store = ts.open(spec, create=True, shape=[2, 3]).result()
        array = LazyArray(store, np.dtype("S3"))
        array[BasicIndexer((slice(None),))] = [b"abc", b"d"]

        assert array.shape == (2,)
        assert array[BasicIndexer((slice(None),))].tolist() == [b"abc", b"d"]
        assert array[BasicIndexer((1,))].item() == b"d"
        assert array[OuterIndexer((np.array([1, 0]),))].tolist() == [b"d", b"abc"]

        text = LazyArray(
            ts.array(np.array(["a", "été"], object), ts.ustring), np.dtypes.StringDType()
        )
        text[BasicIndexer((0,))] = "b"

        assert text[BasicIndexer((slice(None),))].dtype == np.dtypes.StringDType()
        assert text[BasicIndexer((slice(None),))].tolist() == ["b", "été"]

    def test_what_is_assigned_is_stored(self):
        store = ts.array(np.zeros((2, 3), np.int16))
        lazy = LazilyIndexedArray(LazyArray(store))

        lazy[BasicIndexer((0, slice(None)))] = 1.0
        lazy.oindex[OuterIndexer((np.array([1]), np.array([0, 2])))] = [[5, 6]]
        lazy.array.vindex[VectorizedIndexer((np.array([1, 0]), np.array([1, 1])))] = [7, 8]

        assert store[...].read().result().tolist() == [[1, 8, 1], [5, 7, 6]]
