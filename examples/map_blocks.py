"""Smooth a volume block by block with a halo, in two processes, and project it along z."""

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tensorstore_py as ts

Block = NDArray[Any]


def smooth(block: Block) -> Block:
    """The mean of three neighbours along y and along x."""
    total = block.astype("float32")
    for axis in (1, 2):
        total = (np.roll(total, 1, axis) + total + np.roll(total, -1, axis)) / np.float32(3)
    return total


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        volume = ts.open(
            f"{Path(directory).as_uri()}/volume.zarr|zarr3:",
            create=True,
            dtype="uint16",
            domain=ts.IndexDomain(shape=[32, 96, 96], labels=["z", "y", "x"]),
            chunk_layout=ts.ChunkLayout(chunk_shape=[16, 32, 32]),
        ).result()
        z, y, x = np.ogrid[:32, :96, :96]
        volume[...] = (1000 + 500 * np.sin(z / 9) * np.cos(y / 7) + x).astype("uint16")

        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            smoothed = ts.map_blocks(
                smooth,
                volume,
                target=Path(directory, "smooth.zarr"),
                halo={"y": 1, "x": 1},
                boundary="nearest",
                executor=pool,
            ).result()

        # Each block has all of z, which the target lacks.
        brightest = ts.map_blocks(
            lambda block: block.max(axis=0),
            smoothed,
            target=Path(directory, "brightest.zarr"),
            drop="z",
        ).result()

        wide = np.pad(volume.read().result(), [(0, 0), (1, 1), (1, 1)], mode="edge")
        expected = smooth(wide)[:, 1:-1, 1:-1].max(axis=0)
        assert np.allclose(brightest.read().result(), expected)
        print(brightest.domain, brightest.dtype)


if __name__ == "__main__":
    main()
