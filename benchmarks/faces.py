"""What a program that shares an array asks of a library: one face, and each library's own way.

Every method is what the library's documentation tells a user to write. Where a library has no
such thing, the method raises NotImplementedError with the reason, and the workload is "n/a".
"""

import importlib
from typing import Any, Protocol

import numpy as np

LIBRARIES = ("tensorstore_py", "tensorstore", "zarr", "zarr-fused", "zarrs")
PIPELINES = {
    "zarr": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr-fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}
DTYPE = "uint32"
Shape = tuple[int, ...]
Values = Any


class Face(Protocol):
    """An array of unsigned 32-bit numbers in a folder, zarr v3."""

    def create(
        self,
        path: str,
        shape: Shape,
        chunks: Shape,
        inner: Shape | None = None,
        *,
        gzip: bool = False,
    ) -> Any: ...
    def open(self, path: str) -> Any: ...
    def open_url(self, url: str) -> Any: ...
    def read(self, array: Any, region: Any = ...) -> Values: ...
    def write(self, array: Any, region: Any, values: Values) -> None: ...
    def append(self, path: str, values: Values) -> None: ...
    def grow(self, path: str, length: int) -> Any: ...


class TensorStoreFace:
    """`tensorstore`, and what has its interface."""

    def __init__(self, module: str) -> None:
        self.ts: Any = importlib.import_module(module)

    def _spec(self, path: str) -> dict[str, Any]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}

    def create(
        self,
        path: str,
        shape: Shape,
        chunks: Shape,
        inner: Shape | None = None,
        *,
        gzip: bool = False,
    ) -> Any:
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        codecs: list[Any] = [little]
        if gzip:
            codecs.append({"name": "gzip", "configuration": {"level": 1}})
        if inner is not None:
            shards = {"chunk_shape": inner, "codecs": codecs}
            codecs = [{"name": "sharding_indexed", "configuration": shards}]
        metadata = {
            "shape": shape,
            "data_type": DTYPE,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "codecs": codecs,
        }
        return self.ts.open(self._spec(path) | {"metadata": metadata}, create=True).result()

    def open(self, path: str) -> Any:
        return self.ts.open(self._spec(path)).result()

    def open_url(self, url: str) -> Any:
        # with the cache of decoded chunks, which is what could keep bad data
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "http", "base_url": f"{url}/"},
            "context": {"cache_pool": {"total_bytes_limit": 10_000_000}},
        }
        return self.ts.open(spec, read=True).result()

    def read(self, array: Any, region: Any = ...) -> Values:
        return np.asarray(array[region].read().result())

    def write(self, array: Any, region: Any, values: Values) -> None:
        array[region].write(values).result()

    def append(self, path: str, values: Values) -> None:
        # There is no append: the end is read, moved and written in a transaction that is to fail if
        # the end was moved meanwhile, and is begun again then.
        while True:
            transaction = self.ts.Transaction(repeatable_read=True)
            try:
                array = self.ts.open(
                    self._spec(path), transaction=transaction, recheck_cached_metadata=True
                ).result()
                end = array.shape[0]
                length = end + len(values)
                grown = array.resize(exclusive_max=[length], expand_only=True).result()
                grown[end:length].write(values).result()
                transaction.commit_sync()
                return
            except ValueError:  # ABORTED, or the bounds were moved beyond
                transaction.abort()

    def grow(self, path: str, length: int) -> Any:
        array = self.open(path)
        if array.shape[0] < length:
            try:
                array = array.resize(exclusive_max=[length], expand_only=True).result()
            except ValueError:  # another process has made it longer still
                array = self.open(path)
        return array


class OurFace(TensorStoreFace):
    """`tensorstore_py`, which appends."""

    def append(self, path: str, values: Values) -> None:
        self.open(path).append(values, 0).result()


class ZarrFace:
    """zarr-python with one of its codec pipelines."""

    def __init__(self, name: str) -> None:
        self.zarr: Any = importlib.import_module("zarr")
        path = PIPELINES[name]
        module, _, member = path.rpartition(".")
        if not hasattr(importlib.import_module(module), member):
            raise ImportError(f"{module} has no {member}")
        self.zarr.config.set({"codec_pipeline.path": path})

    def create(
        self,
        path: str,
        shape: Shape,
        chunks: Shape,
        inner: Shape | None = None,
        *,
        gzip: bool = False,
    ) -> Any:
        codecs: Any = importlib.import_module("zarr.codecs")
        return self.zarr.create_array(
            path,
            shape=shape,
            dtype=DTYPE,
            chunks=chunks if inner is None else inner,
            shards=None if inner is None else chunks,
            compressors=codecs.GzipCodec(level=1) if gzip else None,
            fill_value=0,
        )

    def open(self, path: str) -> Any:
        return self.zarr.open_array(path, mode="r+")

    def open_url(self, url: str) -> Any:
        return self.zarr.open_array(url, mode="r")

    def read(self, array: Any, region: Any = ...) -> Values:
        return np.asarray(array[region])

    def write(self, array: Any, region: Any, values: Values) -> None:
        array[region] = values

    def append(self, path: str, values: Values) -> None:
        self.open(path).append(values, axis=0)

    def grow(self, path: str, length: int) -> Any:
        array = self.open(path)
        if array.shape[0] < length:
            array.resize((length,))
        return array


def face_of(name: str) -> Face:
    """Make the face of a library in `LIBRARIES`.

    Raises:
        ImportError: it is not installed, or too old.
    """
    if name in PIPELINES:
        return ZarrFace(name)
    if name == "tensorstore_py":
        return OurFace(name)
    return TensorStoreFace(name)
