"""zarr-python's names: a hierarchy on disk, written by several threads, consolidated and read."""

import tempfile
import threading
from pathlib import Path

import numpy as np

import tensorstore_py as ts


def main(place: Path) -> None:
    """Runs the example."""
    root = ts.zarr.open_group(place / "station.zarr", mode="w", attributes={"title": "Station 7"})
    air = root.zeros(
        "air/temperature",
        shape=(0, 180, 360),
        chunks=(1, 90, 90),
        dtype="f4",
        fill_value=np.nan,
        compressors=ts.zarr.Blosc(cname="zstd", clevel=3, shuffle=2),
        dimension_names=["time", "lat", "lon"],
        attributes={"unit": "K"},
    )

    # Days arrive; each is appended, and half of the next one is filled in by two threads at once.
    for day in range(3):
        air.append(np.full((1, 180, 360), 280 + day, "f4"))
    air.resize(4, 180, 360)

    def fill(rows: slice) -> None:
        air[-1, rows] = 290

    threads = [threading.Thread(target=fill, args=[rows]) for rows in (slice(60), slice(60, 100))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    print(root.tree())
    print(air.info)

    # The row of chunks in the middle was written by both; nothing is lost.
    print("day 3, filled:", int(np.isfinite(air[3]).all(axis=1).sum()), "of 180 rows")
    print("noon at two places:", air.vindex[[0, 2], [90, 90], [10, 20]])
    print("a region:", air.oindex[[0, 1, 2], [0, -1], :2].shape)

    # One request opens the whole tree.
    ts.zarr.consolidate_metadata(place / "station.zarr")
    again = ts.zarr.open_consolidated(place / "station.zarr", mode="r")
    print("consolidated:", again["air/temperature"].attrs.asdict(), again.attrs["title"])

    # Everything else is a step away: lazy views, awaited or not.
    mean = again["air/temperature"].ts[0, ::10, ::10].read().result().mean()
    print("mean of day 0:", mean)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
