import asyncio
import importlib.util
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import TensorStoreBackendEntrypoint
from tests.api.counted_memory import counts
from tests.integrations.xarray.datasets import dataset, kinds

pytestmark = [
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part in the Zarr"),
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification"),
    pytest.mark.filterwarnings("ignore:.*In a future version.*decode_timedelta:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Failed to open Zarr store with consolidated metadata"),
]


def opened(given, **options):
    return xr.open_dataset(given, engine="tensorstore", **options)


@pytest.fixture(params=[2, 3])
def zarr_format(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["apart", "consolidated"])
def path(request, tmp_path, zarr_format):
    where = tmp_path / "a.zarr"
    dataset().to_zarr(where, zarr_format=zarr_format, consolidated=request.param)
    return where


def test_xarray_finds_the_engine_by_its_name():
    found = xr.backends.list_engines()["tensorstore"]

    assert isinstance(found, TensorStoreBackendEntrypoint)


@pytest.mark.parametrize(
    "options",
    [{}, {"decode_cf": False}, {"mask_and_scale": False}, {"decode_times": False}, {"chunks": {}}],
    ids=str,
)
def test_a_dataset_is_what_xarrays_engine_for_zarr_opens(path, options):
    theirs = xr.open_dataset(path, engine="zarr", **options)
    ours = opened(path, **options)

    xr.testing.assert_identical(ours, theirs)
    assert ours.encoding == theirs.encoding
    for name in theirs.variables:
        assert ours[name].dtype == theirs[name].dtype
        np.testing.assert_equal(ours[name].encoding, theirs[name].encoding)
        assert ours[name].chunks == theirs[name].chunks


def test_elements_of_each_kind_are_what_xarrays_engine_for_zarr_opens(tmp_path, zarr_format):
    kinds(tmp_path / "a.zarr", zarr_format)

    plain: list[dict[str, Any]] = [{}, {"decode_cf": False}]
    for options in plain:
        theirs = xr.open_dataset(tmp_path / "a.zarr", engine="zarr", consolidated=False, **options)
        ours = opened(tmp_path / "a.zarr", **options)
        xr.testing.assert_identical(ours, theirs)
        for name in theirs.variables:
            assert ours[name].dtype == theirs[name].dtype


def test_what_was_opened_is_written_by_xarray_and_the_other_way_round(path, tmp_path, zarr_format):
    with opened(path) as ours:
        ours.to_zarr(tmp_path / "b.zarr", zarr_format=zarr_format, consolidated=False)
        again = opened(tmp_path / "b.zarr")

        xr.testing.assert_identical(again, ours)
        for name in ours.variables:
            for member in (
                "chunks",
                "compressors",
                "filters",
                "_FillValue",
                "dtype",
                "scale_factor",
            ):
                np.testing.assert_equal(
                    again[name].encoding.get(member), ours[name].encoding.get(member)
                )


@pytest.mark.parametrize(
    "given",
    [
        Path,
        os.fspath,
        lambda path: f"{path}/",
        lambda path: path.as_uri() + "/",
        lambda path: {"driver": "auto", "kvstore": path.as_uri() + "/"},
        lambda path: ts.Spec({"driver": "auto", "kvstore": path.as_uri() + "/"}),
        lambda path: ts.KvStore.open(path).result(),
        lambda path: ts.KvStore.open(path).result().spec(),
        lambda path: ts.Group.open(path).result(),
    ],
    ids=["Path", "str", "slash", "URL", "JSON", "Spec", "KvStore", "KvStore.Spec", "Group"],
)
def test_what_a_dataset_is_opened_from(path, given):
    found = opened(given(path))

    xr.testing.assert_equal(found.load(), dataset())
    assert str(path) in found.encoding["source"] or isinstance(given(path), dict | ts.Spec)


def test_where_no_engine_is_named_only_what_no_other_engine_takes_is_taken(monkeypatch):
    engine = TensorStoreBackendEntrypoint()
    group: Any = ts.Group.open("memory://", create=True).result()

    for mine in (group, group.kvstore, "file:///a/|zarr3:", "s3://b/a|zarr2:", "a.n5", "/a.n5/"):
        assert engine.guess_can_open(mine)
    for others in ("a.zarr", Path("a.zarr"), "a.nc", "file:///a.zarr", b"CDF", 5, None):
        assert not engine.guess_can_open(others)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert engine.guess_can_open("a.zarr/")
    xr.testing.assert_equal(xr.open_dataset(group), xr.Dataset())


def test_a_group_within_and_variables_that_are_dropped(tmp_path, zarr_format):
    dataset().to_zarr(tmp_path, group="a/b", zarr_format=zarr_format, consolidated=False)

    found = opened(tmp_path, group="/a/b/", drop_variables=["t2m", "scaled"])

    assert set(found.data_vars) == {"flag", "name", "scalar"}
    assert set(opened(tmp_path, group="a/b", drop_variables="t2m")) == {*dataset()} - {"t2m"}
    for part in ("x", "a"):
        with opened(tmp_path, group="a") as empty:
            assert len(empty.variables) == 0, part


