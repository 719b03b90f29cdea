import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import open_zarr
from tests.integrations.xarray.datasets import dataset

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*In a future version.*decode_timedelta:FutureWarning"),
]


@pytest.fixture
def path(tmp_path):
    dataset().to_zarr(tmp_path / "a.zarr", zarr_format=2)
    return str(tmp_path / "a.zarr")


def test_fill_values_scales_and_offsets_are_decoded(path):
    context = ts.Context({"cache_pool": {"total_bytes_limit": 1000}})
    found = open_zarr(path, context=context, consolidated=True)

    xr.testing.assert_equal(found.load(), dataset())
    raw = open_zarr(path, mask_and_scale=False)
    assert raw["scaled"].dtype == np.int16
    assert open_zarr(path, drop_variables="t2m", chunks={})["flag"].chunks is not None


def test_what_is_assigned_is_stored_at_once(path):
    writing = open_zarr(path, mask_and_scale=False, write=True)

    writing["t2m"][0, 0] = 7
    writing["t2m"][{"x": [1, 3], "y": [2]}] = 9
    writing["flag"].values[:] = False  # of NumPy's copy

    found = open_zarr(path)
    assert found["t2m"].values[0, 0].tolist() == [7] * 5
    assert found["t2m"].values[3, 2].tolist() == [55, 9, 57, 9, 59]
    assert found["flag"].values.any()
    assert writing["t2m"].values[0, 0].tolist() == [7] * 5
    writing.close()
    with pytest.raises(ts.FailedPreconditionError, match="closed"):
        writing["t2m"][0, 0] = 7


def test_what_is_decoded_is_not_assigned(path):
    writing = open_zarr(path, write=True)

    with pytest.raises(
        ts.PermissionDeniedError, match=r'"scaled" is decoded.*mask_and_scale=False'
    ):
        writing["scaled"][0, 0] = 7


def test_without_being_asked_nothing_is_stored(path):
    found = open_zarr(path, mask_and_scale=False)

    found["t2m"][0, 0] = 7

    assert open_zarr(path)["t2m"].values[0, 0].tolist() == [0, 1, 2, 3, 4]
