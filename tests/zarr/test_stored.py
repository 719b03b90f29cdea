"""What of an array is stored, counted."""

import hashlib
from typing import Any

import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.zarr.stored import StoredBytes, chunk_keys

VARIANTS: dict[str, dict[str, Any]] = {
    "2": {"zarr_format": 2},
    "2/": {"zarr_format": 2, "dimension_separator": "/"},
    "3": {},
    "v2": {"chunk_key_encoding": ("v2", ".")},
    "shards": {"shards": (4, 6)},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_chunks_and_bytes_are_counted_as_zarr_python_does(tmp_path, variant):
    z = ts.zarr.zeros((9, 13), chunks=(2, 3), store=tmp_path, dtype="i4", **VARIANTS[variant])
    theirs = zarr.open_array(tmp_path)
    assert (z.nchunks, z.nchunks_initialized) == (theirs.nchunks, 0)

    z[:3, 4:7] = 1
    z[-1, -1] = 1

    assert z.nchunks_initialized == theirs.nchunks_initialized > 0
    assert z.nbytes_stored == theirs.nbytes_stored()
    assert z.cdata_shape == theirs.cdata_shape


def test_a_number_can_be_called():
    assert StoredBytes(5) + 1 == StoredBytes(5)() + 1 == 6


def test_what_is_no_chunk_is_not_counted(tmp_path):
    z = ts.zarr.zeros(4, chunks=2, store=tmp_path, zarr_format=2)
    for name in ("0", "2", "x", "00"):
        (tmp_path / name).write_bytes(b"")
    assert z.nchunks_initialized == 1


def test_a_scalar_has_one_chunk():
    z = ts.zarr.zeros(())
    z[()] = 5
    assert (z.nchunks, z.nchunks_initialized, z[()]) == (1, 1, 5)
    assert chunk_keys(z.form).decode("c") == ()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_digest_is_of_all_that_is_stored(zarr_format):
    files: dict[str, bytes] = {}
    z = ts.zarr.zeros(4, chunks=2, store=files, zarr_format=zarr_format, attributes={"a": 1})
    z[:] = 1
    before = z.hexdigest()
    keys = [".zarray", ".zattrs"] if zarr_format == 2 else ["zarr.json"]
    chunks = ["0", "1"] if zarr_format == 2 else ["c/0", "c/1"]
    expected = b"".join(files[key] for key in [*chunks, *keys])

    assert before == hashlib.sha1(expected).hexdigest()
    assert z.digest("md5") == hashlib.md5(expected).digest()
    z.attrs["a"] = 2
    assert z.hexdigest() != before
