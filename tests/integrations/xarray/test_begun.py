import pickle

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import open_zarr, read
from tests.api.counted_memory import counts


@pytest.fixture
def group():
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


def test_all_are_begun_and_each_is_read_once(group):
    dataset = open_zarr(group).isel(x=slice(1, None)).transpose("x", "y")
    asked = counts(group)

    begun = read(dataset)

    assert begun.sizes == {"x": 2, "y": 2}
    expected = [[0.5, 2.0], [1.0, 2.5]]
    assert begun["a"].values.tolist() == begun["b"].values.tolist() == expected
    assert set(asked.reads.values()) == {1}
    assert begun["a"].values.tolist() == expected
    assert set(asked.reads.values()) == {1}


def test_what_is_done_with_it_before_it_is_there(group):
    dataset = read(open_zarr(group))

    assert dataset["a"].isel(x=[2, 0], y=0).values.tolist() == [1.0, 0.0]
    assert dataset["a"].T.values.tolist() == [[0, 1.5], [0.5, 2], [1, 2.5]]
    points = dataset["a"].isel(x=xr.DataArray([0, 1], dims="p"), y=xr.DataArray([1, 1], dims="p"))
    assert points.values.tolist() == [1.5, 2.0]
    for again in (dataset.copy(), dataset.copy(deep=True), pickle.loads(pickle.dumps(dataset))):
        assert again["b"].values.tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    assert read(dataset).compute().identical(dataset.compute())


def test_one_array_and_what_is_in_memory(group):
    assert read(open_zarr(group)["a"]).values.tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    memory = xr.Dataset({"a": ("x", [1, 2])})
    assert read(memory).identical(memory)
    assert read(xr.open_dataset(group, engine="tensorstore", chunks={}))["a"].chunks is not None
    with pytest.raises(TypeError, match=r"Dataset or a DataArray.*dict"):
        read({})  # type: ignore[type-var]


def test_an_error_comes_when_the_values_are_wanted(group):
    group.kvstore.write("a/0.0", b"nonsense").result()

    begun = read(open_zarr(group))

    assert begun["b"].values.shape == (2, 3)
    with pytest.raises(ts.DataLossError, match=r"a/0\.0"):
        _ = begun["a"].values
