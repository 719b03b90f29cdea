"""The drivers keep the promises that every guest's driver must keep."""

from typing import Any, ClassVar

import numpy as np

import tensorstore_py as ts
from tensorstore_py.testing import ArraySuite, DriverSuite


class TestN5(DriverSuite):
    driver = "n5"
    metadata_key = "attributes.json"


class TestZarr(DriverSuite):
    driver = "zarr"
    metadata_key = ".zarray"
    fill_value = 9


class TestZarrOfManyWords(DriverSuite):
    driver = "zarr"
    metadata_key = ".zarray"
    dtypes = ("int8", "float64", "complex64", "bool")
    shape = (5, 6, 4)
    chunk = (2, 6, 3)
    members: ClassVar[dict[str, Any]] = {
        "metadata": {"order": "F", "dimension_separator": "/", "compressor": None},
    }


class TestZarr3(DriverSuite):
    driver = "zarr3"
    metadata_key = "zarr.json"
    fill_value = 3


class TestZarr3InShards(DriverSuite):
    driver = "zarr3"
    metadata_key = "zarr.json"
    shape = (17,)
    chunk = (8,)
    members: ClassVar[dict[str, Any]] = {
        "metadata": {
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {"chunk_shape": [2], "codecs": ["bytes", "gzip"]},
                }
            ]
        }
    }

    def layout(self) -> ts.ChunkLayout:
        return ts.ChunkLayout(write_chunk_shape=self.chunk, read_chunk_shape=[2])


class TestArray(ArraySuite):
    resizable = False
    transactional = False
    shared = False

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        spec = {"driver": "array", "dtype": self.dtype, "array": self.blank().tolist()}
        return ts.open(spec, context=context, **options).result()


class TestReadOnlyMemory(ArraySuite):
    writable = False
    resizable = False
    transactional = False
    shared = False

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        array = self.blank()
        array.flags.writeable = False
        return ts.array(array, context=context, **options)


class TestJson(ArraySuite):
    dtype = "json"
    shape = ()
    fill_value = 5
    resizable = False

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        spec = {"driver": "json", "kvstore": "memory://suite.json", "json_pointer": "/a/0"}
        store = ts.open(spec, context=context, **options).result()
        assert store.kvstore is not None
        store.kvstore[""] = b'{"a":[5,1],"b":2}'
        return store


class TestCast(ArraySuite):
    dtype = "float32"
    fill_value = 3

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        base = {
            "driver": "zarr3",
            "kvstore": "memory://suite/",
            "metadata": {
                "shape": self.shape,
                "data_type": "int16",
                "fill_value": 3,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 4]}},
            },
        }
        spec = {"driver": "cast", "base": base, "dtype": self.dtype}
        return ts.open(spec, create=True, context=context, **options).result()


class TestStack(ArraySuite):
    """Two arrays side by side, and a third one over a part of both."""

    resizable = False

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        layers = []
        for number, (low, high) in enumerate([(0, 4), (4, 7), (2, 5)]):
            layer = ts.open(
                {"driver": "zarr3", "kvstore": f"memory://suite/{number}/"},
                create=True,
                context=context,
                dtype=self.dtype,
                shape=[high - low, 10],
                chunk_layout=ts.ChunkLayout(chunk_shape=[2, 4]),
            ).result()
            layers.append(layer.translate_to[low, 0])
        return ts.overlay(layers)


class TestDownsample(ArraySuite):
    shape = (4, 5)
    writable = False
    resizable = False

    def blank(self, dtype: str | None = None) -> np.ndarray[Any, Any]:
        return np.arange(70, dtype=dtype or self.dtype).reshape(7, 10)[::2, ::2]

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        base = ts.open(
            {"driver": "zarr3", "kvstore": "memory://suite/"},
            create=True,
            context=context,
            dtype=self.dtype,
            shape=[7, 10],
            chunk_layout=ts.ChunkLayout(chunk_shape=[3, 4]),
        ).result()
        base[...] = np.arange(70, dtype=self.dtype).reshape(7, 10)
        return ts.downsample(base, [2, 2], "stride")


class TestDownsampleMaxima(TestDownsample):
    def blank(self, dtype: str | None = None) -> np.ndarray[Any, Any]:
        rows, columns = [1, 3, 5, 6], [1, 3, 5, 7, 9]
        whole = np.arange(70, dtype=dtype or self.dtype).reshape(7, 10)
        return whole[np.ix_(rows, columns)]

    def create(self, context: ts.Context, **options: Any) -> ts.TensorStore:
        base = super().create(context, **options).spec().to_json()["base"]
        spec = {
            "driver": "downsample",
            "base": base,
            "downsample_factors": [2, 2],
            "downsample_method": "max",
        }
        return ts.open(spec, context=context).result()
