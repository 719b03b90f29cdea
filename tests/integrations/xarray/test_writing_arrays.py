"""Values on their way into arrays."""

import pickle

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_arrays import (
    ArrayTarget,
    Blocks,
    UnderWay,
    aligned,
    open_assumed,
)
from tensorstore_py.integrations.xarray.writing_documents import Form
from tensorstore_py.integrations.xarray.writing_forms import Forms
from tensorstore_py.integrations.xarray.writing_place import as_place


def target(place, dtype, shape=(6,), chunks=(4,), zarr_format=3):
    form = Form(zarr_format)
    asked = {"dtype": dtype, "chunks": chunks}
    metadata = Forms(form).metadata(shape, asked)
    where = as_place(place, zarr_format=None, context=None, transaction=None)
    return ArrayTarget(open_assumed(where, form, "v", metadata), len(shape)), metadata


def test_an_array_is_written_that_no_document_tells_of(tmp_path) -> None:
    found, metadata = target(tmp_path, np.dtype("i2"))
    found[(slice(1, 5),)] = np.arange(4)

    assert not (tmp_path / "v" / "zarr.json").exists()
    again = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{tmp_path}/v/", "metadata": metadata}, create=True
    ).result()
    assert again.read().result().tolist() == [0, 0, 1, 2, 3, 0]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["S1", "S3", "U2", "?", ">i4", "M8[s]"])
def test_types_are_numpys(dtype, zarr_format) -> None:
    found, _ = target({}, np.dtype(dtype), zarr_format=zarr_format)

    assert (found.shape, found.dtype) == ((6,), np.dtype(dtype).newbyteorder("="))
    found[...] = np.zeros(6, dtype)


def test_a_target_travels(tmp_path) -> None:
    found, _ = target(tmp_path, np.dtype("S3"), zarr_format=2)

    pickle.loads(pickle.dumps(found))[(slice(0, 2),)] = np.array([b"ab", b"c"])

    assert (tmp_path / "v" / "0").exists()


def test_values_are_written_together_and_waited_for_one_by_one() -> None:
    files: dict[str, bytes] = {}
    found, _ = target(files, np.dtype("f8"))
    under_way = UnderWay()

    under_way.add(found, (slice(0, 6),), xr.Variable("x", np.arange(1.0, 7)))
    under_way.wait(found)

    assert sorted(files) == ["v/c/0", "v/c/1"]
    under_way.wait(found)


def test_blocks_are_written_now_or_later() -> None:
    files: dict[str, bytes] = {}
    found, _ = target(files, np.dtype("f8"))
    variable = xr.Variable("x", da.arange(1.0, 7, chunks=4))
    blocks = Blocks()
    blocks.add(found, (slice(0, 6),), variable)
    later = blocks.write(compute=False, options=None)
    assert blocks.any
    assert not files
    da.compute(later)
    assert sorted(files) == ["v/c/0", "v/c/1"]


@pytest.mark.parametrize(
    ("blocks", "cell", "start", "expected"),
    [
        ((5, 5, 2), 4, 0, (4, 4, 4)),
        ((5, 5, 2), 4, 3, (1, 4, 4, 3)),
        ((9, 3), 4, 0, (8, 4)),
        ((1, 1), 4, 2, (2,)),
        ((0,), 4, 0, (0,)),
    ],
)
def test_aligned_blocks_end_where_cells_do(blocks, cell, start, expected) -> None:
    variable = xr.Variable("x", da.zeros(sum(blocks), chunks=(blocks,)))

    found = aligned(variable, (cell,), (slice(start, start + sum(blocks)),))

    assert found.chunks == (expected,)


def test_there_may_be_no_blocks() -> None:
    assert not Blocks().any


def test_what_has_no_blocks_is_left_alone() -> None:
    variable = xr.Variable("x", [1, 2])

    assert aligned(variable, (1,), (slice(0, 2),)) is variable
