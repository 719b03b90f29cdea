"""Stores of `ts.zarr`, given to zarr-python and xarray as they are."""

import asyncio
import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.abc.store import Store
from zarr.buffer import default_buffer_prototype

import tensorstore_py as ts

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")


@pytest.fixture
def dataset():
    return xr.Dataset({"t": (("time", "x"), np.arange(12.0).reshape(3, 4))})


def made(tmp_path):
    yield ts.zarr.LocalStore(tmp_path / "local")
    yield ts.zarr.NestedDirectoryStore(tmp_path / "nested")
    yield ts.zarr.ZipStore(tmp_path / "a.zip")
    yield ts.zarr.MemoryStore()
    yield ts.zarr.MemoryStore({})
    yield ts.zarr.FsspecStore("memory://x/")
    yield ts.zarr.TempStore()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_writes_and_opens_them(dataset, tmp_path, zarr_format):
    for store in made(tmp_path):
        dataset.to_zarr(store, zarr_format=zarr_format)
        dataset.to_zarr(store, zarr_format=zarr_format, append_dim="time")

        with xr.open_zarr(store) as found:
            assert found.t.shape == (6, 4), store
            assert found.isel(time=slice(3, None)).identical(dataset), store


def test_they_are_stores_of_zarr_python_and_mappings(tmp_path):
    store: Any
    for store in made(tmp_path):
        zarr.create_array(store, name="a/b", shape=4, dtype="i4")[:] = 7

        known: object = store
        assert isinstance(known, Store)
        assert store.__class__ is type(store)
        assert ts.zarr.open(store, mode="r")["a/b"][1] == 7
        assert {"zarr.json", "a/zarr.json", "a/b/zarr.json"} <= set(store)
        assert store.get("nothing") is None
        assert store.get("nothing", b"default") == b"default"
        assert store.get("a/b/zarr.json") == store["a/b/zarr.json"]
        prototype = default_buffer_prototype()
        for asked in (
            store.get("zarr.json", prototype),
            store.get("zarr.json", prototype=prototype),
        ):
            assert asyncio.run(asked).to_bytes() == store["zarr.json"]


def test_reading_only_holds_there_too(dataset):
    store = ts.zarr.MemoryStore(read_only=True)

    with pytest.raises(ValueError, match="read-only"):
        dataset.to_zarr(store)
    assert pickle.loads(pickle.dumps(store)).read_only
    assert copy.copy(store) == store


def test_a_name_that_nobody_knows_is_missed():
    store = ts.zarr.MemoryStore()

    for name in ("nothing", "__nothing__", "kvstores"):
        with pytest.raises(AttributeError, match=name):
            getattr(store, name)
    assert store.supports_listing


def test_zarr_python_may_be_imported_later():
    code = (
        "import sys\nimport tensorstore_py as ts\n"
        "store = ts.zarr.MemoryStore()\n"
        "assert not hasattr(store, 'supports_listing') and 'zarr' not in sys.modules\n"
        "isinstance(store, dict)\n"
        "import zarr\n"
        "print(zarr.create_array(store, shape=2, dtype='i4').shape)\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "(2,)"
