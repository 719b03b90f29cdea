"""What an array tells of itself."""

import pytest

import tensorstore_py as ts


@pytest.fixture(params=[2, 3])
def z(request):
    return ts.zarr.create(
        (10, 20),
        chunks=(3, 8),
        dtype="<i4",
        fill_value=7,
        compressors=ts.zarr.GZip(1),
        path="a/b",
        attributes={"x": 1},
        zarr_format=request.param,
    )


def test_shape_and_type(z):
    assert (z.shape, z.ndim, z.size, z.itemsize, z.nbytes) == ((10, 20), 2, 200, 4, 800)
    assert (z.dtype, z.fill_value, z.order) == ("int32", 7, "C")
    assert (z.chunks, z.shards, z.cdata_shape, z.nchunks) == ((3, 8), None, (4, 3), 12)
    assert len(z) == 10


def test_codecs(z):
    assert z.compressor == ts.zarr.GZip(1)
    assert z.compressors == (ts.zarr.GZip(1),)
    assert z.filters == (None if z.zarr_format == 2 else ())
    assert (z.serializer is None) == (z.zarr_format == 2)
    assert ts.zarr.zeros(3, compressors=None).compressor is None
    several = ts.zarr.zeros(3, compressors=[ts.zarr.GZip(1), ts.zarr.GZip(1)])
    with pytest.raises(TypeError, match="several compressors"):
        _ = several.compressor


def test_place(z):
    assert (z.path, z.name, z.basename) == ("a/b", "/a/b", "b")
    assert z.own_store.kvstore.path == "a/b/"
    assert z.own_store == ts.zarr.Store(z.store.kvstore / "a/b")


def test_attributes(z):
    assert z.attrs.asdict() == {"x": 1}
    z.attrs["foo"] = "bar"
    assert z.update_attributes({"baz": 42}) is z
    assert dict(z.attrs.items()) == {"x": 1, "foo": "bar", "baz": 42}
    assert ts.zarr.open_array(z.store, path="a/b").attrs["foo"] == "bar"


def test_the_document_has_the_present_shape(z):
    z.resize(5, 20)
    assert z.metadata["shape"] == [5, 20]
    assert z.metadata["zarr_format"] == z.zarr_format


def test_info(z):
    z[0, 0] = 1
    info = z.info
    assert info["Name"] == "/a/b"
    assert info["Type"] == "Array"
    assert info["Chunk shape"] == (3, 8)
    assert info["No. bytes"] == "800"
    assert info["No. bytes stored"] == str(z.nbytes_stored())
    assert info["Storage ratio"] == f"{800 / z.nbytes_stored:.1f}"
    assert info["Chunks initialized"] == "1/12"
    assert repr(z.info_complete()) == repr(info)


def test_info_of_an_array_that_is_all_of_its_store():
    z = ts.zarr.zeros((10000, 10000), chunks=(1000, 1000), shards=(2000, 2000), dtype="i4")
    assert z.info["Shard shape"] == (2000, 2000)
    assert z.info["No. bytes"] == "400000000 (381.5M)"
    with pytest.raises(KeyError):
        _ = z.info["Name"]
