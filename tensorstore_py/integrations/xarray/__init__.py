"""xarray: an engine that opens Zarr and N5 through this package, and what else it needs.

`xr.open_dataset(path, engine="tensorstore")` needs no import of this: xarray finds the engine by
its entry point. Needs the extra `xarray`.
"""

try:
    import xarray as _xarray  # noqa: F401 - asked for here, so that a missing one is named once
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'this needs the library xarray; pip install "tensorstore-py[xarray]"', name=error.name
    ) from error

from tensorstore_py.integrations.xarray.begun import read
from tensorstore_py.integrations.xarray.concatenated import open_concatenated_zarrs
from tensorstore_py.integrations.xarray.engine import TensorStoreBackendEntrypoint
from tensorstore_py.integrations.xarray.open_zarr import open_zarr

__all__ = ["TensorStoreBackendEntrypoint", "open_concatenated_zarrs", "open_zarr", "read"]
