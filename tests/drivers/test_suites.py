"""The drivers of chunked formats keep the promises that every guest's driver must keep."""

from typing import Any, ClassVar

import tensorstore_py as ts
from tensorstore_py.testing import DriverSuite


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
