"""The same array in three libraries: ours, the reference implementation's, and zarr-python."""

import json
import os
from pathlib import Path

import ml_dtypes  # noqa: F401  # makes NumPy know the names of the small float types
import numpy as np
import tensorstore as wheel
import zarr

import tensorstore_py as ours

__all__ = ["few", "ours", "same", "sample", "spec_of", "stored", "wheel", "with_zarr"]

#: What zarr-python has too.
COMMON = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
#: What only the reference implementation has.
SMALL = [
    "int2", "int4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16",
]  # fmt: skip
ALL = [*COMMON, *SMALL]


def few(forms, number, most=2):
    """So many of the forms with their numbers, others for each `number`; all of them at night.

    Where the number is the sum of those of a row and a column, each row and each column of a matrix
    meets every form, if there are no more forms than rows and columns.
    """
    forms = list(enumerate(forms))
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return forms
    return [
        forms[(number + more) % len(forms)] for more in range(0, len(forms), len(forms) // most)
    ]


def numpy_dtype(name):
    return wheel.dtype(name).numpy_dtype


def sample(name, shape, seed=0):
    """Values of every kind that the type has, NaN, infinities and both zeros included."""
    dtype = numpy_dtype(name)
    random = np.random.default_rng(seed)
    size = int(np.prod(shape))
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if name in {"int2", "int4", "float4_e2m1fn"}:
        low, high = {"int2": (-2, 2), "int4": (-8, 8), "float4_e2m1fn": (0, 5)}[name]
        return random.integers(low, high, shape).astype(np.int8).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = random.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.asarray(values)
    if dtype.itemsize == 1:
        return random.integers(0, 256, shape, np.uint8).view(dtype)
    parts = 2 if dtype.kind == "c" else 1
    values = random.normal(size=size * parts) * 10
    values[:: size // 5 + 1] = np.nan
    values[1 :: size // 4 + 1] = -0.0
    values[2 :: size // 3 + 1] = -np.inf
    real = np.dtype(f"f{dtype.itemsize // 2}") if parts == 2 else dtype
    return values.astype(real).view(dtype).reshape(shape)


def same(found, expected):
    """Equal in type and shape and bit for bit."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.name in {"int2", "int4"}:
        # The bits of the byte around them that mean nothing may be anything.
        found, expected = found.astype(np.int8), expected.astype(np.int8)
    assert found.tobytes() == expected.tobytes(), (found, expected)


def spec_of(driver, path, **members):
    return {
        "driver": driver,
        "kvstore": {"driver": "file", "path": f"{path}/", "file_io_sync": False},
        **members,
    }


def stored(path):
    """The keys below a directory."""
    root = Path(path)
    return {each.relative_to(root).as_posix() for each in root.rglob("*") if each.is_file()}


def document(path, name):
    return json.loads((Path(path) / name).read_text())


def with_zarr(path, version):
    """The array at `path`, as zarr-python opens it."""
    return zarr.open_array(str(path), mode="r+", zarr_format=version)
