"""xarray's own tests of backends, run with this package's engine where they open Zarr.

They are xarray's classes and functions, unchanged: whatever they open with `engine="zarr"` or
`xr.open_zarr` is opened with `engine="tensorstore"`. They write by `WRITES_DATASET` and
`WRITES_TREE`. What their marks skip is not run either (see conftest.py).
"""

import contextlib
import functools

import pytest
import xarray as xr
import xarray.tests.test_backends as backends
import xarray.tests.test_backends_datatree as trees
from xarray.tests.conftest import *  # noqa: F403 - fixtures
from xarray.tests.test_backends import default_zarr_format  # noqa: F401 - a fixture
from xarray.tests.test_backends_datatree import (  # noqa: F401 - a fixture
    unaligned_datatree_zarr_factory,
)

#: How they write: xarray's own `to_zarr`.
WRITES_DATASET = xr.Dataset.to_zarr
WRITES_TREE = xr.DataTree.to_zarr

#: Tests that are not run, and why.
EXCLUDED: dict[str, str] = {
    "test_dimension_names": "of zarr-python's metadata objects alone",
    "test_hidden_zarr_keys": "of xarray's class ZarrStore, which is no engine of ours",
    "test_non_existent_store": "the words of the error are ours; its class is tested elsewhere",
    "test_read_non_consolidated_warning": "nothing becomes slow here that would be warned of",
    "test_to_zarr_not_consolidated": "nothing becomes slow here that would be warned of",
    "test_zarr_fill_value_setting": "xarray's engine does not heed "
    "use_zarr_fill_value_as_mask=False in version 2; ours does",
    "test_roundtrip_bytes_with_fill_value": "xarray expects it to fail",
    "test_to_zarr_zip_store": "xarray expects it to fail",
}

#: Parameters with which tests are not run, and why.
EXCLUDED_PARAMETERS: dict[str, str] = {
    "create_unsigned_false_masked_scaled_data": "xarray skips it, taking it for netCDF 3",
}

pytestmark = [
    pytest.mark.filterwarnings("ignore:Automatic shard shape inference is experimental"),
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part in the Zarr"),
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification"),
]

#: Arguments of xarray's engine for Zarr that say how to write, or are of zarr-python alone.
FOREIGN = ("mode", "cache_members", "storage_options")


def ours(function):
    """An opening function of xarray, with our engine in the place of that for Zarr."""

    @functools.wraps(function)
    def open(given, *args, **options):
        if options.get("engine") == "zarr":
            options["engine"] = "tensorstore"
            options = {name: each for name, each in options.items() if name not in FOREIGN}
        return function(given, *args, **options)

    return open


def open_zarr(store, group=None, chunks=(), overwrite_encoded_chunks=False, **options):
    """`xr.open_zarr` by our engine."""
    options = {**options, **options.pop("backend_kwargs", {}), "group": group}
    options = {name: each for name, each in options.items() if name not in FOREIGN}
    backend = {"overwrite_encoded_chunks": overwrite_encoded_chunks}
    chunks = {} if chunks == () else chunks
    return xr.open_dataset(
        store, engine="tensorstore", chunks=chunks, backend_kwargs=backend, **options
    )


@pytest.fixture(autouse=True)
def _opened_by_ours(monkeypatch):
    for name in (
        "open_dataset",
        "open_datatree",
        "open_groups",
        "open_mfdataset",
        "open_dataarray",
    ):
        opening = ours(getattr(xr, name))
        for module in (xr, backends, trees):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, opening)
    monkeypatch.setattr(xr, "open_zarr", open_zarr)
    monkeypatch.setattr(xr.Dataset, "to_zarr", WRITES_DATASET)
    monkeypatch.setattr(xr.DataTree, "to_zarr", WRITES_TREE)


@pytest.mark.usefixtures("default_zarr_format")
class TestZarr(backends.ZarrBase):
    @contextlib.contextmanager
    def create_zarr_target(self):
        with backends.create_tmp_file(suffix=".zarr") as path:
            yield path


class TestTrees(trees.TestZarrDatatreeIO):
    pass


class TestUnevenChunks(backends.TestZarrRectilinearChunksRead):
    pass


def test_what_is_left_out_is_there():
    classes = (TestZarr, TestTrees, TestUnevenChunks)

    assert [name for name in EXCLUDED if not any(hasattr(each, name) for each in classes)] == []
    assert all(EXCLUDED.values())
    assert [name for name in EXCLUDED_PARAMETERS if not hasattr(backends, name)] == []
