"""The `zarr3` driver: Zarr version 3 arrays over any kvstore."""

from tensorstore_py.drivers.zarr3.hierarchy import Zarr3Hierarchy
from tensorstore_py.drivers.zarr3.spec import Zarr3Spec

__all__ = ["Zarr3Hierarchy", "Zarr3Spec"]
