"""zarr-python behind the benchmark's face: with its default pipeline, its fused one, or zarrs."""

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.layouts import STRING, Declared, Json, Layout
from benchmarks.libraries import Call, Listed
from benchmarks.volume import Box, Volume

# zarr-python offers no way to have several partial writes of one array in flight that is safe when
# two of them touch a chunk, so it writes one after another, as many as fit, and time is scaled.
WRITES = 30
PIPELINES = {
    "zarr": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr_fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}


class ZarrPython:
    """zarr-python with one of the `PIPELINES`."""

    writes_together: int | None = WRITES

    def __init__(self, name: str) -> None:
        self.name = name
        self.zarr: Any = importlib.import_module("zarr")
        self.zarr.config.set({"codec_pipeline.path": PIPELINES[name]})
        try:
            used = importlib.import_module("zarr.registry").get_pipeline_class()
        except ValueError as error:
            self.zarr.config.reset()
            raise NotImplementedError(f"zarr {self.zarr.__version__}: {error}") from None
        if not PIPELINES[name].endswith(used.__name__):
            raise ImportError(f"zarr uses {used} and not {PIPELINES[name]}")
        self.runner = asyncio.Runner()
        self.memory: Any = self.zarr.storage.MemoryStore()

    def _able(self, layout: Layout) -> None:
        if self.name == "zarrs" and (layout.zarr_format, layout.order) == (2, "F"):
            raise NotImplementedError("zarrs fails on arrays of version 2 in order F")

    def _options(self, declared: Declared) -> Json:
        layout = declared.layout
        self._able(layout)
        text = declared.dtype == STRING
        options: Json = {
            "shape": declared.shape,
            "chunks": declared.chunk_shape,
            "dtype": str if text else declared.dtype,
            "zarr_format": layout.zarr_format,
            "fill_value": declared.fill_value,
            "filters": "auto" if text and layout.zarr_format == 2 else None,
        }
        if layout.shard is not None:
            options["shards"] = declared.file_shape
        compressor = declared.compressor
        if layout.zarr_format == 2:
            options["order"] = layout.order
            if compressor is not None:
                numcodecs: Any = importlib.import_module("numcodecs")
                compressor = numcodecs.get_codec(compressor)
        elif layout.order == "F":
            options["filters"] = [self.zarr.codecs.TransposeCodec(order=(2, 1, 0))]
        return options | {"compressors": compressor}

    def open(self, layout: Layout, path: Path, *, cached: bool = False) -> Any:
        if cached:
            raise NotImplementedError("zarr-python has no cache of decoded chunks")
        self._able(layout)
        return self.zarr.open_array(path, mode="r+")

    def create(self, layout: Layout, path: Path, edge: int, *, synced: bool | None = None) -> Any:
        if synced is not None:
            raise NotImplementedError("zarr-python leaves it to the system when files are stored")
        return self.zarr.create_array(store=path, **self._options(layout.declared(edge)))

    def in_memory(self, layout: Layout, volume: Volume) -> Any:
        store = self.zarr.storage.MemoryStore()
        options = self._options(layout.declared(volume.shape[0]))
        handle = self.zarr.create_array(store=store, **options)
        handle[:] = volume
        return handle

    def read(self, handle: Any) -> Volume:
        return np.asarray(handle[:])

    def read_plane(self, handle: Any, index: int) -> Volume:
        return np.asarray(handle[index])

    def read_each(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]:
        return [handle[box] for box in boxes]

    def read_together(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]:
        async def gather() -> list[Volume]:
            array = handle.async_array
            return list(await asyncio.gather(*(array.getitem(box) for box in boxes)))

        return self.runner.run(gather())

    def write(self, handle: Any, volume: Volume) -> None:
        handle[:] = volume

    def write_each(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None:
        for box in boxes:
            handle[box] = volume[box]

    def write_together(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None:
        self.write_each(handle, boxes, volume)

    def copy(self, source: Any, target: Any) -> None:
        target[:] = source[:]

    def creator(self, way: str, declared: Declared, place: str) -> Call:
        options = self._options(declared)
        if way == "keywords":
            options |= self._where(place)
        elif way == "URL":
            options["store"] = place.rstrip("/")
            if place.startswith("file:") and self.zarr.__version__.startswith(("3.0", "3.1")):
                options["storage_options"] = {"auto_mkdir": True}  # there fsspec writes files
        else:
            raise NotImplementedError(f"zarr-python creates by keywords, not by {way}")
        return lambda: self.zarr.create_array(**options)

    def opener(self, way: str, declared: Declared, place: str) -> Call:
        del declared
        if way == "URL":
            url = place.rstrip("/")
            return lambda: self.zarr.open_array(url, mode="r+")
        if way != "keywords":
            raise NotImplementedError(f"zarr-python opens by a path or a store, not by {way}")
        where = self._where(place)
        path = where.pop("name", None)
        return lambda: self.zarr.open_array(path=path, mode="r+", **where)

    def _where(self, place: str) -> Json:
        scheme, _, path = place.partition("://")
        path = path.rstrip("/")
        return {"store": path} if scheme == "file" else {"store": self.memory, "name": path}

    def list_group(self, path: Path) -> Listed:
        group = self.zarr.open_group(path, mode="r")
        return {name: (each.shape, each.dtype.name) for name, each in group.members()}

    def close(self) -> None:
        self.runner.close()