def test_trees_and_groups(tmp_path, zarr_format):
    tree = xr.DataTree.from_dict(
        {"/": dataset(), "/fine": xr.Dataset({"v": ("z", [1, 2])}), "/fine/er": dataset()[["flag"]]}
    )
    tree.to_zarr(tmp_path, zarr_format=zarr_format)

    ours = xr.open_datatree(tmp_path, engine="tensorstore")
    theirs = xr.open_datatree(tmp_path, engine="zarr")
    xr.testing.assert_identical(ours, theirs)
    groups = xr.open_groups(tmp_path, engine="tensorstore")
    assert groups.keys() == xr.open_groups(tmp_path, engine="zarr").keys()
    xr.testing.assert_identical(groups["/fine"], opened(tmp_path, group="fine"))
    below = xr.open_datatree(tmp_path, engine="tensorstore", group="fine")
    xr.testing.assert_identical(below, xr.open_datatree(tmp_path, engine="zarr", group="fine"))
    assert (
        xr.open_groups(tmp_path, engine="tensorstore", group="fine").keys()
        == xr.open_groups(tmp_path, engine="zarr", group="fine").keys()
    )


def test_many_files_by_dask(tmp_path):
    for number in range(3):
        part = dataset().isel(time=[number])
        part.to_zarr(tmp_path / f"{number}.zarr", zarr_format=2)

    found = xr.open_mfdataset(
        [tmp_path / f"{number}.zarr" for number in range(3)],
        engine="tensorstore",
        combine="by_coords",
        data_vars="minimal",
        coords="minimal",
        compat="override",
        join="outer",
    )

    xr.testing.assert_equal(found.load(), dataset().isel(time=slice(0, 3)))


def test_loading_in_an_event_loop(path):
    loaded = asyncio.run(opened(path)[["t2m", "scaled", "flag"]].load_async())

    xr.testing.assert_equal(loaded, dataset()[["t2m", "scaled", "flag"]])


def test_a_dataset_goes_to_another_process_and_back(path):
    lazy = opened(path)

    again = pickle.loads(pickle.dumps(lazy))

    xr.testing.assert_identical(again.load(), lazy.load())
    again.close()
    by_dask = pickle.loads(pickle.dumps(opened(path, chunks={})))
    xr.testing.assert_equal(by_dask.load(), dataset())


def test_chunks_that_dask_prefers_are_those_within_shards(tmp_path):
    data = xr.Dataset({"v": (("y", "x"), np.arange(64).reshape(8, 8))})
    data["v"].encoding = {"chunks": (2, 4), "shards": (4, 8)}
    data.to_zarr(tmp_path, zarr_format=3, consolidated=False)

    found = opened(tmp_path, chunks={})

    assert found["v"].encoding["chunks"] == (2, 4)
    assert found["v"].encoding["shards"] == (4, 8)
    assert found["v"].encoding["preferred_chunks"] == {"y": 2, "x": 4}
    assert found["v"].chunks == ((2,) * 4, (4, 4))
    theirs = xr.open_dataset(tmp_path, engine="zarr", consolidated=False)
    np.testing.assert_equal(found["v"].encoding, theirs["v"].encoding)


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, 2),
        ({"cache_pool": 1_000_000}, 1),
        ({"context": {"cache_pool": {"total_bytes_limit": 1_000_000}}}, 1),
        ({"context": ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})}, 1),
    ],
    ids=["none", "bytes", "JSON", "Context"],
)
def test_a_pool_keeps_chunks_of_all_variables(options, times):
    root = ts.Group.open({"driver": "counted_memory"}, create=True).result()
    for name in ("a", "b"):
        domain = ts.IndexDomain(shape=[100], labels=["x"])
        root.create_array(name, dtype="int8", domain=domain).result()[...] = 1
    asked = counts(root)

    found = opened(root.kvstore, cache=False, **options)
    for _ in range(2):
        assert found.sum().load()["b"].item() == 100

    read = {key: size for key, size in asked.bytes_read.items() if "/c/" in key}
    assert read == {f"{name}/c/0": times * len(root.kvstore[f"{name}/c/0"]) for name in "ab"}


def test_a_group_keeps_the_context_that_it_was_opened_with():
    group = ts.Group.open("memory://", create=True).result()

    with pytest.raises(TypeError, match=r"pass context= to ts\.Group\.open"):
        opened(group, cache_pool=1000)


def test_closing_a_tree_closes_all_of_it_and_a_branch_itself(tmp_path):
    branch = xr.Dataset({"v": ("z", [1, 2])})
    xr.DataTree.from_dict({"/": branch, "/a": branch}).to_zarr(tmp_path, zarr_format=2)
    options: dict[str, Any] = {"engine": "tensorstore", "cache": False}

    tree = xr.open_datatree(tmp_path, **options)
    tree["a"].close()
    with pytest.raises(ts.FailedPreconditionError, match="closed"):
        tree["a"]["v"].load()
    assert tree["v"].load().size == 2
    tree = xr.open_datatree(tmp_path, **options)
    tree.close()
    for path in ("v", "a/v"):
        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            tree[path].load()


def test_closing_closes_what_was_opened_and_nothing_else(path):
    group = ts.Group.open(path).result()
    ours = opened(group, cache=False)
    ours.close()

    with pytest.raises(ts.FailedPreconditionError, match="closed"):
        _ = ours["t2m"].values
    assert group.contains("t2m").result()
    other = opened(path, cache=False)
    with other:
        pass
    with pytest.raises(ts.FailedPreconditionError, match="closed"):
        _ = other["t2m"].values
