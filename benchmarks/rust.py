"""zarrista behind the benchmark's face: Rust's zarrs without zarr-python around it.

It lacks: arrays of version 2, but those that are there already, which it reads and writes; a cache
of decoded chunks; waiting for the disk; creating and opening by JSON that names a driver, and by a
URL. Several partial writes at once are as unsafe as with zarr-python, so it, too, does as many as
fit one after another. Many reads at once are faster on threads than by its asynchronous arrays
(0.46 and 0.59 s for a thousand of 8³, two cores), so threads they are.
"""

import importlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.layouts import Declared, Json, Layout
from benchmarks.libraries import Call, Listed
from benchmarks.volume import Box, Volume
from benchmarks.zarr_python import WRITES


class Zarrista:
    """Arrays of zarrista, one after another; many reads at once on threads."""

    writes_together: int | None = WRITES

    def __init__(self) -> None:
        self.rust: Any = importlib.import_module("zarrista")
        self.threads = ThreadPoolExecutor(4 * (os.cpu_count() or 1))
        self.memory: Any = self.rust.store.MemoryStore()

    @staticmethod
    def _document(declared: Declared) -> Json:
        if declared.layout.zarr_format == 2:
            raise NotImplementedError("zarrista creates arrays of version 3 only")
        return declared.document()[1]

    def _stored(self, document: Json, store: Any, path: str) -> Any:
        array = self.rust.Array.from_metadata(document, store, path)
        array.store_metadata()
        return array

    def open(self, layout: Layout, path: Path, *, cached: bool = False) -> Any:
        if cached:
            raise NotImplementedError("zarrista has no cache of decoded chunks")
        del layout
        return self.rust.Array.open(self.rust.store.FilesystemStore(str(path)))

    def create(self, layout: Layout, path: Path, edge: int, *, synced: bool | None = None) -> Any:
        if synced is not None:
            raise NotImplementedError("zarrista leaves it to the system when files are stored")
        store = self.rust.store.FilesystemStore(str(path))
        return self._stored(self._document(layout.declared(edge)), store, "/")

    def in_memory(self, layout: Layout, volume: Volume) -> Any:
        document = self._document(layout.declared(volume.shape[0]))
        handle = self._stored(document, self.rust.store.MemoryStore(), "/")
        self.write(handle, volume)
        return handle

    def read(self, handle: Any) -> Volume:
        return np.asarray(handle[...])

    def read_plane(self, handle: Any, index: int) -> Volume:
        return np.asarray(handle[index]).reshape(handle.shape[1:])

    def read_each(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]:
        return [np.asarray(handle[box]) for box in boxes]

    def read_together(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]:
        return list(self.threads.map(lambda box: np.asarray(handle[box]), boxes))

    def write(self, handle: Any, volume: Volume) -> None:
        handle[...] = self._data(volume)

    def _data(self, volume: Volume) -> Any:
        if volume.dtype != object:
            return np.ascontiguousarray(volume)
        labels: list[Any] = volume.ravel().tolist()
        texts = [label.encode() for label in labels]
        offsets = np.cumsum([0, *map(len, texts)]).tolist()
        return self.rust.ArrayBytes(b"".join(texts), offsets=offsets)

    def write_each(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None:
        for box in boxes:
            handle[box] = self._data(volume[box])

    def write_together(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None:
        self.write_each(handle, boxes, volume)

    def copy(self, source: Any, target: Any) -> None:
        target[...] = np.asarray(source[...])

    def _where(self, place: str) -> tuple[Any, str]:
        scheme, _, path = place.partition("://")
        path = path.rstrip("/")
        if scheme == "memory":
            return self.memory, f"/{path}"
        return self.rust.store.FilesystemStore(path), "/"

    def creator(self, way: str, declared: Declared, place: str) -> Call:
        document = self._document(declared)
        if way == "metadata":
            return lambda: self._stored(document, *self._where(place))
        if way != "keywords":
            raise NotImplementedError(f"zarrista creates by metadata and keywords, not by {way}")
        return lambda: self._built(declared, *self._where(place))

    def _built(self, declared: Declared, store: Any, path: str) -> Any:
        rust = self.rust
        builder = rust.ArrayBuilder(
            rust.ChunkGrid.regular(declared.shape, chunk_shape=declared.chunk_shape),
            rust.DataType.from_string(declared.dtype),
            rust.FillValue(bytes(np.dtype(declared.dtype).itemsize)),
        )
        if declared.compressor is not None:
            codec = rust.codec.BytesToBytesCodec.from_config(declared.compressor)
            builder = builder.compressors([codec])
        return builder.create(store, path)

    def opener(self, way: str, declared: Declared, place: str) -> Call:
        del declared
        if way != "keywords":
            raise NotImplementedError(f"zarrista opens by a store and a path, not by {way}")
        return lambda: self.rust.Array.open(*self._where(place))

    def list_group(self, path: Path) -> Listed:
        group = self.rust.Group.open(self.rust.store.FilesystemStore(str(path)))
        return {
            each.path.rpartition("/")[2]: (tuple(each.shape), each.dtype.name)
            for each in group.child_arrays()
        }

    def close(self) -> None:
        self.threads.shutdown()
