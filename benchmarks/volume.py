"""The array that every library stores: image-like, seeded, and about as compressible as a scan.

Smooth structure alone compresses absurdly well and noise alone not at all; both flatter somebody.
A few slow waves with a mild noise give what microscopes and scanners give: blosc gets to about 1.6.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

Volume = npt.NDArray[np.uint16]

WAVES = 6
AMPLITUDE = 6000.0
NOISE = 60.0


def make_volume(edge: int, seed: int = 7) -> Volume:
    """Makes a cube of `edge` voxels a side, `[z, y, x]`, C order.

    Plane by plane, so that the peak is the volume itself and not eight times that in floats.
    """
    random = np.random.default_rng(seed)
    frequencies = random.uniform(0.5, 4.0, size=(WAVES, 3)) * (2 * np.pi / edge)
    phases = random.uniform(0, 2 * np.pi, size=(WAVES, 3))
    axis = np.arange(edge)
    # each wave is a product of three cosines, so a plane is one small matrix product
    z, y, x = (np.cos(np.outer(frequencies[:, d], axis) + phases[:, d, None]) for d in range(3))
    volume = np.empty((edge, edge, edge), dtype=np.uint16)
    for plane in range(edge):
        smooth = (z[:, plane, None] * y).T @ x
        noise = random.standard_normal((edge, edge), dtype=np.float32)
        volume[plane] = 20000.0 + AMPLITUDE / WAVES * smooth + NOISE * noise
    return volume


def shared_volume(path: Path) -> Volume:
    """Opens a saved volume as a plain array over the page cache that all workers share."""
    return np.asarray(np.load(path, mmap_mode="r"))


Box = tuple[slice, slice, slice]


def random_boxes(edge: int, count: int, side: int = 8, seed: int = 11) -> list[Box]:
    """Cubes anywhere in the volume; some cross chunk borders, as a user's do."""
    corners = np.random.default_rng(seed).integers(0, edge - side + 1, size=(count, 3)).tolist()
    return [(slice(z, z + side), slice(y, y + side), slice(x, x + side)) for z, y, x in corners]


def disjoint_boxes(edge: int, count: int, side: int = 8, seed: int = 13) -> list[Box]:
    """Cubes that never overlap, so that the result of writing them all at once is defined."""
    cells = edge // side
    picked = np.random.default_rng(seed).choice(cells**3, size=min(count, cells**3), replace=False)
    corners = np.stack(np.unravel_index(picked, (cells,) * 3), axis=1) * side
    return [
        (slice(z, z + side), slice(y, y + side), slice(x, x + side)) for z, y, x in corners.tolist()
    ]
