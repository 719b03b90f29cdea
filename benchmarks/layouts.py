"""The stored forms that are compared, each said once as TensorStore JSON and once for zarr-python.

The levels are zarr-python's defaults (gzip 5), or what people use (zstd 3, blosc lz4 5 with byte
shuffle); all libraries read the very same files.
"""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

BLOSC_V2: Json = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
BLOSC_V3: Json = {
    "name": "blosc",
    "configuration": {
        "cname": "lz4",
        "clevel": 5,
        "shuffle": "shuffle",
        "typesize": 2,
        "blocksize": 0,
    },
}
ZSTD: Json = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
GZIP: Json = {"name": "gzip", "configuration": {"level": 5}}
LITTLE: Json = {"name": "bytes", "configuration": {"endian": "little"}}
CRC32C: Json = {"name": "crc32c"}


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to store the volume.

    Attributes:
        name: what the tables call it.
        zarr_format: 2 or 3.
        chunk: the edge of the smallest readable cube, in voxels.
        shard: the edge of the cube that one file holds, when files hold several chunks.
        compressor: the codec after bytes, as the format's metadata has it; None stores raw.
    """

    name: str
    zarr_format: int
    chunk: int
    shard: int | None = None
    compressor: Json | None = field(default=None, hash=False)

    @property
    def driver(self) -> str:
        """The TensorStore driver of this layout."""
        return "zarr" if self.zarr_format == 2 else "zarr3"

    def metadata(self, edge: int) -> Json:
        """The metadata constraint that makes TensorStore create this layout."""
        shape = [edge] * 3
        if self.zarr_format == 2:
            return {
                "shape": shape,
                "chunks": [min(self.chunk, edge)] * 3,
                "dtype": "<u2",
                "order": "C",
                "fill_value": 0,
                "filters": None,
                "compressor": self.compressor,
            }
        codecs: list[Json] = [LITTLE, *([self.compressor] if self.compressor else [])]
        file_edge = min(self.shard or self.chunk, edge)
        if self.shard is not None:
            sharding = {
                "chunk_shape": [min(self.chunk, file_edge)] * 3,
                "codecs": codecs,
                "index_codecs": [LITTLE, CRC32C],
                "index_location": "end",
            }
            codecs = [{"name": "sharding_indexed", "configuration": sharding}]
        return {
            "shape": shape,
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [file_edge] * 3}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 0,
            "codecs": codecs,
        }


LAYOUTS = (
    Layout("v2 blosc 64³", 2, 64, compressor=BLOSC_V2),
    Layout("v2 blosc 32³", 2, 32, compressor=BLOSC_V2),
    Layout("v3 zstd 64³", 3, 64, compressor=ZSTD),
    Layout("v3 gzip 64³", 3, 64, compressor=GZIP),
    Layout("v3 raw 64³", 3, 64),
    Layout("v3 blosc 32³ in 256³ shards", 3, 32, shard=256, compressor=BLOSC_V3),
)
BY_NAME = {layout.name: layout for layout in LAYOUTS}
COPY_TARGET = LAYOUTS[-1]
