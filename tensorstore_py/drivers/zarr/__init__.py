"""Driver `zarr`: arrays in the Zarr version 2 format."""

from tensorstore_py.drivers.zarr.hierarchy import Zarr2Hierarchy
from tensorstore_py.drivers.zarr.spec import ZarrSpec

__all__ = ["Zarr2Hierarchy", "ZarrSpec"]
