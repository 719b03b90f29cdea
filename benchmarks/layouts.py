"""The stored forms that are compared, each said once as TensorStore JSON and once for zarr-python.

The levels are zarr-python's defaults (gzip 5, zstd 0, which is 3), or what people use (blosc lz4 5
with byte shuffle), with the lowest and the highest that are common beside them; all libraries read
the very same files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.volume import Volume

Json = dict[str, Any]


def blosc_v2(cname: str, level: int) -> Json:
    """Blosc as the metadata of version 2 have it, with byte shuffle."""
    return {"id": "blosc", "cname": cname, "clevel": level, "shuffle": 1, "blocksize": 0}


def blosc_v3(cname: str, level: int) -> Json:
    """Blosc as the metadata of version 3 have it, with byte shuffle of 16 bits."""
    configuration = {
        "cname": cname, "clevel": level, "shuffle": "shuffle", "typesize": 2, "blocksize": 0,
    }  # fmt: skip
    return {"name": "blosc", "configuration": configuration}


def zstd(level: int) -> Json:
    """Zstandard of version 3."""
    return {"name": "zstd", "configuration": {"level": level, "checksum": False}}


def gzip(level: int) -> Json:
    """Gzip of version 3."""
    return {"name": "gzip", "configuration": {"level": level}}


LITTLE: Json = {"name": "bytes", "configuration": {"endian": "little"}}
CRC32C: Json = {"name": "crc32c"}

STRING = "string"
FULL_AND_PLANE = frozenset({"full read", "full write", "one-plane slice"})
FULL = frozenset({"full read", "full write"})


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to store the volume.

    Attributes:
        name: what the tables call it.
        zarr_format: 2 or 3.
        chunk: the edge of the smallest readable cube, in voxels.
        shard: the edge of the cube that one file holds, when files hold several chunks.
        compressor: the codec after bytes, as the format's metadata has it; None stores raw.
        dtype: of the elements, in NumPy's name, or "string".
        order: of the elements in a chunk, "C" or "F".
        most: the edge of the cube of the volume that is stored, at most; None for all of it.
        only: the workloads that it is measured with; None for all. What differs by one property
            from a layout that is measured with all of them needs few.
    """

    name: str
    zarr_format: int
    chunk: int
    shard: int | None = None
    compressor: Json | None = field(default=None, hash=False)
    dtype: str = "uint16"
    order: str = "C"
    most: int | None = None
    only: frozenset[str] | None = None

    @property
    def driver(self) -> str:
        """The TensorStore driver of this layout."""
        return "zarr" if self.zarr_format == 2 else "zarr3"

    def sample(self, volume: Volume) -> Volume:
        """What of the volume is stored, and as what."""
        edge = min(volume.shape[0], self.most or volume.shape[0])
        cut = volume[:edge, :edge, :edge]
        if self.dtype == STRING:
            # as labels are: a prefix, a number, lengths that differ
            names = np.array([f"cell {value % 5000}" for value in cut.ravel().tolist()], object)
            return names.reshape(cut.shape)
        if self.dtype == "int8":
            return ((cut >> 6) - 300).astype(np.int8)
        return cut if cut.dtype == self.dtype else (cut / 7).astype(self.dtype)

    def declared(self, edge: int) -> "Declared":
        """The array of a volume of `edge` voxels a side."""
        file_edge = min(self.shard or self.chunk, edge)
        return Declared(self, (edge,) * 3, (min(self.chunk, file_edge),) * 3, self.dtype)


