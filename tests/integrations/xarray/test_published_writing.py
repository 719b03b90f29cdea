"""xarray's own tests of writing Zarr, with our `to_zarr` in the place of xarray's.

What is written is read by xarray's zarr engine, so that the bytes are right for others. The classes
are those that xarray publishes in `xarray.tests`; what of them cannot hold is in `EXCLUDED`, with
the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import xarray as xr
import zarr
from xarray.tests import test_backends as published
from xarray.tests import test_backends_datatree as published_trees
from xarray.tests.conftest import create_test_datatree, simple_datatree, time_unit, use_dask
from xarray.tests.test_backends import default_zarr_format
from xarray.tests.test_backends_datatree import unaligned_datatree_zarr_factory

from tensorstore_py.integrations.xarray import to_zarr

__all__ = [
    "create_test_datatree",
    "default_zarr_format",
    "simple_datatree",
    "time_unit",
    "unaligned_datatree_zarr_factory",
    "use_dask",
]

_SAFE = "blocks may lie anywhere, so that there is nothing to refuse"
_READING = "counts what xarray's engine asks for when it reads, and writes"

_UNSIGNED = (
    "create_unsigned_false_masked_scaled_data-create_encoded_unsigned_false_masked_scaled_data"
)

#: Tests that are left out, and why.
EXCLUDED = {
    f"test_roundtrip_mask_and_scale[2-dtype0-{_UNSIGNED}]": "is about netCDF alone",
    f"test_roundtrip_mask_and_scale[3-dtype0-{_UNSIGNED}]": "is about netCDF alone",
    "test_zarr_region_chunk_partial": _SAFE,
    "test_zarr_append_chunk_partial": _SAFE,
    "test_zarr_region_chunk_partial_offset": _SAFE,
    "test_zarr_safe_chunk_append_dim": _SAFE,
    "test_zarr_safe_chunk_region": _SAFE,
    "test_shard_encoding_with_dask": _SAFE,
    "test_chunk_encoding_with_dask": _SAFE,
    "test_zarr_region_index_write": "replaces methods of xarray's own writer",
    "test_attributes[2-obj1]": "the message names the variable, and not the Dataset",
    "test_attributes[3-obj1]": "the message names the variable, and not the Dataset",
    "test_to_zarr_compute_false[zarr_format=2]": (
        "without a fill value there is no chunk that need not be stored"
    ),
    "test_avoid_excess_metadata_calls": _READING,
}

# xarray's tests expect some, and let others pass
pytestmark = pytest.mark.filterwarnings("default")

_SAID_IN_SPECS = ("storage_options", "synchronizer", "chunk_store")


def _writing(self, store=None, mode=None, group=None, encoding=None, **more):
    """`to_zarr` as a method of xarray's."""
    for name in _SAID_IN_SPECS:
        assert more.pop(name, None) is None
    if mode != "r+" and more.get("region") is None:  # else what is there says it
        more.setdefault("zarr_format", zarr.config.get("default_zarr_format"))
    return to_zarr(self, store, mode=mode, group=group, encoding=encoding, **more)


@pytest.fixture(autouse=True)
def _our_to_zarr(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for kind in (xr.Dataset, xr.DataArray, xr.DataTree):
        monkeypatch.setattr(kind, "to_zarr", _writing)
    with warnings.catch_warnings():
        yield


@pytest.fixture
def tmp_store(tmp_path: Path) -> Path:
    """A directory; what else is in this fixture of xarray's are objects of zarr-python's."""
    return tmp_path


class TestDirectory(published.TestZarrDirectoryStore):
    """Files."""


class TestWriteEmpty(published.TestZarrWriteEmpty):
    """Files, with chunks that hold nothing but the fill value."""


class TestDataArray(published.TestDataArrayToZarr):
    """DataArrays."""


class TestRegionAuto(published.TestZarrRegionAuto):
    """Regions that are found by coordinates."""


class TestTrees(published_trees.TestZarrDatatreeIO):
    """Trees."""


for _name in dir(published.TestZarrDirectoryStore):
    if _name.startswith("test_"):  # which have been run above
        setattr(TestWriteEmpty, _name, None)
