"""xarray: an engine that opens Zarr and N5 through this package, and writing to any store.

`xr.open_dataset(path, engine="tensorstore")` needs no import of this: xarray finds the engine by
its entry point. Needs the extra `xarray`.
"""

try:
    import xarray as _xarray
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'this needs the library xarray; pip install "tensorstore-py[xarray]"', name=error.name
    ) from error

from tensorstore_py.integrations.xarray.begun import read
from tensorstore_py.integrations.xarray.concatenated import open_concatenated_zarrs
from tensorstore_py.integrations.xarray.engine import TensorStoreBackendEntrypoint
from tensorstore_py.integrations.xarray.open_zarr import open_zarr
from tensorstore_py.integrations.xarray.writing import to_zarr

del _xarray

__all__ = [
    "TensorStoreBackendEntrypoint",
    "open_concatenated_zarrs",
    "open_zarr",
    "read",
    "to_zarr",
]
