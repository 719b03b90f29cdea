"""xarray: writing of Datasets, DataArrays and trees of them to any store.

Importing this imports xarray, which is in the extra `xarray`.
"""

try:
    import xarray as _xarray
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tensorstore_py.integrations.xarray needs the package xarray: "
        'pip install "tensorstore-py[xarray]"',
        name=error.name,
    ) from error

from tensorstore_py.integrations.xarray.writing import to_zarr

del _xarray

__all__ = ["to_zarr"]
