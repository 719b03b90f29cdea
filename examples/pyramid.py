"""Make an OME-Zarr image of a stored volume, look at it, and convert it to the older version."""

import tempfile
from pathlib import Path

import numpy as np

import tensorstore_py as ts


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        z, y, x = np.ogrid[:32, :700, :900]
        volume = (2000 + 900 * np.sin(y / 30 + z) * np.cos(x / 20)).astype("uint16")

        raw = ts.Group.open(where / "raw.zarr", create=True).result()
        stored = raw.create_array(
            "volume",
            dtype=volume.dtype,
            domain=ts.IndexDomain(shape=volume.shape, labels=["z", "y", "x"]),
            dimension_units=["2 um", "0.5 um", "0.5 um"],
            chunk_layout=ts.ChunkLayout(chunk_shape=[8, 128, 128]),
        ).result()
        stored.write(volume).result()

        # Axes, units and the size of a pixel are the array's own. Shards are files of many chunks.
        image = ts.pyramid(
            stored,
            where / "volume.ome.zarr",
            chunks=(8, 128, 128),
            shards=(32, 512, 512),
            omero=True,
        ).result()
        for number, level in enumerate(image.levels):
            print(f"level {number}: {level.shape}, pixels of {image.scale(number)}")

        # The smallest level that is sharp enough, and a part of it in micrometers.
        overview = image.at({"y": 1.0, "x": 1.0}).result()
        part = image.sel(1, z=slice(0, 20), y=slice(100, 110), x=slice(100, 110)).result()
        print("overview:", overview.shape, "part:", part.domain)
        print("shown from", image.omero["channels"][0]["window"]["start"] if image.omero else None)

        # The older version, for programs that don't know the newer one yet.
        old = ts.multiscale.convert(image, where / "old.ome.zarr", version="0.4").result()
        same = ts.multiscale.open(old).result()
        print(same.version, np.array_equal(same.levels[0].read().result(), volume))


if __name__ == "__main__":
    main()
