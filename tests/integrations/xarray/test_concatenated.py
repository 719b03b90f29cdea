import pickle

import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import open_concatenated_zarrs, read
from tests.api.counted_memory import counts
from tests.integrations.xarray.datasets import dataset


def split(tmp_path, whole, dim="time", **options):
    paths = []
    for number in range(whole.sizes[dim]):
        path = tmp_path / f"{number}.zarr"
        whole.isel({dim: [number]}).to_zarr(path, zarr_format=2, **options)
        paths.append(str(path))
    return paths


def test_stores_are_one_dataset(tmp_path):
    paths = split(tmp_path, dataset())

    found = open_concatenated_zarrs(paths, "time")

    assert found["t2m"].variable._in_memory is False
    xr.testing.assert_equal(found.load(), dataset())
    begun = read(open_concatenated_zarrs(paths, "time", drop_variables="name").isel(x=[0, 2]))
    xr.testing.assert_equal(begun.compute(), dataset().drop_vars("name").isel(x=[0, 2]))
    again = pickle.loads(pickle.dumps(open_concatenated_zarrs(paths, "time")))
    xr.testing.assert_equal(again.load(), dataset())


def test_closing_closes_all(tmp_path):
    found = open_concatenated_zarrs(split(tmp_path, dataset()), "time", cache=False)
    found.close()

    with pytest.raises(ts.FailedPreconditionError, match="closed"):
        _ = found["t2m"].values


def test_as_open_mfdataset_does(tmp_path):
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


def test_stores_that_differ_are_named(tmp_path):
    paths = split(tmp_path, dataset())
    odd = str(tmp_path / "odd.zarr")

    def joined(other):
        other.to_zarr(odd, zarr_format=2, mode="w")
        return open_concatenated_zarrs([*paths, odd], "time")

    part = dataset().isel(time=[0])
    with pytest.raises(ts.MismatchError, match=r'"t2m" is in .*0\.zarr.*not in .*odd\.zarr'):
        joined(part.drop_vars("t2m"))
    with pytest.raises(ts.MismatchError, match=r'"t2m" has type float32.*but float64.*odd\.zarr'):
        joined(part.assign(t2m=part["t2m"].astype("f8")))
    with pytest.raises(ts.MismatchError, match=r'"scaled" has sizes \(5,\).*but \(4,\)'):
        joined(part.isel(x=slice(4)))
    with pytest.raises(ts.MismatchError, match=r'"scaled" has dimensions'):
        joined(part.transpose("x", "y", "time"))
    other = part.copy(deep=True)
    other["scaled"].encoding["scale_factor"] = 0.25
    with pytest.raises(ts.MismatchError, match=r'"scaled" is stored with .*0\.25.*open_mfdataset'):
        joined(other)


def test_there_is_nothing_to_concatenate(tmp_path):
    paths = split(tmp_path, dataset())

    with pytest.raises(ValueError, match="no paths"):
        open_concatenated_zarrs([], "time")
    with pytest.raises(ValueError, match=r'"t".*\[.time., .x., .y.\]'):
        open_concatenated_zarrs(paths, "t")
    with pytest.raises(ts.NotFoundError, match="nowhere"):
        open_concatenated_zarrs([*paths, str(tmp_path / "nowhere")], "time")


def test_each_store_costs_its_metadata_and_its_coordinate_once():
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
