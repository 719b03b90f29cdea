import json

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.stored_variable import StoredVariable


def variable(metadata=None, attributes=None, *, zarr_format=3, fills=None, **options):
    """A variable `v` over one dimension, made with some metadata."""
    given = {"driver": f"zarr{zarr_format if zarr_format == 3 else ''}", "kvstore": "memory://"}
    store = ts.open({**given, "metadata": metadata or {}}, create=True, **options).result()
    assert store.kvstore is not None
    document = json.loads(store.kvstore["zarr.json" if zarr_format == 3 else ".zarray"])
    stored = StoredVariable("v", "there", document, attributes or {}, store)
    return stored, stored.variable(fills)


GRID = {"name": "regular", "configuration": {"chunk_shape": [4]}}
V2 = {"_ARRAY_DIMENSIONS": ["x"]}


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float32", np.float32("nan")),
        ("float64", np.inf),
        ("int16", np.int16(-5)),
        ("uint64", np.uint64(2**64 - 1)),
        ("bool", np.True_),
        ("complex64", np.complex64(1 + 2j)),
    ],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_fill_values_of_any_kind(zarr_format, dtype, fill):
    names = {"dimension_names": ["x"]} if zarr_format == 3 else {}
    _, found = variable(names, V2, zarr_format=zarr_format, dtype=dtype, shape=[3], fill_value=fill)

    said = found.encoding["fill_value"] if zarr_format == 3 else found.attrs["_FillValue"]
    np.testing.assert_equal(said, fill)
    assert said.dtype == np.dtype(dtype)


def test_which_elements_are_missing_is_said_or_not():
    _, masked = variable({"dimension_names": ["x"]}, fills=True, dtype="int8", shape=[3])
    assert masked.attrs == {"_FillValue": 0}
    _, plain = variable({}, V2, zarr_format=2, fills=False, dtype="int8", shape=[3])
    assert plain.attrs == {}
    _, none = variable({"fill_value": None, "dtype": "|i1"}, V2, zarr_format=2, shape=[3])
    assert none.attrs == {}


def test_the_attribute_of_missing_values_is_decoded_as_xarray_encodes_it():
    names = {"dimension_names": ["x"]}
    _, found = variable(names, {"_FillValue": "AAAAAAAA+H8="}, dtype="float32", shape=[3])
    assert np.isnan(found.attrs["_FillValue"])
    _, text = variable(names, {"_FillValue": "none"}, dtype="ustring", shape=[3])
    assert text.attrs["_FillValue"] == "none"
    with pytest.raises(ts.DataLossError, match=r'"v": the attribute _FillValue is 5, .* there:'):
        variable(names, {"_FillValue": 5}, dtype="float32", shape=[3])


def test_dimensions_of_netcdfs_library():
    metadata = {"_NCZARR_ARRAY": {"dimrefs": ["/group/x"]}, "zarr_format": 2, "chunks": [3]}
    stored = StoredVariable("v", "there", metadata, {"_NCproperties": 1}, ts.array([1, 2, 3]))

    assert stored.dims == ("x",)


@pytest.mark.parametrize("names", [None, ["x", "y"], [None], [""], "x"])
def test_names_that_do_not_fit_are_shown(names):
    metadata = {"zarr_format": 3, "dimension_names": names}

    with pytest.raises(ts.UnsupportedError, match=r'"v" has no names for its 1 dim.* at there;'):
        StoredVariable("v", "there", metadata, {}, ts.array([1, 2, 3]))


@pytest.mark.parametrize(
    ("grid", "shape", "chunks"),
    [
        ({"kind": "inline", "chunk_shapes": [[10, 20, 30]]}, [60], ((10, 20, 30),)),
        ({"kind": "inline", "chunk_shapes": [2, [5, 10, 5]]}, [6, 20], (2, (5, 10, 5))),
        ({"kind": "inline", "chunk_shapes": [[[4, 3], 2]]}, [14], (4,)),
        ({"kind": "inline", "chunk_shapes": [[[4, 3]]]}, [6], (4,)),
        ({"kind": "inline", "chunk_shapes": [[[4, 3]]]}, [0], ((0,),)),
    ],
)
def test_chunks_of_several_sizes(grid, shape, chunks):
    metadata = {
        "chunk_grid": {"name": "rectilinear", "configuration": grid},
        "dimension_names": ["y", "x"][: len(shape)],
    }

    _, found = variable(metadata, dtype="int8", shape=shape)

    assert found.encoding["chunks"] == chunks
    assert tuple(found.encoding["preferred_chunks"].values()) == chunks
    assert xr.Dataset({"v": found}).chunk({}).chunks is not None


def test_chunks_within_shards():
    inner = {"chunk_shape": [2], "codecs": [{"name": "bytes"}]}
    metadata = {
        "chunk_grid": GRID,
        "codecs": [{"name": "sharding_indexed", "configuration": inner}],
        "dimension_names": ["x"],
    }

    _, found = variable(metadata, dtype="int8", shape=[8])

    assert (found.encoding["chunks"], found.encoding["shards"]) == ((2,), (4,))


def test_what_is_read_ahead():
    names = {"dimension_names": ["x"]}
    times = {"units": "days since 2000-01-01"}
    for attributes, shape, asked in ((times, [3], 1), (times, [100_000], 2), ({}, [3], 0)):
        stored, _ = variable(names, attributes, dtype="int64", shape=shape)
        stored.fetch(times=True)
        assert len(stored.data._ahead) == asked
        stored, _ = variable(names, attributes, dtype="int64", shape=shape)
        stored.fetch(times=False)
        assert not stored.data._ahead
