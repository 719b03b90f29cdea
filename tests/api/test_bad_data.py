"""Damaged chunks and impossible indices: named, never answered with garbage."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, MismatchError, OutOfRangeError


def spec_at(path, driver="zarr3", **members):
    return {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}, **members}


COMPRESSED = {
    "zarr3-gzip": ("zarr3", {"codecs": ["bytes", "gzip"]}),
    "zarr3-zstd": ("zarr3", {"codecs": ["bytes", "zstd"]}),
    "zarr3-blosc": ("zarr3", {"codecs": ["bytes", "blosc"]}),
    "zarr3-crc32c": ("zarr3", {"codecs": ["bytes", "crc32c"]}),
    "zarr3-raw": ("zarr3", {"codecs": ["bytes"]}),
    "zarr3-sharded": (
        "zarr3",
        {"codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 4]}}]},
    ),
    "zarr-zlib": ("zarr", {"compressor": {"id": "zlib"}}),
    "zarr-bz2": ("zarr", {"compressor": {"id": "bz2"}}),
    "zarr-blosc": ("zarr", {"compressor": {"id": "blosc"}}),
    "zarr-raw": ("zarr", {"compressor": None}),
}


def named(metadata):
    return {
        key: [{"name": item} if isinstance(item, str) else item for item in value]
        if key == "codecs" else value
        for key, value in metadata.items()
    }  # fmt: skip


@pytest.fixture(params=COMPRESSED)
def array(request, tmp_path):
    driver, metadata = COMPRESSED[request.param]
    layout = ts.ChunkLayout(write_chunk_shape=[8, 8])
    store = ts.open(
        spec_at(tmp_path, driver, metadata=named(metadata)), create=True, dtype="uint16",
        shape=[16, 16], chunk_layout=layout,
    ).result()  # fmt: skip
    store[...] = np.arange(256, dtype="uint16").reshape(16, 16) + 1
    chunk = tmp_path / ("c/1/0" if driver == "zarr3" else "1.0")
    assert chunk.exists()
    return store, chunk


@pytest.mark.parametrize("keep", [0, 1, 0.5, -1])
def test_a_truncated_chunk_is_named(array, keep):
    store, chunk = array
    data = chunk.read_bytes()
    chunk.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
    assert store[:8].read().result()[0, 0] == 1
    with pytest.raises(DataLossError) as caught:
        store.read().result()
    assert str(chunk) in str(caught.value)
    with pytest.raises(DataLossError) as caught:
        store[9, 2:4].read().result()
    assert str(chunk) in str(caught.value)


def test_a_checksum_that_fails_is_named(tmp_path):
    store = ts.open(
        spec_at(tmp_path, metadata={"codecs": [{"name": "bytes"}, {"name": "crc32c"}]}),
        create=True, dtype="uint8", shape=[8],
    ).result()  # fmt: skip
    store[...] = np.arange(1, 9, dtype="uint8")
    chunk = tmp_path / "c" / "0"
    good = chunk.read_bytes()
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 0x10
        chunk.write_bytes(bytes(bad))
        with pytest.raises(DataLossError, match="c/0"):
            store.read().result()
        with pytest.raises(DataLossError, match="c/0"):
            store[3] = 1


class TestIndices:
    @pytest.fixture
    def store(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        return ts.open(spec, create=True, dtype="uint8", shape=[10, 20]).result()

    @pytest.mark.parametrize(
        ("index", "dimension", "bounds"),
        [
            ((10,), 0, r"\[0, 10"), ((-1,), 0, r"\[0, 10"), ((0, 20), 1, r"\[0, 20"),
            ((slice(5, 11),), 0, r"\[0, 10"), ((slice(None), slice(-3, 4)), 1, r"\[0, 20"),
        ],
    )  # fmt: skip
    def test_outside_names_dimension_and_bounds(self, store, index, dimension, bounds):
        fixed = store.resolve(fix_resizable_bounds=True).result()
        with pytest.raises(IndexError, match=bounds) as caught:
            fixed[index].read().result()
        assert isinstance(caught.value, OutOfRangeError)
        assert f"dimension {dimension}" in str(caught.value)

    def test_resizable_bounds_are_checked_when_it_is_read(self, store):
        view = store[5, 25:30]
        with pytest.raises(
            IndexError, match=r"dimension 0 ends at 20, but \[25, 30\) is asked for"
        ):
            view.read().result()
        store.resize(exclusive_max=[10, 40]).result()
        assert view.read().result().shape == (5,)

    @pytest.mark.parametrize("mode", ["oindex", "vindex"])
    def test_index_arrays(self, store, mode):
        with pytest.raises(IndexError, match=r"10"):
            getattr(store, mode)[[0, 10]].read().result()

    def test_too_many_indices(self, store):
        with pytest.raises(IndexError, match="3"):
            store[1, 2, 3]

    def test_writing_outside(self, store):
        with pytest.raises(IndexError, match=r"dimension 0"):
            store[10] = 1


class TestSources:
    @pytest.fixture
    def store(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        return ts.open(spec, create=True, dtype="int16", shape=[3, 4]).result()

    def test_a_shape_that_does_not_broadcast(self, store):
        with pytest.raises(MismatchError, match=r"dimension 1.*4"):
            store.write(np.zeros((3, 5), "int16"))

    def test_too_many_dimensions(self, store):
        with pytest.raises(ValueError, match="2"):
            store.write(np.zeros((1, 3, 4), "int16"))

    def test_broadcasting(self, store):
        store[...] = np.array([1, 2, 3, 4], "int16")
        store[:, 1:3] = np.array([[7], [8], [9]], "int16")
        assert store.read().result().tolist() == [[1, 7, 7, 4], [1, 8, 8, 4], [1, 9, 9, 4]]
