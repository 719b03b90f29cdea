"""Archives that zarr-python wrote, and archives that it reads."""

import numpy as np
import pytest
import zarr

import tensorstore_py as ts

DATA = np.arange(600, dtype=np.uint16).reshape(20, 30)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_we_read_what_zarr_packed(tmp_path, zarr_format):
    store = zarr.storage.ZipStore(tmp_path / "a.zip", mode="w")
    made = zarr.create_array(
        store, name="in/a", shape=(20, 30), chunks=(7, 9), dtype="u2", zarr_format=zarr_format
    )
    made[...] = DATA
    store.close()

    found = ts.open(f"{(tmp_path / 'a.zip').as_uri()}|zip:in/a/").result()

    np.testing.assert_array_equal(found[...].read().result(), DATA)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_zarr_reads_what_we_packed(tmp_path, driver):
    url = f"{(tmp_path / 'a.zip').as_uri()}|zip:in/a/"
    with ts.Transaction() as transaction:
        made = ts.open(
            {"driver": driver, "kvstore": url},
            create=True,
            dtype="uint16",
            shape=DATA.shape,
            chunk_layout=ts.ChunkLayout(chunk_shape=[7, 9]),
            transaction=transaction,
        ).result()
        made[...] = DATA

    store = zarr.storage.ZipStore(tmp_path / "a.zip", mode="r")
    found = zarr.open_array(store, path="in/a", mode="r")
    np.testing.assert_array_equal(found[...], DATA)
    store.close()
