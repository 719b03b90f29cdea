"""The libraries behind one face, so that a workload is written once.

`tensorstore` and `tensorstore_py` are one adapter given two module names: the same lines run on
both. zarr-python comes with its own pipeline and with the one that zarrs (Rust) offers.
"""

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.layouts import Json, Layout
from benchmarks.volume import Box, Volume

CACHE_BYTES = 2 << 30
# zarr-python offers no way to have several partial writes of one array in flight that is safe when
# two of them touch a chunk, so it writes one after another, as many as fit, and time is scaled.
ZARR_WRITES = 30


class Library(Protocol):
    """What a workload may ask of a library; a handle is whatever its `open` returns."""

    writes_together: int | None
    "How many writes may be asked for at once; None for any number."

    def open(self, layout: Layout, path: Path, *, cached: bool = False) -> Any: ...
    def create(self, layout: Layout, path: Path, edge: int) -> Any: ...
    def in_memory(self, layout: Layout, volume: Volume) -> Any: ...
    def read(self, handle: Any) -> Volume: ...
    def read_plane(self, handle: Any, index: int) -> Volume: ...
    def read_each(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]: ...
    def read_together(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]: ...
    def write(self, handle: Any, volume: Volume) -> None: ...
    def write_each(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None: ...
    def write_together(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None: ...
    def copy(self, source: Any, target: Any) -> None: ...


class TensorStoreLike:
    """Any module with TensorStore's interface."""

    writes_together: int | None = None

    def __init__(self, module: str, *, sync: bool) -> None:
        self.ts: Any = importlib.import_module(module)
        self.context: Json = {"file_io_sync": sync}

    def _spec(self, layout: Layout, path: Path, **context: Any) -> Json:
        kvstore = {"driver": "file", "path": f"{path}/"}
        return {
            "driver": layout.driver,
            "kvstore": kvstore,
            "context": {**self.context, **context},
        }

    def open(self, layout: Layout, path: Path, *, cached: bool = False) -> Any:
        spec = self._spec(layout, path)
        if cached:
            spec = self._spec(layout, path, cache_pool={"total_bytes_limit": CACHE_BYTES})
            spec["recheck_cached_data"] = False
        return self.ts.open(spec, open=True).result()

    def create(self, layout: Layout, path: Path, edge: int) -> Any:
        spec = self._spec(layout, path) | {"metadata": layout.metadata(edge)}
        return self.ts.open(spec, create=True).result()

    def in_memory(self, layout: Layout, volume: Volume) -> Any:
        spec = {
            "driver": layout.driver,
            "kvstore": {"driver": "memory"},
            "metadata": layout.metadata(volume.shape[0]),
        }
        handle = self.ts.open(spec, create=True).result()
        handle.write(volume).result()
        return handle

    def read(self, handle: Any) -> Volume:
        return np.asarray(handle.read().result())

    def read_plane(self, handle: Any, index: int) -> Volume:
        return np.asarray(handle[index].read().result())

    def read_each(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]:
        return [handle[box].read().result() for box in boxes]

    def read_together(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]:
        return [future.result() for future in [handle[box].read() for box in boxes]]

    def write(self, handle: Any, volume: Volume) -> None:
        handle.write(volume).result()

    def write_each(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None:
        for box in boxes:
            handle[box].write(volume[box]).result()

    def write_together(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None:
        for future in [handle[box].write(volume[box]) for box in boxes]:
            future.result()

    def copy(self, source: Any, target: Any) -> None:
        target.write(source).result()


class ZarrPython:
    """zarr-python, with its default codec pipeline or the one of zarrs."""

    writes_together: int | None = ZARR_WRITES

    def __init__(self, *, zarrs: bool) -> None:
        self.zarr: Any = importlib.import_module("zarr")
        if zarrs:
            importlib.import_module("zarrs")
            self.zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        self.runner = asyncio.Runner()

    def _create(self, layout: Layout, store: Any, edge: int) -> Any:
        options: Json = {
            "store": store,
            "shape": (edge,) * 3,
            "chunks": (min(layout.chunk, edge),) * 3,
            "dtype": "uint16",
            "zarr_format": layout.zarr_format,
            "fill_value": 0,
            "filters": None,
        }
        if layout.shard is not None:
            options["shards"] = (min(layout.shard, edge),) * 3
        compressor = layout.compressor
        if compressor is not None and layout.zarr_format == 2:
            numcodecs: Any = importlib.import_module("numcodecs")
            compressor = numcodecs.get_codec(compressor)
        return self.zarr.create_array(**options, compressors=compressor)

    def open(self, layout: Layout, path: Path, *, cached: bool = False) -> Any:
        if cached:
            raise NotImplementedError("zarr-python 3.1 has no cache of decoded chunks")
        del layout
        return self.zarr.open_array(path, mode="r+")

    def create(self, layout: Layout, path: Path, edge: int) -> Any:
        return self._create(layout, path, edge)

    def in_memory(self, layout: Layout, volume: Volume) -> Any:
        handle = self._create(layout, self.zarr.storage.MemoryStore(), volume.shape[0])
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


def load(name: str, *, sync: bool) -> Library:
    """Makes the adapter for a library as named on the command line.

    Raises:
        ImportError: the library is not installed.
    """
    if name in {"zarr", "zarrs"}:
        return ZarrPython(zarrs=name == "zarrs")
    return TensorStoreLike(name, sync=sync)
