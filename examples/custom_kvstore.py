"""A store of your own that stores nothing: it computes a zarr array's chunks when they are read."""

import json

import numpy as np

import tensorstore_py as ts
from tensorstore_py.plugin import kvstore

SIZE, CHUNK = 4096, 256
GRID = {"name": "regular", "configuration": {"chunk_shape": [CHUNK, CHUNK]}}
METADATA = {"zarr_format": 3, "node_type": "array", "shape": [SIZE, SIZE], "data_type": "uint8"}
METADATA |= {"chunk_grid": GRID, "chunk_key_encoding": {"name": "default"}}
METADATA |= {"codecs": ["bytes"], "fill_value": 0}
GENERATION = kvstore.TimestampedStorageGeneration.now(b"the only one")


@kvstore.kvstore("mandelbrot")
class MandelbrotSpec(kvstore.KvStoreSpec):
    """`{"driver": "mandelbrot", "steps": 32}`: a field is a member of the JSON."""

    steps: kvstore.PositiveInt = 32

    def open(self) -> kvstore.KvStore:
        """Makes the store."""
        return MandelbrotStore(self.steps)


class MandelbrotStore(kvstore.KvStore):
    """Read-only, since it has no `write`; docs/writing_a_store.md has a store that writes."""

    inline = True  # it never waits: worker threads run it, several chunks at a time

    def __init__(self, steps: int) -> None:
        self._steps = steps

    async def read(
        self,
        key: str,
        byte_range: kvstore.ByteRange = kvstore.WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> kvstore.ReadResult:
        """Makes up the metadata or a chunk."""
        if if_not_equal == GENERATION.generation:
            return kvstore.ReadResult("unspecified", b"", GENERATION)
        value = json.dumps(METADATA).encode() if key == "zarr.json" else self._chunk(key)
        start, stop = byte_range.resolve(len(value))
        return kvstore.ReadResult("value", value[start:stop], GENERATION)

    def _chunk(self, key: str) -> bytes:
        row, column = (int(index) * CHUNK for index in key.removeprefix("c/").split("/"))
        y, x = np.ogrid[row : row + CHUNK, column : column + CHUNK]
        point = (x * 3 / SIZE - 2.25) + (y * 3 / SIZE - 1.5) * 1j
        z, count = np.zeros_like(point), np.zeros(point.shape, np.uint8)
        for _ in range(self._steps):
            inside = np.abs(z) <= 2
            z = np.where(inside, z * z + point, z)
            count += inside
        return count.tobytes()


if __name__ == "__main__":
    store = ts.open({"driver": "zarr3", "kvstore": {"driver": "mandelbrot"}}).result()
    print(store.domain, "of", store.dtype.name, "and not a byte is stored")
    for line in store[512:3585:192, 256:4096:64].read().result():
        print("".join(" .:-=+*#@"[steps // 4] for steps in line))
