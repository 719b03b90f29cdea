"""Driver `zarr`: arrays in the Zarr version 2 format."""

from tensorstore_py.drivers.zarr.spec import ZarrSpec

__all__ = ["ZarrSpec"]
