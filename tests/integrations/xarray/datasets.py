"""Datasets for the tests of this folder, as xarray and zarr-python write them."""

from typing import Any

import numpy as np
import xarray as xr
import zarr


def dataset():
    """Something of everything."""
    times = np.arange("2000-01-01", "2000-01-05", dtype="M8[D]").astype("M8[ns]")
    return xr.Dataset(
        {
            "t2m": (
                ("time", "y", "x"),
                np.arange(4 * 3 * 5, dtype="f4").reshape(4, 3, 5),
                {"units": "K"},
            ),
            "scaled": (
                ("time", "x"),
                np.where(np.eye(4, 5, dtype=bool), np.nan, 0.5),
                {"long_name": "scaled and masked"},
                {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10, "_FillValue": -999},
            ),
            "flag": (("x",), np.array([True, False, True, True, False])),
            "name": (("y",), np.array(["a", "bcd", ""])),
            "scalar": ((), 7),
        },
        coords={"time": times, "y": [10.0, 20.0, 30.0], "x": np.arange(5), "lat": ("y", [1, 2, 3])},
        attrs={"title": "a test"},
    )


def kinds(path, zarr_format):
    """An array of each kind of elements, by zarr-python; returns those that xarray can compare."""
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    arrays = {
        "text": np.array(["a", "bcd", ""], np.dtypes.StringDType()),
        "letters": np.array(["a", "bcd", ""]),
        "bytes": np.array([b"a", b"bcd", b""]),
        "flags": np.array([True, False, True]),
        "complex": np.array([1j, 2, 3]),
        "times": np.array(["2000-01-01", "2001-01-01", "1999-01-01"], "M8[ns]"),
        "lengths": np.array([1, 2, 3], "m8[s]"),
        "halves": np.arange(3, dtype="f2"),
        "big_endian": np.arange(3, dtype=">i4"),
    }
    for name, values in arrays.items():
        named: dict[str, Any] = {"dimension_names": ["x"]} if zarr_format == 3 else {}
        dtype = "string" if values.dtype.kind == "T" else values.dtype
        array = group.create_array(name, shape=values.shape, dtype=dtype, **named)
        array[:] = values
        if zarr_format == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    return list(arrays)
