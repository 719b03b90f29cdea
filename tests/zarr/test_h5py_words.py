"""Keyword arguments by h5py's names."""

import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.h5py_words import from_h5py


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"chunks": 3, "compression": "default"}, {"chunks": 3}),
        ({"compression": None}, {"compressors": None}),
        ({"compression": "none"}, {"compressors": None}),
        ({"compression": "gzip"}, {"compressors": ts.zarr.GZip(1)}),
        (
            {"compression": "lzma", "compression_opts": 3},
            {"compressors": {"id": "lzma", "preset": 3}},
        ),
        (
            {"compression": "blosc", "compression_opts": {"cname": "zstd"}},
            {"compressors": {"id": "blosc", "cname": "zstd"}},
        ),
        ({"compression": ts.zarr.Zlib(4)}, {"compressors": ts.zarr.Zlib(4)}),
        ({"fillvalue": 3}, {"fill_value": 3}),
    ],
)
def test_are_those_of_create(given, expected):
    assert from_h5py(given) == expected


def test_a_wrong_name_is_told_the_right_one():
    with pytest.raises(ValueError, match="gzip"):
        from_h5py({"compression": "gzipp"})


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_datasets_are_compressed_so(zarr_format):
    root = ts.zarr.group(zarr_format=zarr_format)
    z = root.create_dataset("a", shape=3, compression="gzip", compression_opts=1)
    assert z.compressor == ts.zarr.GZip(level=1)
