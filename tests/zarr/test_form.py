"""How an array is laid out, in the words of zarr users."""

import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.form import form_of


def opened(metadata, driver="zarr3", dtype="int32", shape=(10, 20)):
    return ts.open(
        {"driver": driver, "kvstore": "memory://", "metadata": metadata},
        create=True,
        dtype=dtype,
        shape=shape,
    ).result()


def sharding(*codecs, chunk_shape=(5, 4)):
    members = {"chunk_shape": list(chunk_shape), "codecs": list(codecs)}
    return {"name": "sharding_indexed", "configuration": members}


TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
GRID = {"name": "regular", "configuration": {"chunk_shape": [10, 20]}}


@pytest.mark.parametrize(
    ("codecs", "chunks", "shards", "order", "compressors"),
    [
        (["bytes"], (10, 20), None, "C", 0),
        ([TRANSPOSE, "bytes", "zstd"], (10, 20), None, "F", 1),
        ([sharding("bytes", "gzip")], (5, 4), (10, 20), "C", 1),
        ([sharding(TRANSPOSE, "bytes")], (5, 4), (10, 20), "F", 0),
        ([TRANSPOSE, sharding("bytes", chunk_shape=(4, 5))], (5, 4), (10, 20), "F", 0),
    ],
)
def test_version_3(codecs, chunks, shards, order, compressors):
    form = form_of(opened({"codecs": codecs, "chunk_grid": GRID}))
    assert (form.chunks, form.shards, form.order) == (chunks, shards, order)
    assert len(form.compressors) == compressors
    assert dict(form.serializer or {}) == {"id": "bytes", "endian": "little"}
    assert form.chunks_per_cell == (10 if shards else 1)


def test_version_2():
    metadata = {"dtype": ">i4", "chunks": [3, 7], "order": "F", "compressor": None}
    form = form_of(opened(metadata, "zarr"))
    assert (form.chunks, form.shards, form.order) == ((3, 7), None, "F")
    assert (form.compressors, form.filters, form.serializer) == ((), (), None)
    assert form.dtype.str == ">i4"
    assert form.cells((10, 20)) == (4, 3)


def test_what_is_cast_has_the_form_of_what_is_stored():
    form = form_of(opened({"chunk_grid": GRID}).astype("float64"))
    assert (form.dtype.name, form.chunks) == ("float64", (10, 20))


def test_uneven_chunks_are_refused():
    grid = {"kind": "inline", "chunk_shapes": [[3, 7], [20]]}
    metadata = {"chunk_grid": {"name": "rectilinear", "configuration": grid}}
    with pytest.raises(NotImplementedError, match=r"different sizes.*ts\.open"):
        form_of(opened(metadata))


def test_other_formats_are_refused():
    with pytest.raises(NotImplementedError, match='driver "array"'):
        ts.zarr.Array(ts.array([1, 2]))
