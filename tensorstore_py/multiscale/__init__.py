"""`ts.multiscale`: OME-Zarr images, which are groups of an array in several sizes.

`open` opens one, `ts.pyramid` makes one, `convert` turns one version of the format into another.
"""

from tensorstore_py.multiscale.axes import Axis
from tensorstore_py.multiscale.conversion import convert
from tensorstore_py.multiscale.image import (
    Levels,
    Multiscale,
    open,  # it opens
)
from tensorstore_py.multiscale.metadata import Dataset, ImageMetadata
from tensorstore_py.multiscale.pyramid import pyramid

__all__ = ["Axis", "Dataset", "ImageMetadata", "Levels", "Multiscale", "convert", "open", "pyramid"]
