"""What a pyramid can be made of."""

import dask.array as da
import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tests.multiscale.images import PIXELS, image


def test_arrays_of_every_kind(tmp_path):
    group = ts.Group.open(tmp_path / "g", create=True).result()
    stored = group.create_array("a", dtype="uint16", shape=PIXELS.shape).result()
    stored[...] = PIXELS
    sources = {
        "numpy": PIXELS,
        "dask": da.from_array(PIXELS, chunks=(1, 10, 100, 100)),
        "zarr": zarr.open(tmp_path / "g/a"),
        "path": tmp_path / "g/a",
        "url": (tmp_path / "g/a").as_uri() + "/|zarr3:",
        "store": stored,
        "ts.zarr": ts.zarr.open_array(tmp_path / "g/a"),
    }

    for source in sources.values():
        made = ts.pyramid(source, "memory://", axes="czyx").result()
        np.testing.assert_array_equal(made.levels[0].read().result(), PIXELS)
        assert [level.shape for level in made.levels] == [PIXELS.shape, (2, 10, 150, 155)]


def test_chunks_of_dask_are_made_once():
    seen = []

    def block(block_info):
        seen.append(block_info[None]["chunk-location"])
        return np.ones(block_info[None]["chunk-shape"], "uint8")

    array = da.map_blocks(block, chunks=((32,) * 4, (50, 50)), dtype="uint8", meta=np.empty((0, 0)))

    ts.pyramid(array, "memory://", axes="yx", levels=3).result()

    assert sorted(seen) == [(y, x) for y in range(4) for x in range(2)]


def test_an_image_passes_on_what_it_says(tmp_path):
    old = image(tmp_path / "a.zarr", "0.4")

    new = ts.pyramid(tmp_path / "a.zarr", tmp_path / "b.zarr", levels=3, scale=3).result()

    assert (new.axes, new.name, new.omero) == (old.axes, old.name, old.omero)
    assert new.scale(1) == {"c": 1, "z": 6, "y": 1.5, "x": 1.5}
    assert (new.version, len(new)) == ("0.5", 3)


def test_an_array_without_dimensions():
    with pytest.raises(ts.SpecError, match="without dimensions"):
        ts.pyramid(np.float32(1), "memory://").result()


def test_units_and_labels_of_a_stored_array():
    store = ts.open(
        "memory://|zarr3:", create=True, dtype="uint8", dimension_units=["4 nm", "2 nm"],
        domain=ts.IndexDomain(shape=[30, 40], labels=["y", "x"]),
    ).result()  # fmt: skip

    made = ts.pyramid(store, "memory://").result()

    assert made.scale() == {"y": 4, "x": 2}
    assert made.units == {"y": "nanometer", "x": "nanometer"}
