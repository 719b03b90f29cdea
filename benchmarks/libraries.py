"""The libraries behind one face, so that a workload is written once.

`tensorstore` and `tensorstore_py` are one adapter given two module names: the same lines run on
both. zarr-python comes with its own two pipelines and with the one that zarrs (Rust) offers;
zarrista is another face of zarrs. What a library has not, its adapter says: `NotImplementedError`
with the reason.
"""

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.layouts import STRING, Declared, Json, Layout
from benchmarks.volume import Box, Volume

CACHE_BYTES = 2 << 30

Call = Callable[[], Any]
Listed = dict[str, tuple[tuple[int, ...], str]]
"""The arrays of a group: of each name the shape and the data type."""


class Library(Protocol):
    """What a workload may ask of a library; a handle is whatever its `open` returns.

    The calls of `creator` and `opener` are made beforehand, so that what a program would have
    written down, as JSON or as a URL, is not part of the time. A place is a URL, `file:///…/` or
    `memory://…/`, and all places in memory are of one store.
    """

    writes_together: int | None
    "How many writes may be asked for at once; None for any number."

    def open(self, layout: Layout, path: Path, *, cached: bool = False) -> Any: ...
    def create(
        self, layout: Layout, path: Path, edge: int, *, synced: bool | None = None
    ) -> Any: ...
    def in_memory(self, layout: Layout, volume: Volume) -> Any: ...
    def read(self, handle: Any) -> Volume: ...
    def read_plane(self, handle: Any, index: int) -> Volume: ...
    def read_each(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]: ...
    def read_together(self, handle: Any, boxes: Sequence[Box]) -> list[Volume]: ...
    def write(self, handle: Any, volume: Volume) -> None: ...
    def write_each(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None: ...
    def write_together(self, handle: Any, boxes: Sequence[Box], volume: Volume) -> None: ...
    def copy(self, source: Any, target: Any) -> None: ...
    def creator(self, way: str, declared: Declared, place: str) -> Call: ...
    def opener(self, way: str, declared: Declared, place: str) -> Call: ...
    def list_group(self, path: Path) -> Listed: ...
    def close(self) -> None: ...


class TensorStoreLike:
    """Any module with TensorStore's interface."""

    writes_together: int | None = None

    def __init__(self, module: str, *, sync: bool) -> None:
        self.ts: Any = importlib.import_module(module)
        self.context: Json = {"file_io_sync": sync}
        # what holds the keys in memory, for all that is made and opened there
        self.shared: Any = self.ts.Context(self.context)

    def _able(self, layout: Layout) -> None:
        if layout.dtype == STRING and self.ts.__name__ == "tensorstore":
            raise NotImplementedError("tensorstore has no arrays of strings in zarr")

    def _spec(self, layout: Layout, path: Path, **context: Any) -> Json:
        self._able(layout)
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

    def create(self, layout: Layout, path: Path, edge: int, *, synced: bool | None = None) -> Any:
        context = {} if synced is None else {"file_io_sync": synced}
        spec = self._spec(layout, path, **context)
        metadata = layout.declared(edge).metadata()
        return self.ts.open(spec | {"metadata": metadata}, create=True).result()

    def in_memory(self, layout: Layout, volume: Volume) -> Any:
        spec = {
            "driver": layout.driver,
            "kvstore": {"driver": "memory"},
            "metadata": layout.declared(volume.shape[0]).metadata(),
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

    def _json(self, declared: Declared, place: str) -> Json:
        scheme, _, path = place.partition("://")
        return {"driver": declared.layout.driver, "kvstore": {"driver": scheme, "path": path}}

    @staticmethod
    def _url(declared: Declared, place: str) -> str:
        return f"{place}|zarr{declared.layout.zarr_format}"

    def creator(self, way: str, declared: Declared, place: str) -> Call:
        ts, context, where = self.ts, self.shared, self._json(declared, place)
        layout, dtype = declared.layout, np.dtype(declared.dtype)
        codec: Json = {"driver": layout.driver}
        if layout.zarr_format == 2:
            codec["compressor"] = declared.compressor
        else:
            codec["codecs"] = declared.codecs()
        if way == "metadata":
            spec = where | {"metadata": declared.metadata()}
            return lambda: ts.open(spec, create=True, context=context).result()
        if way == "spec":
            schema = {
                "dtype": declared.dtype,
                "domain": {"shape": list(declared.shape)},
                "chunk_layout": {"chunk": {"shape": list(declared.chunk_shape)}},
                "codec": codec,
                "fill_value": 0,
            }
            spec = where | {"schema": schema, "create": True}
            return lambda: ts.open(spec, context=context).result()
        return lambda: ts.open(
            where if way == "keywords" else self._url(declared, place),
            create=True, dtype=dtype, shape=declared.shape, fill_value=0, context=context,
            chunk_layout=ts.ChunkLayout(chunk_shape=declared.chunk_shape),
            codec=ts.CodecSpec(codec),
        ).result()  # fmt: skip

    def opener(self, way: str, declared: Declared, place: str) -> Call:
        ts, context, where = self.ts, self.shared, self._json(declared, place)
        if way == "metadata":
            spec = where | {"metadata": declared.metadata()}
            return lambda: ts.open(spec, open=True, context=context).result()
        if way == "spec":
            spec = where | {"open": True}
            return lambda: ts.open(spec, context=context).result()
        if way == "keywords":
            dtype = np.dtype(declared.dtype)
            return lambda: ts.open(where, read=True, dtype=dtype, rank=3, context=context).result()
        url = self._url(declared, place)
        return lambda: ts.open(url, context=context).result()

    def list_group(self, path: Path) -> Listed:
        if hasattr(self.ts, "Group"):
            group = self.ts.Group.open(f"file://{path}/").result()
            members = dict(group.members().result())
        else:
            # it knows no groups: its keys are listed, and what has metadata is opened
            store = self.ts.KvStore.open(f"file://{path}/").result()
            names = {key.decode().partition("/")[0] for key in store.list().result()}
            futures = {
                name: self.ts.open(f"file://{path}/{name}/|zarr3") for name in names - {"zarr.json"}
            }
            members = {name: future.result() for name, future in futures.items()}
        return {name: (tuple(each.shape), each.dtype.name) for name, each in members.items()}

    def close(self) -> None:
        """Holds nothing that would have to be given back."""


def load(name: str, *, sync: bool) -> Library:
    """Makes the adapter for a library as named on the command line.

    Raises:
        ImportError: the library is not installed.
    """
    made: Library
    if name in {"zarr", "zarr_fused", "zarrs"}:
        zarr_python: Any = importlib.import_module("benchmarks.zarr_python")
        made = zarr_python.ZarrPython(name)
    elif name == "zarrista":
        rust: Any = importlib.import_module("benchmarks.rust")
        made = rust.Zarrista()
    else:
        made = TensorStoreLike(name, sync=sync)
    return made


def versions(name: str) -> dict[str, str]:
    """The versions of a library and of what does its work, as they are installed."""
    works = {
        "tensorstore_py": ("tensorstore-py", "numcodecs", "deflate", "zstandard"),
        "tensorstore": ("tensorstore",),
        "zarrista": ("zarrista",),
        "zarrs": ("zarrs", "zarr"),
    }
    found = {}
    for each in works.get(name, ("zarr", "numcodecs") if name.startswith("zarr") else ()):
        try:
            found[each] = importlib.metadata.version(each)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