@dataclass(frozen=True, slots=True)
class Declared:
    """An array as somebody declares it: a shape, chunks and a data type, with a layout's codecs."""

    layout: Layout
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    dtype: str

    @property
    def file_shape(self) -> tuple[int, ...]:
        """The shape of what one file holds."""
        shard = self.layout.shard
        if shard is None:
            return self.chunk_shape
        return tuple(min(shard, size) for size in self.shape)

    @property
    def fill_value(self) -> Any:
        """What is read where nothing is stored."""
        return "" if self.dtype == STRING else 0

    @property
    def compressor(self) -> Json | None:
        """The layout's compressor, for the size of these elements."""
        compressor = self.layout.compressor
        if compressor is None or "typesize" not in compressor.get("configuration", {}):
            return compressor
        configuration = compressor["configuration"] | {"typesize": np.dtype(self.dtype).itemsize}
        return compressor | {"configuration": configuration}

    def codecs(self) -> list[Json]:
        """The codecs of version 3."""
        first = {"name": "vlen-utf8"} if self.dtype == STRING else LITTLE
        codecs: list[Json] = [first, *([self.compressor] if self.compressor else [])]
        if self.layout.order == "F":
            axes = list(range(len(self.shape)))[::-1]
            codecs.insert(0, {"name": "transpose", "configuration": {"order": axes}})
        if self.layout.shard is None:
            return codecs
        sharding = {
            "chunk_shape": list(self.chunk_shape),
            "codecs": codecs,
            "index_codecs": [LITTLE, CRC32C],
            "index_location": "end",
        }
        return [{"name": "sharding_indexed", "configuration": sharding}]

    def metadata(self) -> Json:
        """The metadata constraint that makes TensorStore create this array."""
        if self.layout.zarr_format == 2:
            text = self.dtype == STRING
            return {
                "shape": list(self.shape),
                "chunks": list(self.chunk_shape),
                "dtype": "|O" if text else np.dtype(self.dtype).str,
                "order": self.layout.order,
                "fill_value": self.fill_value,
                "filters": [{"id": "vlen-utf8"}] if text else None,
                "compressor": self.compressor,
            }
        grid = {"name": "regular", "configuration": {"chunk_shape": list(self.file_shape)}}
        return {
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": grid,
            "chunk_key_encoding": {"name": "default"},
            "fill_value": self.fill_value,
            "codecs": self.codecs(),
        }

    def document(self) -> tuple[str, Json]:
        """The name and the contents of the file that holds the metadata."""
        if self.layout.zarr_format == 2:
            return ".zarray", {"zarr_format": 2, **self.metadata()}
        return "zarr.json", {"zarr_format": 3, "node_type": "array", **self.metadata()}


# What one meets again and again, and never twice the same: caches of what was parsed help as far
# as they would help a user, whose arrays share codecs and little else.
DTYPES = ("uint8", "uint16", "int16", "int32", "uint32", "float32", "float64", "int64")


def fresh(layout: Layout, numbers: Sequence[int]) -> list[Declared]:
    """Arrays with a layout's codecs whose shape, chunks and data type follow from a number."""
    found = []
    for number in numbers:
        # shapes repeat after more arrays than a run makes
        shape = (256 + number, 512 + number % 61, 512 + number % 53)
        chunk = [layout.chunk] * 3
        chunk[number % 3] //= 1 + number % 2
        found.append(Declared(layout, shape, tuple(chunk), DTYPES[number % len(DTYPES)]))
    return found


SHARDS = "v3 zstd 32³ in 256³ shards"
LAYOUTS = (
    Layout("v2 blosc 64³", 2, 64, compressor=blosc_v2("lz4", 5)),
    Layout("v2 blosc 32³", 2, 32, compressor=blosc_v2("lz4", 5)),
    Layout("v3 zstd 64³", 3, 64, compressor=zstd(3)),
    Layout("v3 gzip 64³", 3, 64, compressor=gzip(5)),
    Layout("v3 raw 64³", 3, 64),
    # zarr-python's default codec, as it writes it, in what many store large arrays in
    Layout(SHARDS, 3, 32, shard=256, compressor=zstd(0)),
    Layout("v3 blosc 32³ in 256³ shards", 3, 32, shard=256, compressor=blosc_v3("lz4", 5)),
    Layout("v3 zstd 64³, level 1", 3, 64, compressor=zstd(1), only=FULL, most=256),
    Layout("v3 zstd 64³, level 9", 3, 64, compressor=zstd(9), only=FULL, most=256),
    Layout("v3 gzip 64³, level 1", 3, 64, compressor=gzip(1), only=FULL, most=256),
    Layout("v3 gzip 64³, level 9", 3, 64, compressor=gzip(9), only=FULL, most=256),
    Layout("v2 blosc 64³, zstd 1", 2, 64, compressor=blosc_v2("zstd", 1), only=FULL, most=256),
    Layout("v2 blosc 64³, zstd 5", 2, 64, compressor=blosc_v2("zstd", 5), only=FULL, most=256),
    Layout(
        "v3 zstd 64³, int8", 3, 64,
        compressor=zstd(3), dtype="int8", most=256, only=FULL_AND_PLANE,
    ),
    Layout(
        "v3 zstd 64³, float64", 3, 64,
        compressor=zstd(3), dtype="float64", most=256, only=FULL_AND_PLANE,
    ),
    Layout(
        "v2 blosc 64³, order F", 2, 64,
        compressor=blosc_v2("lz4", 5), order="F", most=256, only=FULL_AND_PLANE,
    ),
    Layout(
        "v3 zstd 64³, transposed", 3, 64,
        compressor=zstd(3), order="F", most=256, only=FULL_AND_PLANE,
    ),
    Layout("v2 strings", 2, 32, compressor=None, dtype=STRING, most=64, only=FULL),
    Layout("v3 strings", 3, 32, compressor=zstd(3), dtype=STRING, most=64, only=FULL),
)  # fmt: skip
BY_NAME = {layout.name: layout for layout in LAYOUTS}
COPY_TARGET = BY_NAME["v3 blosc 32³ in 256³ shards"]
